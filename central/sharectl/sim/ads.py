"""Ads of the twin's slots and jobs, and the expressions of sites and jobs that look at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.errors import InputError
from sharectl.sim.classads import JobRequirements, NodeStart, SiteStart, start_of_snippets
from sharectl.sim.pool import ShapedKind, SimSlot
from sharectl.sim.records import JobKind


def _user(kind: ShapedKind) -> str:
    return kind.submitter[len(kind.account) + 1 :] if kind.account else kind.submitter


_SLOT: Mapping[str, Callable[[SimSlot], Any]] = {
    "activity": lambda _: "Idle",
    "arch": lambda _: "X86_64",
    "cpus": lambda slot: slot.free_cores,
    "detectedcpus": lambda slot: slot.node.spec.cores,
    "disk": lambda slot: slot.free_disk_kib,
    "machine": lambda slot: slot.node.spec.name,
    "memory": lambda slot: slot.free_memory_mib,
    "mytype": lambda _: "Machine",
    "name": lambda slot: f"slot{slot.node.slots.index(slot) + 1}@{slot.node.spec.name}",
    "numdynamicslots": lambda slot: len(slot.claims),
    "opsys": lambda _: "LINUX",
    "partitionableslot": lambda _: True,
    "slotid": lambda slot: slot.node.slots.index(slot) + 1,
    "slottype": lambda _: "Partitionable",
    "slottypeid": lambda _: 1,
    "state": lambda _: "Unclaimed",
    "t1_multicoreonly": lambda slot: slot.multicore_only or None,
    "t1_wn_hs06": lambda slot: slot.node.spec.hs06_per_core * slot.node.spec.cores,
    "totalcpus": lambda slot: slot.node.spec.cores,
    "totaldisk": lambda slot: sum(spec.disk_kib for spec in slot.node.spec.slots),
    "totalmemory": lambda slot: sum(spec.memory_mib for spec in slot.node.spec.slots),
    "totalslotcpus": lambda slot: slot.total_cores,
    "totalslotdisk": lambda slot: slot.spec.disk_kib,
    "totalslotmemory": lambda slot: slot.spec.memory_mib,
}
"""Attribute of a slot's ad -> its value."""
_JOB: Mapping[str, Callable[[ShapedKind], Any]] = {
    "accountinggroup": lambda kind: kind.submitter if kind.account else None,
    "acctgroup": lambda kind: kind.account or None,
    "acctgroupuser": lambda kind: _user(kind) if kind.account else None,
    "jobstatus": lambda _: 1,
    "jobuniverse": lambda _: 5,
    "mytype": lambda _: "Job",
    "owner": _user,
    "requestcpus": lambda kind: kind.cores,
    "requestdisk": lambda kind: kind.disk_kib,
    "requestmemory": lambda kind: kind.memory_mib,
    "user": _user,
}
"""Attribute of a job's ad -> its value."""


def slot_attributes(slot: SimSlot, names: Optional[Iterable[str]] = None) -> dict[str, Any]:
    """Attributes of a slot's ad; all if ``names`` is None, those in ``names`` else."""
    if names is None:
        custom = [f"{prefix}{name}" for name in slot.spec.custom for prefix in ("", "totalslot")]
        names = (*_SLOT, *custom)
    return {name: _slot_value(slot, name) for name in names}


def _slot_value(slot: SimSlot, name: str) -> Any:
    value = _SLOT.get(name)
    if value is not None:
        return value(slot)
    if name.startswith("totalslot"):
        return slot.spec.custom.get(name[len("totalslot") :])
    return slot.free_custom.get(name)


def job_attributes(kind: ShapedKind, names: Optional[Iterable[str]] = None) -> dict[str, Any]:
    """Attributes of a job's ad; all if ``names`` is None, those in ``names`` else."""
    custom = {f"request{name}": amount for name, amount in kind.custom}
    names = (*_JOB, *custom) if names is None else names
    return {name: _JOB[name](kind) if name in _JOB else custom.get(name) for name in names}


class SiteExpressions:
    """START of a site's files and Requirements of jobs, for `engine.Setup`.

    Raises InputError with the faults of all.
    """

    def __init__(self, kinds: Iterable[JobKind], files: Iterable[Path] = ()) -> None:
        self.clock: Callable[[], float] = float
        """Returns the twin's time; to be set once there is a twin."""
        problems: list[str] = []
        files = list(files)
        node: Optional[NodeStart] = None
        self._start: Optional[SiteStart] = None
        self._requirements: dict[str, JobRequirements] = {}
        try:
            node = start_of_snippets(files) if files else None
            if node and node.site.strip().lower() != "true":
                self._start = SiteStart(node.site, f"START of {files[-1]}", node.attributes)
        except InputError as error:
            problems += error.problems
        own = node.attributes if node else {}
        places = {kind.requirements: kind for kind in kinds if kind.requirements}
        for text, kind in places.items():
            place = f"requirements of jobs of {kind.submitter}"
            try:
                self._requirements[text] = JobRequirements(text, place, target=own)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)

    @property
    def reads_time(self) -> bool:
        """Tell if an answer may change by the clock alone."""
        conditions = (self._start, *self._requirements.values())
        return any(condition is not None and condition.reads_time for condition in conditions)

    @property
    def site_start(self) -> Optional[Callable[[SimSlot, ShapedKind, float], bool]]:
        """START of the site's files; None if it is true."""
        return None if self._start is None else self._admits

    def meets(self, slot: SimSlot, kind: ShapedKind) -> bool:
        """Tell if a slot meets the requirements of a job."""
        if not kind.requirements:
            return True
        requirements = self._requirements[kind.requirements]
        own, other = requirements.names
        job, free = job_attributes(kind, own), slot_attributes(slot, other)
        return requirements.accepts(job, free, self.clock())

    def _admits(self, slot: SimSlot, kind: ShapedKind, now: float) -> bool:
        start = self._start
        if start is None:
            return True
        own, other = start.names
        return start.admits(slot_attributes(slot, own), job_attributes(kind, other), now)
