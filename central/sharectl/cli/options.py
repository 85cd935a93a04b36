"""Rows of verbs, options that several of them share, and the one way to print."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, TextIO, Union

from sharectl import times
from sharectl.words import printable

if TYPE_CHECKING:  # verbs without a configuration start without its models
    from sharectl.config.model import Config
    from sharectl.model import Plan
    from sharectl.snapshot.pool import CondorPool

DEFAULT_CONFIG = "/etc/sharectl/sharectl.yaml"
COMMON = ("--config", "--json")
LOOK = (*COMMON, "--jobs")


class Verb(NamedTuple):
    """A verb, or one of its actions."""

    run: Callable[[argparse.Namespace], int]
    """Runs it, and returns the exit code."""
    add_arguments: Optional[Callable[[argparse.ArgumentParser], None]] = None
    shared: Sequence[str] = COMMON
    """Options of `_SHARED`."""
    summary: str = ""
    """Of an action; `sharectl.cli.main` has those of verbs."""
    epilog: str = ""


def add_verb(verbs: Any, name: str, summary: str, verb: Optional[Verb]) -> None:
    """Add a verb to the subparsers ``verbs``; its arguments only if ``verb`` is known."""
    description = f"{summary[0].upper()}{summary[1:]}."
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=summary, description=description)
    if verb is not None:
        parser.set_defaults(run=verb.run, usage_error=parser.error)
        parser.epilog = verb.epilog.replace("%", "%%")
        if "\n" in verb.epilog:
            parser.formatter_class = argparse.RawDescriptionHelpFormatter
        if verb.add_arguments is not None:
            verb.add_arguments(parser)
        add(parser, *verb.shared)


def with_actions(noun: str, actions: Mapping[str, Verb]) -> Verb:
    """Verb whose second word is one of ``actions``; ``noun`` is what they are."""

    def add(parser: argparse.ArgumentParser) -> None:
        words = parser.add_subparsers(
            title=f"{noun}s", dest="action", metavar=noun.upper(), required=True
        )
        for name, action in actions.items():
            add_verb(words, name, action.summary, action)

    return Verb(next(iter(actions.values())).run, add, shared=())


# ---- options


def moment(text: str) -> int:
    """Type of an argument that is a time: its Unix seconds."""
    return times.parse(text, int(time.time()))


def path(text: str) -> Path:
    """Type of an argument that is a folder or file; ``-`` and an empty text are refused."""
    if text in ("", "-"):
        raise ValueError(f"{text!r} is no path here: write that of a file or folder")
    return Path(text)


def output(text: str) -> Optional[Path]:
    """Type of an argument that is a file to write; ``-`` and None are standard output."""
    return None if text == "-" else path(text)


_SHARED: Mapping[str, dict[str, Any]] = {
    "--config": {
        "type": Path,
        "default": Path(DEFAULT_CONFIG),
        "metavar": "FILE",
        "help": "default: %(default)s",
    },
    "--json": {"action": "store_true", "help": "print JSON, with a schema version"},
    "--set": {"dest": "settings", "action": "append", "default": [], "metavar": "KEY=VALUE"},
    "--from": {"dest": "since", "type": moment, "metavar": "TIME"},
    "--to": {"dest": "until", "type": moment, "metavar": "TIME"},
    "--jobs": {
        "type": path,
        "metavar": "FILE",
        "help": "work offline on a file like AcctGroup_hs06.txt (a row a job: JobStatus, node or "
        "PEND, group, seconds running, cores, HS06 per core; docs/method.md has the condor_q "
        "command) instead of asking the pool, as it was when the file was written",
    },
}


def add(parser: argparse._ActionsContainer, *options: str, **changes: Any) -> None:
    """Add shared options; ``changes`` go before their keywords of argparse."""
    for option in options:
        parser.add_argument(option, **{**_SHARED[option], **changes})


def number(least: float, most: float, *, whole: bool = False) -> Callable[[str], Any]:
    """Type of an argument that is a number between two bounds, which are included."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not least <= value <= most or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise ValueError(f"{text[:20]!r}: write {kind} from {least:.10g} to {most:.10g}")
        return int(value) if whole else value

    return parsed


def refuse_no_period(arguments: argparse.Namespace) -> None:
    """Usage error of an action whose ``--from`` is not before its ``--to``."""
    if arguments.since >= arguments.until:
        arguments.usage_error("--from is not before --to: write the earlier time first")


def config_of(arguments: argparse.Namespace) -> Config:
    """Configuration that ``--config`` names."""
    from sharectl.config.load import load

    return load(arguments.config)


def pool_of(config: Config) -> CondorPool:
    """Live pool."""
    from sharectl.config.model import OBSERVE
    from sharectl.snapshot.pool import CondorPool

    return CondorPool(
        config.tree.names,
        config.nodes,
        config.pool,
        config.control.limits.multicore_cores,
        true_sizes=config.control.strategy == "many",
        observes=config.mode == OBSERVE,
    )


# ---- output


def show(
    arguments: argparse.Namespace,
    kind: str,
    content: Mapping[str, Any],
    text: Union[Iterable[str], Callable[[TextIO], object]],
) -> None:
    """Print the content as JSON if ``--json`` is set; else the lines of ``text``, or call it."""
    from sharectl.report import as_json

    if arguments.json:
        print(as_json.dumps(kind, content))
    elif callable(text):
        text(sys.stdout)
    else:
        for line in text:
            print(printable(line))


_COLUMNS = 79
ERROR, WARNING, NOTICE = 3, 4, 5
"""Priorities of the journal (sd-daemon(3))."""


def say(lines: Iterable[str], priority: int = ERROR) -> None:
    """Print lines to standard error, each after the name of the command.

    They may quote servers and daemons, whose characters must neither steer a terminal nor begin a
    line. The journal, if it reads them, knows the ``priority`` by a prefix.
    """
    start = "sharectl: "
    with contextlib.suppress(OSError, ValueError):
        error = os.fstat(sys.stderr.fileno())
        if os.environ.get("JOURNAL_STREAM") == f"{error.st_dev}:{error.st_ino}":
            start = f"<{priority}>{start}"
    for line in lines:
        print(f"{start}{printable(line)}", file=sys.stderr)


class Line:
    """Line of progress on a terminal; another standard error gets none."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Replace the line."""
        if self.is_shown:
            print(f"\r{printable(text, _COLUMNS)}\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line."""
        self.show("")


def say_warnings(warnings: Iterable[str]) -> None:
    """Print to standard error oddities of the configuration."""
    say((f"warning: {warning}" for warning in warnings), WARNING)


def say_limits(plan: Plan) -> None:
    """Print to standard error which limits acted on a plan, and on how many nodes."""
    from sharectl.plan.limits import LIMITS

    say((f"{LIMITS[note.code]}: {note.nodes}" for note in plan.limits), NOTICE)


def no_cycle(span: Optional[tuple[int, int]], wanted: str = "cycle in that time") -> str:
    """Message for a cycle that is not there; ``span`` is the ledger's, None if it is empty."""
    if span is None:
        return "no cycle is in the ledger yet: `sharectl cycle`"
    first, last = map(times.shown, span)
    return f"no {wanted}: the ledger has cycles from {first} to {last}"
