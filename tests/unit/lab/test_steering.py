from __future__ import annotations

from dataclasses import replace
from typing import Optional

import pytest

from sharectl.model import PendingJobs, PlanLimits
from sharectl.plan.plan import PlanConfig
from sharectl_lab.twin.look import EPOCH, Looks
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Loop
from sharectl_lab.twin.start import SlotTarget
from sharectl_lab.twin.steering import Steering
from sharectl_lab.workload.draw import JobKind
from tests.steered import Act, FakeTwin, kind, node, wait

KINDS = (kind("alice"), kind("cms", 8))
CONFIG = PlanConfig({"alice": 100.0, "cms": 100.0}, PlanLimits(), validity_seconds=3000)
LOOP = Loop(period_seconds=1000.0)


def full(nodes: int = 1, **others: bool) -> FakeTwin:
    """Nodes whose cores are all held by jobs of alice, while jobs of cms wait."""
    twin = FakeTwin([node(number, **others) for number in range(nodes)], KINDS)
    for each in twin.nodes:
        for _ in range(16):
            twin.start(each.slots[0], 0)
    wait(twin, 1, 5)
    return twin


def steered(
    twin: FakeTwin, loop: Loop = LOOP, actuation: str = "live", config: PlanConfig = CONFIG
) -> Steering:
    return Steering(twin, config, loop, actuation, seed=1, starts_at=100.0)


def target(until: Optional[float]) -> Optional[SlotTarget]:
    return None if until is None else SlotTarget("alice", 8, "cms", 8, until)


def targets(twin: FakeTwin) -> list[tuple[float, object]]:
    return [(act.at, act.argument) for act in twin.acts_of("target")]


@pytest.mark.parametrize("actuation", ["live", "cron"])
def test_a_node_acts_on_its_target_from_its_next_run_of_job_ctl_on(actuation: str) -> None:
    twin, period = full(), {"live": 30.0, "cron": 780.0}[actuation]
    steering = steered(twin, replace(LOOP, job_ctl_seconds=period), actuation)
    job = steering.nodes["wn-0"]
    runs = [job.phase + number * period for number in range(200)]
    first = next(at for at in runs if at >= 100.0)
    twin.run(first - 0.1)
    assert (targets(twin), job.obeyed_at(twin.now)) == ([], 0)
    twin.run(first)
    assert targets(twin) == [(first, target(3100.0))]
    assert job.obeyed_at(twin.now) == EPOCH + 100


def test_a_target_is_renewed_goes_with_the_demand_and_runs_out_without_a_plan() -> None:
    twin = full()
    steering = steered(twin)
    twin.run(1900.0)
    assert [end for _, end in targets(twin)] == [target(3100.0), target(4100.0)]
    wait(twin, 1, 0)
    twin.run(2900.0)
    assert targets(twin)[2][1] is None
    assert (twin.counts["plans"], twin.counts["changed_targets"]) == (3, 2)
    assert steering.nodes["wn-0"].obeyed_at(twin.now) == 0

    twin = full()
    steering = steered(twin, replace(LOOP, period_seconds=50_000.0))
    twin.run(3099.0)
    assert steering.nodes["wn-0"].obeyed_at(twin.now) == EPOCH + 100
    twin.run(3100.0)
    assert steering.nodes["wn-0"].obeyed_at(twin.now) == 0
    assert targets(twin)[1:] == [(3100.0, None)]
    assert twin.acts_of("pending")[1:] == [Act(3100.0, "pending", argument=None)]


def test_in_cron_mode_job_ctl_looks_at_every_run_while_there_is_a_target() -> None:
    twin, loop = full(3), replace(LOOP, job_ctl_seconds=780.0)
    steering = steered(twin, loop, "cron", replace(CONFIG, limits=PlanLimits(max_nodes=1)))
    twin.run(8000.0)
    steering.loop = replace(loop, failing_ratio=1.0)
    twin.run(30_000.0)
    (name,) = {act.node for act in twin.acts_of("look")}
    phase = steering.nodes[name].phase
    looks = [act.at for act in twin.acts_of("look")]
    # The last plan of the cycle at 7100 runs out at 10100.
    assert looks == pytest.approx(
        [at for n in range(99) if 100 <= (at := phase + n * 780.0) < 10_100]
    )
    assert twin.nodes[0].slots[0].counted_cores in (0, 16)
    assert targets(twin)[-1] == (10_100.0, None)


def test_nodes_know_whether_multicore_jobs_wait_half_a_period_after_the_plan() -> None:
    twin = full()
    steered(twin)
    twin.run(500.0)
    wait(twin, 1, 0)
    twin.run(2000.0)
    assert twin.acts_of("pending") == [
        Act(115.0, "pending", argument=True),
        Act(1115.0, "pending", argument=False),
    ]


def test_cycles_that_fail_publish_nothing() -> None:
    twin = full()
    steering = steered(twin, replace(LOOP, failing_ratio=1.0))
    twin.run(20_000.0)
    assert (twin.acts, twin.counts, steering.decision) == ([], {}, None)
    twin = full()
    steered(twin, replace(LOOP, failing_ratio=0.5))
    twin.run(100_000.0)
    assert 35 <= twin.counts["plans"] <= 65


def test_a_look_has_nodes_as_the_collector_knows_them() -> None:
    two = NodeSpec("wn-9", (SlotSpec(16, 32_768), SlotSpec(8, 16_384)), 12.5, multicore_only=True)
    twin = FakeTwin([node(0, controlled=False), two], KINDS)
    twin.nodes[0].slots[0].room_since = -400.0
    twin.nodes[1].slots[1].room_since = -500.0
    looks = Looks(twin, lambda *_: True)
    taken = looks.take([None, 7], {}).snapshot
    assert [(n.name, n.cores, n.memory_mib, n.controlled) for n in taken.nodes] == [
        ("wn-0", 16, 32_768, False),
        ("wn-9", 24, 49_152, True),
    ]
    first, second = taken.nodes
    assert (first.obeyed_sequence, first.grace_cores, first.several_slots) == (None, 16, False)
    assert (second.obeyed_sequence, second.grace_cores, second.several_slots) == (7, 0, True)
    assert (second.multicore_only, second.hs06_per_core) == (True, 12.5)
    twin.set_draining(twin.nodes[0], draining=True)
    twin.run(100.0)
    again = looks.take([0, 7], {}).snapshot
    assert (again.nodes[0].draining, again.nodes[0].grace_cores) == (True, 0)
    assert again.nodes[1] is taken.nodes[1]


def test_pending_jobs_that_no_node_could_run_are_no_demand() -> None:
    kinds = (
        kind("cms", 8),
        JobKind("cms", "user", 8, 999_999),
        JobKind("cms", "other", 8, 8 * 2048),
        JobKind("cms", "user", 8, 8 * 2048, requirements="HAS_GPU"),
        kind("alice"),
        kind("nobody", 16),
    )
    twin = FakeTwin([node(0, multicore_only=True)], kinds)
    for number, jobs in enumerate((3, 1, 4, 2, 5, 6)):
        wait(twin, number, jobs)
    meets = Looks(twin, lambda _slot, job: not job.requirements)
    rows = meets.take([0], {}).snapshot.pending
    assert set(rows) == {
        PendingJobs("alice", 1, 5, 2048, placeable=False),
        PendingJobs("cms", 8, 7, 16_384),
        PendingJobs("cms", 8, 2, 16_384, placeable=False),
        PendingJobs("cms", 8, 1, 999_999, placeable=False),
        PendingJobs("nobody", 16, 6, 32_768),
    }
    capped = Looks(twin, lambda *_: True, most_cores=8)
    rows = capped.take([0], {}).snapshot.pending
    assert PendingJobs("nobody", 8, 6, 32_768) in rows
