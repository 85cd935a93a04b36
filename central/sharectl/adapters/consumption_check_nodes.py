"""Checks of several configurations at once: what a match costs is in the same unit on all nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from sharectl.adapters.consumption_check_requests import DISK_KIB_PER_CORE, slot_ad
from sharectl.adapters.consumption_check_subject import Node, SlotType, Subject
from sharectl.adapters.consumption_check_trials import plain, said
from sharectl.adapters.snippet_subject import Finding

_CORES, _MEMORY_MIB = 64, 262144
_JOBS = tuple(
    {"RequestCpus": str(cores), "RequestMemory": str(memory), "RequestDisk": "102400"}
    for cores, memory in ((1, 2048), (1, 8192), (8, 16384))
)


@dataclass(frozen=True)
class _Priced:
    """Slots of a type of a node, and what each of the jobs costs there."""

    node: Node
    slot: SlotType
    costs: Sequence[Optional[float]]
    """None where the job does not fit."""

    def differs(self, other: _Priced) -> Optional[int]:
        """Number of the first job that costs something else there; None if all cost the same."""
        for number, (here, there) in enumerate(zip(self.costs, other.costs)):
            if here is not None and there is not None and not math.isclose(here, there, rel_tol=1e-6):
                return number
        return None


def units(subject: Subject) -> Iterator[Finding]:
    """Weights by which the same job costs more on one node than on another.

    The manual wants the same SLOT_WEIGHT "on all machines in the pool" (EP policy configuration, section
    condor_negotiator-Side Resource Consumption Policies). Group quotas are in weighted slots: two units, and a quota
    means something else on each node. Slot types of one node may well differ on purpose, so like is compared with like.
    """
    quotas = any(node.configuration.text("GROUP_NAMES") for node in subject.nodes)
    seen: list[_Priced] = []
    told: set[tuple[str, str]] = set()
    for node in subject.nodes:
        priced = [
            _Priced(node, slot, _costs(subject, node, slot)) for its, slot in subject.sound if its is node
        ]
        for here, there in _unlike(priced, seen):
            key = (here.node.input.name, here.slot.weight.place)
            if key not in told:
                told.add(key)
                yield _finding(here, there, advice=not quotas)
        seen += priced


def _costs(subject: Subject, node: Node, slot: SlotType) -> list[Optional[float]]:
    """What each of the jobs costs on a slot of one size, so that only weights are compared."""
    whole = dict.fromkeys(slot.policies, 8.0)
    whole.update(Cpus=_CORES, Memory=_MEMORY_MIB, Disk=_CORES * DISK_KIB_PER_CORE)
    (found,) = subject.matches([slot_ad(node, slot, whole)], _JOBS)
    return [match.cost if not match.refused else None for match in found]


def _unlike(priced: Sequence[_Priced], before: Sequence[_Priced]) -> Iterator[tuple[_Priced, _Priced]]:
    """Slots of a node, and those of a node before it that are to cost the same and do not.

    Types of one number are meant alike. Where nodes have no number in common, it is enough that one type of each is alike.
    """
    first: dict[int, _Priced] = {}
    for there in before:
        first.setdefault(there.slot.number, there)
    pairs = [(here, first[here.slot.number]) for here in priced if here.slot.number in first]
    if not pairs and all(here.differs(there) is not None for here in priced for there in before):
        pairs = [(here, there) for here in priced[:1] for there in before[:1]]
    return (pair for pair in pairs if pair[0].differs(pair[1]) is not None)


def _finding(here: _Priced, there: _Priced, *, advice: bool) -> Finding:
    number = here.differs(there) or 0
    costs = [plain(one.costs[number]) for one in (here, there)]
    return Finding(
        "nodes",
        here.slot.weight.place,
        f"a job with {said(_JOBS[number])} costs {costs[0]} on {_name(here)}, and {costs[1]} on {_name(there)} "
        f"({there.slot.weight.place}): quotas and shares are in two units",
        "write the same SLOT_WEIGHT on all nodes, or weights in the same unit",
        advice=advice,
    )


def _name(priced: _Priced) -> str:
    name = priced.node.input.name
    return f"{name}, {priced.slot.name}" if priced.slot.number else name
