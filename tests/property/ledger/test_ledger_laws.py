from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sharectl.ledger import error_log
from sharectl.ledger.imports import bring_in
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.retention import Keep
from sharectl.ledger.series import MOST_COVERED_SECONDS, layout
from sharectl.model import (
    GroupControl,
    GroupError,
    GroupUsage,
    LimitNote,
    PendingJobs,
    Snapshot,
    Source,
    Target,
)
from sharectl.plan.free_blocks import BlockMemory, OpenBlock
from sharectl.plan.records import CycleRecord, HeldJobs, NodeRecord, TargetNodes, rounded
from sharectl.times import DAY_SECONDS
from tests.made_cycles import as_kept

GROUPS = ("alice", "cms.prod", "lhcb")
SMALL = st.integers(0, 200)
ALL = Keep(days=36500)
FEW = settings(max_examples=15)

finite, positive = st.floats(-1e9, 1e9), st.floats(0, 1e9)
words, cores, names = st.text(max_size=20), st.integers(1, 64), st.sampled_from(GROUPS)


def tuples_of(rows: st.SearchStrategy[Any], **limits: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(rows, **limits).map(tuple)


usages = st.builds(
    GroupUsage, SMALL, SMALL, positive, SMALL, SMALL, st.dictionaries(cores, SMALL, max_size=3)
)
errors = st.builds(GroupError, names, positive, finite, finite, finite, usages)
states = st.dictionaries(words, finite, max_size=2)
laws = st.sampled_from(("latest", "pid"))
controls = st.builds(
    GroupControl, errors, finite, finite, finite, laws, states, tuples_of(words, max_size=2)
)
held_jobs = st.builds(
    HeldJobs,
    st.sampled_from((*GROUPS, "other")),
    cores,
    SMALL,
    st.integers(0, 10**7).map(rounded),
    st.integers(0, 2**40),
)
targets = st.builds(Target, st.just(""), names, SMALL, names, SMALL)
node_records = st.builds(
    NodeRecord,
    st.sampled_from([f"wn-{number}" for number in range(6)]),
    st.integers(0, 256),
    positive,
    st.booleans(),
    tuples_of(held_jobs, max_size=4),
    st.none() | targets,
    st.none() | st.sampled_from(("target", "kept")),
    positive,
    positive,
    SMALL,
    st.booleans(),
    st.booleans(),
    st.booleans(),
).map(lambda node: replace(node, target=node.target and replace(node.target, node=node.node)))
sources = st.builds(Source, words, st.integers(0, 99), st.none() | words)
open_blocks = st.builds(OpenBlock, words, words, cores, SMALL, st.none() | SMALL)
counts = st.builds(TargetNodes, SMALL, SMALL)
incomplete = st.builds(
    CycleRecord,
    st.integers(1, 90_000),
    positive,
    complete=st.just(value=False),
    sources=tuples_of(sources, max_size=2),
    sequence=st.none() | st.integers(0, 2**40),
    strategy=st.sampled_from(("many", "pair")),
    reason=st.none() | st.just("targets"),
    limits=tuples_of(st.builds(LimitNote, words, SMALL), max_size=2),
    published=tuples_of(words, max_size=2),
    problems=tuples_of(words, max_size=2),
    configuration=st.just("0123456789ab"),
    blocks=st.builds(BlockMemory, tuples_of(open_blocks, max_size=2)),
)


@st.composite
def complete(draw: st.DrawFn) -> CycleRecord:
    groups = draw(tuples_of(controls, unique_by=lambda control: control.group, min_size=1))
    named = st.sampled_from([control.group for control in groups])
    sizes = st.dictionaries(named, st.dictionaries(cores, st.integers(1, 999)), max_size=3)
    nodes = draw(tuples_of(node_records, unique_by=lambda node: node.node))
    return replace(
        draw(incomplete),
        complete=True,
        groups=groups,
        pending=draw(tuples_of(st.builds(PendingJobs, named, cores, SMALL, SMALL), max_size=2)),
        cores_by_size=draw(sizes),
        nodes=nodes,
        idle_cores=draw(SMALL),
        idle_target_cores=draw(SMALL),
        idle_grace_cores=draw(SMALL),
        target_nodes=draw(st.dictionaries(named, counts)),
    )


@st.composite
def records(draw: st.DrawFn) -> list[CycleRecord]:
    """Cycles in the order of their times."""
    taken_at, ordered = 1_700_000_000, []
    for record in draw(st.lists(complete() | complete() | incomplete, min_size=1, max_size=7)):
        taken_at += record.taken_at
        ordered.append(replace(record, taken_at=taken_at))
    return ordered


@given(st.integers(0, 2**33), st.integers(1, 2**28), st.integers(1, 3000))
def test_buckets_cover_what_was_asked_for(since: int, span: int, points: int) -> None:
    """Buckets begin and end outside the time asked for, less than a day from it."""
    chosen = layout(since, since + span, points)
    assert chosen.since <= since
    assert chosen.until >= since + span
    assert since - chosen.since < DAY_SECONDS
    assert chosen.until - since - span < DAY_SECONDS
    assert chosen.level_seconds == 0 or chosen.bucket_seconds % chosen.level_seconds == 0
    assert span / chosen.bucket_seconds <= points


@contextmanager
def ledger_of(kept: Sequence[CycleRecord], keep: Keep = ALL) -> Iterator[Ledger]:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger" / "ledger.sqlite", keep)
        for record in kept:
            ledger.record(record, Snapshot(record.taken_at, (), (), ()))
        yield ledger


@given(records())
@FEW
def test_what_goes_in_comes_out(kept: list[CycleRecord]) -> None:
    """Every cycle is read as it was recorded, alone and among others; `check` finds nothing."""
    expected = [as_kept(record, number) for number, record in enumerate(kept, start=1)]
    with ledger_of(kept) as ledger:
        assert list(ledger.cycles(0, 2**40, with_nodes=True)) == expected
        assert list(ledger.cycles(0, 2**40)) == [replace(record, nodes=()) for record in expected]
        for record in expected:
            assert ledger.cycle(record.number) == ledger.cycle_at(record.taken_at) == record
        assert ledger.problems(every_cycle=True) == []


@given(records())
@FEW
def test_sums_of_days_are_those_of_their_cycles(kept: list[CycleRecord]) -> None:
    """Buckets have means of power over all cycles, of target nodes over those that know them."""
    with ledger_of(kept) as ledger:
        (bucket,) = ledger.series(kept[0].taken_at, kept[0].taken_at + 10 * DAY_SECONDS, 1).buckets
    work: Counter[str] = Counter()
    whole = [record for record in kept if record.complete]
    for before, record in zip(whole, whole[1:]):
        covered_seconds = min(MOST_COVERED_SECONDS, record.taken_at - before.taken_at)
        for control in record.groups:
            power_seconds = control.error.usage.power_hs06 * covered_seconds
            work[control.group] += power_seconds  # type: ignore[assignment]
    assert bucket.pool.cycles == len(kept)
    assert bucket.pool.complete_cycles == sum(record.complete for record in kept)
    for name, point in bucket.groups.items():
        power = [c.error.usage.power_hs06 for r in kept for c in r.groups if c.group == name]
        assert point.cycles == len(power)
        assert point.power_hs06 == pytest.approx(sum(power) / len(power))
        assert point.work_hs06_seconds == pytest.approx(work[name])
        unplaceable = [
            sum(c.error.usage.unplaceable_by_cores.values())
            for r in kept
            for c in r.groups
            if c.group == name
        ]
        assert point.unplaceable_jobs == pytest.approx(sum(unplaceable) / len(unplaceable))
        counts = [record.target_nodes[name] for record in kept if name in record.target_nodes]
        means = [sum(column) / len(counts) for column in zip(*counts)] or [None, None]
        assert [point.held_back_nodes, point.helped_nodes] == pytest.approx(means)
    assert set(bucket.groups) == {control.group for record in kept for control in record.groups}


@given(records(), st.integers(1, 3))
@FEW
def test_retention_removes_the_oldest_only(kept: list[CycleRecord], days: int) -> None:
    """The youngest cycles stay, and all that are younger than the limit, as they were."""
    doubted = kept[-min(len(kept), 2)]
    with ledger_of(kept, Keep(days=days, cycles_a_time=3, doubted_cycles=2)) as ledger:
        remaining = list(ledger.cycles(0, 2**40, with_nodes=True))
    expected = [as_kept(record, number) for number, record in enumerate(kept, start=1)]
    assert remaining == expected[len(expected) - len(remaining) :]
    assert len(remaining) >= sum(
        record.taken_at >= doubted.taken_at - days * DAY_SECONDS for record in kept
    )


@given(records())
@FEW
def test_a_log_that_was_imported_is_there_as_it_was(kept: list[CycleRecord]) -> None:
    """rows(import(rows(x))) = rows(x), for the errors of cycles."""
    whole = [record for record in kept if record.complete]
    assume(all(c.error.usage.power_hs06 >= 0 for record in whole for c in record.groups))
    with ledger_of(()) as ledger, tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "shares_Error.log"
        lines = [row for record in whole for row in rows_of(record)]
        assume(lines)
        error_log.append(log, lines, 2**30, 1)
        bring_in(ledger, [log], kept[-1].taken_at)
        imported = list(ledger.cycles(0, 2**40))
        assert [row for record in imported for row in rows_of(record)] == lines
        assert ledger.problems(every_cycle=True) == []


def rows_of(record: CycleRecord) -> list[str]:
    return error_log.rows(record.taken_at, [control.error for control in record.groups])
