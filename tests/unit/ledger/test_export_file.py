from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.ledger import logs
from sharectl.ledger.data import TABLES
from sharectl.ledger.ledger import PLACE, Ledger
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, made

FIRST, LAST = "2023-11-14 22:13:20 UTC", "2023-11-14 22:47:20 UTC"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """State directory with a ledger of three cycles."""
    ledger = Ledger(tmp_path / "state" / PLACE)
    (tmp_path / "state").mkdir()
    for number in range(3):
        ledger.record(*made(number))
    return tmp_path / "state"


@pytest.fixture
def config(tmp_path: Path, state: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        "groups: {alice: {pledge_hs06: 300}, cms: {pledge_hs06: 700}}\n"
        f"state_directory: {state}\nhistory: {{errors_log: {tmp_path}/shares_Error.log}}\n"
        "ledger: {keep_days: 36500}\n"
    )
    return path


def export(config: Path, out: Path, *words: object) -> int:
    return main(["ledger", "export", "-o", str(out), *map(str, words), "--config", str(config)])


@pytest.mark.parametrize("form", ["csv", "log", "parquet"])
@pytest.mark.parametrize(
    "name",
    [str(PLACE), f"{PLACE}-wal", "ledger/new.csv", "state.json", "new", "link/ledger.sqlite"],
)
def test_nothing_is_exported_into_the_state_directory(
    config: Path, state: Path, name: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (state / PLACE).read_bytes()
    out = state / name
    if name.startswith("link"):
        (state.parent / "link").symlink_to(state / "ledger")
        out = state.parent / name
    there = out.exists()
    assert export(config, out, "--format", form) == 74
    assert f"{out}: not written: it is in {state}" in capsys.readouterr().err
    assert (out.exists(), (state / PLACE).read_bytes()) == (there, before)


@pytest.mark.parametrize("name", ["shares_Error.log", "shares_Error.log.1"])
def test_the_log_that_cycles_write_is_no_export(
    config: Path, state: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = state.parent / name
    log.write_text(f"{logs.HEADER}\n")
    assert export(config, log, "--format", "log") == 74
    assert "cycles write" in capsys.readouterr().err
    assert log.read_text() == f"{logs.HEADER}\n"


@pytest.mark.parametrize("form", ["csv", "log", "parquet"])
@pytest.mark.parametrize(
    "content", [b"", b"mine\n", b"PAR1 and no more", b"cycle,taken_at\n", b"\xff\xfe\n"]
)
def test_what_is_no_export_is_left_alone(
    config: Path, tmp_path: Path, content: bytes, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    out.write_bytes(content)
    assert export(config, out, "--format", form) == 74
    assert f"{out}: not replaced: it is no earlier {form} export" in capsys.readouterr().err
    assert out.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "sharectl.yaml", "state"]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_file_is_left_alone(config: Path, tmp_path: Path, kind: str) -> None:
    earlier, out = tmp_path / "earlier.csv", tmp_path / "out"
    assert export(config, earlier) == 0
    content = earlier.read_bytes()
    if kind == "link":
        out.symlink_to(earlier)
    elif kind == "fifo":
        os.mkfifo(out)
    else:
        out.mkdir()
    assert export(config, out, "--from", NOW + 1) == 74
    assert (earlier.read_bytes(), out.is_symlink()) == (content, kind == "link")
    assert out.is_file() == (kind == "link")


@pytest.mark.parametrize("form", ["csv", "log", "parquet"])
def test_an_earlier_export_is_replaced_and_the_rows_are_told(
    config: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    assert export(config, out, "--format", form, "--to", NOW + 1) == 0
    assert capsys.readouterr().err == f"sharectl: {out}: 2 rows of groups\n"
    before = out.read_bytes()
    assert export(config, out, "--format", form) == 0
    assert capsys.readouterr().err == f"sharectl: {out}: 6 rows of groups\n"
    assert out.read_bytes() != before


@pytest.mark.parametrize("form", ["csv", "log", "parquet"])
def test_another_kind_of_export_is_left_alone(config: Path, tmp_path: Path, form: str) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    assert export(config, out, "--format", form) == 0
    before = out.read_bytes()
    assert export(config, out, "--format", "log" if form == "csv" else "csv") == 74
    assert form == "log" or export(config, out, "--format", form, "--what", "cycles") == 74
    assert out.read_bytes() == before


def test_an_export_of_a_version_with_fewer_columns_is_replaced(
    config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    out.write_text(",".join(column.name for column in TABLES["groups"].columns[:-2]) + "\n")
    assert export(config, out) == 0
    assert len(out.read_text().splitlines()) == 7


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_time_without_a_cycle_replaces_nothing(
    config: Path, tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    assert export(config, out) == 0
    before = out.read_bytes()
    capsys.readouterr()
    assert export(config, out, "--from", NOW + 9 * PERIOD_SECONDS, *words) == 1
    said = capsys.readouterr()
    assert (said.out, out.read_bytes()) == ("", before)
    assert said.err == (
        f"sharectl: no cycle in that time: the ledger has cycles from {FIRST} to {LAST}; "
        "nothing was written\n"
    )


def test_a_time_without_a_cycle_prints_no_header(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "export", "--to", str(NOW - 1), "--config", str(config)]) == 1
    said = capsys.readouterr()
    assert (said.out, "no cycle in that time" in said.err) == ("", True)
