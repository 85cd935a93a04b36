"""Deviation of the twin from a real pool, and how much of it is chance."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

from poolbox.comparison.recording import Figures

CHANCES = 2.0
"""Differences of so many standard deviations are chance."""
MOST_RATIO = 0.05
"""Most deviation in the usage of a group, of the pool's cores."""


@dataclasses.dataclass(frozen=True)
class Deviation:
    """Cores of a group, on average over the time that counts, as parts of the pool's cores.

    A pool shows one course of many that chance allows. Twins of several seeds, each with jobs of
    its own seed, show how far courses differ.
    """

    group: str
    pool: float
    same_jobs: float
    """Twin with the pool's own jobs."""
    twins: tuple[float, ...]
    """Twins of all seeds."""

    @property
    def ratio(self) -> float:
        """The pool's less the mean of the twins."""
        return self.pool - statistics.fmean(self.twins)

    @property
    def chance(self) -> float:
        """Difference that chance alone may make between a course and the mean of the twins."""
        spread = statistics.stdev(self.twins) if len(self.twins) > 1 else 0.0
        return CHANCES * spread * math.sqrt(1 + 1 / len(self.twins))

    @property
    def error(self) -> float:
        """Deviation that chance does not explain."""
        return max(0.0, abs(self.ratio) - self.chance)


def deviations(
    pool: Figures, same_jobs: Figures, twins: Sequence[Figures], pool_cores: int
) -> list[Deviation]:
    """Deviation of each group."""
    return [
        Deviation(
            group,
            pool.mean_cores(group) / pool_cores,
            same_jobs.mean_cores(group) / pool_cores,
            tuple(other.mean_cores(group) / pool_cores for other in twins),
        )
        for group in pool.cores
    ]


def order(rms_hs06: Mapping[str, float]) -> list[str]:
    """Strategies from the smallest error to the largest."""
    return sorted(rms_hs06, key=lambda strategy: rms_hs06[strategy])


def contradictions(
    pool_hs06: Mapping[str, float], twins_hs06: Mapping[str, Sequence[float]]
) -> list[str]:
    """Pairs of strategies whose order differs, though chance does not explain it, in words.

    Errors are RMS. A pair counts where the difference of its pools is larger than chance makes it,
    by the spread of the twins.
    """
    pairs = []
    names = order(pool_hs06)
    for place, better in enumerate(names):
        for worse in names[place + 1 :]:
            twins = twins_hs06[better], twins_hs06[worse]
            spread = math.hypot(*(statistics.stdev(values) for values in twins))
            lead = pool_hs06[worse] - pool_hs06[better]
            twin_lead = statistics.fmean(twins[1]) - statistics.fmean(twins[0])
            if twin_lead < 0 and lead > CHANCES * spread:
                pairs.append(
                    f"{better} is {lead:.0f} HS06 better than {worse} on pools, and "
                    f"{-twin_lead:.0f} HS06 worse in the twin"
                )
    return pairs
