"""Checks of several configurations at once: what a match costs is in the same unit on all nodes."""

from __future__ import annotations

from collections.abc import Iterator
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


def units(subject: Subject) -> Iterator[Finding]:
    """Weights by which the same job costs more on one node than on another.

    The manual wants the same SLOT_WEIGHT "on all machines in the pool" (EP policy configuration, section
    condor_negotiator-Side Resource Consumption Policies). Group quotas are in weighted slots: two units, and a quota
    means something else on each node. Slot types of one node may well differ on purpose, so they are not compared.
    """
    quotas = any(node.configuration.text("GROUP_NAMES") for node in subject.nodes)
    first: Optional[tuple[Node, SlotType, list[Optional[float]]]] = None
    texts: set[tuple[str, str]] = set()
    for node, slot in subject.sound:
        costs = _costs(subject, node, slot)
        if first is None:
            first = (node, slot, costs)
            continue
        other, other_slot, other_costs = first
        key = (node.input.name, slot.weight.place)
        if node is other or key in texts:
            continue
        texts.add(key)
        for job, here, there in zip(_JOBS, costs, other_costs):
            if (
                here is not None
                and there is not None
                and abs(here - there) > 1e-6 * max(abs(here), abs(there))
            ):
                yield Finding(
                    "nodes",
                    slot.weight.place,
                    f"a job with {said(job)} costs {plain(here)} on {node.input.name}, and {plain(there)} on {other.input.name} "
                    f"({other_slot.weight.place}): quotas and shares are in two units",
                    "write the same SLOT_WEIGHT on all nodes, or weights in the same unit",
                    advice=not quotas,
                )
                break


def _costs(subject: Subject, node: Node, slot: SlotType) -> list[Optional[float]]:
    """What each of the jobs costs on a slot of one size, so that only weights are compared."""
    whole = dict.fromkeys(slot.policies, 8.0)
    whole.update(Cpus=_CORES, Memory=_MEMORY_MIB, Disk=_CORES * DISK_KIB_PER_CORE)
    (found,) = subject.matches([slot_ad(node, slot, whole)], _JOBS)
    return [match.cost if not match.refused else None for match in found]
