"""``sharectl check snippets``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from sharectl.check.snippets import CHECKS, check
from sharectl.cli import checks
from sharectl.condor.configuration import source_of

_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*")


def attribute(text: str) -> tuple[str, str]:
    """Name and value of ``NAME`` or ``NAME=VALUE``; the default value is True."""
    name, equals, value = text.partition("=")
    if not _ATTRIBUTE.fullmatch(name) or (equals and not value.strip()):
        raise argparse.ArgumentTypeError(
            f"{text!r}: write NAME or NAME=VALUE, such as NODE_IS_HEALTHY=True"
        )
    return name, value.strip() or "True"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "directory",
        nargs="?",
        type=Path,
        metavar="DIR",
        help="check the files of this folder, on top of HTCondor's defaults (default: all that "
        "this machine's HTCondor reads)",
    )
    parser.add_argument(
        "--published",
        action="append",
        default=[],
        type=attribute,
        metavar="NAME[=VALUE]",
        help="an attribute that a STARTD_CRON job of the site publishes, with its value on a "
        "healthy node (default: True); may be repeated",
    )
    checks.add_arguments(parser, CHECKS, "DIR")


def run(arguments: argparse.Namespace) -> int:
    """Print knobs as the files make them, then the findings; 1 for more than advice."""
    source = source_of(arguments.directory, with_local=arguments.with_local)
    report = check(source, dict(arguments.published))
    lines = [f"read: {name}" for name in report.files]
    lines += [f"{knob} = {text}" for knob, text in report.made.items()]
    content = {"files": list(report.files), "made": dict(report.made)}
    return checks.show("snippets", content, lines, CHECKS, report.findings, json=arguments.json)
