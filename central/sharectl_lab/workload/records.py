"""Jobs over time: records that all sources of jobs give.

Times are seconds since the begin of the simulation. A *kind* is an autocluster: jobs that the
negotiator and START cannot tell apart. An *account* is an accounting group without its user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Protocol


class JobKind(NamedTuple):
    """Autocluster: jobs that are matched alike."""

    account: str
    """Accounting group in lower case, such as `alice.prod`; empty without one."""
    user: str
    cores: int
    memory_mib: int = 0
    disk_kib: int = 0
    custom: tuple[tuple[str, int], ...] = ()
    """Custom resources that a job requests, such as `("gpus", 1)`, in order of their names."""
    requirements: str = ""
    """ClassAd expression beside the requests; empty for none."""
    access_point: int = 0
    """Number of its access point, from 0."""
    attributes: tuple[tuple[str, Any], ...] = ()
    """Further attributes of its ad, names in lower case, in their order."""
    whole_node: bool = False
    """Whether RequestCpus is TARGET.TotalCpus; `cores` is then what it comes to without a slot."""

    @property
    def submitter(self) -> str:
        """Name in the accountant."""
        return f"{self.account}.{self.user}" if self.account else self.user


def ad_attributes(written: Optional[Mapping[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Attributes as `JobKind.attributes` has them."""
    return tuple(sorted((name.lower(), value) for name, value in (written or {}).items()))


class Arrival(NamedTuple):
    """A job that is submitted."""

    at: float
    kind: int
    """Place of its `JobKind` in `Workload.kinds`."""
    run_seconds: float
    """Time that it runs on any node."""


class Factory(Protocol):
    """A pilot factory: it keeps a number of jobs of one kind pending."""

    @property
    def kind(self) -> int:
        """Place of its jobs' kind in `Workload.kinds`."""

    @property
    def keep_pending(self) -> int:
        """Jobs that it keeps pending."""

    @property
    def period_seconds(self) -> float:
        """Time between two looks at its pending jobs."""

    def is_active(self, now: float) -> bool:
        """Tell if it submits jobs at that time."""

    def draw_seconds(self) -> float:
        """Run time of its next job."""


class Workload(Protocol):
    """Jobs of a simulation."""

    @property
    def kinds(self) -> Sequence[JobKind]:
        """Kinds of its jobs; may grow with the arrivals."""

    @property
    def factories(self) -> Sequence[Factory]:
        """Its pilot factories, each with a kind that no other has."""

    def arrivals(self) -> Iterator[Arrival]:
        """Jobs in the order of their times; may be endless."""
