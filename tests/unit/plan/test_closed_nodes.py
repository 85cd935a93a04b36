"""Nodes that are closed to waiting jobs: no target goes there, and nothing there counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.cycle.record import record_of, snapshot_of
from sharectl.model import (
    ClosedTo,
    Node,
    PendingJobs,
    PlanLimits,
    RunningJobs,
    Snapshot,
    Standing,
    Target,
)
from sharectl.plan.blocks import BackOff, BlockMemory, Loss, TakenBlocks
from sharectl.plan.candidates import MANY, SPARE_NODES
from sharectl.plan.plan import NODE_REASONS, REASONS, Decision, PlanConfig, State, decide
from sharectl.plan.records import GROUP_REASONS
from sharectl.plan.settings import GiveUp
from tests.fakes import NOW

PLEDGES = {"alice": 100.0, "atlas": 200.0, "cms": 300.0}
TO_CMS = (ClosedTo("cms", (8,), "MY.IS_HEALTHY"),)
TO_ALL = (*TO_CMS, ClosedTo("atlas", (8,), "MY.IS_HEALTHY"))
STOOD = Target("wn-1", "alice", 0, "cms", 8)
BLANK = State(blocks=BlockMemory(taken=(TakenBlocks("cms", 8, 60.0, 9.0),)))
"""Jobs of cms took blocks lately."""


def law(strategy: str = "many", **limits: object) -> PlanConfig:
    bounds = PlanLimits(**limits)  # type: ignore[arg-type]
    return PlanConfig(PLEDGES, bounds, 86_400, strategy=strategy, give_up=GiveUp(60.0))


def pool(
    *closed: tuple[ClosedTo, ...],
    open_nodes: int = 3,
    waiting: tuple[str, ...] = ("cms",),
    at: int = NOW,
    size: int = 8,
) -> Snapshot:
    """Nodes of 16 cores: closed ones are half idle, and alice has all of the open ones."""
    nodes, held = [], []
    for number, rows in enumerate((*closed, *(None,) * open_nodes), 1):
        name = f"wn-{number}"
        nodes.append(Node(name, name, 16, 10.0, controlled=True, closed=rows or ()))
        held.append(RunningJobs(name, "alice", 1, 10.0, 3600, 16 if rows is None else 8))
    pending = tuple(PendingJobs(group, size, 3) for group in waiting)
    return Snapshot(at, tuple(nodes), tuple(held), pending)


def nodes_helped(decision: Decision) -> dict[str, str]:
    return {target.node: target.helped for target in decision.plan.targets}


def reasons(decision: Decision) -> dict[str, str]:
    return {record.node: record.reason or "" for record in decision.nodes}


@pytest.mark.parametrize("strategy", ["many", "pair"])
def test_targets_go_where_the_jobs_may_start_although_others_look_better(strategy: str) -> None:
    open_to_all = pool((), (), (), open_nodes=1)
    assert "wn-1" in nodes_helped(decide(law("many"), BLANK, open_to_all, NOW))
    decision = decide(law(strategy), BLANK, pool(TO_CMS, TO_CMS, TO_CMS), NOW)
    assert nodes_helped(decision) == dict.fromkeys(("wn-4", "wn-5", "wn-6"), "cms")
    assert [reasons(decision)[f"wn-{n}"] for n in (1, 2, 3)] == ["closed"] * 3


def test_a_node_that_is_closed_to_one_group_helps_another() -> None:
    taken = pool(TO_CMS, TO_CMS, TO_CMS, open_nodes=0, waiting=("atlas", "cms"))
    decision = decide(law(), BLANK, taken, NOW)
    assert set(nodes_helped(decision).values()) == {"atlas"}
    record = record_of(law(), taken, decision, decision.plan, ("fake",))
    codes = {group: reason.code for group, reason in record.group_reasons.items()}
    assert codes == {"alice": "held-back", "atlas": "helped", "cms": "closed"}
    by_pair = decide(law("pair"), BLANK, taken, NOW)
    assert set(nodes_helped(by_pair).values()) == {"atlas"}


@pytest.mark.parametrize("strategy", ["many", "pair"])
@pytest.mark.parametrize(
    "taken",
    [
        pool(TO_ALL, TO_ALL, open_nodes=0, waiting=("atlas", "cms")),
        pool(TO_CMS, TO_CMS, open_nodes=0),
        # The open one could give cms nothing.
        replace(pool(TO_CMS, TO_CMS, open_nodes=1), running=pool(TO_CMS, TO_CMS).running[:2]),
    ],
)
def test_without_an_open_node_that_could_give_cores_the_plan_says_closed(
    strategy: str, taken: Snapshot
) -> None:
    decision = decide(law(strategy), BLANK, taken, NOW)
    assert (decision.plan.reason, decision.plan.targets) == ("closed", ())
    assert [reasons(decision)[name] for name in ("wn-1", "wn-2")] == ["closed"] * 2
    assert {"closed"} <= NODE_REASONS.keys() & REASONS.keys() & GROUP_REASONS.keys()


@pytest.mark.parametrize("strategy", ["many", "pair"])
def test_nothing_on_a_closed_node_counts_against_the_group(strategy: str) -> None:
    """Its target goes at once, its free block is no failure, and the group is helped elsewhere."""
    state = State(5, standing=(Standing(STOOD, NOW - 900),), standing_until=NOW + 86_400)
    how = law(strategy, dwell_seconds=100_000)
    free = decide(how, state, pool((), open_nodes=1), NOW)
    assert free.state.blocks.open[0].free_since == NOW
    for closed, back_offs in (((), True), (TO_CMS, False)):
        after = decide(how, free.state, pool(closed, open_nodes=1, at=NOW + 600), NOW + 600)
        assert STOOD not in after.plan.targets
        assert bool(after.state.blocks.back_offs) is back_offs
        assert reasons(after)["wn-1"] == ("given-up" if back_offs else "closed")
    assert nodes_helped(after) == {"wn-2": "cms"}
    assert [block.node for block in after.state.blocks.open] == []


def test_the_one_probe_of_a_group_goes_to_an_open_node() -> None:
    paused = BackOff("cms", 8, "", failures=3, until=NOW - 1)
    state = State(blocks=BlockMemory(back_offs=(paused,), losses=(Loss("cms", NOW - 9000),)))
    decision = decide(law(), state, pool(TO_CMS, TO_CMS, open_nodes=2), NOW)
    assert set(nodes_helped(decision)) < {"wn-3", "wn-4"}
    assert len(decision.plan.targets) == 1


def test_closed_nodes_crowd_out_no_open_one_in_a_large_pool() -> None:
    """Only the quickest are looked at closely there."""
    taken = pool(*[TO_CMS] * (MANY + SPARE_NODES), open_nodes=3)
    assert len(nodes_helped(decide(law(), BLANK, taken, NOW))) == 3


def test_a_record_has_the_clause_and_decides_the_same_again() -> None:
    taken = pool(TO_CMS, TO_CMS, open_nodes=1)
    decision = decide(law(), BLANK, taken, NOW)
    record = record_of(law(), taken, decision, decision.plan, ("fake",))
    assert record.nodes[0].closed == TO_CMS
    again = snapshot_of(record)
    assert decide(law(), BLANK, again, NOW).plan.targets == decision.plan.targets


@pytest.mark.parametrize("open_nodes", [0, 1])
def test_jobs_to_which_every_node_is_closed_keep_no_grace_on(open_nodes: int) -> None:
    seen = pool(TO_CMS, TO_CMS, open_nodes=open_nodes)
    assert decide(law(), BLANK, seen, NOW).plan.multicore_pending is bool(open_nodes)
