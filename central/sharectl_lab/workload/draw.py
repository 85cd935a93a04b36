"""Records of jobs over time, and jobs drawn from streams: at random, bursts, outages, factories.

Every stream has a generator of its seed and number, so that a change of one leaves the others as
they are. Arrivals are made when they are asked for: memory does not depend on the number of jobs.

Times are seconds since the begin of the simulation. A *kind* is an autocluster: jobs that the
negotiator and START cannot tell apart. An *account* is an accounting group without its user.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import floor, log1p
from random import Random  # noqa: TID251 - seeded: a seed always gives the same jobs
from typing import Any, Callable, NamedTuple, Optional, Protocol

from sharectl.cadence.laws import RunTimeLaw, constant
from sharectl.settings import setting


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
    """True if RequestCpus is TARGET.TotalCpus; `cores` is then its value without a slot."""

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


class Workload(Protocol):
    """Jobs of a simulation."""

    @property
    def kinds(self) -> Sequence[JobKind]:
        """Kinds of its jobs."""

    @property
    def factories(self) -> Sequence[PilotFactory]:
        """Its pilot factories, each with a kind that no other has."""

    def arrivals(self) -> Iterator[Arrival]:
        """Jobs in the order of their times; may be endless."""


HOUR_SECONDS = 3600.0
_MOST_HOURS = 1e6
_MOST_JOBS = 10_000_000


@dataclass(frozen=True)
class Phase:
    """Time in which a stream has more or fewer jobs than usual: a burst or an outage."""

    length_hours: float = setting(above=0, most=_MOST_HOURS)
    """Length."""
    begin_hours: float = setting(0.0, least=0, most=_MOST_HOURS)
    """First begin, from the start of the simulation."""
    every_hours: Optional[float] = setting(None, above=0, most=_MOST_HOURS)
    """Time from one begin to the next; null: it comes once."""
    factor: float = setting(0.0, least=0, most=1e6)
    """Factor of `per_hour`: above 1 a burst, 0 an outage, in which a factory stops too."""

    def holds_at(self, now: float) -> bool:
        """Return whether it is in force."""
        begin = self.begin_hours * HOUR_SECONDS
        if self.every_hours is not None and now >= begin:
            period = self.every_hours * HOUR_SECONDS
            begin += floor((now - begin) / period) * period
        return begin <= now < begin + self.length_hours * HOUR_SECONDS

    def changes(self, mark: int) -> Iterator[tuple[float, int, bool]]:
        """Times at which it begins and ends, seconds, with ``mark`` and True if it begins."""
        begin, length = self.begin_hours * HOUR_SECONDS, self.length_hours * HOUR_SECONDS
        for number in [0] if self.every_hours is None else count():
            start = begin + number * (self.every_hours or 0.0) * HOUR_SECONDS
            yield start, mark, True
            yield start + length, mark, False


@dataclass(frozen=True)
class JobStream:
    """Jobs of one group and size: it needs per_hour, keep_pending or at_start."""

    group: str = setting("", kind="accounting group")
    """AccountingGroup without its user, such as `alice.prod`."""
    cores: int = setting(1, least=1, most=65_536)
    """RequestCpus."""
    run_time: RunTimeLaw = setting(constant(3600.0), kind="run time")
    """Seconds, `exponential:MEAN`, `log-normal:MEAN,SD`, or run times with weights such as
    `{600: 3, 3600: 1}`."""
    per_hour: Optional[float] = setting(None, above=0, most=1e9)
    """Mean number of jobs that are submitted in an hour, at random times."""
    keep_pending: Optional[int] = setting(None, least=1, most=_MOST_JOBS)
    """Jobs that a pilot factory keeps pending."""
    factory_seconds: float = setting(60.0, least=1, most=86_400)
    """Time between two looks of the factory at its pending jobs."""
    at_start: Optional[int] = setting(None, least=1, most=_MOST_JOBS)
    """Jobs that are submitted together at the start of the simulation."""
    phases: tuple[Phase, ...] = setting(())
    """Bursts and outages; where several hold, their factors are multiplied."""
    whole_node: bool = setting(default=False)
    """RequestCpus is TARGET.TotalCpus: all cores of the node on which a job runs."""
    memory_mib: int = setting(2000, least=0, most=2**40)
    """RequestMemory."""
    disk_mib: int = setting(0, least=0, most=2**40)
    """RequestDisk."""
    custom: Optional[Mapping[str, int]] = setting(None, least=0, most=1_000_000)
    """Custom resources, such as `{gpus: 1}`."""
    requirements: Optional[str] = setting(None, kind="expression")
    """ClassAd expression beside the requests; nothing matches `false`."""
    attributes: Optional[Mapping[str, Any]] = setting(None, kind="attribute")
    """Further attributes of their ads, which START may read, such as `{Tenant: physics}`."""
    users: int = setting(1, least=1, most=10_000)
    """Users that share the jobs."""
    access_points: int = setting(1, least=1, most=1000)
    """Access points that share the jobs."""

    def faults(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Key, or none, and message."""
        if (self.per_hour, self.keep_pending, self.at_start) == (None, None, None):
            yield (), "it has no jobs; write per_hour, keep_pending or at_start"
        if self.whole_node and self.cores > 1:
            yield ("cores",), "whole_node takes all cores of a node; leave cores out"
        if self.keep_pending is not None and any(phase.factor for phase in self.phases):
            fact = "a factory runs or stops"
            yield ("phases",), f"{fact}; write factor: 0, or per_hour in a stream beside this one"
        for phase in self.phases:
            if phase.every_hours is not None and phase.length_hours >= phase.every_hours:
                yield ("phases",), "length_hours is not below every_hours; lower it"

    def kinds(self) -> list[JobKind]:
        """Kinds of its jobs: one for each user on each access point."""
        return [
            JobKind(
                account=self.group.lower(),
                user="user" if self.users == 1 else f"user{user}",
                cores=self.cores,
                memory_mib=self.memory_mib,
                disk_kib=self.disk_mib * 1024,
                custom=tuple(sorted((self.custom or {}).items())),
                requirements=self.requirements or "",
                access_point=access_point,
                attributes=ad_attributes(self.attributes),
                whole_node=self.whole_node,
            )
            for user in range(1, self.users + 1)
            for access_point in range(self.access_points)
        ]


class PilotFactory:
    """A pilot factory: it keeps a number of jobs of one kind pending."""

    def __init__(self, stream: JobStream, kind: int, keep_pending: int, random: Random) -> None:
        self.kind = kind
        """Place of its jobs' kind in `Workload.kinds`."""
        self.keep_pending = keep_pending
        self.period_seconds = stream.factory_seconds
        """Time between two looks at its pending jobs."""
        self._phases = stream.phases
        self.draw_seconds: Callable[[], float] = stream.run_time.drawing(random.random)
        """Draws the run time of its next job."""

    def is_active(self, now: float) -> bool:
        """Return whether it submits jobs at that time: no outage holds."""
        return not any(phase.holds_at(now) for phase in self._phases)


class DrawnWorkload:
    """Jobs of streams until a time, of a seed; each factory has a kind that is its alone."""

    def __init__(self, streams: Sequence[JobStream], seed: int, until_seconds: float) -> None:
        self.kinds: list[JobKind] = []
        self.factories: list[PilotFactory] = []
        self._arriving: list[tuple[JobStream, list[int], str]] = []
        self._until_seconds = until_seconds
        for number, stream in enumerate(streams):
            self._add(stream, f"{seed}/{number}")

    def _add(self, stream: JobStream, seed: str) -> None:
        kinds = stream.kinds()
        if stream.keep_pending is not None:
            whole, rest = divmod(stream.keep_pending, len(kinds))
            for number, kind in enumerate(kinds[: stream.keep_pending]):
                random = Random(f"{seed}/factory/{number}")
                keep_pending = whole + (number < rest)
                factory = PilotFactory(stream, len(self.kinds), keep_pending, random)
                self.factories.append(factory)
                self.kinds.append(kind)
        if stream.per_hour is not None or stream.at_start is not None:
            first = len(self.kinds)
            self.kinds += kinds
            self._arriving.append((stream, list(range(first, first + len(kinds))), seed))

    def arrivals(self) -> Iterator[Arrival]:
        """Jobs in the order of their times; each call begins again."""
        until = self._until_seconds
        return heapq.merge(*(_arrivals(*stream, until) for stream in self._arriving))


def _arrivals(
    stream: JobStream, kinds: Sequence[int], seed: str, until_seconds: float
) -> Iterator[Arrival]:
    uniform = Random(seed).random
    run_seconds = stream.run_time.drawing(uniform)
    number, first = len(kinds), kinds[0]
    for job in range(stream.at_start or 0):
        yield Arrival(0.0, kinds[job % number], run_seconds())
    if stream.per_hour is None:
        return
    per_second = stream.per_hour / HOUR_SECONDS
    now = 0.0
    for until, factor in _pieces(stream.phases, until_seconds):
        if factor:
            mean = 1 / (per_second * factor)
            # An exponential time has no memory: each piece begins with a new one.
            now -= mean * log1p(-uniform())
            while now < until:
                kind = first if number == 1 else kinds[int(uniform() * number)]
                yield Arrival(now, kind, run_seconds())
                now -= mean * log1p(-uniform())
        now = until


def _pieces(phases: Sequence[Phase], until_seconds: float) -> Iterator[tuple[float, float]]:
    """End and factor of each piece of time, from 0 to ``until_seconds``, in which none changes."""
    changes = heapq.merge(
        *(phase.changes(number) for number, phase in enumerate(phases)),
        [(until_seconds, -1, False)],
    )
    active: set[int] = set()
    for at, number, begins in changes:
        factor = 1.0
        for phase in sorted(active):
            factor *= phases[phase].factor
        yield min(at, until_seconds), factor
        if at >= until_seconds:
            return
        (active.add if begins else active.discard)(number)
