from __future__ import annotations

import io
import re

import pytest

from sharectl.report.tables import print_table
from tests.verbs import Terminal

COLUMNS = ("slots", "takes", "cost", "refused")
ROWS = [
    ("slot1@wn-1.example.org (3 alike)", "Cpus=1 Memory=1920 Disk=100000", "1", "-"),
    ("slot1@wn-2", "Cpus=16 Memory=30720", "1e-05", "Cpus, Memory: not enough is left"),
]


def test_a_pipe_gets_a_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    to = io.StringIO()
    print_table("[b]a\x1b[31m\nb\u202e", COLUMNS, ROWS, to)
    assert to.getvalue().splitlines() == [
        "[b]a\\x1b[31m\\nb\\u202e",
        f"{'slots':<32}  {'takes':<30}   cost  refused",
        f"{ROWS[0][0]}  {ROWS[0][1]}      1  -",
        f"{ROWS[1][0]:<32}  {ROWS[1][1]:<30}  1e-05  {ROWS[1][3]}",
    ]


@pytest.mark.parametrize("width", [120, 80, 60])
def test_a_terminal_gets_wrapped_cells_and_whole_numbers(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    to = Terminal()
    print_table("[b]title", COLUMNS, ROWS, to)
    assert "\x1b[1m" in to.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", to.getvalue())
    assert max(map(len, plain.splitlines())) <= width
    wanted = {"[b]title", *COLUMNS, "1920", "30720", "100000", "1e-05"}
    assert [word for word in wanted if word not in plain] == []
    too_wide = [str(123_456_789 + number) for number in range(12)]
    print_table("", list("abcdefghijkl"), [too_wide], to)
    assert [number for number in too_wide if number not in to.getvalue()] == []
