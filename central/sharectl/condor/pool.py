"""Snapshot of a live pool: nodes from its collector, jobs from all its schedds.

Jobs are counted by the daemons (mode ``counted``), or one by one (``jobs``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any, Callable, Optional

from sharectl.condor import nodes as node_ads
from sharectl.condor.ads import evaluated, number, sequence, text, whole
from sharectl.condor.daemons import collector_answer, locations, query, schedd_questions, slots
from sharectl.condor.deadline import ask_all
from sharectl.condor.placement import Trial, shape_questions, trial_of
from sharectl.condor.schedds import Held, Job, ScheddJobs, Sizes, count_pending, list_jobs
from sharectl.condor.slots import Sample, sample_of
from sharectl.model import (
    OTHER,
    SCHEDD_SOURCE,
    Node,
    OtherJobs,
    PendingJobs,
    RunningJobs,
    Snapshot,
    Source,
    UnplaceableJobs,
)
from sharectl.plan.nodes import (
    HOST_NAME,
    Controlled,
    ControlledConstraint,
    controlled_machines,
)
from sharectl.shares.demand import pending_rows, unplaceable_jobs
from sharectl.shares.groups import first_part, group_of
from sharectl.shares.job_waits import JobWait, job_waits

STALE_SECONDS = 2340
"""Three periods of 13 minutes."""
MOST_PENDING_CORES = 8
"""Larger requests count as this (seed)."""
MOST_OTHERS = 10
"""Parts of `OTHER` that a snapshot names: users can write any number of them."""

_MODES: Mapping[str, Callable[..., ScheddJobs]] = {"counted": count_pending, "jobs": list_jobs}
MODES = tuple(_MODES)
_PROJECTION = [
    *node_ads.PROJECTION,
    "t1_TargetSequence",
    "State",
    "Draining",
    "Memory",
    "TotalSlotMemory",
    "TotalMemory",
    "TotalCpus",
    "t1_wn_hs06",
    "AccountingGroup",
    "JobStart",
    "EnteredCurrentState",
    "ChildAccountingGroup",
    "ChildMemory",
    "ChildJobStart",
    "ChildEnteredCurrentState",
]


# ---- collector


@dataclass(frozen=True)
class Slot:
    """A partitionable or static slot."""

    machine: str
    cores: int
    """TotalSlotCpus."""
    node_cores: Optional[int] = None
    """Cores of the whole machine, TotalCpus, which share its power; None if not published."""
    hs06: Optional[float] = None
    """t1_wn_hs06, power of the whole machine; None if it publishes none."""
    held: tuple[Held, ...] = ()
    meets: frozenset[str] = frozenset()
    """Names of the constraints that its machine meets, of those that were asked for."""
    memory_mib: int = 0
    """TotalSlotMemory; 0 if unknown."""
    node_memory_mib: int = 0
    """Memory of the whole machine, TotalMemory; 0 if unknown."""
    draining: bool = False
    obeyed_sequence: Optional[int] = None
    """See `node_ads.obedience_of`."""
    refusal: Optional[str] = None
    multicore_only: bool = False
    """t1_MulticoreOnly."""
    partitionable: bool = False
    grace_cores: int = 0
    """Cpus if it is in grace (`node_ads.in_grace`), else 0."""


@dataclass(frozen=True)
class CollectorAnswer:
    """Answer of a collector to all questions of a cycle."""

    slots: tuple[Slot, ...]
    schedds: tuple[dict[str, str], ...]
    """Location of each schedd."""
    started_at: int
    """Unix seconds at which the collector started; 0 if it does not say."""
    sample: Sample = field(default_factory=Sample)


def look(
    collector: Any,
    constraints: Optional[Mapping[str, str]] = None,
    now: int = 0,
    stale_seconds: int = STALE_SECONDS,
) -> CollectorAnswer:
    """Answer of a collector of the bindings.

    Parameters
    ----------
    constraints
        Name -> ClassAd constraint that tells which nodes are meant by it.
    now
        Unix seconds.
    stale_seconds
        Age from which a node's run of job_ctl is stale, where the node does not say.
    """
    ads = slots(collector, projection=_PROJECTION)
    met = {
        name: {str(ad.get("Machine")) for ad in slots(collector, constraint, ["Machine"])}
        for name, constraint in (constraints or {}).items()
    }
    itself = query(collector, "Collector", projection=["MonitorSelfTime", "MonitorSelfAge"])
    own = tuple(slot for ad in ads if (slot := slot_of(ad, met, now, stale_seconds)) is not None)
    return CollectorAnswer(
        slots=own,
        schedds=tuple(locations(collector, "Schedd")),
        started_at=max(map(started_at, itself), default=0),
        sample=sample_of(collector, {slot.machine for slot in own}),
    )


def started_at(ad: Any) -> int:
    """Unix seconds; 0 if unknown.

    A collector's ad has no DaemonStartTime, but its age and when that was noted.
    """
    noted, age = (whole(evaluated(ad, name), -1) for name in ("MonitorSelfTime", "MonitorSelfAge"))
    return noted - age if noted > 0 <= age else 0  # in its first minutes the age may be 0


def slot_of(ad: Any, met: Mapping[str, set[str]], now: int, stale_seconds: int) -> Optional[Slot]:
    """Slot of an ad; None if it does not name its machine: a target could not reach it.

    ``met`` are the machines that meet each constraint; see `look`.
    """
    machine = text(evaluated(ad, "Machine"))
    if machine is None or not HOST_NAME.fullmatch(machine):
        return None
    partitionable = bool(node_ads.flag(ad, "PartitionableSlot"))
    obeyed, refusal = node_ads.obedience_of(ad, now, stale_seconds)
    return Slot(
        machine=machine.lower(),
        cores=_amount(ad, "TotalSlotCpus"),
        node_cores=_amount(ad, "TotalCpus") or None,
        hs06=number(evaluated(ad, "t1_wn_hs06"), 0.0) or None,
        held=tuple(_children(ad) if partitionable else _itself(ad)),
        meets=frozenset(name for name, machines in met.items() if machine in machines),
        memory_mib=_amount(ad, "TotalSlotMemory") or _amount(ad, "Memory"),
        node_memory_mib=_amount(ad, "TotalMemory"),
        draining=node_ads.is_draining(ad),
        obeyed_sequence=obeyed,
        refusal=refusal,
        multicore_only=bool(node_ads.flag(ad, "t1_MulticoreOnly")),
        partitionable=partitionable,
        grace_cores=_amount(ad, "Cpus") if node_ads.in_grace(ad, now) else 0,
    )


def _amount(ad: Any, name: str) -> int:
    return whole(evaluated(ad, name), 0)


def _children(ad: Any) -> list[Held]:
    names = ("Cpus", "AccountingGroup", "JobStart", "EnteredCurrentState", "Memory")
    lists = (sequence(evaluated(ad, f"Child{name}")) for name in names)
    return [
        Held(
            text(group), whole(cores, 1, 1), whole(start, 0) or whole(entered, 0), whole(memory, 0)
        )
        for cores, group, start, entered, memory in zip_longest(*lists)
    ]


def _itself(ad: Any) -> list[Held]:
    if evaluated(ad, "State") != "Claimed":
        return []
    since = _amount(ad, "JobStart") or _amount(ad, "EnteredCurrentState")
    cores = whole(evaluated(ad, "Cpus"), 1, 1)
    return [Held(text(evaluated(ad, "AccountingGroup")), cores, since, _amount(ad, "Memory"))]


# ---- pool


@dataclass(frozen=True)
class PoolAccess:
    """Ways to reach a pool, and what to take for granted there."""

    groups: tuple[str, ...]
    """Configured groups."""
    controlled: Controlled
    collector: Optional[str] = None
    """Address; None for the pool of this machine's HTCondor configuration."""
    mode: str = "counted"
    schedds: tuple[str, ...] = ()
    """Names that must answer even if the collector does not know them."""
    collector_deadline_seconds: float = 20
    schedd_deadline_seconds: float = 60
    default_node_hs06: float = 400
    default_node_cores: int = 40
    multicore_cores: int = 8
    reserved: Optional[Controlled] = None
    """Nodes that are kept free of targets; None: none are."""
    true_sizes: bool = False
    """Whether requests count up to the largest node; else as at most `MOST_PENDING_CORES`."""
    job_ctl_stale_seconds: int = STALE_SECONDS
    demand: str = "placeable"
    """Whether pending jobs are tried on the nodes (``placeable``), or all count (``pending``)."""


class CondorPool:
    """A live pool, asked through its collector and all its schedds."""

    def __init__(self, access: PoolAccess) -> None:
        self.access = access
        self._chosen = {"controlled": access.controlled, "reserved": access.reserved}

    def snapshot(self, now: int) -> Snapshot:
        """Snapshot of the pool; see `sharectl.cycle.ports.Pool`."""
        access = self.access
        constraints = {
            name: by.expression
            for name, by in self._chosen.items()
            if isinstance(by, ControlledConstraint)
        }
        answer = collector_answer(
            access.collector,
            access.collector_deadline_seconds,
            partial(
                look,
                constraints=constraints,
                now=now,
                stale_seconds=access.job_ctl_stale_seconds,
            ),
        )
        answered: Optional[CollectorAnswer] = answer.value
        if answered is None:
            return Snapshot(now, (), (), (), (answer.source,))
        if not (answered.slots and answered.schedds):
            # It has just started, or its updates are refused: what it does not know is not zero.
            source = replace(answer.source, problem=_knows_nothing(answered))
            return Snapshot(now, (), (), (), (source,))
        jobs, sources, trial = self._ask_schedds(answered)
        nodes = self.nodes(answered.slots)
        running = [job for schedd in jobs for job in schedd.running]
        if access.mode == "counted":
            running = [
                Job(slot.machine, held, slot.hs06, slot.node_cores)
                for slot in answered.slots
                for held in slot.held
            ]
        pending = self._pending(jobs, trial)
        waits = (
            JobWait(self._group(job.accounting_group), *job[1:])
            for schedd in jobs
            for job in schedd.waits
        )
        unplaceable = (
            UnplaceableJobs(
                self._group(shape.kind[0]), shape.kind[1], shape.jobs, shape.example, shape.reason
            )
            for shape in trial.unplaceable
        )
        return Snapshot(
            now,
            nodes,
            tuple(self._running(running, nodes, now)),
            pending,
            (answer.source, *sources),
            answered.started_at,
            others(access.groups, running, jobs),
            waits=job_waits(waits),
            unplaceable=unplaceable_jobs(pending, unplaceable),
            untried=trial.untried,
        )

    def _ask_schedds(
        self, answered: CollectorAnswer
    ) -> tuple[list[ScheddJobs], list[Source], Trial]:
        """Jobs, answers of schedds, and the trial of pending jobs, all asked for at once."""
        access, sizes = self.access, self._sizes(answered.slots)
        deadline_seconds, schedds = access.schedd_deadline_seconds, answered.schedds
        questions = schedd_questions(
            schedds, deadline_seconds, partial(_MODES[access.mode], sizes=sizes)
        )
        shapes = (
            shape_questions(answered.sample, sizes, schedds, deadline_seconds)
            if access.demand == "placeable"
            else {}
        )
        answers = ask_all({**questions, **shapes})
        trial = trial_of(
            access.collector, answered.sample, {name: answers.pop(name) for name in shapes}
        )
        present = {location["Name"].lower() for location in schedds}
        absent = [
            Source(f"{SCHEDD_SOURCE}{name}", 0.0, "the collector does not know it")
            for name in access.schedds
            if name.lower() not in present
        ]
        jobs = [answer.value for answer in answers.values() if answer.value is not None]
        return jobs, [*(answer.source for answer in answers.values()), *absent], trial

    def _sizes(self, slots: Iterable[Slot]) -> Sizes:
        """How requests count: a job that wants a whole node wants the largest."""
        if not self.access.true_sizes:
            return Sizes(max(MOST_PENDING_CORES, self.access.multicore_cores))
        largest = max(slots, key=lambda slot: (slot.cores, slot.memory_mib))
        return Sizes(
            max(1, largest.cores),
            {
                **dict.fromkeys(("Cpus", "TotalSlotCpus"), largest.cores),
                **dict.fromkeys(("Memory", "TotalSlotMemory"), largest.memory_mib),
                "TotalCpus": largest.node_cores or largest.cores,
                "TotalMemory": largest.node_memory_mib or largest.memory_mib,
            },
        )

    def nodes(self, slots: Sequence[Slot]) -> tuple[Node, ...]:
        """Execute points that have these slots, by host name."""
        by_machine: dict[str, list[Slot]] = {}
        for slot in slots:
            by_machine.setdefault(slot.machine, []).append(slot)
        names = node_names(by_machine)
        chosen = {
            name: controlled_machines(
                by,
                by_machine,
                {slot.machine for slot in slots if name in slot.meets},
            )
            for name, by in self._chosen.items()
            if by is not None
        }
        return tuple(
            self._node(
                by_machine[machine],
                names[machine],
                {name for name, machines in chosen.items() if machine in machines},
            )
            for machine in sorted(by_machine)
        )

    def _node(self, slots: Sequence[Slot], name: str, chosen: set[str]) -> Node:
        obeyed = [slot.obeyed_sequence for slot in slots if slot.obeyed_sequence is not None]
        return Node(
            name=name,
            machine=slots[0].machine,
            cores=sum(slot.cores for slot in slots),
            hs06_per_core=self._power(slots[0].hs06, slots[0].node_cores),
            controlled="controlled" in chosen,
            memory_mib=sum(slot.memory_mib for slot in slots),
            reserved="reserved" in chosen,
            draining=any(slot.draining for slot in slots),
            obeyed_sequence=max(obeyed, default=None),
            refusal=next((slot.refusal for slot in slots if slot.refusal), None),
            power_assumed=slots[0].hs06 is None,
            multicore_only=all(slot.multicore_only for slot in slots),
            several_slots=sum(slot.partitionable for slot in slots) > 1,
            grace_cores=sum(slot.grace_cores for slot in slots),
        )

    def _power(self, node_hs06: Optional[float], node_cores: Optional[int]) -> float:
        return (node_hs06 or self.access.default_node_hs06) / (
            node_cores or self.access.default_node_cores
        )

    def _running(
        self, jobs: Iterable[Job], nodes: Iterable[Node], now: int
    ) -> Iterable[RunningJobs]:
        names = {node.machine: node.name for node in nodes}
        for job in jobs:
            held = job.held
            yield RunningJobs(
                node=names.get(job.machine, job.machine.partition(".")[0]),
                group=self._group(held.accounting_group),
                cores=held.cores,
                hs06_per_core=self._power(job.node_hs06, job.node_cores),
                seconds=max(0, now - held.since) if held.since else 0,
                memory_mib=held.memory_mib,
            )

    def _group(self, accounting_group: Optional[str]) -> str:
        return group_of(accounting_group, self.access.groups)

    def _pending(self, answers: Iterable[ScheddJobs], trial: Trial) -> tuple[PendingJobs, ...]:
        counted: Counter[tuple[str, int, int]] = Counter()
        unplaceable: Counter[tuple[str, int, int]] = Counter()
        for answer in answers:
            for account, cores, memory_mib, jobs in answer.pending:
                counted[self._group(account), cores, memory_mib] += jobs
        for shape in trial.unplaceable:
            account, cores, memory_mib = shape.kind
            unplaceable[self._group(account), cores, memory_mib] += shape.jobs
        return pending_rows(counted, unplaceable)


def others(
    groups: Sequence[str], running: Iterable[Job], answers: Iterable[ScheddJobs]
) -> tuple[OtherJobs, ...]:
    """Largest parts of `OTHER`, at most `MOST_OTHERS`."""
    cores: Counter[Optional[str]] = Counter()
    jobs: Counter[Optional[str]] = Counter()
    for job in running:
        cores[job.held.accounting_group] += job.held.cores
    for answer in answers:
        for account, _, _, count in answer.pending:
            jobs[account] += count
    parts: dict[str, tuple[int, int]] = {}
    for account in cores | jobs:
        if group_of(account, groups) == OTHER:
            name = first_part(account)
            held, waiting = parts.get(name, (0, 0))
            parts[name] = (held + cores[account], waiting + jobs[account])
    largest = sorted(parts, key=lambda name: (-parts[name][0], -parts[name][1], name))
    return tuple(OtherJobs(name, *parts[name]) for name in largest[:MOST_OTHERS])


def node_names(machines: Iterable[str]) -> dict[str, str]:
    """Full host name -> name of the node: short, or full where two nodes share the short one."""
    short = {machine: machine.partition(".")[0] for machine in machines}
    shared = Counter(short.values())
    return {machine: machine if shared[name] > 1 else name for machine, name in short.items()}


def _knows_nothing(answered: CollectorAnswer) -> str:
    kinds = (("execute point", answered.slots), ("schedd", answered.schedds))
    unknown = " and no ".join(kind for kind, ads in kinds if not ads)
    return (
        f"it knows no {unknown}; see condor_status -any, or wait for their next updates if it "
        "has just started"
    )
