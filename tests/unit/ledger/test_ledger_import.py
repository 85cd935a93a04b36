from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

from sharectl.cli.main import main
from sharectl.errors import InputError
from sharectl.files.packed import file_source, opened, sources
from sharectl.ledger import logs
from sharectl.ledger.ledger import PLACE, Keep, Ledger
from sharectl.ledger.logs import CLOCK_ERROR_SECONDS, bring_in

T0 = 1627101243
ROWS = (
    f"{T0} cms 87100 -542 0 4888 -3321 -29403 0 12784",
    f"{T0} atlas 105300 -4024 2536 0 -33917 -65442 5006 1221",
    f"{T0} alice 71400 4566 4566 0 37238 15861 4211 0",
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        f"groups: {{alice: {{pledge_hs06: 300}}, cms: {{pledge_hs06: 700}}}}\nstate_directory: "
        f"{tmp_path}\n"
        "ledger: {keep_days: 36500}\n"
    )
    return path


def run(config: Path, *words: object) -> int:
    return main(["ledger", *map(str, words), "--config", str(config)])


def log_of(folder: Path, *rows: str, name: str = "errors.log") -> Path:
    path = folder / name
    path.write_text("\n".join(rows) + "\n")
    return path


def test_rows_can_come_before_the_first_cycle(tmp_path: Path) -> None:
    config = tmp_path / "sharectl.yaml"
    state = tmp_path / "state"
    config.write_text(
        f"groups: {{cms: {{pledge_hs06: 700}}}}\nstate_directory: {state}\nledger: {{keep_days: "
        f"36500}}\n"
    )
    assert run(config, "import", log_of(tmp_path, *ROWS)) == 0
    assert state.stat().st_mode & 0o777 == 0o755, (
        "as the first cycle makes it: nodes may read there"
    )
    assert run(config, "check") == 0


def test_what_cannot_be_opened_is_told_in_words(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "import", tmp_path / "none.log") == 65
    assert run(config, "import", tmp_path) == 65
    missing, folder = capsys.readouterr().err.splitlines()
    assert missing == (
        f"sharectl: {tmp_path}/none.log: cannot be read: there is no such file; look how it is "
        "written"
    )
    assert folder == f"sharectl: {tmp_path}: cannot be read: it is a folder; name the files in it"


def test_rows_of_the_future_are_refused_with_their_place(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = log_of(tmp_path, ROWS[0], ROWS[1].replace(str(T0), "162710124300"))
    assert run(config, "import", log) == 65
    assert f"{log}:2: T0 162710124300 is in the future" in capsys.readouterr().err
    assert not (tmp_path / PLACE).exists()


@pytest.mark.parametrize(
    ("late", "added"), [(CLOCK_ERROR_SECONDS, 1), (CLOCK_ERROR_SECONDS + 1, None)]
)
def test_a_clock_may_be_wrong_by_a_day(tmp_path: Path, late: int, added: int | None) -> None:
    log = log_of(tmp_path, ROWS[0])
    ledger = Ledger(tmp_path / PLACE)
    if added is None:
        with pytest.raises(InputError, match="in the future"):
            bring_in(ledger, [file_source(log)], T0 - late)
    else:
        assert bring_in(ledger, [file_source(log)], T0 - late).rows_added == added


def test_rows_that_differ_from_what_is_there_are_named_and_change_nothing(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = ROWS[0].replace("4888", "5000").replace(" -542 ", " 17 ")
    assert run(config, "import", log_of(tmp_path, ROWS[0], ROWS[1], other)) == 1
    said = capsys.readouterr()
    assert "2 of 3 rows added" in said.out
    assert "0 there already" in said.out
    assert "1 differing" in said.out
    assert (
        f"errors.log:3: T0 {T0} cms differs from what the ledger has: DC 17, not -542, MC 5000, "
        "not 4888" in said.err
    )
    before = (tmp_path / PLACE).read_bytes()
    assert run(config, "import", log_of(tmp_path, other, ROWS[1]), "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["rows_known"], told["rows_differing"], len(told["differing"])) == (1, 1, 1)
    assert (tmp_path / PLACE).read_bytes() == before


def test_where_nothing_is_young_enough_the_key_is_told_and_no_ledger_is_made(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text().replace("36500", "30"))
    log = log_of(tmp_path, *ROWS)
    assert run(config, "import", log, "--json") == 1
    said = capsys.readouterr()
    needed = json.loads(said.out)["keep_days_needed"]
    assert f"set ledger.keep_days to {needed} or more" in said.err
    assert not (tmp_path / PLACE).exists()
    config.write_text(config.read_text().replace("30}", f"{needed}}}"))
    assert run(config, "import", log) == 0
    assert capsys.readouterr().out.startswith("3 of 3 rows added, in 1 new cycle;")


def test_some_too_old_rows_are_counted_once(tmp_path: Path) -> None:
    log = log_of(tmp_path, *ROWS, ROWS[0].replace(str(T0), str(T0 + 86400 * 9)))
    done = bring_in(Ledger(tmp_path / PLACE, Keep(days=5)), [file_source(log)], T0 + 86400 * 10)
    assert (done.rows, done.rows_too_old, done.rows_added, done.keep_days_needed) == (4, 3, 1, 12)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ROWS[1].replace(" 2536 ", " -2536 "), "SC -2536 is out of range"),
        (ROWS[1].replace(" 5006 ", f" {'9' * 40} "), "PSC 9999"),
        (
            ROWS[1].replace(" -4024 ", f" -{2**60} "),
            "DC -1152921504606846976 is out of range: beyond 2^53;",
        ),
        (ROWS[1].replace(" 105300 ", " -5 "), "PLEDGE -5"),
    ],
)
def test_a_number_that_cannot_be_is_named_with_line_and_column(
    config: Path, tmp_path: Path, row: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, "import", log_of(tmp_path, ROWS[0], row)) == 65
    assert f"errors.log:2: {said}" in capsys.readouterr().err


def test_what_logrotate_packed_is_read(config: Path, tmp_path: Path) -> None:
    packed = tmp_path / "errors.log.1.gz"
    packed.write_bytes(gzip.compress("\n".join([logs.HEADER, *ROWS, ""]).encode()))
    assert run(config, "import", packed) == 0
    (record,) = Ledger(tmp_path / PLACE).cycles(0, 2**40)
    assert [control.group for control in record.groups] == ["cms", "atlas", "alice"]


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda whole: whole[:-12],
    "overwritten": lambda whole: whole[:20] + b"\xff" * 20 + whole[40:],
    "no text": lambda _: bytes(range(256)) * 9,
    "zeros": lambda whole: whole[:2] + bytes(400),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_what_cannot_be_unpacked_or_is_no_text_is_refused(
    config: Path, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "errors.log.gz"
    log.write_bytes(DAMAGED[how](gzip.compress("\n".join(ROWS * 50).encode())))
    assert run(config, "import", log) == 65
    said = capsys.readouterr().err
    assert f"{log}: cannot be read" in said
    assert ("no text" in said) == (how == "no text")


def test_what_unpacks_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "bomb.gz"
    log.write_bytes(gzip.compress(b"#\n" * 2**20))
    for most, refused in ((2**21 - 1, True), (2**21, False)):
        with (
            pytest.raises(InputError, match="unpacks to more than")
            if refused
            else contextlib.nullcontext(),
            opened(file_source(log), most) as file,
        ):
            assert sum(map(len, file)) == 2**21


def test_a_header_without_its_mark_is_passed_over_and_another_is_not(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = logs.HEADER.lstrip("# ")
    assert run(config, "import", log_of(tmp_path, header.replace(" ", "\t"), *ROWS)) == 0
    assert run(config, "import", log_of(tmp_path, header.replace("SC MC", "MC SC"), *ROWS)) == 65
    assert "errors.log:1: needs 10 columns" in capsys.readouterr().err


def test_files_without_rows_are_named(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = log_of(tmp_path, logs.HEADER, name="empty.log")
    assert run(config, "import", empty) == 65
    assert f"{empty}: has no rows" in capsys.readouterr().err
    assert not (tmp_path / PLACE).exists()
    assert run(config, "import", log_of(tmp_path, *ROWS), empty) == 0
    assert f"{empty}: has no rows" in capsys.readouterr().err


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_read_as_often_as_needed(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    content = io.BytesIO(pack("\n".join(ROWS).encode()))
    with sources([Path("-")], content) as (source,):
        for _ in range(2):
            assert len(list(logs.stream(source, []))) == 3
        assert bring_in(Ledger(tmp_path / PLACE), [source], T0).rows_added == 3


def test_a_pipe_is_read_as_often_as_needed(config: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("\n".join(ROWS)))
    writer.start()
    assert run(config, "import", pipe) == 0
    writer.join(timeout=10)
    assert len(list(Ledger(tmp_path / PLACE).cycles(0, int(time.time())))) == 1


def test_a_bad_row_of_standard_input_is_said_to_be_there() -> None:
    problems: list[str] = []
    with sources([Path("-")], io.BytesIO(b"x\n")) as (source,):
        assert list(logs.stream(source, problems)) == []
    assert problems[0].startswith("standard input:1: needs 10 columns")
