"""What each node holds, as plans need it: cores and memory by group, with how long they are expected to be held."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import floor, fsum

from sharectl.core.assignment import NO_MEMORY_LIMIT
from sharectl.core.block_wait import Leaving
from sharectl.core.model import Node, Snapshot
from sharectl.core.remaining_times import EDGES_SECONDS, NOTHING_SEEN, RemainingTimes, age_bin


@dataclass
class NodeCores:
    """One node."""

    node: Node
    idle_cores: int = 0
    """Cores that no job holds."""
    held_cores: dict[str, int] = field(default_factory=dict)
    """Group -> cores, of all groups."""
    held_mib: dict[str, int] = field(default_factory=dict)
    memory_known: bool = True
    """Whether all jobs say what memory they hold."""
    ages: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)
    """Group -> cores of a job and bin of its age -> jobs; of the groups asked for."""

    def memory_for(self, group: str, freed_cores: int) -> int:
        """MiB that a job may request once the group has given back so many cores; no limit if that is not known."""
        if self.node.memory_mib <= 0:
            return NO_MEMORY_LIMIT
        if not self.memory_known:
            return self.node.memory_mib
        free = self.node.memory_mib - sum(self.held_mib.values())
        held = self.held_cores.get(group, 0)
        return floor(free + (self.held_mib.get(group, 0) * freed_cores / held if held else 0))


def cores_of_nodes(
    snapshot: Snapshot, names: Collection[str], groups: Collection[str]
) -> dict[str, NodeCores]:
    """What each of the nodes named holds; ages of jobs of ``groups``."""
    found = {node.name: NodeCores(node) for node in snapshot.nodes if node.name in names}
    for job in snapshot.running:
        here = found.get(job.node)
        if here is None:
            continue
        group, jobs = job.group, job.jobs
        here.held_cores[group] = here.held_cores.get(group, 0) + job.cores * jobs
        if job.memory_mib > 0:
            here.held_mib[group] = here.held_mib.get(group, 0) + job.memory_mib * jobs
        else:
            here.memory_known = False
        if group in groups:
            kinds = here.ages.setdefault(group, {})
            key = (job.cores, age_bin(job.seconds))
            kinds[key] = kinds.get(key, 0) + jobs
    for here in found.values():
        here.idle_cores = max(0, here.node.cores - sum(here.held_cores.values()))
    return found


class Expected:
    """Expected time that jobs still run, by group and bin of age."""

    def __init__(self, remaining: Mapping[str, RemainingTimes]) -> None:
        self._remaining = remaining
        self._seconds: dict[tuple[str, int], float] = {}

    def seconds(self, group: str, number: int) -> float:
        """Of a job in the middle of the bin."""
        key = (group, number)
        known = self._seconds.get(key)
        if known is None:
            start = EDGES_SECONDS[number]
            end = EDGES_SECONDS[number + 1] if number + 1 < len(EDGES_SECONDS) else start
            known = self._remaining.get(group, NOTHING_SEEN).expected_seconds((start + end) / 2)
            self._seconds[key] = known
        return known

    def cores_a_second(self, node: NodeCores, group: str) -> float:
        """How fast the group's jobs on the node are expected to give cores back."""
        kinds = node.ages.get(group, {})
        return fsum([cores * jobs / self.seconds(group, number) for (cores, number), jobs in kinds.items()])

    def leaving(self, node: NodeCores, group: str) -> list[Leaving]:
        """The group's jobs on the node, always in one order."""
        return [
            Leaving(cores, jobs, self.seconds(group, number))
            for (cores, number), jobs in sorted(node.ages.get(group, {}).items())
        ]
