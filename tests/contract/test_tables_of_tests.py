"""Rows of docs/faults.md and docs/threats.md name tests, and these are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDERS = {"faults.md": TESTS / "pool", "threats.md": TESTS}
"""Page -> folder of the files that its rows name."""
_TABLE = re.compile(r"^\|.*\| test \|\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
_NAME = re.compile(r'^ *def (test_\w+)|"(wn-\d{3})"', re.MULTILINE)
"""Test, or a node that stands for a row in one."""


@pytest.mark.parametrize("page", FOLDERS)
def test_every_row_names_tests_that_are_there(page: str) -> None:
    text = (TESTS.parent / "docs" / page).read_text()
    rows = "".join(_TABLE.findall(text)).splitlines()
    assert len(rows) > 20
    names: list[str] = []
    for row in rows:
        quoted = re.findall(r"`([^`]+)`", row.split("|")[-2])
        assert quoted, f"{row}: no test is named"
        for word in quoted:
            if word.endswith(".py"):
                source = (FOLDERS[page] / word).read_text()
                names = ["".join(found) for found in _NAME.findall(source)]
            part = "" if word.endswith(".py") else word.strip("…[]")
            assert any(part in name for name in names), f"{row}: no test is called {word}"
