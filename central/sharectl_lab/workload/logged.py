"""Jobs that ran: counted for their run times, or submitted again as a workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random  # noqa: TID251 - seeded: a seed always gives the same jobs
from typing import Any, Optional

from sharectl.cadence.laws import LoggedJob
from sharectl.settings import setting
from sharectl_lab.workload.draw import Arrival, JobKind, PilotFactory, ad_attributes

AFTER = "submitted after the days that are simulated"
ANY = "*"
"""Name in a mapping that stands for all others."""
_QUANTUM_MIB = 128
"""Memory is rounded up to so much: requests that hardly differ are one kind of jobs."""


@dataclass(frozen=True)
class Multicore:
    """Rule that makes multicore jobs of single-core work."""

    ratio: float = setting(least=0, most=1)
    """Part of the single-core jobs of each user that is taken."""
    cores: int = setting(8, least=2, most=65_536)
    """Cores of a multicore job, which has the core-seconds of so many jobs."""


@dataclass(frozen=True)
class LogSource:
    """Jobs of a log that are submitted again."""

    file: Path = setting(kind="file")
    """Log, also packed by gzip; a path that is not absolute begins at the scenario's folder."""
    by: str = setting("group", choices=("group", "user", "queue"))
    """Field of a job that `groups` maps."""
    groups: Optional[Mapping[str, str]] = setting(None, kind="accounting group")
    """Names or numbers of that field -> accounting group; `"*"` for all others. Jobs of names that
    it does not have are left out; null: the field itself is the accounting group."""
    multicore: Optional[Multicore] = setting(None)
    """Part of the single-core work that becomes multicore."""
    run_time_factor: float = setting(1.0, above=0, most=1e6)
    """Factor of run times: it sets how full the pool is."""
    memory_mib: int = setting(2000, least=0, most=2**40)
    """Memory for each core, where the log has none."""
    memory_factor: float = setting(1.0, above=0, most=1e6)
    """Factor of the log's memory: 0.0009765625 if it has bytes where its format says KiB."""
    attributes: Optional[Mapping[str, Any]] = setting(None, kind="attribute")
    """Further attributes of all its jobs, which START may read, such as `{Tenant: physics}`."""
    skip_broken: bool = setting(default=False)
    """True if rows that are no jobs are passed over and counted; otherwise they are errors."""
    access_points: int = setting(1, least=1, most=1000)
    """Access points that share the users."""

    def name_of(self, job: LoggedJob) -> str:
        """Field of a job that is mapped."""
        name: str = getattr(job, self.by)
        return name

    def account_of(self, name: str) -> Optional[str]:
        """Accounting group of a name; None if its jobs are left out."""
        return name if self.groups is None else self.groups.get(name, self.groups.get(ANY))


class LoggedWorkload:
    """Jobs of a log until a time, of a seed; a `Workload`."""

    def __init__(
        self, jobs: Sequence[LoggedJob], source: LogSource, seed: int, until_seconds: float
    ) -> None:
        self.factories: Sequence[PilotFactory] = ()
        self.left_out: Counter[str] = Counter()
        """Reason -> jobs whose time is not simulated."""
        self._places: dict[JobKind, int] = {}
        self._source = source
        self._attributes = ad_attributes(source.attributes)
        self._arrivals = sorted(self._all(jobs, seed, until_seconds))
        self.kinds: Sequence[JobKind] = list(self._places)

    def arrivals(self) -> Iterator[Arrival]:
        """Jobs in the order of their times; each call begins again."""
        return iter(self._arrivals)

    def _all(self, jobs: Sequence[LoggedJob], seed: int, until_seconds: float) -> Iterator[Arrival]:
        source = self._source
        start = min((job.submitted_at for job in jobs), default=0.0)
        taken: list[LoggedJob] = []
        for job in jobs:
            at, account = job.submitted_at - start, source.account_of(source.name_of(job))
            if account is not None and at < until_seconds:
                seconds = job.run_seconds * source.run_time_factor
                row = job._replace(submitted_at=at, run_seconds=seconds, group=account.lower())
                taken.append(row)
            elif account is not None:
                self.left_out[AFTER] += 1
        rule = source.multicore
        for job in taken if rule is None else as_multicore(iter(taken), rule, seed):
            yield Arrival(job.submitted_at, self._place(job), job.run_seconds)

    def _place(self, job: LoggedJob) -> int:
        memory_mib = ceil(job.memory_mib * self._source.memory_factor)
        memory_mib = memory_mib or self._source.memory_mib * job.cores
        memory_mib = -(-memory_mib // _QUANTUM_MIB) * _QUANTUM_MIB
        kind = JobKind(
            job.group,
            job.user,
            job.cores,
            memory_mib,
            access_point=sum(job.user.encode()) % self._source.access_points,
            attributes=self._attributes,
        )
        return self._places.setdefault(kind, len(self._places))


def as_multicore(jobs: Iterator[LoggedJob], rule: Multicore, seed: int) -> Iterator[LoggedJob]:
    """Jobs, of which a part of the single-core ones become multicore jobs of the same core-seconds.

    A multicore job is submitted with the last of the jobs that it is made of. Those that are too
    few for one stay as they are. The order is not that of the times.
    """
    uniform = Random(f"{seed}/multicore").random
    waiting: dict[tuple[str, str, str], list[LoggedJob]] = {}
    for job in jobs:
        if job.cores > 1 or uniform() >= rule.ratio:
            yield job
            continue
        parts = waiting.setdefault((job.group, job.user, job.queue), [])
        parts.append(job)
        if len(parts) == rule.cores:
            yield job._replace(
                cores=rule.cores,
                submitted_at=max(part.submitted_at for part in parts),
                run_seconds=sum(part.run_seconds for part in parts) / rule.cores,
                memory_mib=sum(part.memory_mib for part in parts),
            )
            parts.clear()
    for parts in waiting.values():
        yield from parts
