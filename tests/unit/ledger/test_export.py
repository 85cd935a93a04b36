"""``sharectl ledger export``."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.ledger import error_log
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.ledger.tables import FORMULA_BEGINS, TABLES, plain
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, made

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

FORMS = ("csv", "log", "parquet")


@pytest.fixture(autouse=True)
def _recorded(recorded: Ledger) -> None:
    """Each test has a ledger of four cycles."""


def rows_in(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("table", TABLES)
def test_each_table_has_its_columns_and_rows(
    run: Run, tmp_path: Path, table: str, capsys: Capture
) -> None:
    assert run("export", "--what", table) == 0
    rows = rows_in(capsys.readouterr().out)
    nodes = [node for number in range(3) for node in made(number)[0].nodes]
    expected = {
        "groups": 6,
        "waits": 9,
        "cycles": 4,
        "nodes": 15,
        "jobs": sum(len(node.held) for node in nodes),
        "targets": sum(node.target is not None for node in nodes),
    }
    assert expected["targets"] > 0
    assert len(rows) == expected[table]
    assert list(rows[0]) == [column.name for column in TABLES[table].columns]
    out = tmp_path / "out.csv"
    assert run("export", "--what", table, "-o", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == expected[table]
    assert rows_in(out.read_text()) == rows
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out.parquet"
    assert run("export", "--what", table, "--format", "parquet", "-o", out) == 0
    content = parquet.read_table(out)
    assert [
        {name: plain(value) for name, value in row.items()} for row in content.to_pylist()
    ] == rows
    assert content.schema.field("cycle").metadata[b"meaning"].startswith(b"number of the cycle")


def test_a_row_of_a_group_has_its_figures(run: Run, capsys: Capture) -> None:
    assert run("export", "--from", NOW, "--to", NOW + 1) == 0
    alice = rows_in(capsys.readouterr().out)[0]
    error = made(0)[0].groups[0].error
    assert (alice["group"], float(alice["power_hs06"])) == ("alice", error.usage.power_hs06)
    assert float(alice["error_hs06"]) == error.error_hs06
    sizes = (alice["cores_by_size"], alice["pending_by_size"], alice["imported"])
    assert sizes == ("1:210", "1:7", "0")


def test_rows_of_a_log_are_those_of_the_groups(run: Run, capsys: Capture) -> None:
    assert run("export", "--format", "log", "--what", "groups", "--to", NOW + 1) == 0
    errors = [control.error for control in made(0)[0].groups]
    lines = [error_log.HEADER, *error_log.rows(NOW, errors)]
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    "words",
    [
        ("export", "--from", "now", "--to", "-3d"),
        ("export", "--from", "5", "--to", "5"),
        ("export", "--format", "log", "--what", "nodes"),
        ("export", "--format", "parquet"),
        ("export", "--json"),
        ("forget", "--imported", "--from", "now", "--to", "-3d"),
        ("forget",),
    ],
    ids=" ".join,
)
def test_words_that_give_nothing_or_something_else_are_a_wrong_usage(
    run: Run, words: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(*words)


@pytest.mark.parametrize("begin", FORMULA_BEGINS)
def test_no_text_of_others_is_a_formula_in_a_spreadsheet(begin: str) -> None:
    assert plain(f"{begin}cmd|' /C calc'!A0").startswith("'")
    assert plain(-3.5) == "-3.5"


def test_columns_are_told_with_their_meaning(run: Run, capsys: Capture) -> None:
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    for table in TABLES:
        assert run("export", "--columns", "--what", table, "--json") == 0
        columns = json.loads(capsys.readouterr().out)["columns"]
        rows = [f"    {row['name']:<26}{row['type']:<9}{row['meaning']}\n" for row in columns[2:]]
        assert [row["name"] for row in columns[:2]] == ["cycle", "taken_at_seconds"]
        assert f"### {table}\n" in page
        assert "".join(rows) in page


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [str(PLACE), "ledger/new.csv", "new", "link/ledger.sqlite"])
def test_nothing_is_exported_into_the_state_directory(
    run: Run, state: Path, name: str, form: str
) -> None:
    before = (state / PLACE).read_bytes()
    out = state / name
    if name.startswith("link"):
        (state.parent / "link").symlink_to(state / "ledger")
        out = state.parent / name
    there = out.exists()
    assert run("export", "--format", form, "-o", out) == 74
    assert (out.exists(), (state / PLACE).read_bytes()) == (there, before)


@pytest.mark.parametrize("name", ["shares_Error.log", "shares_Error.log.1"])
def test_the_log_that_cycles_write_is_no_export(run: Run, tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    log.write_text(f"{error_log.HEADER}\n")
    assert run("export", "--format", "log", "-o", log) == 74
    assert log.read_text() == f"{error_log.HEADER}\n"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("content", [b"", b"mine\n", b"cycle,taken_at\n", b"\xff\xfe\n"])
def test_a_file_of_somebody_else_is_left_alone(
    run: Run, tmp_path: Path, content: bytes, form: str
) -> None:
    out = tmp_path / "out"
    out.write_bytes(content)
    assert run("export", "--format", form, "-o", out) == 74
    assert out.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "sharectl.yaml", "state"]


@pytest.mark.parametrize("kind", ["link", "link to nothing", "fifo", "folder"])
def test_what_is_no_file_is_left_alone(run: Run, tmp_path: Path, kind: str) -> None:
    earlier, out = tmp_path / "earlier.csv", tmp_path / "out"
    assert run("export", "-o", earlier) == 0
    content = earlier.read_bytes()
    if kind == "link":
        out.symlink_to(earlier)
    elif kind == "link to nothing":
        out.symlink_to(tmp_path / "nothing")
    elif kind == "fifo":
        os.mkfifo(out)
    else:
        out.mkdir()
    assert run("export", "-o", out, "--from", NOW + 1) == 74
    assert (earlier.read_bytes(), out.is_symlink()) == (content, kind.startswith("link"))
    assert out.is_file() == (kind == "link")


@pytest.mark.parametrize("form", FORMS)
def test_an_earlier_export_is_replaced_and_one_of_another_form_is_not(
    run: Run, tmp_path: Path, form: str, capsys: Capture
) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    assert run("export", "--format", form, "-o", out, "--to", NOW + 1) == 0
    assert capsys.readouterr().err == f"sharectl: {out}: 2 rows of groups\n"
    assert run("export", "--format", form, "-o", out) == 0
    assert capsys.readouterr().err == f"sharectl: {out}: 6 rows of groups\n"
    before = out.read_bytes()
    assert run("export", "-o", out, "--format", "log" if form == "csv" else "csv") == 74
    assert form != "csv" or run("export", "-o", out, "--what", "cycles") == 74
    assert out.read_bytes() == before


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_time_without_a_cycle_replaces_nothing(
    run: Run, tmp_path: Path, words: tuple[str, ...], capsys: Capture
) -> None:
    out = tmp_path / "out.csv"
    assert run("export", "-o", out) == 0
    before = out.read_bytes()
    capsys.readouterr()
    later = ("export", "--from", NOW + 9 * PERIOD_SECONDS)
    assert run(*later, "-o", out, *words) == 1
    assert (capsys.readouterr().out, out.read_bytes()) == ("", before)
    assert run(*later) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("form", ["csv", "log"])
def test_without_a_ledger_nothing_is_printed(
    run: Run, state: Path, form: str, capsys: Capture
) -> None:
    (state / PLACE).unlink()
    assert run("export", "--format", form) == 1
    assert capsys.readouterr().out == ""
