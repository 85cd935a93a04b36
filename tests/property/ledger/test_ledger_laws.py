from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.files.packed import file_source
from sharectl.ledger import error_log, export
from sharectl.ledger.data import Keep
from sharectl.ledger.imports import bring_in
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.series import DAY_SECONDS, layout
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
from tests.made_cycles import as_kept

GROUPS = ("alice", "cms.prod", "lhcb")
SMALL = st.integers(0, 200)
ALL = Keep(days=36500)
FEW = settings(max_examples=15)

finite = st.floats(-1e9, 1e9, allow_nan=False)
words = st.text(max_size=20)


@given(st.integers(0, 2**33), st.integers(1, 2**28), st.integers(1, 3000))
def test_buckets_cover_what_was_asked_for(since: int, span: int, points: int) -> None:
    """Buckets begin and end outside the time asked for, less than a day from it."""
    asked = layout(since, since + span, points)
    assert asked.since <= since
    assert asked.until >= since + span
    assert since - asked.since < DAY_SECONDS
    assert asked.until - since - span < DAY_SECONDS
    assert asked.level_seconds == 0 or asked.bucket_seconds % asked.level_seconds == 0
    assert span / asked.bucket_seconds <= points


@st.composite
def controls(draw: st.DrawFn) -> tuple[GroupControl, ...]:
    names = draw(st.lists(st.sampled_from(GROUPS), unique=True, min_size=1))
    return tuple(
        GroupControl(
            error=GroupError(
                name,
                abs(draw(finite)),
                draw(finite),
                draw(finite),
                draw(finite),
                GroupUsage(
                    draw(SMALL),
                    draw(SMALL),
                    abs(draw(finite)),
                    draw(SMALL),
                    draw(SMALL),
                    draw(st.dictionaries(st.integers(1, 16), SMALL, max_size=3)),
                ),
            ),
            setpoint_hs06=draw(finite),
            control_error_hs06=draw(finite),
            output_hs06=draw(finite),
            law=draw(st.sampled_from(("latest", "pid"))),
            state=draw(st.dictionaries(words, finite, max_size=2)),
            acted=tuple(draw(st.lists(words, max_size=2))),
        )
        for name in names
    )


@st.composite
def nodes(draw: st.DrawFn) -> tuple[NodeRecord, ...]:
    names = draw(st.lists(st.sampled_from([f"wn-{n}" for n in range(6)]), unique=True))
    found = []
    for name in sorted(names):
        kinds = draw(
            st.lists(
                st.tuples(st.sampled_from((*GROUPS, "other")), st.integers(1, 64)),
                unique=True,
                max_size=4,
            )
        )
        target = Target(name, "alice", draw(SMALL), "cms.prod", draw(SMALL))
        found.append(
            NodeRecord(
                node=name,
                cores=draw(st.integers(0, 256)),
                hs06_per_core=abs(draw(finite)),
                controlled=draw(st.booleans()),
                held=tuple(
                    HeldJobs(
                        g,
                        c,
                        draw(SMALL),
                        rounded(draw(st.integers(0, 10**7))),
                        draw(st.integers(0, 2**40)),
                    )
                    for g, c in kinds
                ),
                target=draw(st.none() | st.just(target)),
                reason=draw(st.none() | st.sampled_from(("target", "kept"))),
                wait_seconds=draw(st.floats(0, 1e9)),
                idle_core_seconds=draw(st.floats(0, 1e9)),
                memory_mib=draw(SMALL),
                reserved=draw(st.booleans()),
                draining=draw(st.booleans()),
                multicore_only=draw(st.booleans()),
            )
        )
    return tuple(found)


@st.composite
def records(draw: st.DrawFn) -> list[CycleRecord]:
    """Cycles in the order of their times."""
    taken_at, found = 1_700_000_000, []
    for _ in range(draw(st.integers(1, 7))):
        taken_at += draw(st.integers(1, 90_000))
        complete = draw(st.integers(0, 4)) > 0
        groups = draw(controls()) if complete else ()
        sizes = st.tuples(
            st.sampled_from([control.group for control in groups] or [""]), st.integers(1, 64)
        )
        found.append(
            CycleRecord(
                taken_at,
                draw(st.floats(0, 1e4)),
                complete,
                sources=tuple(
                    draw(
                        st.lists(
                            st.builds(Source, words, st.integers(0, 99), st.none() | words),
                            max_size=2,
                        )
                    )
                ),
                groups=groups,
                pending=tuple(
                    PendingJobs(group, cores, draw(SMALL), draw(SMALL))
                    for group, cores in draw(st.lists(sizes, max_size=2))
                )
                if complete
                else (),
                cores_by_size=draw(st.dictionaries(sizes, st.integers(1, 999), max_size=3))
                if complete
                else {},
                nodes=draw(nodes()) if complete else (),
                sequence=draw(st.none() | st.integers(0, 2**40)),
                strategy=draw(st.sampled_from(("many", "pair"))),
                reason=draw(st.none() | st.just("targets")),
                limits=tuple(draw(st.lists(st.builds(LimitNote, words, SMALL), max_size=2))),
                published=tuple(draw(st.lists(words, max_size=2))),
                problems=tuple(draw(st.lists(words, max_size=2))),
                configuration="0123456789ab",
                idle_cores=draw(SMALL) if complete else 0,
                idle_target_cores=draw(SMALL) if complete else None,
                idle_grace_cores=draw(SMALL) if complete else None,
                blocks=draw(st.builds(BlockMemory, st.lists(open_blocks, max_size=2).map(tuple))),
                target_nodes={
                    control.group: TargetNodes(draw(SMALL), draw(SMALL))
                    for control in groups
                    if draw(st.booleans())
                },
            )
        )
    return found


open_blocks = st.builds(OpenBlock, words, words, st.integers(1, 64), SMALL, st.none() | SMALL)


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
    """A bucket has means of power over all its cycles, of target nodes over those that know them."""
    with ledger_of(kept) as ledger:
        (bucket,) = ledger.series(kept[0].taken_at, kept[0].taken_at + 10 * DAY_SECONDS, 1).buckets
    assert bucket.pool.cycles == len(kept)
    assert bucket.pool.complete_cycles == sum(record.complete for record in kept)
    for name, point in bucket.groups.items():
        power = [c.error.usage.power_hs06 for r in kept for c in r.groups if c.group == name]
        assert point.cycles == len(power)
        assert point.power_hs06 == pytest.approx(sum(power) / len(power))
        counts = [record.target_nodes[name] for record in kept if name in record.target_nodes]
        means = [sum(each) / len(counts) for each in zip(*counts)] or [None, None]
        assert [point.held_back_nodes, point.helped_nodes] == pytest.approx(means)
    assert set(bucket.groups) == {control.group for record in kept for control in record.groups}


@given(records(), st.integers(1, 3))
@FEW
def test_retention_removes_the_oldest_only(kept: list[CycleRecord], days: int) -> None:
    """The youngest cycles stay, and all that are younger than the limit, as they were."""
    doubted = kept[-min(len(kept), 2)]
    with ledger_of(kept, Keep(days=days, cycles_a_time=3, doubted_cycles=2)) as ledger:
        left = list(ledger.cycles(0, 2**40, with_nodes=True))
    expected = [as_kept(record, number) for number, record in enumerate(kept, start=1)]
    assert left == expected[len(expected) - len(left) :]
    assert len(left) >= sum(
        record.taken_at >= doubted.taken_at - days * DAY_SECONDS for record in kept
    )


@given(records())
@FEW
def test_a_log_that_was_exported_comes_back_as_it_was(kept: list[CycleRecord]) -> None:
    """import(export(x)) = x, for the rows of a log."""
    with ledger_of(kept) as ledger, ledger_of(()) as other:
        log = ledger.path.parent / "shares_Error.log"
        log.write_text("".join(export.log_of(export.log_rows(ledger, 0, 2**40))))
        powers = [control.error.usage.power_hs06 for record in kept for control in record.groups]
        if powers and min(powers) >= 0:
            bring_in(other, [file_source(log)], kept[-1].taken_at)
            again = "".join(export.log_of(export.log_rows(other, 0, 2**40)))
            assert again == log.read_text()
            assert error_log.read_error_log(log) == tuple(
                (record.taken_at, control.error)
                for record in other.cycles(0, 2**40)
                for control in record.groups
            )
            assert other.problems(every_cycle=True) == []
