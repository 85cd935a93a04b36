"""Snapshot of a live pool: jobs counted by daemons (`counted`), or one by one (`jobs`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Callable, Optional

from sharectl.condor.collector import STALE_SECONDS, CollectorAnswer, Slot, look
from sharectl.condor.daemons import collector_answer, schedd_questions
from sharectl.condor.deadline import ask_all
from sharectl.condor.placement import Trial, shape_questions, trial_of
from sharectl.condor.schedds import Held, ScheddJobs, Sizes, count_pending, list_jobs
from sharectl.model import (
    OTHER,
    SCHEDD_SOURCE,
    JobWaits,
    Node,
    OtherJobs,
    PendingJobs,
    RunningJobs,
    Snapshot,
    Source,
    UnplaceableJobs,
)
from sharectl.plan.nodes import Controlled, ControlledConstraint, controlled_machines
from sharectl.shares.demand import pending_rows, unplaceable_jobs
from sharectl.shares.groups import first_part, group_of
from sharectl.shares.job_waits import JobWait, job_waits

MOST_PENDING_CORES = 8
"""Larger requests count as this (seed)."""

MOST_OTHERS = 10
"""Parts of `OTHER` that a snapshot names: users can write any number of them."""

_CONTROLLED, _RESERVED = "controlled", "reserved"
_MODES: Mapping[str, Callable[..., ScheddJobs]] = {
    "counted": count_pending,
    "jobs": list_jobs,
}
MODES = tuple(_MODES)


@dataclass(frozen=True)
class PoolAccess:
    """How to reach a pool and what to take for granted there."""

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

    def snapshot(self, now: int) -> Snapshot:
        """Snapshot of the pool; see `sharectl.cycle.ports.Pool`."""
        access = self.access
        chosen = {_CONTROLLED: access.controlled, _RESERVED: access.reserved}
        constraints = {
            name: by.expression
            for name, by in chosen.items()
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
        if answer.value is None:
            return Snapshot(now, (), (), (), (answer.source,))
        answered: CollectorAnswer = answer.value
        if not (answered.slots and answered.schedds):
            # It has just started, or its updates are refused: what it does not know is not zero.
            source = replace(answer.source, problem=_knows_nothing(answered))
            return Snapshot(now, (), (), (), (source,))
        jobs, sources, trial = self._ask_schedds(answered)
        nodes = self.nodes(answered.slots)
        names = {node.machine: node.name for node in nodes}
        pending = self._pending(jobs, trial)
        return Snapshot(
            now,
            nodes,
            tuple(self._running(answered, jobs, names, now)),
            pending,
            (answer.source, *sources),
            answered.started_at,
            self.others(answered.slots, jobs),
            waits=self._waits(jobs),
            unplaceable=self._unplaceable(pending, trial),
            untried=trial.untried,
        )

    def _ask_schedds(
        self, answered: CollectorAnswer
    ) -> tuple[list[ScheddJobs], list[Source], Trial]:
        """Jobs, answers of schedds, and the trial of pending jobs, all asked for at once."""
        access, sizes = self.access, self._sizes(answered.slots)
        questions = schedd_questions(
            answered.schedds,
            access.schedd_deadline_seconds,
            partial(_MODES[access.mode], sizes=sizes),
        )
        names = list(questions)
        if access.demand == "placeable":
            questions.update(
                shape_questions(
                    answered.sample, sizes, answered.schedds, access.schedd_deadline_seconds
                )
            )
        everything = ask_all(questions)
        answers = {name: everything.pop(name) for name in names}
        present = {location["Name"].lower() for location in answered.schedds}
        absent = [
            Source(f"{SCHEDD_SOURCE}{name}", 0.0, "the collector does not know it")
            for name in self.access.schedds
            if name.lower() not in present
        ]
        jobs = [answer.value for answer in answers.values() if answer.value is not None]
        sources = [*(answer.source for answer in answers.values()), *absent]
        trial = trial_of(access.collector, answered.sample, everything) if everything else Trial()
        return jobs, sources, trial

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

    def nodes(self, slots: Iterable[Slot]) -> tuple[Node, ...]:
        """Execute points that have these slots, by host name."""
        by_machine: dict[str, list[Slot]] = {}
        for slot in slots:
            by_machine.setdefault(slot.machine, []).append(slot)
        names = node_names(by_machine)
        under = self._meant(self.access.controlled, _CONTROLLED, by_machine)
        reserved = self._meant(self.access.reserved, _RESERVED, by_machine)
        return tuple(
            self._node(by_machine[machine], names[machine], machine in under, machine in reserved)
            for machine in sorted(by_machine)
        )

    def _meant(
        self, by: Optional[Controlled], name: str, machines: Mapping[str, Sequence[Slot]]
    ) -> frozenset[str]:
        """Host names of the nodes that an entry of the configuration means."""
        if by is None:
            return frozenset()
        met = {
            machine
            for machine, slots in machines.items()
            if any(name in slot.meets for slot in slots)
        }
        return controlled_machines(by, machines, met)

    def _node(self, slots: Sequence[Slot], name: str, controlled: bool, reserved: bool) -> Node:  # noqa: FBT001
        obeyed = [slot.obeyed_sequence for slot in slots if slot.obeyed_sequence is not None]
        return Node(
            name=name,
            machine=slots[0].machine,
            cores=sum(slot.cores for slot in slots),
            hs06_per_core=self._power(slots[0].hs06, slots[0].node_cores),
            controlled=controlled,
            memory_mib=sum(slot.memory_mib for slot in slots),
            reserved=reserved,
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
        self,
        answered: CollectorAnswer,
        answers: Iterable[ScheddJobs],
        names: Mapping[str, str],
        now: int,
    ) -> Iterable[RunningJobs]:
        rows: Iterable[tuple[str, Held, Optional[float], Optional[int]]] = (
            (job.machine, job.held, job.node_hs06, job.node_cores)
            for answer in answers
            for job in answer.running
        )
        if self.access.mode == "counted":
            rows = (
                (slot.machine, held, slot.hs06, slot.node_cores)
                for slot in answered.slots
                for held in slot.held
            )
        for machine, held, node_hs06, node_cores in rows:
            yield RunningJobs(
                node=names.get(machine, machine.partition(".")[0]),
                group=self._group(held.accounting_group),
                cores=held.cores,
                hs06_per_core=self._power(node_hs06, node_cores),
                seconds=max(0, now - held.since) if held.since else 0,
                memory_mib=held.memory_mib,
            )

    def _group(self, accounting_group: Optional[str]) -> str:
        return group_of(accounting_group, self.access.groups)

    def _waits(self, answers: Iterable[ScheddJobs]) -> tuple[JobWaits, ...]:
        return job_waits(
            JobWait(self._group(job.accounting_group), *job[1:])
            for answer in answers
            for job in answer.waits
        )

    def _pending(self, answers: Iterable[ScheddJobs], trial: Trial) -> tuple[PendingJobs, ...]:
        counted: Counter[tuple[str, int, int]] = Counter()
        unplaceable: Counter[tuple[str, int, int]] = Counter()
        for answer in answers:
            for account, cores, memory_mib, jobs in answer.pending:
                counted[self._group(account), cores, memory_mib] += jobs
        for alike in trial.unplaceable:
            account, cores, memory_mib = alike.kind
            unplaceable[self._group(account), cores, memory_mib] += alike.jobs
        return pending_rows(counted, unplaceable)

    def _unplaceable(
        self, pending: Iterable[PendingJobs], trial: Trial
    ) -> tuple[UnplaceableJobs, ...]:
        return unplaceable_jobs(
            pending,
            (
                UnplaceableJobs(
                    self._group(alike.kind[0]),
                    alike.kind[1],
                    alike.jobs,
                    alike.example,
                    alike.reason,
                )
                for alike in trial.unplaceable
            ),
        )

    def others(self, slots: Iterable[Slot], answers: Sequence[ScheddJobs]) -> tuple[OtherJobs, ...]:
        """Largest parts of `OTHER`, at most `MOST_OTHERS`."""
        held = [(held.accounting_group, held.cores) for slot in slots for held in slot.held]
        if self.access.mode != "counted":
            held = [
                (job.held.accounting_group, job.held.cores)
                for answer in answers
                for job in answer.running
            ]
        cores = self._of_other(held)
        jobs = self._of_other((kind[0], kind[-1]) for answer in answers for kind in answer.pending)
        names = sorted(cores | jobs, key=lambda name: (-cores[name], -jobs[name], name))
        return tuple(OtherJobs(name, cores[name], jobs[name]) for name in names[:MOST_OTHERS])

    def _of_other(self, amounts: Iterable[tuple[Optional[str], int]]) -> Counter[str]:
        """Amounts of jobs of no configured group, by `first_part`."""
        by_account: Counter[Optional[str]] = Counter()
        for account, amount in amounts:
            by_account[account] += amount
        counted: Counter[str] = Counter()
        for account, amount in by_account.items():
            if self._group(account) == OTHER:
                counted[first_part(account)] += amount
        return counted


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
