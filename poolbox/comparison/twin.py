"""A comparison in the digital twin: the same nodes, jobs and intervals, and the same figures."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import Any

from poolbox.comparison.recording import Figures, errors_hs06, root_mean_square
from poolbox.comparison.scenario import MULTICORE_CORES, Comparison
from poolbox.comparison.strategies import (
    control_section,
    scaled_defrag,
    scaled_loop,
)
from sharectl.sim.file import scenario_of
from sharectl.sim.records import Outcome
from sharectl.sim.run import simulate
from sharectl.sim.scenario import Scenario
from sharectl.sim.strategies import Strategy
from sharectl.workload.logged import LoggedJob, LogSource

BASE_SECONDS, MATCH_SECONDS = 0.1, 0.002
"""Duration of a negotiation cycle of such a small pool, and what a match adds."""
ORDER_SECONDS = 1e-6
"""Jobs that are submitted together keep their order by so much."""


def run(comparison: Comparison, strategy: Strategy, step: float, seed: int) -> Figures:
    """Figures of a strategy in the twin, in intervals of `step` seconds."""
    scenario = twin_scenario(comparison, strategy, step)
    outcome = simulate(scenario, twin_strategy(comparison, strategy), seed, comparison.seconds)
    return figures_of(outcome, comparison)


def twin_strategy(comparison: Comparison, strategy: Strategy) -> Strategy:
    """Strategy with the intervals and the recipe that the real pool is given."""
    if strategy.steering:
        loop = scaled_loop(strategy, comparison.scale)
        strategy = dataclasses.replace(
            strategy,
            loop=(
                ("period_seconds", loop.period_seconds),
                ("job_ctl_seconds", loop.job_ctl_seconds),
            ),
        )
    if strategy.defrag:
        defrag = scaled_defrag(strategy.defrag, comparison)
        strategy = dataclasses.replace(strategy, defrag=defrag)
    return strategy


def twin_scenario(comparison: Comparison, strategy: Strategy, step: float) -> Scenario:
    """Scenario with the pool and the jobs of a comparison."""
    times = comparison.times
    data: dict[str, Any] = {
        "nodes": [
            {
                "name": node.name.split(".")[0],
                "cores": node.cores,
                "memory_mib": node.memory_mib,
                "hs06_per_core": node.hs06 / node.cores,
            }
            for node in comparison.nodes
        ],
        "groups": {
            group: {"pledge_hs06": pledge} for group, pledge in comparison.pledge_hs06.items()
        },
        "control": control_section(comparison, strategy),
        "validity_seconds": times.validity,
        "negotiator": {
            "interval_seconds": times.negotiator_interval,
            "cycle_delay_seconds": times.cycle_delay,
            "base_seconds": BASE_SECONDS,
            "match_seconds": MATCH_SECONDS,
            "quotas": "static",
            "accept_surplus": False,
            "autoregroup": True,
        },
        "access": {"claim_worklife_seconds": times.claim_worklife},
        "start": {
            "grace_seconds": times.grace,
            "multicore_cores": MULTICORE_CORES,
            "mc_grace_period_seconds": times.mc_grace_cron,
        },
        "jobs": [{"group": "any", "cores": 1, "run_time": "constant:1", "keep_pending": 1}],
        "warmup_hours": comparison.warm_up_seconds / 3600,
        "days": comparison.seconds / 86_400,
        "seed": comparison.seed,
        "sample_seconds": step,
    }
    scenario = scenario_of(json.dumps(data), comparison.name)
    logged = tuple(
        LoggedJob(
            submitted_at=comparison.warm_up_seconds + job.at + place * ORDER_SECONDS,
            run_seconds=job.run_seconds,
            cores=job.cores,
            memory_mib=job.memory_mib,
            user=job.group,
            group=job.group,
            queue="",
        )
        for place, job in enumerate(comparison.jobs)
    )
    return dataclasses.replace(scenario, jobs=(), history=LogSource(), logged=logged)


def figures_of(outcome: Outcome, comparison: Comparison) -> Figures:
    """Figures of an outcome, in its intervals."""
    groups = {group: outcome.groups[group] for group in comparison.pledge_hs06}
    power = {group: share.power_hs06 for group, share in groups.items()}
    cores = {group: share.cores for group, share in groups.items()}
    starts: Counter[int] = Counter()
    done: Counter[int] = Counter()
    for share in groups.values():
        starts.update(share.starts_by_cores)
        done.update(share.done_by_cores)
    errors = errors_hs06(power, comparison.pledge_hs06)
    return Figures(
        times=outcome.times,
        cores=cores,
        power_hs06=power,
        idle_cores=tuple(comparison.cores - sum(held) for held in zip(*cores.values())),
        rms_hs06={group: root_mean_square(series) for group, series in errors.items()},
        starts_by_cores=dict(sorted(starts.items())),
        done_by_cores=dict(sorted(done.items())),
        evicted_jobs=outcome.evicted_jobs,
        lost_core_seconds=outcome.lost_core_seconds,
    )
