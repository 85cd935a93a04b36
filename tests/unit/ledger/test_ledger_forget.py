from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.files.packed import file_source
from sharectl.ledger import cycles, logs
from sharectl.ledger.database import Lists, open_to_write, transaction
from sharectl.ledger.ledger import PLACE, Ledger, problems
from sharectl.ledger.logs import bring_in
from sharectl.plan.records import CycleRecord
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, incomplete, made

DAY = 86400
TYPO = 162_710_124_300


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
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / PLACE)


def forget(config: Path, *words: object) -> int:
    return main(["ledger", "forget", "--imported", *map(str, words), "--config", str(config)])


def add(ledger: Ledger, *times: int) -> None:
    log = ledger.path.parent.parent / "errors.log"
    errors = [control.error for control in made(0)[0].groups]
    log.write_text("".join(f"{row}\n" for time in times for row in logs.rows(time, errors)))
    bring_in(ledger, [file_source(log)], max(times))


def test_imported_rows_go_and_recorded_cycles_stay_as_if_there_had_never_been_any(
    config: Path, ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = Ledger(tmp_path / "plain")
    for each in (ledger, plain):
        for record, seen in (made(0), incomplete(2), made(90), made(200)):
            each.record(record, seen)
    before = list(ledger.with_nodes(0, 2**40))
    # The last one alters the time that a recorded cycle stands for, on the day after.
    add(ledger, NOW - DAY, NOW + PERIOD_SECONDS, NOW + 90 * PERIOD_SECONDS - 300, NOW + 400 * DAY)
    assert len(list(ledger.cycles(0, 2**40))) == 8
    assert forget(config) == 0
    assert "8 imported rows removed, of 4 cycles" in capsys.readouterr().out
    assert list(ledger.with_nodes(0, 2**40)) == before
    for points in (1, 500):
        assert ledger.series(NOW, NOW + 10 * DAY, points) == plain.series(
            NOW, NOW + 10 * DAY, points
        )
    assert problems(ledger, every_cycle=True) == []


def test_rows_of_the_future_that_an_older_version_took_can_be_removed(
    config: Path, ledger: Ledger
) -> None:
    ledger.record(*made(0))
    groups = made(0)[0].groups
    connection = open_to_write(ledger.path)
    with transaction(connection):
        future = CycleRecord(TYPO, 0.0, complete=True, groups=groups, imported=True)
        cycles.write(connection, Lists(connection), future)
    connection.close()
    assert ledger.span() == (NOW, TYPO)
    assert forget(config, "--from", NOW + 1) == 0
    latest = ledger.latest()
    assert latest is not None
    assert latest.taken_at == NOW


def test_only_the_period_asked_for_goes(
    config: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    add(ledger, *(NOW + number * DAY for number in range(5)))
    asked = ("--from", NOW + DAY, "--to", NOW + 3 * DAY, "--json")
    assert forget(config, *asked, "--dry-run") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["cycles"], said["rows"], said["removed"]) == (2, 4, False)
    assert len(list(ledger.cycles(0, 2**40))) == 5
    assert forget(config, *asked) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["cycles"], said["rows"], said["removed"]) == (2, 4, True)
    assert [record.taken_at for record in ledger.cycles(0, 2**40)] == [
        NOW,
        NOW + 3 * DAY,
        NOW + 4 * DAY,
    ]
    assert problems(ledger, every_cycle=True) == []
    assert forget(config, *asked) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 0


def test_without_a_ledger_none_is_made(config: Path, tmp_path: Path) -> None:
    assert forget(config) == 1
    assert not (tmp_path / PLACE.parent).exists()


def test_an_import_of_two_days_alters_what_cycles_between_them_stand_for(ledger: Ledger) -> None:
    first = NOW - NOW % DAY + 2 * DAY
    for number in (0, 200):
        record, seen = made(number)
        ledger.record(record, seen)
    ledger.record(
        CycleRecord(first + 600, 1.0, complete=True, groups=made(0)[0].groups), made(0)[1]
    )
    add(ledger, first - 600, first + 5 * DAY)
    assert problems(ledger, every_cycle=True) == []
