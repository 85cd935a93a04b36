"""Jobs that ran, and their work by group and size."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import fsum
from operator import mul
from typing import NamedTuple, Optional

from sharectl.cadence.laws import RunTimeLaw, weighted

_MOST_PARTS = 30


class LoggedJob(NamedTuple):
    """A job that ran."""

    submitted_at: float
    """Seconds since any moment."""
    run_seconds: float
    cores: int
    memory_mib: int
    """Of the whole job; 0 if unknown."""
    user: str
    group: str
    queue: str


@dataclass(frozen=True)
class Load:
    """Work of slots: kinds of jobs, of which a claim runs one kind only."""

    name: str
    parts: tuple[tuple[float, RunTimeLaw], ...]
    """Core-seconds of each kind, or any measure of work, and its run times."""
    jobs: Optional[int] = None
    """None of a law."""

    @property
    def work(self) -> float:
        """Core-seconds of all parts, or any measure of work."""
        return sum(work for work, _ in self.parts)

    @property
    def mean_seconds(self) -> float:
        """Mean run time of a job, jobs counted by their cores."""
        return self.work / sum(work / law.mean_seconds for work, law in self.parts)

    def loading(
        self, cadence_seconds: float, worklife_seconds: float = 0, start_seconds: float = 0.0
    ) -> float:
        """Work over the time for which slots are held; see `RunTimeLaw.loading`."""
        times = (cadence_seconds, worklife_seconds, start_seconds)
        return self.work / sum(work / law.loading(*times) for work, law in self.parts)


def load_of(jobs: Collection[LoggedJob]) -> Load:
    """Load of jobs: those of one group and size are a part; those with least work share one."""
    by_kind: defaultdict[tuple[str, int], Counter[float]] = defaultdict(Counter)
    for job in jobs:
        by_kind[job.group.partition(".")[0], job.cores][job.run_seconds] += job.cores
    kinds = sorted(by_kind.values(), key=_work, reverse=True)
    small: Counter[float] = Counter()
    for kind in kinds[_MOST_PARTS:]:
        small.update(kind)
    parts = [*kinds[:_MOST_PARTS], *([small] if small else [])]
    return Load("all jobs", tuple((_work(part), weighted(part)) for part in parts), len(jobs))


def _work(cores: Mapping[float, int]) -> float:
    """Core-seconds of run times with their cores."""
    return fsum(map(mul, cores, cores.values()))
