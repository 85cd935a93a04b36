"""Arguments, output and exit code of verbs that check configuration."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sharectl.check.findings import Check, Finding, as_content, as_lines, has_errors
from sharectl.report import as_json
from sharectl.words import printable


def add_arguments(
    parser: argparse.ArgumentParser, checks: Sequence[Check[Any]], folders: str
) -> None:
    """Add ``--with-local``, ``--json`` and the list of checks; ``folders`` is for the help."""
    parser.add_argument(
        "--with-local",
        action="store_true",
        help=f"put {folders} on top of what this machine's HTCondor reads instead",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(check.id) for check in checks)
    listed = "\n".join(f"  {check.id:{width}}  {check.holds}" for check in checks)
    parser.epilog = f"checks, and what holds if nothing is found:\n{listed}".replace("%", "%%")


def show(
    kind: str,
    content: Mapping[str, Any],
    lines: Iterable[str],
    checks: Sequence[Check[Any]],
    findings: Sequence[Finding],
    *,
    json: bool,
) -> int:
    """Print the findings after what was read; 1 if any of them is more than advice."""
    if json:
        print(as_json.dumps(kind, {**content, **as_content(findings, checks)}))
    else:
        # Files are outside text: nothing in them reaches a terminal's control.
        for line in (*lines, *as_lines(findings, checks)):
            print(printable(line.replace("\n", " ").replace("\t", " ")))
    return 1 if has_errors(findings) else 0
