"""Notes on a scenario: jobs that it leaves out or no node can run, and attributes nobody has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Union

from sharectl.cadence.file import left_out_notes
from sharectl.model import OTHER
from sharectl.words import shown
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.twin.ads import SiteExpressions
from sharectl_lab.twin.pool import group_of
from sharectl_lab.twin.records import SlotSpec
from sharectl_lab.workload.draw import HOUR_SECONDS, Arrival, JobKind
from sharectl_lab.workload.logged import LoggedWorkload

_MOST_NAMES = 10
_TOGETHER = "all resources together"
_Jobs = Counter[JobKind]
"""Jobs of a log by kind, or 1 for each kind of a stream."""


def notes_of(scenario: Scenario) -> list[str]:
    """Notes for all strategies; raises InputError for expressions that cannot be used."""
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
    """Note on a log that ends before half of the time that counts."""
    begin, end = scenario.warmup_seconds, scenario.end_seconds
    until = max((job.at + job.run_seconds for job in arrivals), default=0.0)
    if until < begin + (end - begin) / 2:
        words = f"the log has jobs for {until / HOUR_SECONDS:.3g} hours, of which the first"
        words += f" {scenario.warmup_hours:g} do not count"
        yield f"{words}: write a smaller warmup_hours, or fewer days than {scenario.days:g}"


def _other(scenario: Scenario, jobs: _Jobs, source: str) -> Iterator[str]:
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


def _amounts(size: Union[SlotSpec, JobKind]) -> dict[str, int]:
    own = {"cores": size.cores, "memory MiB": size.memory_mib, "disk KiB": size.disk_kib}
    return {**own, **dict(size.custom)}


def _attributes(scenario: Scenario, kinds: Sequence[JobKind], source: str) -> Iterator[str]:
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
