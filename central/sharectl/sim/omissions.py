"""Notes on a scenario: jobs that it leaves out or no node can run, and attributes nobody has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Optional, Union

from sharectl.model import OTHER
from sharectl.sim.ads import SiteExpressions
from sharectl.sim.pool import group_of
from sharectl.sim.records import NodeSpec, SlotSpec
from sharectl.sim.scenario import DAY_HOURS, Scenario
from sharectl.words import counted, shown
from sharectl.workload.draw import HOUR_SECONDS
from sharectl.workload.file import left_out_notes
from sharectl.workload.logged import LoggedJob, LoggedWorkload
from sharectl.workload.records import Arrival, JobKind

_MOST_NAMES = 10
_MANY_RATIO = 0.05
"""Part of the jobs that need more memory than any node has, from which its unit is in doubt."""
_MEMORY, _TOGETHER = "memory MiB", "together"


def notes_of(scenario: Scenario) -> list[str]:
    """Notes on the jobs and expressions of a scenario, for all strategies.

    Raises InputError for START or Requirements that cannot be used.
    """
    workload, nodes = scenario.workload(), scenario.nodes_of()
    notes = list(scenario.notes)
    jobs: Optional[Counter[JobKind]] = None
    source = "jobs"
    if isinstance(workload, LoggedWorkload):
        source = "swf" if scenario.swf else "history"
        arrivals = list(workload.arrivals())
        numbers = Counter(arrival.kind for arrival in arrivals)
        jobs = Counter({workload.kinds[kind]: count for kind, count in numbers.items()})
        notes += left_out_notes(workload.left_out)
        notes += _times(scenario, arrivals)
    slots = _Slots(nodes)
    kinds = workload.kinds if jobs is None else list(jobs)
    notes += _other(scenario, kinds, jobs, source)
    if jobs is None:
        notes += dict.fromkeys(_streams(kinds, slots))
    else:
        notes += _too_large(jobs, slots, source, scenario.logged)
    return [*notes, *_attributes(scenario, nodes, kinds, source)]


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
        days = (until - begin) / HOUR_SECONDS / DAY_HOURS
        fact = f"days ({scenario.days:g}) count an empty pool too"
        yield f"{words}, and {fact}: write such as days: {days:.2g}"


def _other(
    scenario: Scenario, kinds: Sequence[JobKind], jobs: Optional[Counter[JobKind]], source: str
) -> Iterator[str]:
    """Note on accounting groups that are no groups of the scenario."""
    groups = tuple(scenario.plan_config().shared_hs06)
    # A stream without a group is meant to have none.
    others = {
        kind: jobs[kind] if jobs else 0
        for kind in kinds
        if (jobs or kind.account) and group_of(kind.account, groups) == OTHER
    }
    if others:
        names = _listed(kind.account or "no group" for kind in others)
        count = "jobs" if jobs is None else f"{sum(others.values())} of {sum(jobs.values())} jobs"
        key = "group" if jobs is None else f"{source}.groups"
        fact = f"{count} count as {OTHER}, because groups does not have: {names}"
        yield f"{fact}; write it there, or a group of the scenario in {key}"


# ---- sizes


class _Slots:
    """Slots of a pool, and the most of each resource that one of them has."""

    def __init__(self, nodes: Sequence[NodeSpec]) -> None:
        different = {str(slot): _amounts(slot) for node in nodes for slot in node.slots}
        self.slots = tuple(different.values())
        names = {name for slot in self.slots for name in slot}
        self.most = {name: max(slot.get(name, 0) for slot in self.slots) for name in names}

    def lack(self, kind: JobKind) -> tuple[str, ...]:
        """Resources of which no slot has enough for a job; `_TOGETHER` where only one has each."""
        wanted = _amounts(kind)
        for slot in self.slots:
            if not any(amount > slot.get(name, 0) for name, amount in wanted.items()):
                return ()
        lack = tuple(name for name, amount in wanted.items() if amount > self.most.get(name, 0))
        return lack or (_TOGETHER,)

    def words(self, resource: str, amount: int) -> str:
        """Request of a resource beside the most that a slot has."""
        if resource == _TOGETHER:
            return "no slot has enough of all resources together"
        return f"{resource} {amount}, and the largest slot has {self.most.get(resource, 0)}"


def _amounts(size: Union[SlotSpec, JobKind]) -> dict[str, int]:
    own = {"cores": size.cores, _MEMORY: size.memory_mib, "disk KiB": size.disk_kib}
    return {**own, **dict(size.custom)}


def _streams(kinds: Sequence[JobKind], slots: _Slots) -> Iterator[str]:
    """Notes on streams whose jobs no node can run."""
    for kind in kinds:
        lack, wanted = slots.lack(kind), _amounts(kind)
        if lack:
            jobs = f"jobs of {shown(kind.account) or 'no group'} with {counted(kind.cores, 'core')}"
            words = "; ".join(slots.words(name, wanted.get(name, 0)) for name in lack)
            yield f"{jobs} fit on no node, and never start ({words})"


def _too_large(
    jobs: Counter[JobKind], slots: _Slots, source: str, logged: Sequence[LoggedJob]
) -> Iterator[str]:
    """Notes on jobs of a log that no node can run."""
    lacks = {kind: lack for kind in jobs if (lack := slots.lack(kind))}
    if not lacks:
        return
    counts: Counter[str] = Counter()
    most: dict[str, int] = {}
    for kind, (name, *_) in lacks.items():
        counts[name] += jobs[kind]
        most[name] = max(most.get(name, 0), _amounts(kind).get(name, 0))
    parts = "; ".join(f"{count}: {slots.words(name, most[name])}" for name, count in counts.items())
    total, without = sum(jobs.values()), sum(counts.values())
    verbs = (
        "fits on no node, and never starts" if without == 1 else "fit on no node, and never start"
    )
    yield f"{without} of {total} jobs of the log {verbs} ({parts})"
    if counts[_MEMORY] > _MANY_RATIO * total:
        fact = f"more than {100 * _MANY_RATIO:.0f} % need more memory than any node has"
        units = "KiB where HTCondor has MiB" if source == "history" else "bytes where SWF has KiB"
        remedy = f"does the log have {units}? Then write memory_factor: {1 / 1024} in {source}"
        if not any(job.memory_mib for job in logged):
            remedy = f"the log does not tell of memory; write a smaller memory_mib in {source}"
        yield f"{fact}: {remedy}"


# ---- attributes


def _attributes(
    scenario: Scenario, nodes: Sequence[NodeSpec], kinds: Sequence[JobKind], source: str
) -> Iterator[str]:
    """Notes on attributes that START or Requirements read and nobody has."""
    expressions = SiteExpressions(kinds, scenario.start.files)
    for reader, owner, names in expressions.without_owner(nodes, kinds):
        fact = f"no {owner} of the scenario has {_listed(names)}, and this is undefined in {reader}"
        example = f"attributes: {{{names[0]}: true}}"
        remedy = f"write such as {example} in {source}"
        if owner == "node":
            remedy = f"write such as {example} in nodes, or STARTD_ATTRS in a file of start.files"
        yield f"{fact}: {remedy}"


def _listed(names: Iterable[str]) -> str:
    """Names without repetition, at most `_MOST_NAMES`."""
    different = list(dict.fromkeys(map(shown, names)))
    rest = len(different) - _MOST_NAMES
    listed = ", ".join(islice(different, _MOST_NAMES))
    return f"{listed} and {rest} more" if rest > 0 else listed
