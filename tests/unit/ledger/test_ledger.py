from __future__ import annotations

import contextlib
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cycle.record import snapshot_of
from sharectl.errors import StateError
from sharectl.ledger.database import VERSION
from sharectl.ledger.ledger import Ledger
from sharectl.model import RunningJobs
from tests.fakes import NOW
from tests.made_cycles import PERIOD_SECONDS, as_kept, incomplete, made


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


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
        record, seen = made(number)
        older = [replace(jobs, seconds=60 + number * PERIOD_SECONDS) for jobs in seen.running]
        ledger.record(
            replace(record, taken_at=record.taken_at + seconds),
            replace(seen, taken_at=seen.taken_at + seconds, running=tuple(older)),
        )
    latest = ledger.latest()
    assert latest is not None
    assert (latest.number, latest.taken_at) == (6, NOW + 5 * PERIOD_SECONDS)
    at_risk_seconds = sum(ledger.run_times(["cms"]).remaining["cms"].at_risk_seconds)
    one_look_seconds = 7 * PERIOD_SECONDS  # by 7 jobs
    assert at_risk_seconds == pytest.approx(2 * one_look_seconds)


def test_files_are_for_the_service_and_its_group(ledger: Ledger) -> None:
    ledger.record(*made())
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o640
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) & 0o027 == 0


def test_reading_leaves_nothing_behind(ledger: Ledger) -> None:
    ledger.record(*made())
    ledger.latest()
    ledger.run_times(["alice"])
    assert [path.name for path in ledger.path.parent.iterdir()] == [ledger.path.name]


def test_where_no_ledger_is_nothing_is_known_and_nothing_made(ledger: Ledger) -> None:
    assert ledger.run_times(["alice"]).remaining == {}
    with pytest.raises(StateError, match="there is no ledger yet"):
        ledger.latest()
    assert not ledger.path.parent.exists()


def test_cycles_are_found_by_number_by_time_and_by_the_time_before(ledger: Ledger) -> None:
    numbers = [ledger.record(*made(number)) for number in range(3)]
    second = ledger.cycle(numbers[1])
    assert second is not None
    assert second.taken_at == NOW + PERIOD_SECONDS
    assert (
        second
        == ledger.cycle_at(NOW + PERIOD_SECONDS)
        == ledger.cycle_at(NOW + 2 * PERIOD_SECONDS - 1)
    )
    assert ledger.cycle_at(NOW - 1) is None
    assert ledger.cycle(99) is None


def test_a_snapshot_of_a_cycle_decides_as_the_pool_did(ledger: Ledger) -> None:
    record, seen = made()
    kept = ledger.cycle(ledger.record(record, seen))
    assert kept is not None
    again = snapshot_of(kept)
    assert sorted(again.running, key=str) == sorted(
        (
            RunningJobs(j.node, j.group, j.cores, j.hs06_per_core, j.seconds, j.jobs)
            for j in seen.running
        ),
        key=str,
    )
    assert set(again.pending) == set(seen.pending)
    assert (again.sources, again.complete) == (seen.sources, True)
    assert [node.name for node in again.nodes] == [node.name for node in seen.nodes]


def test_run_times_are_learnt_from_cycle_to_cycle(ledger: Ledger) -> None:
    ledger.record(*made(0, held=40))
    assert ledger.run_times(["alice"]).remaining == {}
    record, seen = made(1, held=10)
    older = [replace(jobs, seconds=jobs.seconds + PERIOD_SECONDS) for jobs in seen.running]
    ledger.record(record, replace(seen, running=tuple(older)))
    learnt = ledger.run_times(["alice"]).remaining
    assert set(learnt) == {"alice"}
    assert sum(learnt["alice"].ends) == 5 * 30 + 5
    assert ledger.run_times(["nobody"]).remaining == {}


def test_newer_days_weigh_more(ledger: Ledger) -> None:
    for day in (0, 14):
        for number in (0, 1):
            record, seen = made(number)
            later = day * 86400
            older = [
                replace(jobs, seconds=60 + number * PERIOD_SECONDS)
                for jobs in seen.running
                if jobs.cores == 8
            ]
            ledger.record(
                replace(record, taken_at=record.taken_at + later),
                replace(seen, taken_at=seen.taken_at + later, running=tuple(older)),
            )
    at_risk = sum(ledger.run_times(["cms"]).remaining["cms"].at_risk_seconds)
    assert at_risk == pytest.approx(7 * PERIOD_SECONDS * 1.5)


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda whole: b"this is no database" * (len(whole) // 19),
    "its first page lost": lambda whole: b"\0" * 4096 + whole[4096:],
    "its end lost": lambda whole: whole[: len(whole) // 2],
    "its pages overwritten": lambda whole: whole[:4096] + b"\xff" * (len(whole) - 4096),
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_broken_ledger_is_put_aside_whole_and_a_new_one_has_the_cycle(
    ledger: Ledger, damage: str
) -> None:
    for number in range(30):
        ledger.record(*made(number))
    broken = BROKEN[damage](ledger.path.read_bytes())
    ledger.path.write_bytes(broken)
    with pytest.raises(StateError, match=r"moved to .*ledger.sqlite.broken-2023\d+T\d+Z"):
        ledger.record(*made(30))
    (aside,) = [path for path in ledger.path.parent.iterdir() if ".broken-" in path.name]
    assert aside.read_bytes() == broken
    kept = ledger.latest()
    assert kept is not None
    assert (kept.number, kept.taken_at) == (1, NOW + 30 * PERIOD_SECONDS)
    ledger.record(*made(31))


def test_two_broken_ledgers_of_one_second_are_both_kept(ledger: Ledger) -> None:
    for text in (b"one" * 9999, b"two" * 9999):
        ledger.path.parent.mkdir(parents=True, exist_ok=True)
        ledger.path.write_bytes(text)
        with pytest.raises(StateError, match="moved to"):
            ledger.record(*made())
    kept = {
        path.read_bytes()[:3] for path in ledger.path.parent.iterdir() if ".broken-" in path.name
    }
    assert kept == {b"one", b"two"}


def test_the_log_of_a_broken_ledger_is_not_played_into_the_new_one(ledger: Ledger) -> None:
    ledger.record(*made(0))
    with opened(ledger.path) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM cycles").fetchall()
        ledger.record(*made(1))
        assert ledger.path.with_name("ledger.sqlite-wal").stat().st_size > 0
        ledger.path.write_bytes(b"broken" * 9999)
        with pytest.raises(StateError):
            ledger.record(*made(2))
    assert [record.taken_at for record in ledger.cycles(0, 2**40)] == [NOW + 2 * PERIOD_SECONDS]


def test_a_newer_ledger_is_left_alone(ledger: Ledger) -> None:
    ledger.record(*made())
    with opened(ledger.path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = ledger.path.read_bytes()
    with pytest.raises(StateError, match=f"schema version {VERSION + 1}, newer than {VERSION}"):
        ledger.record(*made(1))
    with pytest.raises(StateError, match="newer"):
        ledger.latest()
    assert ledger.path.read_bytes() == before


def test_somebody_elses_file_is_left_alone(ledger: Ledger) -> None:
    ledger.path.parent.mkdir(parents=True)
    with opened(ledger.path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = ledger.path.read_bytes()
    with pytest.raises(StateError, match="something else"):
        ledger.record(*made())
    assert ledger.path.read_bytes() == before


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_file_is_left_alone(ledger: Ledger, kind: str, tmp_path: Path) -> None:
    ledger.path.parent.mkdir(parents=True)
    if kind == "folder":
        ledger.path.mkdir()
    else:
        ledger.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="no regular file"):
        ledger.record(*made())
    assert not (tmp_path / "elsewhere").exists()


def test_a_reader_that_stays_does_not_stop_a_cycle(ledger: Ledger) -> None:
    ledger.record(*made(0))
    with opened(ledger.path) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM cycles").fetchone() == (1,)
        numbers = [ledger.record(*made(number)) for number in range(1, 4)]
        assert numbers == [2, 3, 4]
        assert reader.execute("SELECT count(*) FROM cycles").fetchone() == (1,)


def test_another_writer_is_waited_for_and_then_named(ledger: Ledger) -> None:
    ledger.record(*made(0))
    with opened(ledger.path) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateError, match=r"locked; another process has been writing to it"):
            ledger.record(*made(1))
        assert len(list(ledger.cycles(0, 2**40))) == 1
    ledger.record(*made(1))
    assert len(list(ledger.cycles(0, 2**40))) == 2


def test_nodes_for_multicore_jobs_alone_are_other_nodes_than_their_like(ledger: Ledger) -> None:
    record, seen = made()
    first, *others = record.nodes
    record = replace(record, nodes=(replace(first, multicore_only=True), *others))
    number = ledger.record(record, seen)
    assert ledger.cycle(number) == as_kept(record, number)
    assert ledger.last_complete(NOW, NOW + 1) == as_kept(record, number)


def test_targets_of_a_node_are_those_of_its_cycles_the_newest_first(ledger: Ledger) -> None:
    for number in range(6):
        ledger.record(*made(number, nodes=5 if number % 3 else 3))
    ledger.record(*incomplete(6))
    targets = list(ledger.targets_of("wn-4", NOW, NOW + 20 * PERIOD_SECONDS))
    assert [taken_at for taken_at, _ in targets] == [
        NOW + number * PERIOD_SECONDS for number in (5, 4, 2, 1)
    ]
    for taken_at, target in targets:
        record = ledger.cycle_at(taken_at)
        assert record is not None
        assert [target] == [node.target for node in record.nodes if node.node == "wn-4"]
    assert list(ledger.targets_of("wn-77", NOW, NOW + 9999)) == []


@pytest.mark.parametrize(
    "change",
    ["nodes SET detail = x'00ff' WHERE cycle = 1", "cycles SET record = x'00ff' WHERE number = 1"],
)
def test_a_cycle_that_cannot_be_read_is_an_error_and_the_others_are_read(
    ledger: Ledger, change: str
) -> None:
    for number in range(2):
        ledger.record(*made(number))
    with opened(ledger.path) as connection:
        connection.execute(f"UPDATE {change}")
    with pytest.raises(StateError, match="what is in it cannot be read"):
        ledger.cycle(1)
    assert ledger.cycle(2) == as_kept(made(1)[0], 2)
    assert ledger.record(*made(2)) == 3


def test_pending_jobs_that_no_node_could_run_are_added_up(ledger: Ledger) -> None:
    for number, jobs in ((5, 4), (6, 0)):
        record, seen = made(number)
        alice, cms = record.groups
        usage = replace(cms.error.usage, unplaceable_by_cores={8: jobs, 1: jobs})
        cms = replace(cms, error=replace(cms.error, usage=usage))
        ledger.record(replace(record, groups=(alice, cms)), seen)
    (day,) = ledger.series(NOW, NOW + 7200, 1).buckets
    assert (day.groups["alice"].unplaceable_jobs, day.groups["cms"].unplaceable_jobs) == (0, 4)
