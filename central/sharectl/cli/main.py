"""``sharectl VERB …``: runs a verb, and turns its errors into lines and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import re
import select
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, Optional

from sharectl import __version__
from sharectl.cli.options import DEFAULT_CONFIG, Verb, add_verb, say
from sharectl.errors import (
    EXIT_CODES,
    INTERNAL,
    INTERRUPTED,
    REPORT,
    MissingExtraError,
    SharectlError,
    StateError,
)
from sharectl.files.files import REMEDIES
from sharectl.words import did_you_mean, printable, quoted

VERBS = {
    "init": "write a first configuration from what the live pool tells",
    "snapshot": "look at the pool: what each group holds and waits for",
    "errors": "each group's error, as rows of shares_Error.log",
    "plan": "the targets that the errors call for, as lines of sharectl.txt",
    "cycle": "all of it: look, decide, publish, remember (what the timer runs)",
    "disable": "withdraw all targets, and publish none until `enable`",
    "enable": "let cycles publish targets again",
    "nodes": "each node: control, snippet, version, target, since when, and why it gets none",
    "status": "the last cycle, what is published, and what the nodes make of it",
    "pledges": "each group's pledge, where it is from and how old it is",
    "explain": "why a group, a node, a cycle or a job is treated as it is, and what would change "
    "it",
    "report": "draw the ledger as one page: work against pledge, jobs, errors, targets",
    "ledger": "what was recorded of every cycle: its size, check and export",
    "check": "check the configuration, snippets, or a running pool (policies: `consumption check`)",
    "snippets": "put sharectl's HTCondor configuration in place on this machine, or take it away",
    "consumption": "consumption policies: generate and check them, price jobs",
    "simulate": "what strategies would do to a pool: the digital twin, on the same jobs",
    "learn": "train the policy of the law `learned` on simulated pools",
    "tune": "search the settings that keep a simulated pool nearest to its pledges",
    "cadence": "what the negotiation interval costs in idle cores, and which to choose",
    "completion": "print the completion of this command for a shell",
}
"""Verb -> its summary. Its module has its name, and is imported only if it is run."""

GROUPS = {
    "run it": ("cycle", "disable", "enable"),
    "ask it": ("status", "nodes", "explain", "plan", "report"),
    "set it up": ("init", "check", "snippets", "consumption"),
    "laboratory": ("simulate", "tune"),
}
"""Title of a group -> its verbs, as `sharectl --help` lists them."""

LABORATORY = ("simulate", "learn", "tune")
"""Verbs of the package `sharectl_lab`, by the entry points `sharectl.verbs`."""

_MODULES = {
    "disable": "cycle",
    "enable": "cycle",
    "errors": "plan",
    "nodes": "pool",
    "pledges": "plan",
    "snapshot": "pool",
    "snippets": "check",
}
"""Verb -> name of its module, where that is another one."""

TRACEBACK = "SHARECTL_TRACEBACK"
"""Environment variable that asks for the traceback of an internal error."""

MOST_UNSEARCHED = 50_000
"""New objects after which Python looks for garbage."""

_MESSAGE_CHARACTERS = 500


def run(*, heeds_ctrl_c: bool) -> NoReturn:
    """Run the command with the arguments of this process, and end it; `sharectl.__main__` calls it.

    Python's search for garbage during imports and its clean-up at the end, which HTCondor's library
    makes long, take a sixth of a short run.
    """
    gc.set_threshold(MOST_UNSEARCHED)
    code = INTERRUPTED
    try:
        if heeds_ctrl_c:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = main()
    except KeyboardInterrupt:  # before or after the verb
        _complain("interrupted")
    finally:
        if heeds_ctrl_c:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the command with the arguments ``argv``, or those of this process; returns its exit code.

    Errors are lines on standard error, never a traceback; SHARECTL_TRACEBACK=1 asks for one.
    """
    _open_missing_streams()
    code = 0
    try:
        try:
            code = _run(list(sys.argv[1:] if argv is None else argv))
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except SharectlError as error:
        _complain(*error.problems)
        code = error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted")
        code = INTERRUPTED
    except OSError as error:
        # Where the reader (head, less) has had enough the code of a verb that ended stays.
        if not (isinstance(error, BrokenPipeError) and _reader_is_gone()):
            place = error.filename or "standard output"
            remedy = REMEDIES.get(error.errno or 0, "see what is wrong there")
            _complain(f"{place}: {error.strerror or error}; {remedy}")
            code = StateError.exit_code
    except UnicodeError as error:
        _complain(f"{error}; run it in a locale with UTF-8, such as LC_ALL=C.UTF-8")
        code = StateError.exit_code
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        from traceback import extract_tb  # few runs need it

        frames = extract_tb(error.__traceback__)
        place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        message = f"{type(error).__name__}: {str(error)[:_MESSAGE_CHARACTERS]}"
        _complain(f"internal error{place}: {message}; {REPORT}; {TRACEBACK}=1 tells more")
        code = INTERNAL
    _end_output()
    return code


def _run(arguments: Sequence[str]) -> int:
    parsed = build_parser(*[word for word in arguments if word in VERBS][:1]).parse_args(arguments)
    with contextlib.ExitStack() as stack:
        if os.geteuid() == 0:
            from sharectl.condor.service import asking_as_service  # for root alone

            configuration = getattr(parsed, "config", None) or getattr(parsed, "output", None)
            stack.enter_context(asking_as_service(Path(configuration or DEFAULT_CONFIG)))
        code: int = parsed.run(parsed)
        return code


_Row = argparse._SubParsersAction._ChoicesPseudoAction  # noqa: SLF001 - a line of help


class _Parser(argparse.ArgumentParser):
    """Parser for which ``-2d`` is a value as -2 is, and that prints what a type's error says."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "allow_abbrev": False})
        self._negative_number_matcher = re.compile(r"-[0-9]")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does; an unknown option is an error of the verb, with its usage."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            remedy = "see --help, and write options behind the verb"
            self.error(f"unrecognized arguments: {' '.join(unknown)}; {remedy}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """End with the usage; arguments in the message may come from anywhere."""
        super().error(printable(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise argparse.ArgumentError for an invalid word, with the one that was meant."""
        if action.choices is not None and value not in action.choices:
            otherwise = f"write one of {', '.join(map(str, action.choices))}"
            remedy = did_you_mean(str(value), map(str, action.choices), otherwise)
            raise argparse.ArgumentError(action, f"{quoted(str(value))} is invalid; {remedy}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        kind: Any = self._registry_get("type", action.type, action.type)
        try:
            return kind(arg_string)
        except ValueError as error:
            raise argparse.ArgumentError(action, str(error)) from None


def build_parser(*with_arguments: str) -> argparse.ArgumentParser:
    """Parser of the command, with the arguments of some verbs, whose modules alone are imported."""
    others = [name for name in VERBS if name not in (*chain(*GROUPS.values()), "errors")]
    codes = "; ".join(f"{code} {words}" for code, words in EXIT_CODES.items())
    parser = _Parser(
        prog="sharectl",
        description="Keeps the groups of an HTCondor pool at their promised shares.",
        usage="sharectl [-h] [--version] VERB ...",
        epilog=f"Each verb has --help. Other verbs: {', '.join(others)}. Exit codes: {codes}",
    )
    parser.add_argument("--version", action="version", version=f"sharectl {__version__}")
    for title, names in GROUPS.items():
        rows = [_Row(name, (), VERBS[name]) for name in names]
        parser.add_argument_group(title)._group_actions.extend(rows)  # noqa: SLF001
    verbs = parser.add_subparsers(
        help=argparse.SUPPRESS,
        dest="verb",
        metavar="VERB",
        required=True,
        prog=parser.prog,  # else argparse loads shutil and compressors to format it
    )
    for name, summary in VERBS.items():
        add_verb(verbs, name, summary, _verb(name) if name in with_arguments else None)
    return parser


def installed_verbs() -> list[str]:
    """Verbs without those of the laboratory where it is not installed."""
    names = []
    for name in VERBS:
        with contextlib.suppress(MissingExtraError):
            _verb(name)
            names.append(name)
    return names


def _verb(name: str) -> Verb:
    """Arguments and run of a verb; raises `MissingExtraError` for one that is not installed."""
    if name not in LABORATORY:
        verb: Verb = import_module(f"sharectl.cli.{_MODULES.get(name, name)}").VERBS[name]
        return verb
    from importlib.metadata import distribution  # for these verbs alone

    points = distribution("sharectl").entry_points
    module = next(x.value for x in points if (x.group, x.name) == ("sharectl.verbs", name))
    try:
        verb = import_module(module).VERBS[name]
    except ModuleNotFoundError as error:
        fact = f"{name} is a verb of the laboratory, of which {error.name} is not installed"
        raise MissingExtraError(f"{fact}; install the package sharectl-lab") from None
    return verb


# ---- standard streams that are closed, full, or in a locale that lacks characters


def _open_missing_streams() -> None:
    """Put /dev/null where a standard stream is closed, and make every character printable.

    Otherwise the next file that is opened gets the stream's number, and the output of libraries.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # It gets the lowest free number.
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(*lines: str) -> None:
    """Print lines to standard error as `say`, if it takes them."""
    with contextlib.suppress(OSError, ValueError):
        say(lines)
        sys.stderr.flush()


def _reader_is_gone() -> bool:
    """Return whether standard output is a pipe or a socket without a reader."""
    poll = select.poll()
    with contextlib.suppress(OSError, ValueError):
        poll.register(sys.stdout, 0)  # errors and ends are reported all the same
    return bool(poll.poll(0))


def _end_output() -> None:
    """Drop the rest of the output if standard output fails: Python would complain at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
