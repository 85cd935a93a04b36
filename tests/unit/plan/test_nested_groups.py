"""A cycle's decision with groups within groups, from the configuration to its record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.cli import wiring
from sharectl.config.load import parse
from sharectl.cycle.doubts import doubts
from sharectl.cycle.record import record_of
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Standing, Target
from sharectl.plan.plan import PlanConfig, State, decide

CONFIG = """\
groups:
  alice:
    pledge_hs06: 800
    groups: {prod: {share: 0.5}, user: {share: 0.25}}
  cms: {pledge_hs06: 800}
control: {strategy: pair, multicore_cores: 8}
"""
NOW = 1_800_000_000


def law() -> PlanConfig:
    return wiring.plan_config(parse(CONFIG, "F"))


def snapshot(**pending: int) -> Snapshot:
    """Two nodes of 80 cores of 10 HS06 each; names of groups in ``pending`` have __ for a dot."""
    held = {"alice.user": (0, 64), "alice": (0, 8), "alice.prod": (1, 8), "cms": (1, 72)}
    return Snapshot(
        taken_at=NOW,
        nodes=tuple(
            Node(f"wn-{n}", f"wn-{n}.example.org", 80, 10.0, controlled=True) for n in (0, 1)
        ),
        running=tuple(
            RunningJobs(f"wn-{n}", group, 1, 10.0, 600, cores) for group, (n, cores) in held.items()
        ),
        pending=tuple(
            PendingJobs(name.replace("__", "."), 8, jobs) for name, jobs in pending.items()
        ),
    )


def test_a_group_with_subgroups_sums_them_up_and_is_not_steered_itself() -> None:
    config = law()
    assert config.pledge_hs06 == {"alice.prod": 400, "alice.user": 200, "cms": 800}
    assert config.own_hs06 == {"alice": 200}
    assert list(config.shared_hs06) == ["alice", "alice.prod", "alice.user", "cms"]
    decision = decide(config, State(), snapshot(alice=7, alice__prod=5), NOW)
    controls = {control.group: control for control in decision.groups}
    whole = controls["alice"]
    assert (whole.output_hs06, whole.acted) == (0, ("by-subgroups",))
    assert (whole.error.pledge_hs06, whole.error.usage.power_hs06) == (800, 800)
    assert whole.error.usage.pending_by_cores == {8: 12}
    parts = [controls[f"alice.{name}"].error.error_hs06 for name in ("prod", "user")]
    assert whole.error.error_hs06 == pytest.approx(sum(parts) + 80 - 190)
    assert whole.setpoint_hs06 == pytest.approx(2 * controls["alice.prod"].setpoint_hs06)


def test_a_target_counts_for_the_groups_around_those_that_it_names() -> None:
    config, taken = law(), snapshot(alice__prod=5)
    its_own = decide(config, State(), snapshot(alice=50, cms=0), NOW)
    assert its_own.plan.targets == (), "its own jobs call for none"
    decision = decide(config, State(), taken, NOW)
    ((held_back, helped),) = {(t.held_back, t.helped) for t in decision.plan.targets}
    assert (held_back, helped) == ("alice.user", "alice.prod")
    record = record_of(config, taken, decision, decision.plan, ("file",))
    assert record.target_nodes == {
        "alice": (1, 1),
        "alice.prod": (0, 1),
        "alice.user": (1, 0),
        "cms": (0, 0),
    }
    withdrawn = record_of(config, taken, decision, None, (), off="disabled")
    assert set(withdrawn.target_nodes.values()) == {(0, 0)}
    assert record_of(config, taken, None, None, ()).target_nodes == {}


def test_a_target_that_stands_goes_when_its_group_gets_subgroups() -> None:
    """On the node it would hold back all of alice, those subgroups included."""
    standing = (Standing(Target("wn-0", "alice", 8, "cms", 8), NOW - 60),)
    state = State(sequence=NOW - 60, standing=standing, standing_until=NOW + 600)
    how = replace(law(), limits=PlanLimits(dwell_seconds=3600))
    assert decide(how, state, snapshot(), NOW).plan.targets == ()


def test_own_jobs_of_a_misspelt_subgroup_are_a_doubt() -> None:
    taken = snapshot()
    fewer = tuple(job for job in taken.running if job.group != "alice.prod")
    (doubt,) = doubts(law(), replace(taken, running=fewer))
    assert "group alice.prod has neither running nor pending jobs, and alice has 8 cores" in doubt
