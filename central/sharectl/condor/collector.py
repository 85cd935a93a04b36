"""Execute points, their jobs and the addresses of schedds, from the collector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Optional

from sharectl.condor import nodes as node_ads
from sharectl.condor.ads import evaluated, number, sequence, text, whole
from sharectl.condor.daemons import locations, query, slots
from sharectl.condor.schedds import Held
from sharectl.condor.slots import Sample, sample_of
from sharectl.plan.nodes import HOST_NAME

NO_CONSTRAINTS: Mapping[str, str] = {}
STALE_SECONDS = 2340
"""Three periods of 13 minutes."""

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


@dataclass(frozen=True)
class Slot:
    """A partitionable or static slot."""

    machine: str
    cores: int
    """TotalSlotCpus."""
    node_cores: Optional[int]
    """Cores of the whole machine, TotalCpus, which share its power; None if not published."""
    hs06: Optional[float]
    """t1_wn_hs06, power of the whole machine; None if it publishes none."""
    held: tuple[Held, ...]
    meets: frozenset[str]
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
    """All that a cycle asks of the collector."""

    slots: tuple[Slot, ...]
    schedds: tuple[dict[str, str], ...]
    """Location of each schedd."""
    started_at: int
    """Unix seconds at which the collector started; 0 if it does not say."""
    sample: Sample = field(default_factory=Sample)


def look(
    collector: Any,
    constraints: Mapping[str, str] = NO_CONSTRAINTS,
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
        for name, constraint in constraints.items()
    }
    itself = query(collector, "Collector", projection=["MonitorSelfTime", "MonitorSelfAge"])
    own = tuple(slot for ad in ads if (slot := _slot(ad, met, now, stale_seconds)) is not None)
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


def _slot(ad: Any, met: Mapping[str, set[str]], now: int, stale_seconds: int) -> Optional[Slot]:
    """Slot of an ad; None if it does not name its machine: a target could not reach it."""
    machine = text(evaluated(ad, "Machine"))
    if machine is None or not HOST_NAME.fullmatch(machine):
        return None
    hs06 = number(evaluated(ad, "t1_wn_hs06"), 0.0)
    obeyed, refusal = node_ads.obedience_of(ad, now, stale_seconds)
    return Slot(
        machine=machine.lower(),
        cores=whole(evaluated(ad, "TotalSlotCpus"), 0),
        node_cores=whole(evaluated(ad, "TotalCpus"), 0) or None,
        hs06=hs06 if hs06 > 0 else None,
        held=tuple(_children(ad) if evaluated(ad, "PartitionableSlot") else _itself(ad)),
        meets=frozenset(name for name, machines in met.items() if machine in machines),
        memory_mib=whole(evaluated(ad, "TotalSlotMemory"), 0) or whole(evaluated(ad, "Memory"), 0),
        node_memory_mib=whole(evaluated(ad, "TotalMemory"), 0),
        draining=node_ads.is_draining(ad),
        obeyed_sequence=obeyed,
        refusal=refusal,
        multicore_only=node_ads.says(ad, "t1_MulticoreOnly", said=True),
        partitionable=node_ads.says(ad, "PartitionableSlot", said=True),
        grace_cores=whole(evaluated(ad, "Cpus"), 0) if node_ads.in_grace(ad, now) else 0,
    )


def _children(ad: Any) -> list[Held]:
    names = ("Cpus", "AccountingGroup", "JobStart", "EnteredCurrentState", "Memory")
    lists = (sequence(evaluated(ad, f"Child{name}")) for name in names)
    return [
        Held(
            text(group),
            whole(cores, 1, least=1),
            whole(start, 0) or whole(entered, 0),
            whole(memory, 0),
        )
        for cores, group, start, entered, memory in zip_longest(*lists)
    ]


def _itself(ad: Any) -> list[Held]:
    if evaluated(ad, "State") != "Claimed":
        return []
    since = whole(evaluated(ad, "JobStart"), 0) or whole(evaluated(ad, "EnteredCurrentState"), 0)
    cores, memory_mib = whole(evaluated(ad, "Cpus"), 1, least=1), whole(evaluated(ad, "Memory"), 0)
    return [Held(text(evaluated(ad, "AccountingGroup")), cores, since, memory_mib)]
