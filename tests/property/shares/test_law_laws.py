"""Laws of errors and plans."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from sharectl.model import PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import PlanConfig, State, decide
from sharectl.shares.errors import group_errors, usage_by_group
from tests.fakes import NOW, snapshot

GROUPS = ("alice", "atlas", "cms", "lhcb")
NODES = tuple(f"wn-{number}" for number in range(6))
POWER = {node: 8.0 + number for number, node in enumerate(NODES)}

held = st.builds(
    lambda node, group, cores, jobs: RunningJobs(node, group, cores, POWER[node], 60, jobs),
    st.sampled_from(NODES),
    st.sampled_from((*GROUPS, "other")),
    st.sampled_from((1, 2, 8)),
    st.integers(1, 40),
)
waiting = st.dictionaries(
    st.tuples(st.sampled_from((*GROUPS, "other")), st.sampled_from((1, 4, 8))), st.integers(1, 30)
)
snapshots = st.builds(
    lambda jobs, pending, out: snapshot(jobs, pending, uncontrolled=out),
    st.lists(held, max_size=15),
    waiting,
    st.sets(st.sampled_from(NODES), max_size=3),
)
pledges = st.fixed_dictionaries({group: st.floats(1, 1e6) for group in GROUPS})
limits = st.builds(
    PlanLimits,
    multicore_cores=st.sampled_from((4, 8)),
    deadband_hs06=st.sampled_from((0.0, 100.0)),
    max_nodes=st.none() | st.integers(1, 4),
)
configs = st.builds(PlanConfig, pledges, limits, st.just(3060), strategy=st.just("pair"))


@given(snapshots, pledges, st.floats(0.01, 100))
def test_errors_sum_to_zero_and_only_the_ratio_of_pledges_counts(
    taken: Snapshot, pledge: dict[str, float], factor: float
) -> None:
    """What some groups have too much, the others lack, in HS06 and in cores."""
    usage = usage_by_group(taken, pledge)
    rows = group_errors(usage, pledge)
    power = sum(row.usage.power_hs06 for row in rows) + 1
    assert isclose(sum(row.error_hs06 for row in rows), 0, abs_tol=1e-9 * power)
    assert isclose(sum(row.error_cores for row in rows), 0, abs_tol=1e-9 * power)
    scaled = {group: value * factor for group, value in pledge.items()}
    for row, other in zip(rows, group_errors(usage, scaled)):
        assert isclose(row.error_hs06, other.error_hs06, rel_tol=1e-6, abs_tol=1e-6)


@given(snapshots, configs)
def test_jobs_of_groups_without_a_pledge_change_nothing(
    taken: Snapshot, config: PlanConfig
) -> None:
    """Jobs of `other`, running or pending, move no error and no target."""
    without = replace(
        taken,
        running=tuple(job for job in taken.running if job.group != "other"),
        pending=tuple(jobs for jobs in taken.pending if jobs.group != "other"),
    )
    assert (
        decide(config, State(), taken, NOW).plan.targets
        == decide(config, State(), without, NOW).plan.targets
    )
