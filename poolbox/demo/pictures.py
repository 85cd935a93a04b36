"""Jobs and orders of the nodes of a pool, from their ads in the collector."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from poolbox import Box


@dataclasses.dataclass(frozen=True)
class NodeTarget:
    """The target a node acts on now."""

    held_back: str
    cap_cores: int
    helped: str
    until: int
    """Unix seconds at which it ends by itself."""


@dataclasses.dataclass(frozen=True)
class NodePicture:
    """One node at one moment."""

    name: str
    """Short host name."""
    cores: int
    held_cores: Mapping[str, int]
    """Group -> cores its jobs hold."""
    target: Optional[NodeTarget]
    in_grace: bool
    job_ctl_reason: str
    """Reason that job_ctl published at its last run; empty before the first."""

    @property
    def idle_cores(self) -> int:
        """Cores that no job holds."""
        return max(0, self.cores - sum(self.held_cores.values()))


def look(box: Box) -> tuple[NodePicture, ...]:
    """Every execute point of the box that the collector knows, by name."""
    import classad2  # noqa: PLC0415  # 40 ms that --help does not need

    query = ["condor_status", "-long", "-constraint", "PartitionableSlot =?= True"]
    ads = classad2.parseAds(box.run(query).stdout)
    return tuple(sorted((picture(ad, time.time()) for ad in ads), key=lambda node: node.name))


def picture(ad: Any, now: float) -> NodePicture:
    """Picture of a partitionable slot's ad (a classad2.ClassAd) at Unix time ``now``."""
    held: Counter[str] = Counter()
    for group, cores in zip(_list(ad, "ChildAccountingGroup"), _list(ad, "ChildCpus")):
        if isinstance(cores, int):
            held[
                group.split(".")[0].split("@")[0].lower() if isinstance(group, str) else "other"
            ] += cores
    reason = ad.get("t1_JobCtlReason")
    return NodePicture(
        name=str(ad["Machine"]).split(".")[0],
        cores=int(ad["TotalSlotCpus"]),
        held_cores=held,
        target=_target(ad, now),
        in_grace=ad.eval("MC_GRACE") is True if "MC_GRACE" in ad else False,
        job_ctl_reason=reason if isinstance(reason, str) else "",
    )


def cores_by_group(nodes: Iterable[NodePicture]) -> Counter[str]:
    """Group -> cores that its jobs hold on all nodes."""
    total: Counter[str] = Counter()
    for node in nodes:
        total.update(node.held_cores)
    return total


def overshoots(before: Iterable[NodePicture], after: Iterable[NodePicture]) -> list[str]:
    """Nodes whose held-back group grew past its cap between two looks, in words.

    While the same target stands, the group's cores may fall to the cap but never rise above it.
    """
    earlier = {node.name: node for node in before}
    passed = []
    for node in after:
        was = earlier.get(node.name)
        if was is None or node.target is None or was.target is None:
            continue
        if (node.target.held_back, node.target.cap_cores) == (
            was.target.held_back,
            was.target.cap_cores,
        ):
            group, cap = node.target.held_back, node.target.cap_cores
            allowed = max(cap, was.held_cores.get(group, 0))
            if node.held_cores.get(group, 0) > allowed:
                passed.append(
                    f"{node.name}: {group} has {node.held_cores[group]} cores, cap {cap}, "
                    f"before {allowed}"
                )
    return passed


def _target(ad: Any, now: float) -> Optional[NodeTarget]:
    cores, groups, until = (
        _list(ad, "t1_Targetcores"),
        _list(ad, "t1_TargetGroups"),
        ad.get("t1_TargetUntil"),
    )
    if len(cores) != 2 or len(groups) != 2 or not isinstance(until, int):  # noqa: PLR2004  # {held back, helped}
        return None
    if cores[1] <= 0 or now >= until:
        return None
    return NodeTarget(str(groups[0]), int(cores[0]), str(groups[1]), until)


def _list(ad: Any, name: str) -> list[Any]:
    value = ad.eval(name) if name in ad else None
    return list(value) if isinstance(value, (list, tuple)) else []
