"""``sharectl check``, the output of every check, and ``sharectl snippets``."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, TextIO

from sharectl.check.findings import Check, Finding, as_content, as_lines, has_errors
from sharectl.cli import options
from sharectl.files import files
from sharectl.report.tables import print_hanging
from sharectl.words import counted, printable

if TYPE_CHECKING:  # the other checks start without the pool's
    from sharectl.check.pool import PoolReport

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*)(?:=(.*\S.*))?", re.DOTALL)
_TEXT = re.compile(
    r"\s*(?!(?:true|false|undefined|error)\s*$|(?:MY|TARGET)\.)[A-Za-z_][\w.-]*\s*", re.IGNORECASE
)
"""Text without quotes, which HTCondor takes for an attribute."""


def attribute(text: str) -> tuple[str, str]:
    """Name and value of ``NAME`` or ``NAME=VALUE``; the default value is True."""
    match = _ATTRIBUTE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r}: write NAME or NAME=VALUE, such as NODE_IS_HEALTHY=True")
    name, value = match[1], (match[2] or "True").strip()
    if match[2] and _TEXT.fullmatch(value):
        problem = f"{value} is a text without quotes, which HTCondor takes for an attribute"
        raise ValueError(f"{text!r}: {problem}; write {name}='\"{value}\"'")
    return name, value


def _config(arguments: argparse.Namespace) -> int:
    """Print the configuration with its defaults; 78 if it is faulty, 1 if it cannot work here."""
    from sharectl.config.advice import findings
    from sharectl.config.load import load
    from sharectl.config.text import as_data, render

    config = load(arguments.config)
    problems, recommendations = findings(config, arguments.config)
    report = {"problems": problems, "recommendations": recommendations}
    content = {**report, "config": as_data(config)}
    options.show(arguments, "config", content, render(config).splitlines())
    if not arguments.json:
        sys.stdout.flush()
        options.say([*problems, *(f"recommended: {line}" for line in recommendations)])
        # A comment of YAML: what was printed can be used as a configuration.
        advice = f", {len(recommendations)} recommended" if recommendations else ""
        refusal = f"not ok: {counted(len(problems), 'problem')} on this machine"
        print(f"# {refusal if problems else 'ok'}{advice}")
    return 1 if problems else 0


def _add_snippets(parser: argparse.ArgumentParser) -> None:
    from sharectl.check.snippets import CHECKS

    parser.add_argument(
        "directory",
        nargs="?",
        type=options.path,
        metavar="DIR",
        help="check the files of this folder, on top of HTCondor's defaults (default: all that "
        "this machine's HTCondor reads)",
    )
    _add_attributes(parser)
    list_checks(parser, CHECKS)


def _add_attributes(parser: argparse.ArgumentParser) -> None:
    """Add ``--published`` and ``--carried``."""
    whose = {
        "--published": "a STARTD_CRON job of the site publishes, with its value on a healthy node",
        "--carried": "jobs of the site carry, with its value in a typical job",
    }
    for option, words in whose.items():
        parser.add_argument(
            option,
            action="append",
            default=[],
            type=attribute,
            metavar="NAME[=VALUE]",
            help=f"an attribute that {words} (default: True); may be repeated",
        )


def _snippets(arguments: argparse.Namespace) -> int:
    """Print knobs as the files make them, then the findings; 1 for more than advice."""
    from sharectl.check.snippets import CHECKS, check
    from sharectl.condor.configuration import source_of

    source = source_of(arguments.directory)
    report = check(source, dict(arguments.published), dict(arguments.carried))
    lines = [f"read: {name}" for name in report.files]
    lines += [f"{knob} = {text}" for knob, text in report.made.items()]
    content = {"files": list(report.files), "made": dict(report.made)}
    return show(arguments, "snippets", content, lines, CHECKS, report.findings)


def list_checks(parser: argparse.ArgumentParser, checks: Sequence[Check]) -> None:
    """Add the list of checks to the help."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(check.id) for check in checks)
    listed = "\n".join(f"  {check.id:{width}}  {check.holds}" for check in checks)
    parser.epilog = f"checks, and what holds if nothing is found:\n{listed}".replace("%", "%%")


def show(
    arguments: argparse.Namespace,
    kind: str,
    content: Mapping[str, Any],
    lines: Iterable[str],
    checks: Sequence[Check],
    findings: Sequence[Finding],
) -> int:
    """Print the findings after what was read; 1 if any of them is more than advice."""
    # Files are outside text: nothing in them reaches a terminal's control.
    text = (
        printable(line.replace("\n", " ").replace("\t", " "))
        for line in (*lines, *as_lines(findings, checks))
    )
    options.show(arguments, kind, {**content, **as_content(findings, checks)}, text)
    return 1 if has_errors(findings) else 0


# ---- pool

_STATES = ("ok", "warn", "fail", "unknown", "ignored")
_STATE_WIDTH = 9
_SHOWN_CHARACTERS = 600
"""Text of a finding: what daemons and ads say is bounded."""


def _add_pool(parser: argparse.ArgumentParser) -> None:
    from sharectl.check.pool import CHECKS

    list_checks(parser, CHECKS)


def _pool(arguments: argparse.Namespace) -> int:
    """Print what each check of the pool found, but for those to ignore; 1 for more than advice."""
    from sharectl.check.pool import CHECKS, PoolSubject, check, look_of
    from sharectl.cli.status import look_with

    config = options.config_of(arguments)
    seen = look_with(config, look_of)
    status, now = seen.status, seen.status["now"]
    look = status["nodes"].pop("look", None)
    path, problems = arguments.config, seen.problems_of
    report = check(PoolSubject(now, config, path, status, problems, look, seen.state))
    content = {"states": report.states, "evidence": dict(report.evidence)}
    content |= as_content(report.findings, CHECKS)
    options.show(arguments, "pool", content, partial(_print_pool, report))
    return 1 if has_errors(report.findings) else 0


def _print_pool(report: PoolReport, to: TextIO) -> None:
    """Print a paragraph for each check; checks that say the same have one together.

    A terminal gets lines as wide as it is; a pipe gets a line for each check, fault and remedy.
    """
    paragraphs: dict[tuple[str, ...], list[str]] = {}
    for name, state in report.states.items():
        lines = [line for finding in report.findings if finding.id == name for line in _of(finding)]
        seen = report.evidence.get(name, "")
        paragraphs.setdefault((state, seen, *lines), []).append(name)
    for (state, seen, *lines), names in paragraphs.items():
        print_hanging(f"{state:<{_STATE_WIDTH}}", f"{', '.join(names)}: {seen}".rstrip(": "), to)
        for line in lines:
            print_hanging(" " * _STATE_WIDTH, line, to)
    counts = Counter(report.states.values())
    print(", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state]), file=to)


def _of(finding: Finding) -> Iterator[str]:
    """Fault of a finding, and what to do if there is something."""
    from sharectl.check.pool import STATES

    place = "" if finding.place == "-" else f"{finding.place}: "
    yield printable(f"{STATES[finding.level]}: {place}{finding.fault}", _SHOWN_CHARACTERS)
    if finding.remedy != "-":
        yield printable(f"do: {finding.remedy}", _SHOWN_CHARACTERS)


# ---- snippets in place

_EPILOG = """\
roles: execute, START and STARTD_CRON jobs of an execute point; access, groups and power in jobs of
an access point; central, for condor_defrag where it runs.

The file goes into LOCAL_CONFIG_DIR. It is shown and tried on this machine's whole configuration, as
by `sharectl check snippets`. With --yes it is written, unless it makes a new fault. HTCondor reads
it at the next condor_reconfig, which this command leaves to you."""


def _add_role(parser: argparse.ArgumentParser) -> None:
    from sharectl.check.snippets import ROLES

    parser.add_argument("--role", required=True, choices=tuple(ROLES), help="role of this machine")
    folder = "folder of the snippet (default: the last of LOCAL_CONFIG_DIR)"
    parser.add_argument("--config-dir", type=options.path, metavar="DIR", help=folder)
    parser.add_argument("--yes", action="store_true", help="write, instead of showing it only")
    _add_attributes(parser)


def _change(arguments: argparse.Namespace) -> int:
    """Show and try a role's snippet; with ``--yes`` put it in place, or take it away."""
    from sharectl.check.snippets import ROLES, place_of, trial

    role = ROLES[arguments.role]
    after = role.content if arguments.action == "install" else None
    place = place_of(role, arguments.config_dir)
    path, before = place.path, place.content
    if before == after:
        state = "not there" if after is None else "in place already"
        print(printable(f"{path}: {state}, nothing to do"))
        return 0
    _print(_diff(path, before, after))
    if before is not None and not role.is_ours(before):
        fact = "somebody edited the file, or it is one that includes the package's snippet"
        remedy = "move your knobs to a later file, such as 99-local.conf, and this one away"
        options.say([f"{path}: {fact}: nothing was written; {remedy}"])
        return 1
    if after is not None and not place.has_daemon:
        options.say([f"note: DAEMON_LIST has no {role.daemon} here: the file has no effect"])
    findings = trial(place, after, dict(arguments.published), dict(arguments.carried))
    _print(map(str, findings))
    if has_errors(findings):
        options.say([f"{path}: nothing was written, because the trial above failed"])
        return 1
    files.refuse_unwritable(path)
    if not arguments.yes:
        options.say([f"{path}: nothing was written: this is what --yes would write"])
        return 1
    if after is None:
        path.unlink()
    else:
        files.replace(path, [after])
    state = "removed" if after is None else "in place"
    print(printable(f"{path}: {state}; to apply it, run:"))
    print("  condor_reconfig")
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


_CHECKS = {
    "config": options.Verb(
        _config, summary="validate the YAML file and print it with the defaults filled in"
    ),
    "snippets": options.Verb(
        _snippets,
        _add_snippets,
        ("--json",),
        "what files of config.d make of a node, in HTCondor's own parser",
    ),
    "pool": options.Verb(
        _pool,
        _add_pool,
        options.COMMON,
        "look for what keeps a running pool from being steered, or its figures from being right",
    ),
}
_ACTIONS = {
    "install": options.Verb(_change, _add_role, (), "put a role's snippet in place", _EPILOG),
    "remove": options.Verb(
        _change, _add_role, (), "take a role's snippet away", "A file that was edited is kept."
    ),
}
VERBS = {
    "check": options.with_actions("check", _CHECKS),
    "snippets": options.with_actions("action", _ACTIONS),
}
