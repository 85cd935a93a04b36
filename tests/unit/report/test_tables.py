from __future__ import annotations

import io
import re

import pytest

from sharectl.report.tables import print_table
from tests.verbs import Terminal

COLUMNS = ("slots", "takes", "cost", "refused")
ROWS = [
    ("slot1@wn-1.example.org (3 alike)", "Cpus=1 Memory=1920 Disk=100000", "1", "-"),
    (
        "slot1@wn-2.example.org",
        "Cpus=16 Memory=30720 Disk=100000",
        "1e-05",
        "Cpus, Memory: not enough is left",
    ),
]


def test_a_pipe_gets_a_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    to = io.StringIO()
    print_table("[b]title", COLUMNS, ROWS, to)
    assert to.getvalue().splitlines() == [
        "[b]title",
        f"{'slots':<32}  {'takes':<32}   cost  refused",
        f"{ROWS[0][0]}  {ROWS[0][1]:<32}      1  -",
        f"{ROWS[1][0]:<32}  {ROWS[1][1]}  1e-05  {ROWS[1][3]}",
    ]


@pytest.mark.parametrize("width", [120, 80, 60])
def test_a_terminal_gets_wrapped_cells_in_colour(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    to = Terminal()
    print_table("[b]title", COLUMNS, ROWS, to)
    assert "\x1b[1m" in to.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", to.getvalue())
    assert max(map(len, plain.splitlines())) <= width
    assert "[b]title" in plain
    words = plain.split()
    assert sorted(set(COLUMNS) - set(words)) == []
    numbers = [number for number in ("1920", "30720", "100000", "1e-05") if number not in plain]
    assert numbers == []


def test_numbers_stay_whole_where_even_they_are_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    to = Terminal()
    row = [str(123_456_789 + number) for number in range(6)]
    print_table("", list("abcdef"), [row], to)
    assert [number for number in row if number not in to.getvalue()] == []


def test_a_table_may_be_empty_and_shows_no_control_characters() -> None:
    to = io.StringIO()
    print_table("a\x1b[31m\nb\u202e", COLUMNS, [], to)
    assert to.getvalue() == "a\\x1b[31m\\nb\\u202e\nslots  takes  cost  refused\n"
