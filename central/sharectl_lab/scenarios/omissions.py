"""Notes on a scenario: jobs that it leaves out or no node can run, and attributes nobody has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Union

from sharectl.cadence.file import left_out_notes
from sharectl.model import OTHER
from sharectl.words import shown
from sharectl_lab.scenarios.scenario import DAY_HOURS, Scenario
from sharectl_lab.twin.ads import SiteExpressions
from sharectl_lab.twin.pool import group_of
from sharectl_lab.twin.records import SlotSpec
from sharectl_lab.workload.draw import HOUR_SECONDS, Arrival, JobKind
from sharectl_lab.workload.logged import LoggedWorkload

_MOST_NAMES = 10
_MANY_RATIO = 0.05
"""Part of the jobs that need more memory than any node has, from which its unit is in doubt."""
_MEMORY, _TOGETHER = "memory MiB", "all resources together"
_Jobs = Counter[JobKind]
"""Jobs of a log by kind, or 1 for each kind of a stream."""


def notes_of(scenario: Scenario) -> list[str]:
    """Notes on the jobs and expressions of a scenario, for all strategies.

    Raises InputError for START or Requirements that cannot be used.
    """
    workload, notes, source = scenario.workload(), list(scenario.notes), "jobs"
    jobs: _Jobs = Counter(workload.kinds)
    if isinstance(workload, LoggedWorkload):
        source = "swf" if scenario.swf else "history"
        arrivals = list(workload.arrivals())
        jobs = Counter(workload.kinds[arrival.kind] for arrival in arrivals)
        notes += left_out_notes(workload.left_out)
        notes += _times(scenario, arrivals)
    notes += _other(scenario, jobs, source)
    notes += _too_large(scenario, jobs, source)
    return [*notes, *_attributes(scenario, list(jobs), source)]


def _times(scenario: Scenario, arrivals: Sequence[Arrival]) -> Iterator[str]:
    """Note on a log that ends before the time that counts, or before half of it."""
    begin, end = scenario.warmup_seconds, scenario.end_seconds
    last = arrivals[-1].at if arrivals else 0.0
    until = max((job.at + job.run_seconds for job in arrivals), default=0.0)
    if last < begin:
        fact = f"nothing counts before warmup_hours ({scenario.warmup_hours:g})"
        words = f"the log's last job is submitted {last / HOUR_SECONDS:.3g} hours after its first"
        yield f"{words}, and {fact}: write a smaller warmup_hours"
    elif until < begin + (end - begin) / 2:
        words = f"the log has jobs for {until / HOUR_SECONDS:.3g} hours"
        days = max(until - begin, scenario.sample_seconds) / HOUR_SECONDS / DAY_HOURS
        fact = f"days ({scenario.days:g}) count an empty pool too"
        yield f"{words}, and {fact}: write such as days: {days:.2g}"


def _other(scenario: Scenario, jobs: _Jobs, source: str) -> Iterator[str]:
    """Note on accounting groups that are no groups of the scenario."""
    groups = tuple(scenario.plan_config().shared_hs06)
    others = [kind for kind in jobs if group_of(kind.account, groups) == OTHER]
    if source == "jobs":
        # A stream without a group is meant to have none.
        others = [kind for kind in others if kind.account]
    if others:
        names = _listed(kind.account or "no group" for kind in others)
        key = "group" if source == "jobs" else f"{source}.groups"
        fact = f"{_count(jobs, others, source)} count as {OTHER}, because groups does not have"
        yield f"{fact}: {names}; write it there, or a group of the scenario in {key}"


def _count(jobs: _Jobs, some: Sequence[JobKind], source: str) -> str:
    if source == "jobs":
        return f"jobs of {_listed(kind.account or 'no group' for kind in some)}"
    return f"{sum(jobs[kind] for kind in some)} of {sum(jobs.values())} jobs of the log"


def _too_large(scenario: Scenario, jobs: _Jobs, source: str) -> Iterator[str]:
    """Notes on jobs that no node can run, by the first resource of which no slot has enough."""
    slots = [slot for group in scenario.nodes for slot in replace(group, count=1).specs()[0].slots]
    sizes = [_amounts(slot) for slot in slots]
    lacking: defaultdict[str, list[JobKind]] = defaultdict(list)
    for kind in jobs:
        wanted = _amounts(kind).items()
        if not any(all(amount <= size.get(name, 0) for name, amount in wanted) for size in sizes):
            lack = (n for n, amount in wanted if all(amount > size.get(n, 0) for size in sizes))
            lacking[next(lack, _TOGETHER)].append(kind)
    for name, kinds in lacking.items():
        amount = max(_amounts(kind).get(name, 0) for kind in kinds)
        most = max(size.get(name, 0) for size in sizes)
        size = f"{name}: {amount}, and the largest slot has {most}"
        words = f"no slot has enough of {name}" if name == _TOGETHER else size
        yield f"no node fits {_count(jobs, kinds, source)}: they never start ({words})"
    if sum(jobs[kind] for kind in lacking[_MEMORY]) > _MANY_RATIO * sum(jobs.values()):
        fact = f"more than {100 * _MANY_RATIO:.0f} % need more memory than any node has"
        units = "KiB where HTCondor has MiB" if source == "history" else "bytes where SWF has KiB"
        remedy = f"does the log have {units}? Then write memory_factor: {1 / 1024} in {source}"
        if not any(job.memory_mib for job in scenario.logged):
            remedy = f"the log does not tell of memory; write a smaller memory_mib in {source}"
        if source != "jobs":
            yield f"{fact}: {remedy}"


def _amounts(size: Union[SlotSpec, JobKind]) -> dict[str, int]:
    own = {"cores": size.cores, _MEMORY: size.memory_mib, "disk KiB": size.disk_kib}
    return {**own, **dict(size.custom)}


def _attributes(scenario: Scenario, kinds: Sequence[JobKind], source: str) -> Iterator[str]:
    """Notes on attributes that START or Requirements read and nobody has."""
    expressions = SiteExpressions(kinds, scenario.start.site)
    without: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for reader, owner, name in expressions.without_owner(scenario.nodes_of(), kinds):
        without[reader, owner].append(name)
    for (reader, owner), names in without.items():
        fact = f"no {owner} of the scenario has {_listed(names)}, and this is undefined in {reader}"
        example = f"attributes: {{{names[0]}: true}}"
        yield f"{fact}: write such as {example} in {'nodes' if owner == 'node' else source}"


def _listed(several: Iterable[str]) -> str:
    """Names without repetition, at most `_MOST_NAMES`."""
    names = list(dict.fromkeys(several))
    first, rest = names[:_MOST_NAMES], len(names) - _MOST_NAMES
    return ", ".join(map(shown, first)) + (f" and {rest} more" if rest > 0 else "")
