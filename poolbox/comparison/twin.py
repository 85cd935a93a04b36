"""A comparison in the digital twin: the same nodes, jobs, intervals, start and record."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from poolbox.comparison.recording import STEP_SECONDS, TWIN, Record, Usage, record
from poolbox.comparison.scenario import (
    FILL_SECONDS,
    JOB_MEMORY_MIB,
    MULTICORE_CORES,
    TIMES,
    Comparison,
)
from poolbox.comparison.strategies import (
    control_section,
    scaled_defrag,
    scaled_loop,
)
from sharectl.cadence.laws import LoggedJob
from sharectl_lab.scenarios.file import scenario_of
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.study.begin import bound_of
from sharectl_lab.study.run import Run
from sharectl_lab.workload.logged import LogSource

BASE_SECONDS, MATCH_SECONDS = 0.1, 0.002
"""Duration of a negotiation cycle of such a small pool, and what a match adds."""
ORDER_SECONDS = 1e-6
"""Jobs that are submitted together keep their order by so much; the first cycle sees them all."""


def run(comparison: Comparison, strategy: Strategy) -> Record:
    """Record of a strategy in the twin."""
    run = Run(
        twin_scenario(comparison, strategy),
        twin_strategy(comparison, strategy),
        comparison.seed,
        comparison.seconds,
        equal_start=True,
    )
    run.until(run.end)
    outcome = run.outcome()
    groups = {group: outcome.groups[group] for group in comparison.pledge_hs06}
    request = {job.group: job.cores for job in comparison.jobs}
    usage = Usage(
        cores={group: share.cores for group, share in groups.items()},
        power_hs06={group: share.power_hs06 for group, share in groups.items()},
        pending_cores={
            group: [jobs * request[group] for jobs in share.pending_jobs]
            for group, share in groups.items()
        },
        killed_jobs=outcome.evicted_jobs,
        lost_core_seconds=outcome.lost_core_seconds,
    )
    return record(comparison, strategy.name, TWIN, usage, outcome.plans)


def least_missing_percent(comparison: Comparison) -> float:
    """Power that is missing at least without killing, RMS, percent of the pool's; proven."""
    scenario = twin_scenario(comparison, Strategy("", name="nothing"))
    bound = bound_of(scenario, comparison.seed, (), 0.0, lambda _part: None)
    if bound is None:
        raise KeyboardInterrupt
    return 100 * bound.any_idle_rms_hs06 / comparison.pool_hs06


def twin_strategy(comparison: Comparison, strategy: Strategy) -> Strategy:
    """Strategy with the intervals and the recipe that the real pool is given."""
    if strategy.steering:
        loop = scaled_loop(strategy)
        strategy = dataclasses.replace(
            strategy,
            loop_settings=(
                ("period_seconds", loop.period_seconds),
                ("job_ctl_seconds", loop.job_ctl_seconds),
            ),
        )
    if strategy.defrag:
        defrag = scaled_defrag(strategy.defrag, comparison)
        strategy = dataclasses.replace(strategy, defrag=defrag)
    return strategy


def twin_scenario(comparison: Comparison, strategy: Strategy) -> Scenario:
    """Scenario with the pool and the jobs of a comparison."""
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
        "control": control_section(strategy),
        "validity_seconds": TIMES["validity"],
        "negotiator": {
            "interval_seconds": TIMES["negotiator_interval"],
            "cycle_delay_seconds": TIMES["cycle_delay"],
            "base_seconds": BASE_SECONDS,
            "match_seconds": MATCH_SECONDS,
            "quotas": "static",
            "accept_surplus": False,
            "autoregroup": True,
        },
        "access": {"claim_worklife_seconds": TIMES["claim_worklife"]},
        "start": {
            "grace_seconds": TIMES["grace"],
            "multicore_cores": MULTICORE_CORES,
            "mc_grace_period_seconds": TIMES["mc_grace_cron"],
        },
        "jobs": [{"group": "any", "cores": 1, "run_time": "constant:1", "keep_pending": 1}],
        "warmup_hours": FILL_SECONDS / 3600,
        "days": comparison.seconds / 86_400,
        "seed": comparison.seed,
        "sample_seconds": STEP_SECONDS,
    }
    scenario = scenario_of(json.dumps(data), comparison.name)
    logged = tuple(
        LoggedJob(
            submitted_at=FILL_SECONDS
            + job.at
            + (place - len(comparison.jobs) * (job.at >= 0)) * ORDER_SECONDS,
            run_seconds=job.run_seconds,
            cores=job.cores,
            memory_mib=JOB_MEMORY_MIB,
            user=job.group,
            group=job.group,
            queue="",
        )
        for place, job in enumerate(comparison.jobs)
    )
    return dataclasses.replace(scenario, jobs=(), history=LogSource(Path("jobs")), logged=logged)
