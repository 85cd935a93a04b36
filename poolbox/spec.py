"""Specification of a box: nodes, access points, groups and configuration."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Optional, Union

from poolbox.errors import SpecError

SUITES = ("trixie", "forky")
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
GROUP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.]*")


@dataclasses.dataclass(frozen=True)
class ExecutePoint:
    """One execute point: a condor_master and a condor_startd with one partitionable slot.

    ``power_hs06`` is the whole node's, published as machine attribute ``t1_wn_hs06``; None
    publishes nothing. ``config`` is extra HTCondor configuration of this node alone and wins over
    everything in the `BoxSpec`.
    """

    name: str = "wn-001.example.org"
    cores: int = 8
    memory_mib: int = 16384
    power_hs06: Optional[float] = 80.0
    config: str = ""


def equal_nodes(
    count: int,
    cores: int = 8,
    memory_mib: int = 16384,
    power_hs06: Optional[float] = 80.0,
    config: str = "",
) -> tuple[ExecutePoint, ...]:
    """``count`` execute points alike, ``wn-001.example.org`` and up."""
    return tuple(
        ExecutePoint(f"wn-{number:03}.example.org", cores, memory_mib, power_hs06, config)
        for number in range(1, count + 1)
    )


@dataclasses.dataclass(frozen=True)
class BoxSpec:
    """One pool. HTCondor's defaults hold except for the short intervals of `poolbox.configuration`.

    ``as_shipped`` keeps HTCondor's intervals, security, shared_port and benchmarks too; minutes
    pass until a change is seen.
    ``suite`` is the Debian suite whose HTCondor runs: trixie has 23.9.6, forky 25.14.1; a
    ``condor_master`` on PATH goes before both. ``config`` goes to every daemon, then
    ``central_config``, ``access_config`` and ``execute_config`` to their hosts: a knob set there
    wins over the box's own. ``groups`` maps an accounting group to its quota: an int is cores
    (GROUP_QUOTA), a float up to 1 a share (GROUP_QUOTA_DYNAMIC).
    """

    execute_points: tuple[ExecutePoint, ...] = (ExecutePoint(),)
    access_points: tuple[str, ...] = ("ap-1.example.org", "ap-2.example.org")
    central_point: str = "cm-1.example.org"
    suite: str = "trixie"
    config: str = ""
    central_config: str = ""
    access_config: str = ""
    execute_config: str = ""
    groups: Mapping[str, Union[int, float]] = dataclasses.field(default_factory=dict)
    as_shipped: bool = False

    @classmethod
    def of_equal_nodes(
        cls,
        count: int,
        cores: int = 8,
        memory_mib: int = 16384,
        power_hs06: Optional[float] = 80.0,
        **others: object,
    ) -> BoxSpec:
        """A pool of ``count`` nodes alike; ``others`` are the further fields of a `BoxSpec`."""
        nodes = equal_nodes(count, cores, memory_mib, power_hs06)
        return dataclasses.replace(cls(execute_points=nodes), **others)  # type: ignore[arg-type]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host: the central manager, the access points, the execute points."""
        return (
            self.central_point,
            *self.access_points,
            *(node.name for node in self.execute_points),
        )

    def check(self) -> None:
        """Nothing, or `SpecError` with every reason why this cannot be a pool."""
        problems = list(self._problems())
        if problems:
            raise SpecError(problems)

    def _problems(self) -> Iterator[str]:
        if self.suite not in SUITES:
            yield f"suite {self.suite!r}: write one of {', '.join(SUITES)}"
        if not self.access_points:
            yield "access_points: at least one is needed, to submit jobs from"
        for name, times in Counter(self.hosts).items():
            if not HOST_NAME.fullmatch(name):
                yield f"host {name!r}: write a lower-case host name such as wn-001.example.org"
            if times > 1:
                yield f"host {name!r}: named {times} times; give each host its own name"
        for node in self.execute_points:
            if node.cores < 1 or node.memory_mib < 1:
                yield f"execute point {node.name}: cores and memory_mib must be at least 1"
        for group, quota in self.groups.items():
            yield from _group_problems(group, quota)


def _group_problems(group: str, quota: float) -> Iterator[str]:
    if not GROUP_NAME.fullmatch(group):
        yield f"group {group!r}: write letters, digits, _ and . only"
    if (
        isinstance(quota, bool)
        or not 0 <= quota < math.inf
        or (not isinstance(quota, int) and quota > 1)
    ):
        yield f"group {group}: quota {quota!r}: write cores as an int, or a share of 0.0 to 1.0"
