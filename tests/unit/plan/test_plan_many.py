from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest

from sharectl.model import (
    Kind,
    LimitNote,
    Node,
    PendingJobs,
    PlanLimits,
    RunningJobs,
    Snapshot,
    Target,
)
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.waits import RemainingTimes
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "atlas": 100.0, "cms": 100.0, "lhcb": 100.0}
TWO_OVER = [running(f"wn-{n}", group, 1, 32) for n in range(4) for group in ("alice", "atlas")]
BLANK = State()


def config(obey: int = 600, **limits: Any) -> PlanConfig:
    return PlanConfig(PLEDGES, PlanLimits(**limits), 3060, obey_seconds=obey)


def cycle(seen: Snapshot, state: State = BLANK, at: int = 0, **how: Any) -> Decision:
    """Decision so many seconds after the first."""
    return decide(config(**how), state, replace(seen, taken_at=NOW + at), NOW + at)


def reasons(decision: Decision) -> dict[str, str]:
    return {record.node: record.reason or "" for record in decision.nodes}


def targeted(decision: Decision) -> list[str]:
    return [target.node for target in decision.plan.targets]


def one_node(*held: RunningJobs, waiting: int = 9, size: int = 8) -> Snapshot:
    """A node where alice could give, beside an uncontrolled one that makes cms be far under."""
    far = running("far", "alice", 1, 64, 100.0)
    return snapshot([*held, far], {("cms", size): waiting}, uncontrolled=["far"])


def alice(cores: int, node: str = "wn-1", **others: Any) -> RunningJobs:
    return running(node, "alice", 1, cores)._replace(**others)


FULL = one_node(alice(64))
A_BLOCK = (Target("wn-1", "alice", 56, "cms", 8),)


def test_a_node_where_less_stands_idle_goes_first() -> None:
    """By age, or as the ledger has learnt it: there the long ones end first."""
    held = [alice(64, seconds=80_000), alice(64, "wn-2", seconds=100)]
    seen = snapshot(held, {("cms", 8): 1})
    assert reasons(cycle(seen)) == {"wn-1": "not-needed", "wn-2": "target"}
    rows = [(0, 1e9, 1.0), (60, 1e9, 1.0), (85, 1e9, 1.0), (61_440, 1e6, 1e4)]
    learnt = {"alice": RemainingTimes.from_rows(rows)}
    assert targeted(decide(config(), BLANK, seen, NOW, learnt)) == ["wn-1"]


@pytest.mark.parametrize(("group", "node"), [("lhcb", "wn-1"), ("cms", "wn-2")])
def test_a_block_that_its_group_renews_brings_no_other_nearer(group: str, node: str) -> None:
    """A young job of 8 cores may end soon, and the next one of its group takes its cores.

    A target counts the group's blocks: it is done at one more than it began with.
    """
    young = running("wn-1", group, 8, 1)._replace(seconds=60)
    held = [alice(56, seconds=3000), young, alice(64, "wn-2", seconds=3000)]
    assert targeted(cycle(snapshot(held, {("cms", 8): 1}))) == [node]
    alone = one_node(alice(56, seconds=3000), young)
    first = cycle(alone)
    waits = [
        sum(row.wait_seconds for row in seen.nodes) for seen in (first, cycle(alone, first.state))
    ]
    assert waits[0] == waits[1] > 0


@pytest.mark.parametrize(("waiting", "nodes"), [(2, ["wn-1"]), (3, ["wn-1", "wn-2"])])
def test_a_block_that_costs_more_than_the_second_of_another_node_comes_later(
    waiting: int, nodes: list[str]
) -> None:
    """All eight jobs of one core on the second node must end, or any sixteen of 64 on the first."""
    long = running("wn-2", "cms", 8, 7)._replace(seconds=80_000)
    held = [alice(64, seconds=3000), alice(8, "wn-2", seconds=3000), long]
    seen = one_node(*held, waiting=waiting)
    decision = cycle(seen)
    assert targeted(decision) == nodes
    assert len(nodes) == 2 or reasons(decision)["wn-2"] == "not-needed"
    # It stays where it stands.
    alone = cycle(one_node(*held[1:], waiting=waiting))
    assert sorted(targeted(cycle(seen, alone.state, 60))) == ["wn-1", "wn-2"]


def test_a_block_is_not_put_off_for_the_second_of_its_own_node() -> None:
    """One large job gives the cores of both, and idle ones wait for it for the first alone."""
    large = running("wn-1", "alice", 16, 1)._replace(seconds=3000)
    seen = one_node(large, running("wn-1", "cms", 8, 5)._replace(seconds=80_000), waiting=1)
    nodes = [replace(node, cores=63) if node.name == "wn-1" else node for node in seen.nodes]
    assert targeted(cycle(replace(seen, nodes=tuple(nodes)))) == ["wn-1"]


@pytest.mark.parametrize(
    ("lacking_cores", "hours", "reason"),
    [(9, 9, "not-worth"), (14, 9, "targets"), (9, 0.2, "targets"), (7, 0.2, "error-below-node")],
)
def test_the_last_block_of_a_group_wins_more_than_idles_for_it(
    lacking_cores: int, hours: float, reason: str
) -> None:
    """Of 16 cores for a group that lacks 9 another one lacks 7 then, until the job ends."""
    seconds = int(hours * 3600)
    held = [running(node, "cms", 16, 2) for node in ("wn-1", "wn-2")]
    held += [alice(32, node, seconds=seconds) for node in ("wn-1", "wn-2")]
    shares = {"alice": 64.0 - lacking_cores, "cms": 64.0 + lacking_cores}
    how = PlanConfig(shares, PlanLimits(), 3060, obey_seconds=600)
    decision = decide(how, BLANK, snapshot(held, {("cms", 16): 1}), NOW)
    assert decision.plan.reason == reason
    assert len(decision.plan.targets) == (reason == "targets")


@pytest.mark.parametrize(("under", "nodes"), [(True, ["wn-1"]), (False, [])])
def test_a_target_stays_within_the_deadband_while_its_group_lacks_power(
    under: bool,  # noqa: FBT001 - a parameter
    nodes: list[str],
) -> None:
    """Its free cores lower the power in use, and the error: none begins within it."""
    first = cycle(FULL)
    assert targeted(first) == ["wn-1"]
    seen = one_node(alice(60), alice(64, "wn-2"))
    if not under:
        own = running("far", "cms", 1, 64, 1000.0)
        seen = replace(seen, running=(*seen.running, own))
    assert targeted(cycle(seen, first.state, 60, deadband_hs06=1e9)) == nodes
    assert targeted(cycle(seen, deadband_hs06=1e9)) == []


def test_within_the_deadband_no_target_begins_in_the_place_of_another() -> None:
    """Four of the eight cores are free: for a node of twice the power they would be given away.

    alice is over her share by more than the deadband, cms is under by less.
    """
    first = cycle(one_node(alice(64), waiting=1))
    assert targeted(first) == ["wn-1"]
    seen = one_node(alice(60), running("wn-2", "alice", 1, 64, 20.0), waiting=1)
    nodes = {node.name: node for node in seen.nodes}
    nodes["wn-2"] = replace(nodes["wn-2"], hs06_per_core=20.0)
    seen = replace(seen, nodes=tuple(nodes.values()))
    assert targeted(cycle(seen, first.state, 60)) == ["wn-2"]
    within = cycle(seen, first.state, 60, deadband_hs06=3000.0)
    assert (targeted(within), reasons(within)["wn-1"]) == (["wn-1"], "kept")


def test_a_group_that_holds_no_core_of_a_node_is_not_held_back_there() -> None:
    empty = RunningJobs("wn-1", "alice", 0, 10.0, 60)  # A job of request_cpus = 0
    assert cycle(one_node(empty)).plan.targets == ()
    beside = one_node(empty, running("wn-1", "lhcb", 1, 64))
    assert cycle(beside).plan.targets == ()


def test_a_block_that_grew_of_other_groups_cores_ends_its_target() -> None:
    first = cycle(one_node(alice(40), running("wn-1", "lhcb", 1, 24)))
    assert first.plan.targets == (Target("wn-1", "alice", 32, "cms", 8),)
    began = RunningJobs("wn-1", "cms", 8, 10.0, 30, 1)
    taken = one_node(alice(38), running("wn-1", "lhcb", 1, 18), began)
    assert cycle(taken, first.state, 60).plan.targets == (Target("wn-1", "alice", 30, "cms", 8),)


@pytest.mark.parametrize(("cms", "waits"), [(20, True), (22, True), (23, False), (45, False)])
def test_grace_keeps_blocks_for_a_group_unless_it_is_far_over(cms: int, waits: bool) -> None:  # noqa: FBT001 - a parameter
    held = [RunningJobs("wn-1", "cms", 1, 10.0, 60, cms), alice(80 - cms, "wn-2")]
    assert cycle(snapshot(held, {("cms", 8): 1})).plan.multicore_pending is waits


def test_a_target_stays_until_it_has_done_its_work_and_gives_way_to_the_next_or_goes() -> None:
    first = cycle(FULL)
    # While it works, and while its block waits.
    for cores in (60, 56):
        second = cycle(one_node(alice(cores)), first.state, 60)
        assert second.plan.targets == first.plan.targets == A_BLOCK
        assert reasons(second)["wn-1"] == "kept"
    done = one_node(alice(56), RunningJobs("wn-1", "cms", 8, 10.0, 30, 1))
    others = replace(done, pending=(PendingJobs("cms", 4, 1),))
    for seen, cap, size in ((done, 48, 8), (others, 52, 4)):
        after = (Target("wn-1", "alice", cap, "cms", size),)
        assert cycle(seen, first.state, 60).plan.targets == after
    gone = cycle(replace(done, pending=()), first.state, 60)
    assert (gone.plan.targets, reasons(gone)["wn-1"]) == ((), "released")


def test_a_target_is_moved_for_a_gain_of_more_than_a_quarter_only() -> None:
    first = cycle(snapshot([alice(64)], {("cms", 8): 1}))
    for power, node in ((12.0, "wn-1"), (13.0, "wn-2")):
        stronger = alice(64, "wn-2", hs06_per_core=power)
        seen = snapshot([alice(64), stronger], {("cms", 8): 1})
        assert targeted(cycle(seen, first.state, 60)) == [node]


@pytest.mark.parametrize(("seconds", "reason"), [(20_000, "targets"), (30_000, "not-worth")])
def test_no_target_where_a_large_job_frees_cores_too_late(seconds: int, reason: str) -> None:
    """By then more core-seconds would stand idle than a day moves."""
    large = RunningJobs("wn-1", "alice", 64, 10.0, seconds, 1)
    assert cycle(one_node(large)).plan.reason == reason


def test_room_goes_to_the_strong_and_the_note_tells_of_the_rest() -> None:
    held = [alice(64, f"wn-{n}", hs06_per_core=10.0 + n) for n in range(4)]
    decision = cycle(snapshot(held, {("cms", 8): 9}), max_nodes=1)
    assert targeted(decision) == ["wn-3"]
    assert decision.plan.limits == (LimitNote("max-nodes", 3),)
    assert sorted(reasons(decision).values()) == ["limit", "limit", "limit", "target"]


def acting(seen: Snapshot, refusal: Optional[str] = None, **obeyed: int) -> Snapshot:
    """Snapshot in which nodes say what they act on."""
    nodes = (replace(n, obeyed_sequence=obeyed.get(n.name), refusal=refusal) for n in seen.nodes)
    return replace(seen, nodes=tuple(nodes))


def test_a_node_that_does_not_obey_loses_its_target_and_is_tried_again_later() -> None:
    seen = snapshot([alice(64, "a"), alice(64, "b")], {("cms", 8): 9})
    first = cycle(acting(seen, a=0, b=0))
    assert targeted(first) == ["a", "b"]
    half = acting(seen, a=first.plan.sequence, b=0)
    soon = cycle(half, first.state, 600)
    assert targeted(soon) == ["a", "b"]
    late = cycle(half, soon.state, 601)
    assert (targeted(late), reasons(late)["b"]) == (["a"], "not-obeying")
    still = cycle(half, late.state, 700)
    assert targeted(still) == ["a"]
    assert targeted(cycle(half, still.state, 601 + 4 * 600)) == ["a", "b"]


def test_a_node_that_refuses_gets_nothing_new_and_keeps_what_it_acts_on() -> None:
    seen = snapshot([alice(64, "a")], {("cms", 8): 1})
    first = cycle(seen)
    assert reasons(cycle(acting(seen, "no-connection", a=0))) == {"a": "refused"}
    obeying = acting(seen, "no-connection", a=first.plan.sequence)
    assert cycle(obeying, first.state, 900).plan.targets == first.plan.targets
    assert targeted(cycle(acting(seen, "no-connection", a=0), first.state, 900)) == []


def test_multicore_jobs_come_first_and_single_core_jobs_where_they_do_not_fit() -> None:
    held = [alice(64), alice(7, "wn-2"), alice(64, "far", hs06_per_core=100.0)]
    seen = snapshot(held, {("cms", 8): 9, ("cms", 1): 9}, uncontrolled=["far"])
    nodes = tuple(replace(n, cores=7) if n.name == "wn-2" else n for n in seen.nodes)
    targets = cycle(replace(seen, nodes=nodes)).plan.targets
    assert {(target.node, target.request_cores) for target in targets} == {("wn-1", 8), ("wn-2", 1)}


def test_a_target_of_single_core_jobs_stays_until_its_cores_are_free_and_taken() -> None:
    few = cycle(one_node(alice(64), size=1, waiting=5))
    assert few.plan.targets == (Target("wn-1", "alice", 59, "cms", 1),), "as many as wait"
    first = cycle(one_node(alice(64), size=1, waiting=8))
    assert first.plan.targets == (Target("wn-1", "alice", 56, "cms", 1),)
    assert first.nodes[1].idle_core_seconds == 0 < first.nodes[1].wait_seconds
    began = RunningJobs("wn-1", "cms", 1, 10.0, 30, 4)
    second = cycle(one_node(alice(60), began, size=1), first.state, 60)
    assert second.plan.targets == first.plan.targets
    done = one_node(alice(56), began._replace(jobs=8), size=1, waiting=0)
    third = cycle(done, second.state, 120)
    assert (third.plan.targets, reasons(third)["wn-1"]) == ((), "released")


@pytest.mark.parametrize(
    ("holds", "helped"), [(("cms", 8), ("lhcb", 1)), (("lhcb", 1), ("cms", 8))]
)
def test_a_group_whose_jobs_are_single_core_is_helped_beside_another(
    holds: Kind, helped: Kind
) -> None:
    """Figure 1 of the seed: lhcb, with single-core jobs alone, is under its share, as cms is."""
    held = [*TWO_OVER, running("wn-9", *holds, 1)]
    decision = cycle(snapshot(held, {("cms", 8): 400, ("lhcb", 1): 400}))
    assert {target.kind for target in decision.plan.targets} == {helped}


@pytest.mark.parametrize(("atlas_mib", "first"), [(2000, "strong"), (4000, "small")])
def test_small_jobs_replace_large_ones_first_where_memory_is_short(
    atlas_mib: int, first: str
) -> None:
    sizes = {"small": (64_000, 9.0), "strong": (512_000, 13.0)}
    nodes = tuple(
        Node(name, name, 32, power, controlled=True, memory_mib=mib)
        for name, (mib, power) in sizes.items()
    )
    held = tuple(
        RunningJobs(name, "atlas", 1, power, 900, 16, atlas_mib)
        for name, (_, power) in sizes.items()
    )
    seen = Snapshot(NOW, nodes, held, (PendingJobs("alice", 1, 8, 2000),))
    assert targeted(decide(config(), BLANK, seen, NOW))[:1] == [first]


def test_a_group_whose_jobs_need_much_memory_gets_its_due_all_the_same() -> None:
    node = Node("wn-1", "wn-1", 32, 10.0, controlled=True, memory_mib=64_000)
    held = RunningJobs("wn-1", "alice", 1, 10.0, 900, 8, 5000)
    far = (
        Node("far", "far", 640, 10.0, controlled=False),
        RunningJobs("far", "alice", 1, 10.0, 900, 640),
    )
    seen = Snapshot(NOW, (node, far[0]), (held, far[1]), (PendingJobs("cms", 2, 9, 20_000),))
    assert targeted(decide(config(), BLANK, seen, NOW)) == ["wn-1"]
