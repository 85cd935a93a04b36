"""``sharectl ledger export``."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.ledger import error_log
from sharectl.ledger.export import FORMULA_BEGINS, TABLES, plain
from sharectl.ledger.ledger import PLACE, Ledger
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, made

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _recorded(recorded: Ledger) -> None:
    """Each test has a ledger of four cycles."""


@pytest.mark.parametrize("table", TABLES)
def test_each_table_has_its_columns_and_rows(run: Run, table: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("export", "--what", table, "-o", out) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    nodes = [node for number in range(3) for node in made(number)[0].nodes]
    expected = {
        "groups": 6,
        "cycles": 4,
        "nodes": 15,
        "targets": sum(node.target is not None for node in nodes),
    }
    assert expected["targets"] > 0
    assert len(rows) == expected[table]
    assert list(rows[0]) == list(TABLES[table].columns)


def test_a_row_of_a_group_has_its_figures(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("export", "-o", out, "--from", NOW, "--to", NOW + 1) == 0
    alice = next(csv.DictReader(out.read_text().splitlines()))
    error = made(0)[0].groups[0].error
    assert (alice["group"], float(alice["power_hs06"])) == ("alice", error.usage.power_hs06)
    assert float(alice["error_hs06"]) == error.error_hs06
    assert (alice["cores_by_size"], alice["pending_by_size"]) == ("1:210", "1:7")


@pytest.mark.parametrize("begin", FORMULA_BEGINS)
def test_no_text_of_others_is_a_formula_in_a_spreadsheet(begin: str) -> None:
    assert plain(f"{begin}cmd|' /C calc'!A0") == f"'{begin}cmd|' /C calc'!A0"
    assert plain(-3.5) == -3.5


@pytest.mark.parametrize("table", TABLES)
def test_the_page_has_every_column(table: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    section = page.partition(f"### {table}\n")[2].partition("\n#")[0]
    names = re.findall(r"^ {4}(\S+)", section, re.MULTILINE)
    assert ("cycle", "taken_at_seconds", *names) == TABLES[table].columns


@pytest.mark.parametrize(
    "name", [f"state/{PLACE}", "state/new", "link/ledger.sqlite", "shares_Error.log", "csv", "bin"]
)
def test_nothing_but_an_earlier_export_is_replaced(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "state" / "ledger")
    (tmp_path / "shares_Error.log").write_text(f"{error_log.HEADER}\n")
    (tmp_path / "csv").write_text("cycle,taken_at\n")
    (tmp_path / "bin").write_bytes(b"\xff\xfe\n")
    before = contents(tmp_path)
    assert run("export", "-o", tmp_path / name, "--from", NOW + 1) == 74
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def test_an_earlier_export_of_the_table_is_replaced(
    run: Run, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    for until, rows in ((NOW + 1, 2), (2**34, 6)):
        assert run("export", "-o", out, "--to", until, "--json") == 0
        assert json.loads(capsys.readouterr().out)["rows"] == rows
    before = out.read_bytes()
    assert run("export", "-o", out, "--what", "cycles") == 74
    assert out.read_bytes() == before


def test_a_time_without_a_cycle_replaces_nothing(run: Run, state: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("export", "-o", out) == 0
    before = out.read_bytes()
    for words in ((), ("--json",)):
        assert run("export", "-o", out, "--from", NOW + 9 * PERIOD_SECONDS, *words) == 1
    (state / PLACE).unlink()
    assert run("export", "-o", out) == 1
    assert out.read_bytes() == before
