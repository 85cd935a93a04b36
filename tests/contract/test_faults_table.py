"""Every row of docs/faults.md names a test, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
POOL = CHECKOUT / "tests" / "pool"
TABLE = CHECKOUT / "docs" / "faults.md"
FAULTS = """\
collector killed, negotiator down, schedd down, schedd hangs, startd dies, disk full, SIGKILL,
an hour ahead, deleted, truncated, directory, link, FIFO, key rotated, slow, gone, 500, 1 GiB,
steps back, steps forward"""
"""What the first column has to have rows for."""


def rows() -> list[tuple[str, str]]:
    """First and last column of the table, without its head."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    return [(cells[1].strip(), cells[-2]) for cells in (line.split("|") for line in lines[1:])]


def named_in(column: str) -> tuple[list[str], list[str]]:
    """Files and parts of names in the last column; a range of nodes is written out."""
    quoted = re.findall(r"`([^`]+)`", column)
    files = [text for text in quoted if text.endswith(".py")]
    parts = [text.strip("…[]") for text in quoted if not text.endswith(".py")]
    if " to " in column:
        first, last = (int(part.rpartition("-")[2]) for part in parts)
        parts = [f"wn-{number:03}" for number in range(first, last + 1)]
    return files, parts


def names_in(file: Path) -> list[str]:
    """Names of the tests of a file, and of the nodes that stand for rows there."""
    return re.findall(r'^def (test_\w+)|"(wn-\d{3})"', file.read_text(), re.MULTILINE)


def test_every_row_names_tests_that_are_there() -> None:
    file = POOL
    for fault, column in rows():
        files, parts = named_in(column)
        file = POOL / files[0] if files else file
        assert parts, f"{fault}: no test is named"
        names = ["".join(found) for found in names_in(file)]
        missing = [part for part in parts if not any(part in name for name in names)]
        assert not missing, f"{fault}: no test of {file.name} is called {missing}"


def test_every_fault_has_a_row() -> None:
    told = " ".join(fault for fault, _ in rows())
    assert [fault for fault in re.split(r",\s+", FAULTS) if fault not in told] == []
