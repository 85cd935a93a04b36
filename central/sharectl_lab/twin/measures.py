"""Figures of a run: integrals over time of what groups use and of cores that stand idle."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from math import fsum

from sharectl_lab.twin.records import CAUSES, GroupOutcome, Waits


class GroupMeasure:
    """Use of one group."""

    def __init__(self, cores: int = 0, hs06: float = 0.0, since: float = 0.0) -> None:
        self.cores = cores
        self.hs06 = hs06
        self.since = since
        self.core_seconds = 0.0
        self.work = 0.0
        """HS06-seconds."""
        self.begun_cores = self.begun_work = 0.0
        """Integrals at the begin of the interval."""
        self.core_series, self.hs06_series = array("d"), array("d")
        self.pending_series, self.due_series = array("l"), array("d")
        self.starts: Counter[int] = Counter()
        self.done: Counter[int] = Counter()
        self.waits: defaultdict[int, array[float]] = defaultdict(lambda: array("f"))

    def use(self, now: float, cores: int, hs06: float) -> None:
        """Add cores that are held from now on, or take them off."""
        passed = now - self.since
        if passed:
            self.core_seconds += self.cores * passed
            self.work += self.hs06 * passed
            self.since = now
        self.cores += cores
        # Sums of parts may leave a rounding behind where nothing is held.
        self.hs06 = self.hs06 + hs06 if self.cores else 0.0

    def wait(self, cores: int, seconds: float) -> None:
        """Note the start of a job that has waited for so long."""
        self.starts[cores] += 1
        self.waits[cores].append(seconds)

    def sample(self, now: float, seconds: float, pending_jobs: int) -> None:
        """End an interval of so many seconds."""
        self.use(now, 0, 0.0)
        self.core_series.append((self.core_seconds - self.begun_cores) / seconds)
        self.hs06_series.append((self.work - self.begun_work) / seconds)
        self.pending_series.append(pending_jobs)
        self.begun_cores, self.begun_work = self.core_seconds, self.work


class IdleMeasure:
    """Idle cores by cause: no job wants, or could take, those that pending jobs do not request."""

    def __init__(self, cores: int) -> None:
        self.total = cores
        """Idle cores of all slots."""
        self.wanted = 0
        """Cores that pending jobs request which a node could run."""
        self.too_large = 0
        """Cores that other pending jobs request."""
        self.cores: dict[str, int] = dict.fromkeys(CAUSES, 0)
        """Cause -> idle cores of slots that a cycle looked at; all others wait for the next."""
        self.looked = False
        """True if ``cores`` count."""
        self.since = 0.0
        self.seconds: dict[str, float] = {}
        self.begun: dict[str, float] = {}
        self.series: dict[str, array[float]] = {}
        self.forget(0.0)

    def want(self, now: float, cores: int, *, placeable: bool = True) -> None:
        """Add cores that pending jobs request, or take them off."""
        if not placeable:
            self.settle(now)
            self.too_large += cores
            return
        if self.wanted + cores < self.total or self.wanted < self.total:
            self.settle(now)
        self.wanted += cores

    def settle(self, now: float) -> None:
        """Add up the time since the last call, before anything changes."""
        passed = now - self.since
        if not passed:
            return
        self.since = now
        total, seconds = self.total, self.seconds
        if self.wanted < total:
            useless = min(total - self.wanted, self.too_large)
            seconds["unmatchable"] += useless * passed
            seconds["no-jobs"] += (total - self.wanted - useless) * passed
            passed *= self.wanted / total
        if not passed:
            return
        unseen = total
        if self.looked:
            for cause, cores in self.cores.items():
                if cores:
                    seconds[cause] += cores * passed
                    unseen -= cores
        seconds["cadence"] += unseen * passed

    def sample(self, now: float, seconds: float) -> None:
        """End an interval of so many seconds."""
        self.settle(now)
        for cause, total in self.seconds.items():
            self.series[cause].append((total - self.begun[cause]) / seconds)
        self.begun = dict(self.seconds)

    def forget(self, now: float) -> None:
        """Begin again: the warm-up is over."""
        self.settle(now)
        self.seconds = dict.fromkeys(CAUSES, 0.0)
        self.begun = dict(self.seconds)
        self.series = {cause: array("d") for cause in CAUSES}


def outcome_of(measure: GroupMeasure, pledge_hs06: float) -> GroupOutcome:
    """Outcome of a group with such a pledge."""
    return GroupOutcome(
        pledge_hs06=pledge_hs06,
        power_hs06=tuple(measure.hs06_series),
        due_hs06=tuple(measure.due_series),
        cores=tuple(measure.core_series),
        pending_jobs=tuple(measure.pending_series),
        work_hs06_hours=measure.work / 3600,
        starts_by_cores=dict(sorted(measure.starts.items())),
        done_by_cores=dict(sorted(measure.done.items())),
        waits_by_cores={cores: _waits(waits) for cores, waits in sorted(measure.waits.items())},
    )


def _waits(waits: Iterable[float]) -> Waits:
    ordered = sorted(waits)
    last = len(ordered) - 1
    return Waits(
        jobs=len(ordered),
        mean_seconds=fsum(ordered) / len(ordered),
        median_seconds=ordered[last // 2],
        p95_seconds=ordered[last * 19 // 20],
        longest_seconds=ordered[last],
    )
