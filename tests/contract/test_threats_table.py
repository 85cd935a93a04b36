"""Every row of docs/threats.md that tells an attempt names a test, and the tests are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "threats.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and line.count("|") == 4 and "`" in line.rsplit("|", 2)[1]
]
"""Attempt, outcome and tests of each row."""


@pytest.mark.parametrize("row", [row for row in ROWS if ".py" in row[2]], ids=lambda row: row[0])
def test_the_tests_of_a_threat_are_there(row: list[str]) -> None:
    names: list[str] = []
    for quoted in re.findall(r"`([^`]+)`", row[2]):
        if quoted.endswith(".py"):
            names = re.findall(r"def (test_\w+)", (CHECKOUT / "tests" / quoted).read_text())
            assert names, quoted
        else:
            part = quoted.strip("…")
            assert [name for name in names if part in name], f"{quoted}: no test has this name"


def test_no_attempt_is_without_a_test() -> None:
    attempts = re.findall(r"^\| attempt \|(?:.*\n)+?\n", PAGE.read_text() + "\n", re.MULTILINE)
    rows = [line for table in attempts for line in table.splitlines()[2:] if line]
    assert len(rows) == len([row for row in ROWS if ".py" in row[2]]) > 0
