"""``sharectl ledger check``, and ledgers that were changed by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.errors import StateError
from sharectl.ledger.ledger import Ledger
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, as_kept, made
from tests.unit.ledger.conftest import changed

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def test_check_has_the_numbers_of_the_ledger(run: Run, recorded: Ledger, capsys: Capture) -> None:
    changed(recorded.path, "ANALYZE")  # its tables are SQLite's own
    aside = recorded.path.with_name("ledger.sqlite.broken-20231114T221320Z")
    aside.touch()
    aside.with_name(f"{aside.name}-wal").touch()
    assert run("check", "--json") == 0
    numbers = json.loads(capsys.readouterr().out)
    names = ("kind", "cycles", "complete_cycles", "problems")
    assert [numbers[name] for name in names] == ["ledger-check", 4, 3, []]
    assert (numbers["first_at"], numbers["last_at"]) == (NOW, NOW + 3 * PERIOD_SECONDS)
    assert numbers["bytes"] == recorded.path.stat().st_size
    assert numbers["broken"] == [str(aside)]


@pytest.mark.parametrize(
    "change",
    ["nodes SET detail = x'00ff' WHERE cycle = 7", "cycles SET record = x'00ff' WHERE number = 7"],
    ids=["nodes", "cycles"],
)
def test_a_cycle_that_cannot_be_read_is_named_and_the_others_are_read(
    run: Run, ledger: Ledger, change: str, capsys: Capture
) -> None:
    for number in range(10):
        ledger.record(*made(number, nodes=1))
    assert run("check") == 0
    assert "in order" in capsys.readouterr().out
    changed(ledger.path, f"UPDATE {change}")
    with pytest.raises(StateError, match="what is in it cannot be read"):
        ledger.cycle(7)
    assert ledger.cycle(8) == as_kept(made(7, nodes=1)[0], 8)
    assert ledger.record(*made(10, nodes=1)) == 11
    assert run("check") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "cycle 7 cannot be read" in line


@pytest.mark.parametrize("words", [("check",), ("export", "-o", "out.csv")])
def test_a_broken_ledger_is_named_once_with_its_future(
    run: Run, recorded: Ledger, words: tuple[str, ...], capsys: Capture
) -> None:
    recorded.path.write_bytes(b"no database at all" * 1000)
    assert run(*words) == 74
    (line,) = capsys.readouterr().err.splitlines()
    assert f"moves it to {recorded.path}.broken-DATE and begins a new one" in line


TRIGGER = "CREATE TRIGGER t AFTER INSERT ON cycles BEGIN DELETE FROM cycles; END"
ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"
VIEW = f"DROP TABLE remaining_times; CREATE VIEW remaining_times AS {ENDLESS}"


@pytest.mark.parametrize(
    "script",
    [
        *(TRIGGER, VIEW, "DROP TABLE sums", "ALTER TABLE cycles ADD COLUMN extra"),
        *("PRAGMA user_version = 0", "PRAGMA application_id = 5"),
    ],
)
def test_a_ledger_that_could_act_otherwise_is_left_alone(
    run: Run, recorded: Ledger, script: str, capsys: Capture
) -> None:
    changed(recorded.path, script)
    before = recorded.path.read_bytes()
    for use in (lambda: recorded.run_times(["alice"]), lambda: recorded.record(*made(9))):
        with pytest.raises(StateError, match="did not make"):
            use()
    assert run("check") == 74
    assert "did not make" in capsys.readouterr().err
    assert recorded.path.read_bytes() == before


def test_an_empty_file_is_a_new_ledger(run: Run, ledger: Ledger, capsys: Capture) -> None:
    ledger.path.parent.mkdir(parents=True)
    ledger.path.touch()
    assert run("check") == 1
    assert "there is no ledger yet" in capsys.readouterr().err
    assert ledger.run_times(["alice"]) == {}
    assert ledger.record(*made(0)) == 1
    assert run("check") == 0


@pytest.mark.parametrize(
    ("end", "make"),
    [
        *((end, os.mkfifo) for end in ("", "-journal", "-wal", "-shm")),
        ("", Path.mkdir),
        ("", lambda path: path.symlink_to("/nowhere")),
    ],
)
def test_what_is_no_file_in_the_place_of_a_file_of_sqlite_is_left_alone(
    recorded: Ledger, end: str, make: Callable[[Path], object]
) -> None:
    """A FIFO is not waited for."""
    place = recorded.path.with_name(recorded.path.name + end)
    place.unlink(missing_ok=True)
    make(place)
    for use in (lambda: recorded.run_times(["alice"]), lambda: recorded.record(*made(9))):
        with pytest.raises(StateError, match=f"{place.name}: is no regular file"):
            use()
