"""Decisions of the ledger, made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sharectl.cycle.record import record_of
from sharectl.explain.again import of_ledger
from sharectl.explain.what_if import Budget, flips, pending, under_target
from sharectl.ledger.ledger import Ledger
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import NOTHING_KNOWN, PlanConfig, State, decide
from sharectl.plan.records import CycleRecord
from sharectl.report.explain import note_rows
from tests.fakes import NOW

CONFIG = PlanConfig({"alice": 100.0, "cms": 200.0}, PlanLimits(), 3060)
KINDS = ((40_000, 5), (16_384, 2), (2_000, 1))


def seen(kinds: tuple[tuple[int, int], ...] = KINDS, job_mib: int = 2_560) -> Snapshot:
    """Two nodes full of alice's jobs, where 8 of them hold just what one of cms needs."""
    held = [RunningJobs(f"wn-{n}", "alice", 1, 10.0, 600, 16, job_mib) for n in (1, 2)]
    nodes = [
        Node(f"wn-{n}", f"wn-{n}", 16, 10.0, controlled=True, memory_mib=16 * job_mib)
        for n in (1, 2)
    ]
    waiting = [PendingJobs("cms", 8, jobs, memory_mib) for memory_mib, jobs in kinds]
    return Snapshot(NOW, tuple(nodes), tuple(held), tuple(waiting))


def kept(folder: Path, taken: Snapshot) -> CycleRecord:
    decision = decide(CONFIG, State(), taken, NOW)
    ledger = Ledger(folder / "ledger.sqlite")
    number = ledger.record(record_of(CONFIG, taken, decision, decision.plan, ("fake",)), taken)
    record = ledger.cycle(number)
    assert record is not None
    return record


def test_jobs_of_several_memory_sizes_come_to_the_same_targets(tmp_path: Path) -> None:
    record = kept(tmp_path, seen())
    explained = of_ledger(record, None, CONFIG, NOTHING_KNOWN)
    assert len(explained.decision.plan.targets) == 2
    assert explained.agrees


def test_jobs_that_need_just_what_is_freed_fit_again(tmp_path: Path) -> None:
    # 2560 and 20480 MiB: to two digits the jobs that run would hold more than the node has.
    record = kept(tmp_path, seen(((20_480, 2),)))
    assert [held.memory_mib for held in record.nodes[0].held] == [2_560]
    explained = of_ledger(record, None, CONFIG, NOTHING_KNOWN)
    assert len(explained.decision.plan.targets) == 2
    assert explained.agrees


def test_kinds_of_memory_are_few(tmp_path: Path) -> None:
    taken = seen(tuple((16_384 + number, 1) for number in range(500)))
    assert kept(tmp_path, taken).pending == (PendingJobs("cms", 8, 500, 16_883),)


def test_where_a_row_lacks_memory_the_note_says_so(tmp_path: Path) -> None:
    record = replace(kept(tmp_path, seen(((60_000, 2),))), pending=())
    explained = of_ledger(record, None, CONFIG, NOTHING_KNOWN)
    assert not explained.agrees
    assert "memory that pending jobs request" in note_rows(explained, same=False)[0][1]
    whole = of_ledger(kept(tmp_path, seen()), None, CONFIG, NOTHING_KNOWN)
    assert "memory" not in note_rows(whole, same=False)[0][1]


def test_jobs_taken_away_are_those_that_need_least_memory(tmp_path: Path) -> None:
    explained = of_ledger(kept(tmp_path, seen()), None, CONFIG, NOTHING_KNOWN)
    knob = pending(explained.case, "cms", 8, fewer=True)
    (flip,) = flips(explained.case, [knob], under_target("wn-1"), Budget(50))
    assert flip.what == "8-core jobs of cms that wait (taken away: least memory first)"
    # Without the three that fit, five are left, and none of them fits.
    assert (flip.value, flip.becomes) == (8.0, 5.0)


def test_jobs_that_are_added_need_the_least_memory() -> None:
    taken = seen(((40_000, 5), (16_384, 0)))
    explained = of_ledger(
        record_of(CONFIG, taken, decide(CONFIG, State(), taken, NOW), None, ()),
        None,
        CONFIG,
        NOTHING_KNOWN,
    )
    assert (
        flips(explained.case, [pending(explained.case, "cms", 8)], under_target("wn-1"), Budget(50))
        == ()
    )
