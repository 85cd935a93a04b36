from __future__ import annotations

import contextlib
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.errors import StateError
from sharectl.ledger.ledger import Ledger
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, incomplete, made


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def record_aged(ledger: Ledger, number: int, later_seconds: int = 0) -> None:
    """Record `made`, later, with the seven jobs of cms, which have run since cycle 0."""
    record, seen = made(number)
    jobs = (jobs._replace(seconds=60 + number * PERIOD_SECONDS) for jobs in seen.running)
    ledger.record(
        replace(record, taken_at=record.taken_at + later_seconds),
        replace(
            seen,
            taken_at=seen.taken_at + later_seconds,
            running=tuple(held for held in jobs if held.cores == 8),
        ),
    )


def at_risk_periods(ledger: Ledger) -> float:
    """Periods for which the jobs of cms were watched, by one job."""
    return sum(seconds for seconds, _ in ledger.run_times(["cms"])["cms"].bins) / PERIOD_SECONDS / 7


def test_an_incomplete_cycle_is_kept_and_counts_nowhere_as_zero(ledger: Ledger) -> None:
    ledger.record(*made(0))
    record, seen = incomplete(1)
    number = ledger.record(record, seen)
    assert ledger.cycle(number) == replace(record, number=number)
    of_both = ledger.series(NOW, NOW + 86400, 1).buckets[0]
    assert (of_both.pool.cycles, of_both.pool.complete_cycles) == (2, 1)
    first, second = ledger.series(NOW, NOW + 2 * PERIOD_SECONDS, 10).buckets
    assert (of_both.groups, second.groups) == (first.groups, {})


def test_cycles_with_a_clock_that_was_ahead_are_neither_the_last_nor_all_that_is_learnt(
    ledger: Ledger,
) -> None:
    ahead = 2 * 365 * 86400
    for number, seconds in ((0, 0), (1, 0), (2, ahead), (3, ahead), (4, 0), (5, 0)):
        record_aged(ledger, number, seconds)
    latest = ledger.latest()
    assert latest is not None
    assert (latest.number, latest.taken_at) == (6, NOW + 5 * PERIOD_SECONDS)
    assert at_risk_periods(ledger) == pytest.approx(2)


def test_run_times_are_learnt_from_cycle_to_cycle_and_newer_days_weigh_more(ledger: Ledger) -> None:
    ledger.record(*made(0, held=40))
    assert ledger.run_times(["alice"]) == {}
    record, seen = made(1, held=10)
    older = [jobs._replace(seconds=jobs.seconds + PERIOD_SECONDS) for jobs in seen.running]
    ledger.record(record, replace(seen, running=tuple(older)))
    assert sum(ends for _, ends in ledger.run_times(["alice", "nobody"])["alice"].bins) == 155
    for number in (0, 1):
        record_aged(ledger, number, 14 * 86400)
    assert at_risk_periods(ledger) == pytest.approx(1.5)


def test_the_file_is_for_the_service_and_its_group_and_reading_leaves_nothing_beside_it(
    ledger: Ledger,
) -> None:
    assert ledger.run_times(["alice"]) == {}
    with pytest.raises(StateError, match="there is no ledger yet"):
        ledger.latest()
    assert not ledger.path.parent.exists()
    ledger.record(*made())
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o640
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) & 0o027 == 0
    ledger.latest()
    ledger.run_times(["alice"])
    assert [path.name for path in ledger.path.parent.iterdir()] == [ledger.path.name]


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda whole: b"this is no database" * (len(whole) // 19),
    "its first page lost": lambda whole: b"\0" * 4096 + whole[4096:],
    "its end lost": lambda whole: whole[: len(whole) // 2],
    "its pages overwritten": lambda whole: whole[:4096] + b"\xff" * (len(whole) - 4096),
}


def aside(ledger: Ledger) -> list[bytes]:
    paths = ledger.path.parent.iterdir()
    return [path.read_bytes() for path in paths if ".broken-" in path.name]


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_ledger_is_put_aside_whole_and_a_new_one_has_the_cycle(
    ledger: Ledger, damage: str
) -> None:
    for number in range(30):
        ledger.record(*made(number))
    broken = BROKEN[damage](ledger.path.read_bytes())
    for names in (1, 2):
        ledger.path.write_bytes(broken)
        with pytest.raises(StateError, match=r"moved to .*ledger.sqlite.broken-2023\d+T\d+Z"):
            ledger.record(*made(30))
        assert aside(ledger) == [broken] * names
        kept = ledger.latest()
        assert kept is not None
        assert (kept.number, kept.taken_at) == (1, NOW + 30 * PERIOD_SECONDS)


def test_the_log_of_a_broken_ledger_goes_with_it_and_not_into_the_new_one(ledger: Ledger) -> None:
    ledger.record(*made(0))
    with opened(ledger.path) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM cycles").fetchall()
        ledger.record(*made(1))
        log = ledger.path.with_name("ledger.sqlite-wal").read_bytes()
        ledger.path.write_bytes(b"broken" * 9999)
        with pytest.raises(StateError):
            ledger.record(*made(2))
        assert log
        assert log in aside(ledger)
    assert [record.taken_at for record in ledger.cycles(0, 2**40)] == [NOW + 2 * PERIOD_SECONDS]


def test_a_reader_that_stays_does_not_stop_a_cycle(ledger: Ledger) -> None:
    ledger.record(*made(0))
    with opened(ledger.path) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM cycles").fetchone() == (1,)
        assert ledger.record(*made(1)) == 2
        assert reader.execute("SELECT count(*) FROM cycles").fetchone() == (1,)


def test_another_writer_is_waited_for_and_then_named(ledger: Ledger) -> None:
    ledger.record(*made(0))
    with opened(ledger.path) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateError, match=r"locked; another process has been writing to it"):
            ledger.record(*made(1))
    assert ledger.record(*made(1)) == 2
