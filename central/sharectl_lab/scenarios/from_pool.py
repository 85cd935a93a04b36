"""A scenario from a site's configuration and its ledger.

Nodes and jobs are those of the last complete cycle: pending jobs of a group and size are kept so
many, others that run come as often as they end. Run times that nobody saw are the prior of
`sharectl.plan.waits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import exp, inf
from typing import TypeVar

from sharectl.cadence.laws import RunTimeLaw, weighted
from sharectl.config.groups import GroupConfig, SubgroupConfig
from sharectl.config.model import Config
from sharectl.errors import StateError
from sharectl.ledger.ledger import Ledger
from sharectl.model import OTHER, Kind, PendingJobs
from sharectl.plan.nodes import NO_PARTITIONABLE_SLOT
from sharectl.plan.records import HeldJobs, NodeRecord
from sharectl.plan.waits import EDGES_SECONDS, NOTHING_SEEN, RemainingTimes, RunTimes
from sharectl.shares.groups import levels_above
from sharectl_lab.scenarios.scenario import NodeGroup, Scenario
from sharectl_lab.workload.draw import HOUR_SECONDS, JobStream

MOST_PENDING = 5000
"""Jobs of a kind that are kept pending at most: a pool does not take more in a cycle."""
_MEMORY_MIB = 2000
"""For each core, where jobs tell of none."""
_QUANTUM_MIB = 128
"""Step to which HTCondor rounds up the memory of a slot (MODIFY_REQUEST_EXPR_REQUESTMEMORY)."""
_ALIKE = 2
"""Ratio of memory up to which running jobs are of the same stream as pending ones."""
_LEAST_WEIGHT = 1e-6
_SHOWN_NODES = 3
_Group = TypeVar("_Group", GroupConfig, SubgroupConfig)


def from_ledger(config: Config, pledge_hs06: Mapping[str, float], ledger: Ledger) -> Scenario:
    """Scenario of the last complete cycle, with pledges of all levels; StateError without one."""
    record = ledger.last_complete(0, 2**62)
    if record is None:
        raise StateError(
            f"{ledger.path}: no complete cycle is in it; run `sharectl cycle` first (a dry run "
            "records nothing; with mode: observe it publishes no target)"
        )
    run_times = ledger.run_times(config.tree.names)
    held = {
        (group, cores): number
        for group, sizes in record.cores_by_size.items()
        for cores, number in sizes.items()
    }
    running = (jobs for node in record.nodes for jobs in node.held)
    site = Scenario(
        nodes=node_groups(record.nodes),
        groups=_with_pledges(config.groups, pledge_hs06),
        summary="from the configuration of a pool",
        control=config.control,
        validity_seconds=config.validity_seconds,
        jobs=streams_of(record.pending, held, running, run_times),
        warmup_hours=48,
        sample_seconds=900,
        name="from-config",
    )
    return replace(site, notes=(*_notes_on_nodes(record.nodes), *_assumed(site, run_times)))


def _assumed(site: Scenario, run_times: RunTimes) -> Iterator[str]:
    groups = sorted({stream.group or OTHER for stream in site.jobs})
    tables = {name: run_times.get(name, NOTHING_SEEN) for name in groups}
    unseen = [name for name, table in tables.items() if not any(ends for _, ends in table.bins)]
    if unseen:
        yield f"run times of {', '.join(unseen)} are assumed: no job of them was seen to end"
    yield (
        "the negotiator has HTCondor's defaults and START is true; write yours with --set "
        "negotiator.quotas=static (by pledges), negotiator.interval_seconds=… and start.site=…"
    )
    period, loop = site.negotiator.interval_seconds, site.loop.period_seconds
    yield (
        f"a cycle of sharectl every {loop:g} s and one of the negotiator every {period:g} s: what "
        "strategies differ in for shorter jobs hangs on these; compare with --set "
        "loop.period_seconds=SECONDS"
    )


def _notes_on_nodes(nodes: Iterable[NodeRecord]) -> Iterator[str]:
    """Notes on nodes that are not simulated, or as others than they are."""
    rows: dict[str, list[str]] = {}
    for node in nodes:
        for does, words in (
            (not _has_power(node), "nodes without cores or power are left out"),
            (node.reason == NO_PARTITIONABLE_SLOT, "nodes with static slots are partitionable"),
            (node.reason == "several-slots", "nodes with several slots have one"),
            (
                node.draining or node.hot or bool(node.closed),
                "nodes that drain, are too hot or are closed to waiting jobs are open",
            ),
        ):
            if does:
                rows.setdefault(words, []).append(node.node)
    for words, names in rows.items():
        more = " …" if len(names) > _SHOWN_NODES else ""
        yield f"{words} ({len(names)}: {', '.join(names[:_SHOWN_NODES])}{more})"


def _has_power(node: NodeRecord) -> bool:
    return node.cores > 0 and node.hs06_per_core > 0


def _with_pledges(
    groups: Mapping[str, _Group], pledge_hs06: Mapping[str, float], above: str = ""
) -> dict[str, _Group]:
    """Groups with their pledges written out."""
    written: dict[str, _Group] = {}
    for name, group in groups.items():
        inner = _with_pledges(group.groups or {}, pledge_hs06, f"{above}{name}.")
        more = {"share": None} if "share" in vars(group) else {}
        pledge = pledge_hs06[f"{above}{name}"]
        written[name] = replace(group, pledge_hs06=pledge, groups=inner or None, **more)
    return written


def node_groups(nodes: Iterable[NodeRecord]) -> tuple[NodeGroup, ...]:
    """Nodes of equal size, power and treatment together, the largest groups first."""
    alike = Counter(
        NodeGroup(
            name="",
            cores=node.cores,
            hs06_per_core=round(node.hs06_per_core, 3),
            memory_mib=node.memory_mib or None,
            controlled=node.controlled and not node.reserved,
            multicore_only=node.multicore_only,
        )
        for node in nodes
        if _has_power(node)
    )
    return tuple(
        replace(group, name=f"nodes{number}", count=count)
        for number, (group, count) in enumerate(alike.most_common(), start=1)
    )


def streams_of(
    pending: Iterable[PendingJobs],
    held_cores: Mapping[Kind, int],
    running: Iterable[HeldJobs],
    run_times: RunTimes,
) -> tuple[JobStream, ...]:
    """Streams that give about this demand of pending jobs, and of those that run."""
    held_mib = _mean_mib(running)
    waiting: Counter[tuple[str, int, bool, int]] = Counter()
    most_mib: Counter[tuple[str, int, bool, int]] = Counter()
    for jobs in pending:
        key = (*jobs.kind, jobs.placeable, jobs.memory_mib.bit_length())
        waiting[key] += jobs.jobs
        most_mib[key] = max(most_mib[key], jobs.memory_mib)
    laws = {
        group: law_of(run_times.get(group, NOTHING_SEEN))
        for group in {group for group, _ in held_cores} | {key[0] for key in waiting}
    }

    def stream(group: str, cores: int, memory_mib: int) -> JobStream:
        return JobStream(
            group="" if group == OTHER else group,
            cores=cores,
            run_time=laws[group],
            memory_mib=memory_mib or held_mib.get((group, cores)) or _MEMORY_MIB * cores,
        )

    def streams() -> Iterator[JobStream]:
        for key, number in sorted(waiting.items()):
            if number:
                group, cores, placeable, _ = key
                requirements = None if placeable else "false"
                keep_pending = min(MOST_PENDING, number)
                kept = stream(group, cores, most_mib[key])
                yield replace(kept, keep_pending=keep_pending, requirements=requirements)
        for kind, held in sorted(held_cores.items()):
            mib = held_mib.get(kind, 0)
            alike = (_are_alike(mib, most_mib[key]) for key in waiting if key[:3] == (*kind, True))
            if held >= kind[1] and not any(alike):
                # Little's law: as many begin in an hour as end.
                per_hour = held / kind[1] / laws[kind[0]].mean_seconds * HOUR_SECONDS
                yield replace(stream(*kind, mib), per_hour=per_hour)

    return tuple(streams())


def _mean_mib(running: Iterable[HeldJobs]) -> dict[Kind, int]:
    """Mean memory of jobs that run, MiB, by group (and those above it) and cores, where known."""
    number: Counter[Kind] = Counter()
    sums: Counter[Kind] = Counter()
    for jobs in running:
        for group in {jobs.group, *levels_above(jobs.group)} if jobs.memory_mib else ():
            number[group, jobs.cores] += jobs.jobs
            sums[group, jobs.cores] += jobs.jobs * jobs.memory_mib
    return {kind: -(-mib // number[kind]) for kind, mib in sums.items()}


def _are_alike(held_mib: int, requested_mib: int) -> bool:
    """True if running jobs may be of a pending stream by their memory, MiB; 0 is unknown."""
    if not held_mib or not requested_mib:
        return True
    requested_mib = max(requested_mib, _QUANTUM_MIB)
    return max(held_mib, requested_mib) <= _ALIKE * max(min(held_mib, requested_mib), _QUANTUM_MIB)


def law_of(table: RemainingTimes) -> RunTimeLaw:
    """Run times of jobs that end at the rates of a life table, a run time for each bin of age."""
    weights: dict[float, float] = {}
    staying = 1.0
    for start, end, rate in zip(EDGES_SECONDS, (*EDGES_SECONDS[1:], inf), table.rates):
        stays = exp(-rate * (end - start))
        ending = staying * (1 - stays)
        # Mean of an exponential time that is cut off at the end of the bin.
        cut_off = (end - start) * stays / (1 - stays) if stays > 0 else 0.0
        if ending >= _LEAST_WEIGHT:
            weights[float(round(start + 1 / rate - cut_off))] = ending
        staying *= stays
    return weighted(weights)
