"""Tables on a terminal of 80 columns: no longer line, and every number of the piped table."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.ledger.ledger import PLACE
from sharectl.report.tables import LINES, cell, number, plain, print_screen
from tests.files_of_a_site import make
from tests.ledgers import busy, law, write
from tests.verbs import Terminal

WIDTH = 80
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
CONFIGURED = (
    ("pledges",),
    ("ledger", "check"),
    ("explain", "group", "cms"),
    ("explain", "node", "cn-01", "--cycle", "3"),
    ("explain", "cycle"),
    ("plan", "--diff", "--jobs", "{folder}/jobs.txt"),
)
WITHOUT = (
    ("explain", "codes"),
    ("cadence", "--run-time", "exponential:900", "--cores", "123456", "--cycle-duration", "30"),
    ("cadence", "--run-time", "constant:60", "--cycle-duration", "200", "--interval", "20,300"),
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write(tmp_path, law(), [busy(number) for number in range(4)])
    assert (tmp_path / PLACE).exists()
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        "groups: {alice: {pledge_hs06: 71400}, atlas: {pledge_hs06: 105300}, cms: {pledge_hs06: "
        "87100}}\n"
        f"state_directory: {tmp_path}\ncontrol: {{strategy: pair}}\n"
    )
    (tmp_path / "jobs.txt").write_text("2 cn-01 alice 60 1 10\n" * 640 + "1 PEND cms 0 8 10\n" * 3)
    return path


def numbers(text: str) -> Counter[str]:
    return Counter(_NUMBER.findall(text))


def refuse_loss(piped: str, shown: str) -> None:
    lines = _ANSI.sub("", shown).splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    if not lines[-1].endswith(" more: | cat"):
        lost = numbers(piped) - numbers("\n".join(lines))
        assert not lost, lost


@pytest.mark.parametrize("words", [*CONFIGURED, *WITHOUT], ids=" ".join)
def test_every_table_fits(
    words: tuple[str, ...], config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERM", "xterm")
    more = ("--config", str(config)) if words in CONFIGURED else ()
    pipe, terminal = io.StringIO(), Terminal()
    for to in (pipe, terminal):
        with contextlib.redirect_stdout(to):
            assert main([*(word.format(folder=config.parent) for word in words), *more]) == 0
    assert numbers(pipe.getvalue())
    refuse_loss(pipe.getvalue(), terminal.getvalue())


def test_a_screen_is_cut_on_a_terminal_and_whole_in_a_pipe() -> None:
    rows = [("row", f"number {number}") for number in range(100)]
    texts = []
    for to in (io.StringIO(), Terminal()):
        print_screen("title", rows, to)
        texts.append(to.getvalue().splitlines())
    assert len(texts[0]) == 101
    assert (len(texts[1]), texts[1][-1]) == (LINES, "… and 79 lines more: | cat")


def test_the_status_of_a_site_fits_on_a_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    make(tmp_path)
    pipe, terminal = io.StringIO(), Terminal()
    for to in (pipe, terminal):
        with contextlib.redirect_stdout(to):
            assert main(["status", "--config", str(tmp_path / "sharectl.yaml")]) == 1
    assert "87100" in pipe.getvalue()
    assert len(terminal.getvalue().splitlines()) <= LINES
    refuse_loss(pipe.getvalue(), terminal.getvalue())


def test_a_number_has_neither_exponent_nor_digits_in_vain() -> None:
    assert [number(value) for value in (-0.01, 0.0, -0.06)] == ["0.0", "0.0", "-0.1"]
    numbers = (5e-10, 384.00000000000006, 10 / 3, 12_345_678.9, 0.00012)
    assert [cell(value) for value in numbers] == ["0", "384", "3.33333", "12345700", "0.00012"]
    assert [plain(value) for value in numbers] == ["0", "384", "3.3", "12345678.9", "0.00012"]
