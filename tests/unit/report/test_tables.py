from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from sharectl.report.tables import laid_out, print_table, printable

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


def flat(lines: list[list[str]]) -> list[str]:
    return [line for row in lines for line in row]


def test_without_a_width_nothing_is_wrapped() -> None:
    lines = flat(laid_out(COLUMNS, ROWS, None))
    assert len(lines) == 3
    assert lines[0] == f"{'slots':<32}  {'takes':<32}   cost  refused"
    assert lines[1] == f"{ROWS[0][0]}  {ROWS[0][1]:<32}      1  -"


@pytest.mark.parametrize("width", [120, 80, 60, 52])
def test_narrow_cells_are_wrapped_and_numbers_stay_whole(width: int) -> None:
    lines = flat(laid_out(COLUMNS, ROWS, width))
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "…" not in text
    assert all(number in text for number in ("1920", "30720", "100000", "1e-05"))
    assert lines[0].split() == list(COLUMNS)


def test_what_not_even_wraps_is_stacked() -> None:
    lines = flat(laid_out(COLUMNS, ROWS, 20))
    assert lines[0] == "slots    slot1@wn-1.example.org (3 alike)"
    assert lines[5:9] == [
        "slots    slot1@wn-2.example.org",
        "takes    Cpus=16 Memory=30720 Disk=100000",
        "cost     1e-05",
        "refused  Cpus, Memory: not enough is left",
    ]


@pytest.mark.parametrize("width", [None, 80, 10])
def test_no_line_ends_in_blanks_and_a_table_may_be_empty(width: int | None) -> None:
    for rows in (ROWS, []):
        assert all(line == line.rstrip() for line in flat(laid_out(COLUMNS, rows, width)))


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b[31m\nb\u202e") == "a\\x1b[31m\\nb\\u202e"


def test_a_pipe_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    to = io.StringIO()
    print_table("[b]title", COLUMNS, ROWS, to)
    assert to.getvalue().splitlines() == ["[b]title", *flat(laid_out(COLUMNS, ROWS, None))]


def test_a_terminal_of_80_columns_gets_all_columns() -> None:
    code = (
        "import sys; from sharectl.report.tables import print_table; "
        f"print_table('title', {COLUMNS!r}, {ROWS!r}, sys.stdout)"
    )
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    subprocess.run(
        [sys.executable, "-c", code], stdout=child, env=environment, check=True, timeout=60
    )
    os.close(child)
    printed = os.read(parent, 65536).decode().replace("\r\n", "\n")
    os.close(parent)
    rows = laid_out(COLUMNS, ROWS, 80)
    assert all(line in printed for line in flat(rows))
    assert "\x1b[" in printed
