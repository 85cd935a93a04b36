"""``sharectl VERB …``: runs a verb, and turns its errors into lines and an exit code."""

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
from sharectl.cli.options import exit_codes, joined
from sharectl.errors import INTERNAL, INTERRUPTED, SharectlError, StateError

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
    "explain": "why a group, a node, a cycle or a job is treated as it is, and what would change "
    "it",
    "replay": "what another law or strategy would have decided in the ledger's cycles (open loop)",
    "report": "draw the ledger as one page: work against pledge, jobs by size, errors, targets",
    "ledger": "what was recorded of every cycle: its size, export, import, check",
    "check": "check the configuration, or HTCondor snippets, before they are used",
    "render": "print HTCondor configuration made from the pledges",
    "consumption": "consumption policies: generate and check them, price jobs, count claims",
    "cadence": "what the negotiation interval costs in idle cores, and which to choose",
}
"""Verb -> its summary. Its module has its name, and is imported only if it is run."""

_MODULES = {"enable": "disable"}
"""Verb -> name of its module, where that is another one."""

WITH_ACTIONS = ("explain", "ledger", "check", "consumption")
"""Verbs whose second word is an action."""

TRACEBACK = "SHARECTL_TRACEBACK"
"""Environment variable that asks for the traceback of an internal error."""

_WITHOUT_VERB = ("-h", "--help", "--version")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_WORD_CHARACTERS = 60
_MESSAGE_CHARACTERS = 500
_REMEDIES = {
    errno.EACCES: "run this as the user of `sharectl cycle`, or give this user the right to it",
    errno.EPERM: "run this as the user of `sharectl cycle`, or give this user the right to it",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.ENOENT: "make it, or name another",
    errno.EMFILE: "raise `ulimit -n`",
}
"""Number of an operating system's error -> remedy."""


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the command with the arguments ``argv``, or those of this process; returns its exit code.

    Errors are lines on standard error, never a traceback; SHARECTL_TRACEBACK=1 asks for one.
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
            remedy = _REMEDIES.get(error.errno or 0, "see what is wrong there")
            streams.complain(f"{place}: {error.strerror or error}; {remedy}")
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
        command = f"sharectl {' '.join(chosen)}"
        parser.error(unknown_arguments(unknown, command, of_verb.format_help()))
    code: int = parsed.run(parsed)
    return code


def build_parser(verb: Optional[str]) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Parser of the whole command, and that of ``verb``, whose module alone is imported."""
    parser = argparse.ArgumentParser(
        prog="sharectl",
        description="Keeps the groups of an HTCondor pool at their promised shares.",
        epilog=exit_codes(),
    )
    parser.add_argument("--version", action="version", version=f"sharectl {__version__}")
    verbs = parser.add_subparsers(
        title="verbs",
        dest="verb",
        metavar="VERB",
        required=True,
        prog=parser.prog,  # else argparse loads shutil and compressors to format it
    )
    of_verb = parser
    for name, summary in VERBS.items():
        described = verbs.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if name == verb:
            module = import_module(f"sharectl.cli.{_MODULES.get(name, name)}")
            module.add_arguments(described)
            described.set_defaults(run=module.run)
            of_verb = described
    return parser, of_verb


def misplaced(arguments: Sequence[str], verbs: Collection[str]) -> Optional[str]:
    """Fault of the first words, if a verb or its action is missing or misspelt; else None."""
    first, second = (*arguments[:2], "", "")[:2]
    option = (second if first in WITH_ACTIONS else first).partition("=")[0][:_WORD_CHARACTERS]
    if first in WITH_ACTIONS and second.startswith("-") and second not in _WITHOUT_VERB:
        return (
            f"options are written behind the second word: sharectl {first} WORD {option} ... "
            f"(`sharectl {first} --help` has the words)"
        )
    if not first or first in _WITHOUT_VERB or first in verbs:
        return None
    if first.startswith("-"):
        verb = next((word for word in arguments if word in verbs), "VERB")
        return f"options are written behind the verb: sharectl {verb} {option} ..."
    near = get_close_matches(option, verbs, 1)
    instead = f"write {near[0]}" if near else f"it is one of {', '.join(verbs)}"
    return f"there is no verb {first[:_WORD_CHARACTERS]!r}; {instead}"


def unknown_arguments(words: Sequence[str], command: str, help_text: str) -> str:
    """Fault of ``words`` that ``command`` does not know; ``help_text`` has its options."""
    known = sorted(set(_OPTION.findall(help_text)))
    options = [word.partition("=")[0][:_WORD_CHARACTERS] for word in words if word.startswith("-")]
    faults = [f"{word[:_WORD_CHARACTERS]!r} is one word too many" for word in words]
    if options:
        near = {option: get_close_matches(option, known, 1) for option in options}
        faults = [
            f"there is no option {option}" + (f"; write {near[option][0]}" if near[option] else "")
            for option in options
        ]
    return f"{'; '.join(faults)} (`{command} --help` has what there is)"


def _internal(error: Exception) -> str:
    """Message of an error in sharectl itself, with its place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"internal error{place}: {type(error).__name__}: {str(error)[:_MESSAGE_CHARACTERS]}"
