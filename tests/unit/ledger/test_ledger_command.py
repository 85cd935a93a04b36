from __future__ import annotations

import contextlib
import csv
import errno
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.errors import StateError
from sharectl.files.packed import file_source
from sharectl.ledger import logs
from sharectl.ledger.data import TABLES, plain
from sharectl.ledger.database import errors_of
from sharectl.ledger.ledger import PLACE, Keep, Ledger
from sharectl.ledger.logs import bring_in
from sharectl.ledger.series import UNKNOWN_SIZE
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, incomplete, made

DAY = 86400


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        f"groups: {{alice: {{pledge_hs06: 300}}, cms: {{pledge_hs06: 700}}}}\nstate_directory: "
        f"{tmp_path}\n"
        "ledger: {keep_days: 36500}\n"
    )
    return path


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is not in the state directory."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made_now = Ledger(tmp_path / PLACE)
    for number in range(3):
        made_now.record(*made(number))
    made_now.record(*incomplete(3))
    return made_now


def run(config: Path, *words: object) -> int:
    return main(["ledger", *map(str, words), "--config", str(config)])


def error_log(path: Path, numbers: range) -> Path:
    rows = [
        row
        for number in numbers
        for row in logs.rows(
            NOW + number * PERIOD_SECONDS, [control.error for control in made(number)[0].groups]
        )
    ]
    path.write_text("\n".join([logs.HEADER, *rows]) + "\n")
    return path


def test_info_says_what_is_there(
    config: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "info", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["cycles"], said["complete_cycles"], said["nodes"]) == (
        "ledger",
        4,
        3,
        5,
    )
    assert (said["first_at"], said["last_at"]) == (NOW, NOW + 3 * PERIOD_SECONDS)
    assert said["bytes"] == ledger.path.stat().st_size
    assert run(config, "info") == 0
    assert "4, 3 complete, 0 imported" in capsys.readouterr().out


def test_a_user_without_rights_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StateError) as told, errors_of(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))
    assert str(told.value).startswith(
        f"{tmp_path}: cannot be used: Permission denied; run this as the user of"
    )


@pytest.mark.parametrize("what", TABLES)
def test_each_table_has_its_columns_and_rows(
    config: Path, ledger: Ledger, elsewhere: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(list(ledger.cycles(0, 2**40))) == 4
    assert run(config, "export", "--what", what) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
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
    assert len(rows) == expected[what]
    assert list(rows[0]) == [column.name for column in TABLES[what].columns]
    out = elsewhere / "out.csv"
    assert run(config, "export", "--what", what, "-o", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == expected[what]
    assert list(csv.DictReader(out.read_text().splitlines())) == rows


def test_a_row_of_a_group_is_the_groups(
    config: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ledger.latest() is not None
    assert run(config, "export", "--from", NOW, "--to", NOW + 1) == 0
    alice = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    control = made(0)[0].groups[0]
    assert (alice["group"], float(alice["power_hs06"])) == ("alice", control.error.usage.power_hs06)
    assert float(alice["error_hs06"]) == control.error.error_hs06
    assert (alice["cores_by_size"], alice["pending_by_size"], alice["imported"]) == (
        "1:210",
        "1:7",
        "0",
    )


@pytest.mark.parametrize("what", TABLES)
def test_parquet_has_the_same_as_csv(
    config: Path, ledger: Ledger, elsewhere: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert ledger.path.exists()
    out = elsewhere / "out.parquet"
    assert run(config, "export", "--what", what, "--format", "parquet", "-o", out) == 0
    assert run(config, "export", "--what", what) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    table = parquet.read_table(out)
    assert [
        {name: plain(value) for name, value in row.items()} for row in table.to_pylist()
    ] == rows
    assert table.schema.field("cycle").metadata[b"meaning"].startswith(b"number of the cycle")
    assert [path.name for path in elsewhere.iterdir()] == [out.name]


def test_parquet_needs_a_file(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(config, "export", "--format", "parquet")
    assert "need -o FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "--from", "now", "--to", "-3d"), "--from is not before --to"),
        (("export", "--from", "5", "--to", "5"), "--from is not before --to"),
        (("export", "--format", "log", "--what", "nodes"), "leave --what nodes out"),
        (("forget", "--imported", "--from", "now", "--to", "-3d"), "--from is not before --to"),
        (("forget",), "required: --imported"),
    ],
)
def test_what_would_give_nothing_or_something_else_is_a_wrong_usage(
    config: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(config, *words)
    assert said in capsys.readouterr().err


def test_rows_of_a_log_may_be_asked_for_by_their_name(
    config: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(list(ledger.cycles(0, 2**40))) == 4
    assert run(config, "export", "--format", "log", "--what", "groups") == 0
    assert capsys.readouterr().out.startswith(logs.HEADER)


@pytest.mark.parametrize("form", ["csv", "log"])
def test_where_nothing_can_be_read_nothing_is_printed(
    config: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "export", "--format", form) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "there is no ledger yet" in said.err


def test_columns_are_told(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(config, "export", "--columns", "--what", "targets", "--json") == 0
    told = json.loads(capsys.readouterr().out)["columns"]
    assert [row["name"] for row in told] == [column.name for column in TABLES["targets"].columns]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_of_others_is_a_formula_in_a_spreadsheet(begin: str) -> None:
    assert plain(f"{begin}cmd|' /C calc'!A0").startswith("'")
    assert plain(-3.5) == "-3.5"


def test_an_import_adds_each_row_once(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, rotated = (
        error_log(tmp_path / "errors.log", range(4, 9)),
        error_log(tmp_path / "errors.log.1", range(5)),
    )
    assert run(config, "import", log, rotated, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["rows_added"], said["cycles_added"], said["rows_known"]) == (
        20,
        18,
        9,
        2,
    )
    assert run(config, "import", rotated, log) == 0
    assert "0 of 20 rows added" in capsys.readouterr().out
    kept = list(Ledger(tmp_path / PLACE).cycles(0, 2**40))
    assert [record.taken_at for record in kept] == [
        NOW + number * PERIOD_SECONDS for number in range(9)
    ]
    assert all(record.imported and len(record.groups) == 2 for record in kept)


def test_a_cycle_whose_rows_were_parted_by_rotation_is_one(config: Path, tmp_path: Path) -> None:
    whole = error_log(tmp_path / "whole.log", range(1)).read_text().splitlines(keepends=True)
    first, second = tmp_path / "log.1", tmp_path / "log"
    first.write_text("".join(whole[:2]))
    second.write_text("".join([whole[0], *whole[2:]]))
    assert run(config, "import", first, second) == 0
    (record,) = Ledger(tmp_path / PLACE).cycles(0, 2**40)
    assert [control.group for control in record.groups] == ["alice", "cms"]


def test_rows_that_were_recorded_live_stay_what_they_are(
    config: Path, ledger: Ledger, tmp_path: Path
) -> None:
    before = list(ledger.with_nodes(0, 2**40))
    series = ledger.series(NOW, NOW + DAY, 1)
    assert run(config, "import", error_log(tmp_path / "errors.log", range(3))) == 0
    assert list(ledger.with_nodes(0, 2**40)) == before
    assert ledger.series(NOW, NOW + DAY, 1) == series


def test_imported_figures_are_drawn_and_unknown_ones_are_not_zero(
    config: Path, tmp_path: Path
) -> None:
    assert run(config, "import", error_log(tmp_path / "errors.log", range(3))) == 0
    ledger = Ledger(tmp_path / PLACE)
    bucket = ledger.series(NOW, NOW + DAY, 1).buckets[0]
    assert (bucket.pool.idle_cores, bucket.pool.targets, bucket.pool.seconds) == (None, None, None)
    assert bucket.groups["alice"].output_hs06 is None
    assert set(bucket.groups["cms"].cores_by_size) == {UNKNOWN_SIZE}
    assert set(bucket.groups["alice"].cores_by_size) == {1}
    live = tmp_path / "live"
    other = Ledger(live)
    for number in range(3):
        other.record(*made(number))
    same = other.series(NOW, NOW + DAY, 1).buckets[0]
    assert bucket.groups["alice"].work_hs06_seconds == pytest.approx(
        same.groups["alice"].work_hs06_seconds
    )
    assert bucket.pool.covered_seconds == same.pool.covered_seconds == 2 * PERIOD_SECONDS


def test_cycles_brought_in_before_a_live_one_make_it_stand_for_less(
    config: Path, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / PLACE)
    ledger.record(*made(0))
    ledger.record(*made(3))
    assert ledger.series(NOW, NOW + DAY, 1).buckets[0].pool.covered_seconds == 3 * PERIOD_SECONDS
    assert run(config, "import", error_log(tmp_path / "errors.log", range(1, 3))) == 0
    pool = ledger.series(NOW, NOW + DAY, 1).buckets[0].pool
    assert (pool.cycles, pool.covered_seconds) == (4, 3 * PERIOD_SECONDS)


def test_all_bad_lines_of_all_files_are_named_and_nothing_is_brought_in(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = error_log(tmp_path / "good.log", range(2))
    bad, worse = tmp_path / "bad.log", tmp_path / "worse.log"
    bad.write_text("1627101243 cms 87100 -542 0 4888\n1627101243 cms 1 1 1 1 1 1 1 x\n")
    worse.write_text(
        "99999999999999 cms 1 1 1 1 1 1 1 1\n1627101243 =cmd 1 1 1 1 1 1 1 1\n1627101243 cms 1 "
        "1 1 -5 1 1 1 1\n"
    )
    missing = tmp_path / "missing.log"
    assert run(config, "import", good, bad, worse, missing) == 65
    said = capsys.readouterr().err
    for part in (
        "bad.log:1",
        "bad.log:2",
        "no Unix time",
        "'=cmd' is no name",
        "out of range",
        "missing.log",
    ):
        assert part in said
    assert not (tmp_path / PLACE).exists()


def test_rows_older_than_what_is_kept_are_left_out_and_counted(tmp_path: Path) -> None:
    log = error_log(tmp_path / "errors.log", range(3))
    done = bring_in(
        Ledger(tmp_path / PLACE, Keep(days=1)), [file_source(log)], NOW + DAY + PERIOD_SECONDS
    )
    assert (done.rows_too_old, done.rows_added) == (2, 4)


def test_check_finds_nothing_wrong_with_what_cycles_and_imports_wrote(
    config: Path, ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(90, 100):
        record, seen = made(number)
        ledger.record(record, seen)
    assert run(config, "import", error_log(tmp_path / "errors.log", range(200, 290))) == 0
    assert run(config, "check", "--all") == 0
    assert "in order" in capsys.readouterr().out


FAULTS = {
    "UPDATE group_cycles SET power_hs06 = power_hs06 + 1 WHERE cycle = 7": "sums of the day",
    "UPDATE node_blocks SET block = x'00' WHERE id / 65536 = 7": "cannot be read",
    "UPDATE cycles SET detail = x'00' WHERE number = 7": "cycle 7 cannot be read",
    "DELETE FROM size_rollups": "sums of the day",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_names_what_is_wrong(
    config: Path, tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger(tmp_path / PLACE)
    for number in range(10):
        record, seen = made(number * 60)
        ledger.record(record, replace(seen, running=()))
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute(fault)
    assert run(config, "check") == 1
    assert FAULTS[fault] in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("info",), ("check",), ("export",), ("forget", "--imported"), ("report",)],
    ids=" ".join,
)
def test_of_a_broken_ledger_it_is_said_once_what_to_do(
    config: Path,
    ledger: Ledger,
    tmp_path: Path,
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    ledger.path.write_bytes(b"no database at all" * 1000)
    if words == ("report",):
        assert main(["report", "-o", str(tmp_path / "page"), "--config", str(config)]) == 74
    else:
        assert run(config, *words) == 74
    (said,) = capsys.readouterr().err.splitlines()
    assert f"moves it to {ledger.path}.broken-DATE and begins a new one" in said


def test_of_damage_inside_a_sentence_comes_before_the_words_of_sqlite(
    config: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(10, 60):
        ledger.record(*made(number))
    whole = bytearray(ledger.path.read_bytes())
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'cycles_by_time'"
        page = connection.execute(query).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    key = (NOW + 30 * PERIOD_SECONDS).to_bytes(4, "big")
    whole[whole.index(key, (page - 1) * size, page * size) + 3] ^= 1
    ledger.path.write_bytes(whole)
    assert run(config, "check") == 1
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert f"{ledger.path}: the file is damaged at" in first
    assert "SQLite: " in second


def test_the_page_tells_every_column() -> None:
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    for name, table in TABLES.items():
        assert f"### {name}\n" in page
        for column in table.columns:
            assert f"| `{column.name}` | {column.kind} | {column.meaning} |" in page
