"""``sharectl VERB …``: finds the verb, runs it, turns errors into one line and an exit code.

What is wrong with the words of a command, and what to write instead, where argparse leaves it to
guessing.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import traceback
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Optional

from sharectl import __version__
from sharectl.cli import streams
from sharectl.cli.times import joined
from sharectl.errors import EXIT_CODES, INTERNAL, INTERRUPTED, SharectlError, StateError

_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_WITHOUT_VERB = ("-h", "--help", "--version")
_SHOWN = 60
"""Characters of a word that are compared, and shown."""


WITH_ACTIONS = ("explain", "ledger", "check", "consumption")
"""Verbs whose second word says what is to be done."""


def misplaced(arguments: Sequence[str], verbs: Collection[str]) -> Optional[str]:
    """Fault of the first words, if a verb or its action is not among them; None if they may stand there."""
    first, second = (*arguments[:2], "", "")[:2]
    if first in WITH_ACTIONS and second.startswith("-") and second not in _WITHOUT_VERB:
        option = second.partition("=")[0][:_SHOWN]
        return (
            f"options are written behind the second word: sharectl {first} WORD {option} ... "
            f"(`sharectl {first} --help` has the words)"
        )
    if not first or first in _WITHOUT_VERB or first in verbs:
        return None
    if first.startswith("-"):
        verb = next((word for word in arguments if word in verbs), "VERB")
        option = first.partition("=")[0][:_SHOWN]
        return f"options are written behind the verb: sharectl {verb} {option} ..."
    near = get_close_matches(first[:_SHOWN], verbs, 1)
    instead = f"write {near[0]}" if near else f"it is one of {', '.join(verbs)}"
    return f"there is no verb {first[:_SHOWN]!r}; {instead}"


def unknown_arguments(words: Sequence[str], command: str, help_text: str) -> str:
    """What is wrong with ``words``, which ``command`` does not know; ``help_text`` has options that it does."""
    known = sorted(set(_OPTION.findall(help_text)))
    options = [word.partition("=")[0][:_SHOWN] for word in words if word.startswith("-")]
    others = [word[:_SHOWN] for word in words if not word.startswith("-")] if not options else []
    said = []
    for option in options:
        near = get_close_matches(option, known, 1)
        said.append(f"there is no option {option}" + (f"; write {near[0]}" if near else ""))
    said += [f"{word!r} is one word too many" for word in others]
    return f"{'; '.join(said)} (`{command} --help` has what there is)"


DEFAULT_CONFIG = "/etc/sharectl/sharectl.yaml"
TRACEBACK = "SHARECTL_TRACEBACK"
"""Environment variable that asks for the traceback of an internal error."""

_MOST_CHARACTERS = 500
_REMEDIES = {
    errno.EACCES: "run this as the user of `sharectl cycle`, or give this user the right to it",
    errno.EPERM: "run this as the user of `sharectl cycle`, or give this user the right to it",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.ENOENT: "make it, or name another",
    errno.EMFILE: "raise `ulimit -n`",
}
_ANY_OS_ERROR = "see what is wrong there"

VERBS = {
    "snapshot": "look at the pool: what each group holds and waits for",
    "errors": "each group's error, as rows of shares_Error.log",
    "plan": "the targets that the errors call for, as lines of sharectl.txt",
    "publish": "publish a plan that `sharectl plan --json` printed",
    "cycle": "all of it: look, decide, publish, remember (what the timer runs)",
    "disable": "withdraw all targets, and publish none until `enable`",
    "enable": "let cycles publish targets again",
    "status": "the last cycle, what is published, and what the nodes make of it",
    "pledges": "each group's pledge, where it is from and how old it is",
    "explain": "why a group, a node, a cycle or a job is treated as it is, and what would change it",
    "replay": "what another law or strategy would have decided in the ledger's cycles (open loop)",
    "report": "draw the ledger as one page: work against pledge, jobs by size, errors, targets",
    "ledger": "what was recorded of every cycle: its size, export, import, check",
    "check": "check the configuration, or HTCondor snippets, before they are used",
    "render": "print HTCondor configuration made from the pledges",
    "consumption": "consumption policies: generate and check them, price jobs, count claims",
    "cadence": "what the negotiation interval costs in idle cores, and which to choose",
}

_EXIT_CODES = "exit codes: " + "; ".join(
    f"{code} {meaning}" for code, meaning in EXIT_CODES.items()
)


def build_parser(verb: Optional[str]) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Parser of the whole command, and that of ``verb``, whose arguments alone are loaded: imports cost time."""
    parser = argparse.ArgumentParser(
        prog="sharectl",
        description="Keeps the groups of an HTCondor pool at their promised shares.",
        epilog=_EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"sharectl {__version__}")
    verbs = parser.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    of_verb = parser
    for name, summary in VERBS.items():
        described = verbs.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if name == verb:
            module = import_module(f"sharectl.cli.{name}")
            module.add_arguments(described)
            described.set_defaults(run=module.run)
            of_verb = described
    return parser, of_verb


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Exit code of the command with the arguments ``argv``; those of this process if None.

    Whatever happens is told in lines on standard error, never in a traceback; SHARECTL_TRACEBACK=1
    asks for one.
    """
    streams.open_missing()
    code = 0
    try:
        try:
            code = _run(list(sys.argv[1:] if argv is None else argv))
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except SharectlError as error:
        streams.complain(str(error))
        code = error.exit_code
    except KeyboardInterrupt:
        streams.complain("interrupted")
        code = INTERRUPTED
    except OSError as error:
        # Where the reader (head, less) has had enough the code of a verb that ended stays.
        if not (isinstance(error, BrokenPipeError) and streams.reader_is_gone()):
            place = error.filename or "standard output"
            streams.complain(
                f"{place}: {error.strerror or error}; "
                f"{_REMEDIES.get(error.errno or 0, _ANY_OS_ERROR)}"
            )
            code = StateError.exit_code
    except UnicodeError as error:
        streams.complain(f"{error}; run it in a locale with UTF-8, such as LC_ALL=C.UTF-8")
        code = StateError.exit_code
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        streams.complain(f"{_internal(error)}; please report this line; {TRACEBACK}=1 tells more")
        code = INTERNAL
    streams.end_output()
    return code


def _run(arguments: Sequence[str]) -> int:
    verb = next((word for word in arguments if word in VERBS), None)
    parser, of_verb = build_parser(verb)
    problem = misplaced(arguments, VERBS)
    if problem:
        parser.error(problem)
    parsed, unknown = parser.parse_known_args(joined(arguments))
    if unknown:
        chosen = [word for word in arguments[:2] if word in map(str, vars(parsed).values())]
        parser.error(
            unknown_arguments(unknown, f"sharectl {' '.join(chosen)}", of_verb.format_help())
        )
    code: int = parsed.run(parsed)
    return code


def _internal(error: Exception) -> str:
    """What went wrong in sharectl itself, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"internal error{place}: {type(error).__name__}: {str(error)[:_MOST_CHARACTERS]}"
