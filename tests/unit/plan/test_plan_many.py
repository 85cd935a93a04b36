from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pytest

from sharectl.model import LimitNote, Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Target
from sharectl.plan.limits import LIMITS
from sharectl.plan.plan import Decision, Known, PlanConfig, State, decide
from sharectl.plan.settings import Assigning, Prices
from sharectl.plan.waits import RemainingTimes
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "atlas": 100.0, "cms": 100.0, "lhcb": 100.0}
TWO_OVER = [running(f"wn-{n}", group, 1, 32) for n in range(4) for group in ("alice", "atlas")]
TWO_WAIT = {("cms", 8): 2, ("lhcb", 4): 9}


def config(
    solver: str = "greedy", keep: float = 0.25, obey: int = 600, **limits: object
) -> PlanConfig:
    assigning = Assigning(solver, prices=Prices(keep_gain_ratio=keep), obey_seconds=obey)
    return PlanConfig(PLEDGES, PlanLimits(**limits), 3060, assigning=assigning)  # type: ignore[arg-type]


def reasons(decision: Decision) -> dict[str, str]:
    return {record.node: record.reason or "" for record in decision.nodes}


def one_node(
    *held: RunningJobs, waiting: int = 9, size: int = 8, memory_mib: int = 0, asks_mib: int = 0
) -> Snapshot:
    """A node where alice could give, beside an uncontrolled one that makes cms be far under."""
    far = [RunningJobs("far", "alice", 1, 100.0, 60, 64)]
    return Snapshot(
        NOW,
        (
            Node("wn-1", "wn-1", 64, 10.0, controlled=True, memory_mib=memory_mib),
            Node("far", "far", 64, 100.0, controlled=False),
        ),
        (*held, *far),
        (PendingJobs("cms", size, waiting, asks_mib),),
    )


def after(seen: Snapshot, seconds: int, **changed: object) -> Snapshot:
    return replace(seen, taken_at=NOW + seconds, **changed)  # type: ignore[arg-type]


def test_each_over_gives_and_each_under_receives_in_its_own_size() -> None:
    decided = decide(config(), State(), snapshot(TWO_OVER, TWO_WAIT), NOW).plan
    assert {(t.helped, t.request_cores) for t in decided.targets} == {("cms", 8), ("lhcb", 4)}
    assert len({t.node for t in decided.targets}) == len(decided.targets) == 4
    assert (decided.held_back, decided.helped, decided.reason) == (None, None, "targets")


def test_a_node_where_less_stands_idle_goes_first() -> None:
    slow = [replace(running("wn-1", "alice", 1, 64), seconds=80_000)]
    quick = [replace(running("wn-2", "alice", 1, 64), seconds=100)]
    seen = snapshot([*slow, *quick], {("cms", 8): 1})
    decision = decide(config(), State(), seen, NOW)
    assert [target.node for target in decision.plan.targets] == ["wn-2"]
    assert reasons(decision) == {"wn-1": "not-needed", "wn-2": "target"}
    # As the ledger has learnt it, the long ones end first.
    learnt = RemainingTimes.from_rows(
        [(0, 1e9, 1.0), (60, 1e9, 1.0), (85, 1e9, 1.0), (61_440, 1e6, 1e4)]
    )
    known = decide(config(), State(), seen, NOW, Known({"alice": learnt}))
    assert [target.node for target in known.plan.targets] == ["wn-1"]


@pytest.mark.parametrize(("memory_mib", "targets"), [(0, 1), (64_000, 1), (1_000, 0)])
def test_a_job_must_find_its_memory(memory_mib: int, targets: int) -> None:
    seen = one_node(
        replace(running("wn-1", "alice", 1, 64), memory_mib=1),
        memory_mib=memory_mib,
        asks_mib=8_000,
    )
    assert len(decide(config(), State(), seen, NOW).plan.targets) == targets


def test_a_target_is_not_lowered_while_it_works() -> None:
    first = decide(config(), State(), one_node(running("wn-1", "alice", 1, 64)), NOW)
    half = after(one_node(running("wn-1", "alice", 1, 60)), 60)
    second = decide(config(), first.state, half, NOW + 60)
    assert second.plan.targets == first.plan.targets == (Target("wn-1", "alice", 56, "cms", 8),)
    assert reasons(second)["wn-1"] == "kept"


def test_a_target_that_has_done_its_work_gives_way_to_the_next_or_goes() -> None:
    first = decide(config(), State(), one_node(running("wn-1", "alice", 1, 64)), NOW)
    began = RunningJobs("wn-1", "cms", 8, 10.0, 30, 1)
    done = after(one_node(running("wn-1", "alice", 1, 56), began), 60)
    assert decide(config(), first.state, done, NOW + 60).plan.targets == (
        Target("wn-1", "alice", 48, "cms", 8),
    )
    last = replace(done, pending=(PendingJobs("cms", 4, 1),))
    gone = decide(config(), first.state, replace(done, pending=()), NOW + 60)
    assert (gone.plan.targets, reasons(gone)["wn-1"]) == ((), "released")
    assert decide(config(), first.state, last, NOW + 60).plan.targets == (
        Target("wn-1", "alice", 52, "cms", 4),
    )


def test_a_freed_block_waits_for_its_job() -> None:
    first = decide(config(), State(), one_node(running("wn-1", "alice", 1, 64)), NOW)
    freed = after(one_node(running("wn-1", "alice", 1, 56)), 60)
    assert decide(config(), first.state, freed, NOW + 60).plan.targets == first.plan.targets


def test_a_target_is_moved_for_a_gain_above_the_threshold_only() -> None:
    slow = [replace(running("wn-1", "alice", 1, 64), seconds=60_000)]
    quick = replace(running("wn-2", "alice", 1, 64), seconds=20_000)
    first = decide(config(), State(), snapshot(slow, {("cms", 8): 1}), NOW)
    seen = after(snapshot([*slow, quick], {("cms", 8): 1}), 60)
    kept = decide(config(keep=5.0), first.state, seen, NOW + 60)
    moved = decide(config(keep=0.0), first.state, seen, NOW + 60)
    assert [target.node for target in kept.plan.targets] == ["wn-1"]
    assert [target.node for target in moved.plan.targets] == ["wn-2"]


def test_room_goes_to_the_strong_and_the_note_tells_of_the_rest() -> None:
    held = [running(f"wn-{n}", "alice", 1, 64, hs06_per_core=10.0 + n) for n in range(4)]
    decision = decide(config(max_nodes=1), State(), snapshot(held, {("cms", 8): 9}), NOW)
    assert [target.node for target in decision.plan.targets] == ["wn-3"]
    assert decision.plan.limits == (LimitNote("max-nodes", 3),)
    assert sorted(reasons(decision).values()) == ["limit", "limit", "limit", "target"]


def test_a_node_that_does_not_obey_loses_its_target_and_is_tried_again_later() -> None:
    def heeding(seen: Snapshot, **obeyed: int) -> Snapshot:
        return replace(
            seen, nodes=tuple(replace(n, obeyed_sequence=obeyed.get(n.name)) for n in seen.nodes)
        )

    held = [running("a", "alice", 1, 64), running("b", "alice", 1, 64)]
    seen = snapshot(held, {("cms", 8): 9})
    first = decide(config(), State(), heeding(seen, a=0, b=0), NOW)
    assert len(first.plan.targets) == 2
    fine = heeding(seen, a=first.plan.sequence, b=0)
    soon = decide(config(), first.state, fine, NOW + 600)
    assert len(soon.plan.targets) == 2
    late = decide(config(), soon.state, fine, NOW + 601)
    assert ([t.node for t in late.plan.targets], reasons(late)["b"]) == (["a"], "not-obeying")
    still = decide(config(), late.state, fine, NOW + 700)
    assert [t.node for t in still.plan.targets] == ["a"]
    again = decide(config(), still.state, fine, NOW + 601 + 4 * 600)
    assert [t.node for t in again.plan.targets] == ["a", "b"]


def test_a_node_that_refuses_gets_nothing_new_and_keeps_what_it_acts_on() -> None:
    seen = snapshot([running("a", "alice", 1, 64)], {("cms", 8): 1})
    first = decide(config(), State(), seen, NOW)

    def refusing(obeyed: int) -> Snapshot:
        return replace(
            seen, nodes=(replace(seen.nodes[0], refusal="no-connection", obeyed_sequence=obeyed),)
        )

    fresh = decide(config(), State(), refusing(0), NOW)
    assert (fresh.plan.targets, reasons(fresh)) == ((), {"a": "refused"})
    assert (
        decide(config(), first.state, refusing(first.plan.sequence), NOW + 900).plan.targets
        == first.plan.targets
    )
    assert decide(config(), first.state, refusing(0), NOW + 900).plan.targets == ()


def test_single_core_jobs_get_as_many_cores_as_wait() -> None:
    seen = one_node(running("wn-1", "alice", 1, 64), size=1, waiting=5)
    assert decide(config(), State(), seen, NOW).plan.targets == (
        Target("wn-1", "alice", 59, "cms", 1),
    )


def test_multicore_jobs_come_first_and_single_core_jobs_where_they_do_not_fit() -> None:
    held = [running("wn-1", "alice", 1, 64), running("wn-2", "alice", 1, 7)]
    far = [running("far", "alice", 1, 64, hs06_per_core=100.0)]
    seen = snapshot([*held, *far], {("cms", 8): 9, ("cms", 1): 9}, uncontrolled=["far"])
    seen = replace(
        seen, nodes=tuple(n if n.name != "wn-2" else replace(n, cores=7) for n in seen.nodes)
    )
    targets = decide(config(), State(), seen, NOW).plan.targets
    assert {(target.node, target.request_cores) for target in targets} == {("wn-1", 8), ("wn-2", 1)}


def test_a_target_of_single_core_jobs_stays_until_its_cores_are_free_and_taken() -> None:
    first = decide(
        config(), State(), one_node(running("wn-1", "alice", 1, 64), size=1, waiting=8), NOW
    )
    assert first.plan.targets == (Target("wn-1", "alice", 56, "cms", 1),)
    assert first.nodes[1].idle_core_seconds == 0
    assert first.nodes[1].wait_seconds > 0
    half = one_node(
        running("wn-1", "alice", 1, 60), RunningJobs("wn-1", "cms", 1, 10.0, 30, 4), size=1
    )
    second = decide(config(), first.state, after(half, 60), NOW + 60)
    assert second.plan.targets == first.plan.targets
    done = one_node(
        running("wn-1", "alice", 1, 56),
        RunningJobs("wn-1", "cms", 1, 10.0, 30, 8),
        size=1,
        waiting=0,
    )
    third = decide(config(), second.state, after(done, 120), NOW + 120)
    assert (third.plan.targets, reasons(third)["wn-1"]) == ((), "released")


def test_a_group_whose_jobs_are_single_core_is_helped_beside_another() -> None:
    """Figure 1 of the seed: lhcb, with single-core jobs alone, is under its share, as cms is."""
    waiting = {("cms", 8): 400, ("lhcb", 1): 400}
    seen = snapshot([*TWO_OVER, running("wn-9", "cms", 1, 1)], waiting)
    decided = decide(config(), State(), seen, NOW).plan
    assert {(target.helped, target.request_cores) for target in decided.targets} == {("lhcb", 1)}
    seen = snapshot([*TWO_OVER, running("wn-9", "lhcb", 1, 1)], waiting)
    decided = decide(config(), State(), seen, NOW).plan
    assert {(target.helped, target.request_cores) for target in decided.targets} == {("cms", 8)}


@pytest.fixture
def without_scipy() -> Iterator[None]:
    """What an installation without the extra is like."""
    hidden = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "scipy"}
    for name in hidden:
        del sys.modules[name]
    sys.modules["scipy"] = None  # type: ignore[assignment]
    yield
    del sys.modules["scipy"]
    sys.modules.update(hidden)


@pytest.mark.usefixtures("without_scipy")
@pytest.mark.parametrize(("solver", "notes"), [("auto", []), ("highs", ["solver-missing"])])
def test_without_scipy_the_plan_is_greedy_and_says_so_to_those_who_ask_for_highs(
    solver: Literal["auto", "highs"], notes: list[str]
) -> None:
    seen = snapshot(TWO_OVER, TWO_WAIT)
    decided, greedy = (
        decide(config(chosen), State(), seen, NOW).plan for chosen in (solver, "greedy")
    )
    assert decided.targets == greedy.targets
    assert [note.code for note in decided.limits] == notes
    assert "optimise" in LIMITS["solver-missing"]


def test_highs_that_has_no_time_leaves_it_to_greedy() -> None:
    pytest.importorskip("scipy")
    slow = replace(config("highs"), assigning=Assigning(solver="highs", solver_seconds=1e-9))
    decided = decide(slow, State(), snapshot(TWO_OVER, TWO_WAIT), NOW).plan
    assert decided.targets
    assert {note.code for note in decided.limits} <= {"solver-slow"}


@pytest.mark.parametrize(
    ("held", "pending", "reason"),
    [
        ([], {}, "no-group-over"),
        (TWO_OVER, {}, "no-group-under"),
        ([running(f"wn-{n}", "alice", 1, 7) for n in range(9)], {("cms", 128): 9}, "no-fit"),
        ([running("wn-1", "alice", 1, 8)], {("cms", 8): 9}, "error-below-node"),
    ],
)
def test_no_targets_for_a_reason(
    held: list[RunningJobs], pending: dict[tuple[str, int], int], reason: str
) -> None:
    decided = decide(config(), State(), snapshot(held, pending), NOW).plan
    assert (decided.targets, decided.reason) == ((), reason)
