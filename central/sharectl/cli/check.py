"""``sharectl check config`` and ``sharectl check snippets``, and the output of every check."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sharectl.check.findings import Check, Finding, as_content, as_lines, has_errors
from sharectl.cli import options
from sharectl.errors import ConfigError
from sharectl.words import counted, printable

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*)(?:=(.*\S.*))?", re.DOTALL)


def attribute(text: str) -> tuple[str, str]:
    """Name and value of ``NAME`` or ``NAME=VALUE``; the default value is True."""
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r}: write NAME or NAME=VALUE, such as NODE_IS_HEALTHY=True")
    return match[1], (match[2] or "True").strip()


def _config(arguments: argparse.Namespace) -> int:
    """Print the configuration with its defaults; 78 if it is faulty, 1 if it cannot work here."""
    from sharectl.config.advice import findings
    from sharectl.config.load import load
    from sharectl.config.text import as_data, render

    try:
        config = load(arguments.config)
    except ConfigError as error:
        if not arguments.json:
            raise
        refused = {"valid": False, "problems": error.problems, "recommendations": []}
        options.show(arguments, "config", {**refused, "config": None}, ())
        return error.exit_code
    problems, recommendations = findings(config, arguments.config)
    report = {"valid": True, "problems": problems, "recommendations": recommendations}
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
        type=Path,
        metavar="DIR",
        help="check the files of this folder, on top of HTCondor's defaults (default: all that "
        "this machine's HTCondor reads)",
    )
    add_published(parser)
    add_check_arguments(parser, CHECKS, "DIR")


def add_published(parser: argparse.ArgumentParser) -> None:
    """Add ``--published``."""
    parser.add_argument(
        "--published",
        action="append",
        default=[],
        type=attribute,
        metavar="NAME[=VALUE]",
        help="an attribute that a STARTD_CRON job of the site publishes, with its value on a "
        "healthy node (default: True); may be repeated",
    )


def _snippets(arguments: argparse.Namespace) -> int:
    """Print knobs as the files make them, then the findings; 1 for more than advice."""
    from sharectl.check.snippets import CHECKS, check
    from sharectl.condor.configuration import source_of

    source = source_of(arguments.directory, with_local=arguments.with_local)
    report = check(source, dict(arguments.published))
    lines = [f"read: {name}" for name in report.files]
    lines += [f"{knob} = {text}" for knob, text in report.made.items()]
    content = {"files": list(report.files), "made": dict(report.made)}
    return show(arguments, "snippets", content, lines, CHECKS, report.findings)


def add_check_arguments(
    parser: argparse.ArgumentParser, checks: Sequence[Check], folders: str
) -> None:
    """Add ``--with-local``, ``--json`` and the list of checks; ``folders`` is for the help."""
    parser.add_argument(
        "--with-local",
        action="store_true",
        help=f"put {folders} on top of what this machine's HTCondor reads instead",
    )
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
}
VERBS = {"check": options.with_actions("check", _CHECKS)}
