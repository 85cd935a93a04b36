from __future__ import annotations

import io

import pytest

from sharectl.report.tables import number, print_table

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


def test_no_number_is_minus_zero() -> None:
    assert [number(value) for value in (-0.01, 0.0, -0.06)] == ["0.0", "0.0", "-0.1"]
