"""``sharectl snippets``: HTCondor configuration of sharectl, put in place and taken away."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from sharectl.check.findings import has_errors
from sharectl.check.snippets import ROLES, content_of, place_of, trial
from sharectl.cli import options
from sharectl.cli.check import add_published
from sharectl.files import files
from sharectl.words import printable

_SWITCH_ON = "condor_reconfig"
_INCLUDE = re.compile(r"\s*include\b.*\s*", re.IGNORECASE)
"""Whole content of a file with one ``include`` line."""
_EPILOG = """\
roles: execute, START and STARTD_CRON jobs of an execute point; access, groups and power in jobs of
an access point; central, for condor_defrag where it runs.

The file goes into LOCAL_CONFIG_DIR. It is tried on this machine's whole configuration first, as by
`sharectl check snippets`: if it makes a new fault, nothing is written. HTCondor reads it at the
next condor_reconfig, which this command leaves to you.

exit codes: 0 done, or nothing to do; 1 nothing was written, the output says why; 65 HTCondor's
configuration cannot be read; 74 the folder cannot be written"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--role", required=True, choices=tuple(ROLES), help="role of this machine")
    folder = "folder of the snippet (default: the last of LOCAL_CONFIG_DIR)"
    parser.add_argument("--config-dir", type=options.path, metavar="DIR", help=folder)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_published(parser)


def _install(arguments: argparse.Namespace) -> int:
    return _change(arguments, ROLES[arguments.role].content)


def _remove(arguments: argparse.Namespace) -> int:
    return _change(arguments, None)


def _change(arguments: argparse.Namespace, after: Optional[str]) -> int:
    """Show, try, ask, then put the snippet ``after`` in place, or take it away if it is None."""
    role = ROLES[arguments.role]
    place = place_of(role, arguments.config_dir)
    path, before = place.path, place.content
    if before == after:
        state = "not there" if after is None else "in place already"
        print(printable(f"{path}: {state}, nothing to do"))
        return 0
    includes = before is not None and _INCLUDE.fullmatch(before) is not None
    if not includes:
        _print(_diff(path, before, after))
    if before is not None and not role.is_ours(before):
        fact = "the file was edited, so nothing was written; the lines above would be lost"
        remedy = "move your knobs to a later file, such as 99-local.conf, and this one away"
        if includes:
            fact = "it includes the package's snippet, and nothing was written"
            remedy = f"to be without it, remove this file and run {_SWITCH_ON}"
        options.say([f"{path}: {fact}; {remedy}"])
        return 1
    if after is not None and not place.has_daemon:
        options.say([f"note: DAEMON_LIST has no {role.daemon} here: the file has no effect"])
    findings = trial(place, after, dict(arguments.published), dict(arguments.carried))
    _print(map(str, findings))
    if has_errors(findings):
        options.say([f"{path}: nothing was written, because the trial above failed"])
        return 1
    files.refuse_unwritable(path)
    if not (arguments.yes or _agreed(path, after)):
        options.say([f"{path}: nothing was written; --yes writes it without asking"])
        return 1
    if content_of(path) != before:
        options.say(
            [f"{path}: somebody changed it meanwhile, and nothing was written; run it again"]
        )
        return 1
    if after is None:
        path.unlink()
    else:
        files.replace(path, [after])
    state = "removed" if after is None else "in place"
    print(printable(f"{path}: {state}; to apply it, run:"))
    print(f"  {_SWITCH_ON}")
    return 0


def _diff(path: Path, before: Optional[str], after: Optional[str]) -> Iterable[str]:
    from difflib import unified_diff  # few runs need it

    names = ["/dev/null" if text is None else str(path) for text in (before, after)]
    lines = [(text or "").splitlines() for text in (before, after)]
    return unified_diff(lines[0], lines[1], names[0], names[1], lineterm="")


def _print(lines: Iterable[str]) -> None:
    """Print lines of files, which must not steer a terminal."""
    for line in lines:
        print(printable(line.replace("\t", "    ")))


def _agreed(path: Path, after: Optional[str]) -> bool:
    """Ask a person at a terminal; nobody else agrees."""
    if not sys.stdin.isatty():
        return False
    try:
        answer = input(f"{'Remove' if after is None else 'Write'} {path}? [y/N] ")
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")


_ACTIONS = {
    "install": options.Verb(_install, _add, (), "put a role's snippet in place", _EPILOG),
    "remove": options.Verb(_remove, _add, (), "take a role's snippet away", _EPILOG),
}
VERBS = {"snippets": options.with_actions("action", _ACTIONS)}
