"""Laws of plans that act, cycle after cycle, on nodes that do as the method tells."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Target
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from tests.fakes import NOW

CORES, CYCLES = 16, 8
Pool = list[dict[str, int]]
"""Group -> cores held, for each node."""
Queue = dict[str, list[int]]
"""Group -> cores of each job that waits."""


class Loop:
    """A full pool of single-core jobs that end before the next cycle, and of large jobs that stay.

    Under a target its held-back group starts no job above the cap, its helped group those of the
    target's size, and other groups none.
    """

    def __init__(self, strategy: str, powers: Sequence[float], held: Pool, waiting: Queue) -> None:
        self.powers, self.waiting = powers, {name: [*jobs] for name, jobs in waiting.items()}
        self.held = [dict(node) for node in held]
        self.over = {name for node in held for name in node}
        pledges = dict.fromkeys((*self.over, *waiting), 100.0)
        self.config = PlanConfig(pledges, PlanLimits(), 3600, strategy=strategy)
        self.state, self.targets = State(), list[tuple[Target, ...]]()

    def step(self) -> Decision:
        """Decide, and have all nodes do as told until the next cycle."""
        running = [
            RunningJobs(f"wn-{number}", group, 1, power / CORES, 60, cores)
            for number, (power, node) in enumerate(zip(self.powers, self.held))
            for group, cores in node.items()
            if cores
        ]
        nodes = [
            Node(f"wn-{n}", f"wn-{n}", CORES, p / CORES, controlled=True)
            for n, p in enumerate(self.powers)
        ]
        pending = [
            PendingJobs(group, size, jobs.count(size))
            for group, jobs in self.waiting.items()
            for size in sorted({*jobs})
        ]
        now = NOW + 60 * len(self.targets)
        taken = Snapshot(now, tuple(nodes), tuple(running), tuple(pending))
        decision = decide(self.config, self.state, taken, now)
        self.state = decision.state
        self.targets.append(decision.plan.targets)
        told = {target.node: target for target in decision.plan.targets}
        for number, node in enumerate(self.held):
            self._run(node, told.get(f"wn-{number}"))
        return decision

    def _run(self, node: dict[str, int], target: Target | None) -> None:
        """Have a node's single-core jobs end and others start, as its target lets them in."""
        for group in self.over:
            kept = target.cap_cores if target and group == target.held_back else 0
            node[group] = min(node.get(group, 0), kept)
        waiting = self.waiting.get(target.helped, []) if target else []
        while target and target.request_cores in waiting:
            if sum(node.values()) + target.request_cores > CORES:
                break
            waiting.remove(target.request_cores)
            node[target.helped] = node.get(target.helped, 0) + target.request_cores
        if not target:
            free = CORES - sum(node.values())
            for number, group in enumerate(sorted(self.over)):
                node[group] = (free + number) // len(self.over)

    def rms_hs06(self, cycles: int) -> float:
        """RMS of the groups' errors after so many cycles."""
        errors = [[group.error.error_hs06 for group in self.step().groups] for _ in range(cycles)]
        return sqrt(sum(error**2 for error in errors[-1]) / len(errors[-1]))


@given(st.permutations((160.0, 192.0, 160.0, 192.0)), st.integers(5, 7))
def test_many_pairs_leave_less_error_than_one(powers: list[float], cores: int) -> None:
    """Two groups over their share, two under it: `many` helps both at once, `pair` in turn."""
    held = [{"alice": CORES // 2, "atlas": CORES // 2} for _ in powers]
    waiting = {"cms": [8, 8], "lhcb": [cores] * 2}
    many, pair = (Loop(strategy, powers, held, waiting) for strategy in ("many", "pair"))
    assert many.rms_hs06(3) <= 0.7 * pair.rms_hs06(3)
    assert {target.helped for target in many.targets[0]} == {"cms", "lhcb"}
    assert {len({target.helped for target in targets}) for targets in pair.targets} <= {0, 1}


@pytest.mark.parametrize("strategy", ["many", "pair"])
@given(powers=st.lists(st.sampled_from((144.0, 160.0, 192.0)), min_size=2, max_size=6))
def test_a_group_with_single_core_jobs_alone_gets_its_share(
    strategy: str, powers: list[float]
) -> None:
    """At least half of its share, and no block more than all of it."""
    loop = Loop(strategy, powers, [{"alice": CORES} for _ in powers], {"lhcb": [1] * 400})
    loop.rms_hs06(CYCLES)
    got = sum(p / CORES * node.get("lhcb", 0) for p, node in zip(powers, loop.held))
    block = loop.config.limits.multicore_cores * max(powers) / CORES
    assert sum(powers) / 4 <= got <= sum(powers) / 2 + block
    targets = {(t.helped, t.request_cores) for planned in loop.targets for t in planned}
    assert targets == {("lhcb", 1)}
