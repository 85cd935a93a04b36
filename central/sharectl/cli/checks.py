"""What `sharectl consumption check` and `sharectl check snippets` have in common: a table of checks and its findings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sharectl.check.subject import Finding

Checks = Sequence[tuple[str, str, object]]
"""Name of each check, what holds if it finds nothing, and what it does."""


def add_arguments(parser: argparse.ArgumentParser, checks: Checks, folders: str) -> None:
    """Add what both verbs have, and the list of checks; ``folders`` is what ``--with-local`` calls what is checked."""
    parser.add_argument(
        "--with-local",
        action="store_true",
        help=f"put {folders} on top of what this machine's HTCondor reads instead",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with a schema version")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(len(name) for name, *_ in checks)
    listed = "\n".join(f"  {name:{width}}  {holds}" for name, holds, _ in checks)
    parser.epilog = f"checks, and what holds if nothing is found:\n{listed}".replace("%", "%%")


def exit_code(findings: Sequence[Finding]) -> int:
    """1 if anything is wrong; what is only recommended is no failure."""
    return 1 if any(not finding.advice for finding in findings) else 0


def as_lines(findings: Sequence[Finding], checks: Checks) -> list[str]:
    """Findings one a line, then how many there are."""
    wrong = sum(not finding.advice for finding in findings)
    advice = len(findings) - wrong
    counted = f"{len(checks)} checks, {wrong or 'nothing'} found" + (
        f", {advice} recommended" if advice else ""
    )
    return [*(str(finding) for finding in findings), counted]


def as_content(findings: Sequence[Finding], checks: Checks) -> dict[str, Any]:
    """The same for programs."""
    return {
        "checks": [{"check": name, "holds": holds} for name, holds, _ in checks],
        "findings": [asdict(finding) for finding in findings],
    }
