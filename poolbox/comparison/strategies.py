"""Strategies of the twin on a real pool: configuration of its hosts, and of sharectl's loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

import yaml

from poolbox import BoxSpec, ExecutePoint, event_log
from poolbox.comparison.scenario import MULTICORE_CORES, SCALE, TIMES, Comparison
from poolbox.demo import scenario as demo
from sharectl_lab.scenarios.strategies import Strategy, with_static
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.settings import Defrag, Loop

ACCESS_POINT = "ap-1.example.org"
MULTICORE_ONLY = demo.CHECKOUT / "config.d" / "examples" / "70-multicore-only.conf"
RETIREMENT_SECONDS = 100_000
"""MAXJOBRETIREMENTTIME: drains wait for all jobs, as sites have it."""
LEAST_PERIOD_SECONDS = 5.0
"""Cycles take half a second or more beside three pools on two cores."""
LATE_SECONDS = 120
"""Several pools share a machine: a run of a node's job may be so late."""

CENTRAL = """\
NEGOTIATOR_INTERVAL = {times[negotiator_interval]}
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = {times[cycle_delay]}
"""
# Latches are looked at by POLLING_INTERVAL: scaled as grace is.
EXECUTE = f"""\
CLAIM_WORKLIFE = {{times[claim_worklife]}}
POLLING_INTERVAL = 1
MAXJOBRETIREMENTTIME = {RETIREMENT_SECONDS}
"""
SHARECTL_NODE = f"""\
include : {demo.SNIPPET}
SHARECTL_ACTUATION = {{actuation}}
SHARECTL_SOURCE = file:{demo.TARGETS_FILE_ON_NODE}
SHARECTL_GRACE_SECONDS = {{grace}}
SHARECTL_JOB_CTL_PERIOD_SECONDS = {{job_ctl}}
SHARECTL_MC_GRACE_PERIOD_SECONDS = {{times[mc_grace_cron]}}
SHARECTL_JOB_CTL_STALE_SECONDS = {LATE_SECONDS}
SHARECTL_MC_GRACE_STALE_SECONDS = {LATE_SECONDS}
STARTD_CRON_JOB_CTL_EXECUTABLE = {demo.CHECKOUT}/startd_cron/job_ctl.py
STARTD_CRON_MC_GRACE_EXECUTABLE = {demo.CHECKOUT}/startd_cron/mc_grace.py
"""
DEFRAG = """\
DAEMON_LIST = $(DAEMON_LIST) DEFRAG
DEFRAG_INTERVAL = {defrag.interval_seconds:g}
DEFRAG_DRAINING_MACHINES_PER_HOUR = 0
DEFRAG_MAX_CONCURRENT_DRAINING = {defrag.max_concurrent}
DEFRAG_MAX_WHOLE_MACHINES = {defrag.max_whole}
DEFRAG_DRAINING_SCHEDULE = graceful
DEFRAG_REQUIREMENTS = PartitionableSlot && t1_MulticoreOnly =!= True
DEFRAG_WHOLE_MACHINE_EXPR = ({whole})
DEFRAG_RANK = {rank}
"""
RANKS = {
    "badput": "-ExpectedMachineGracefulDrainingBadput",
    "cores-to-free": "ifThenElse(Cpus >= 8, -10, (TotalCpus - Cpus) / (8.0 - Cpus))",
}


@dataclasses.dataclass(frozen=True)
class Deployment:
    """A strategy on the hosts of a pool, which does nothing before it is switched on."""

    spec: BoxSpec
    switched_on: Mapping[str, str]
    """Host -> configuration that switches the strategy on."""
    loop: Optional[Loop]
    """Times of sharectl's loop; None if it does not run."""


def nodes_of(comparison: Comparison, strategy: Strategy) -> tuple[NodeSpec, ...]:
    """Nodes as the twin has them, some of them for multicore jobs alone."""
    nodes = tuple(
        NodeSpec(node.name, (SlotSpec(node.cores, node.memory_mib),), node.hs06 / node.cores)
        for node in comparison.nodes
    )
    if strategy.static is None:
        return nodes
    ratio = strategy.static.ratio
    return with_static(nodes, comparison.multicore_share if ratio is None else ratio)


def scaled_loop(strategy: Strategy) -> Loop:
    """Loop of a strategy with its times scaled."""
    loop = strategy.loop_of(Loop())
    return dataclasses.replace(
        loop,
        period_seconds=max(LEAST_PERIOD_SECONDS, loop.period_seconds / SCALE),
        job_ctl_seconds=max(3.0, loop.job_ctl_seconds / SCALE),
    )


def scaled_defrag(defrag: Defrag, comparison: Comparison) -> Defrag:
    """Recipe of a site for a few nodes: as many an hour, but of scaled hours.

    Of the nodes all but one may be whole; those that drain at once are in proportion to these as in
    the recipe.
    """
    whole, concurrent = defrag.max_whole, defrag.max_concurrent
    if whole > 0:
        few = len(comparison.nodes) - 1
        whole, concurrent = few, max(1, round(few * concurrent / whole))
    return dataclasses.replace(
        defrag,
        interval_seconds=max(5.0, defrag.interval_seconds / SCALE),
        machines_per_hour=defrag.machines_per_hour * SCALE,
        max_whole=whole,
        max_concurrent=concurrent,
        retirement_seconds=RETIREMENT_SECONDS,
    )


def deployment(comparison: Comparison, strategy: Strategy, suite: str) -> Deployment:
    """Pool with a strategy."""
    loop = scaled_loop(strategy) if strategy.steering else None
    central = demo.QUOTAS_WITHOUT_IDLE_CORES + CENTRAL.format(times=TIMES)
    switched_on = {
        node.name: f"include : {MULTICORE_ONLY}\n"
        for node in nodes_of(comparison, strategy)
        if node.multicore_only
    }
    if strategy.defrag:
        defrag = scaled_defrag(strategy.defrag, comparison)
        central += _defrag(defrag)
        rate = f"DEFRAG_DRAINING_MACHINES_PER_HOUR = {defrag.machines_per_hour:g}\n"
        switched_on[BoxSpec.central_point] = rate
    execute = EXECUTE.format(times=TIMES)
    if loop or strategy.grace:
        execute += _sharectl_node(strategy, loop)
    whole = sum(comparison.pledge_hs06.values())
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(node.name, node.cores, node.memory_mib, node.hs06)
            for node in comparison.nodes
        ),
        access_points=(ACCESS_POINT,),
        suite=suite,
        groups={group: round(hs06 / whole, 4) for group, hs06 in comparison.pledge_hs06.items()},
        central_config=central,
        access_config=event_log.EVENT_TIMES,
        execute_config=execute,
    )
    return Deployment(spec, switched_on, loop)


def control_section(strategy: Strategy) -> dict[str, Any]:
    """Section `control` of sharectl's configuration: its defaults with times scaled."""
    section: dict[str, Any] = {
        "multicore_cores": MULTICORE_CORES,
        "give_up_seconds": TIMES["give_up"],
    }
    for text in strategy.control_settings:
        key, _, value = text.partition("=")
        *parents, name = key.split(".")[1:]
        inner = section
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = yaml.safe_load(value)
    return section


def sharectl_configuration(
    comparison: Comparison, strategy: Strategy, directory: Path, targets: Path
) -> Mapping[str, Any]:
    """Configuration of sharectl, which keeps everything in ``directory``."""
    return {
        "groups": {
            group: {"pledge_hs06": pledge} for group, pledge in comparison.pledge_hs06.items()
        },
        "control": control_section(strategy),
        "publish": [{"file": str(targets)}],
        "validity_seconds": TIMES["validity"],
        "history": {
            "jobs_file": str(directory / "AcctGroup_hs06.txt"),
            "errors_log": str(directory / "shares_Error.log"),
        },
        "state_directory": str(directory),
    }


def _sharectl_node(strategy: Strategy, loop: Optional[Loop]) -> str:
    return SHARECTL_NODE.format(
        times=TIMES,
        actuation=strategy.steering or "live",
        grace=TIMES["grace"] if strategy.grace else 0,
        job_ctl=round(loop.job_ctl_seconds if loop else LATE_SECONDS),
    )


def _defrag(defrag: Defrag) -> str:
    whole = (
        "Cpus == TotalSlotCpus" if defrag.whole_cores is None else f"Cpus >= {defrag.whole_cores}"
    )
    return DEFRAG.format(defrag=defrag, whole=whole, rank=RANKS[defrag.rank])
