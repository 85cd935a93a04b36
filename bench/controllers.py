"""Control laws on a simulated pool: settling time, overshoot and steady error.

The plant is a model of a pool, pure and the same at every run; the controllers are those of
`sharectl.control.steering`. Cores are a fluid. Jobs end after exponential times. What ends is taken
by the groups that have jobs waiting, in proportion to how eagerly the pool lets them in
(single-core jobs fit everywhere), but for what targets keep for others: these act after a dead
time, and give their cores only in whole blocks. So power moves only as jobs end, as in a pool;
nobody is killed.

settling   hours from the event until the error of the group that is watched stays where it ends:
within 2 % of the power
           in use of its mean in the last 12 hours; not told where there is noise
overshoot  how far it went beyond that, % of the power in use
steady     root of the mean square of the error in the last 12 hours, % of the power in use
idle       cores that stand idle until a block is together, % of all, on average since the event

Exit code 1 if a law does worse in the long run than no control at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, sqrt
from random import Random

from sharectl.control.laws import Control, Ewma, Pid
from sharectl.control.steering import SteeringConfig, steer
from sharectl.model import GroupControl, Node, PendingJobs, RunningJobs, Snapshot

TICK_SECONDS = 102
CYCLE_SECONDS = 1020
DEAD_SECONDS = 780
HOUR = 3600
EVENT_HOURS = 24.0
HOURS = 96.0
LAST_HOURS = 12.0
BAND = 0.02
CORES = 16000.0
CORE_HS06 = 10.0
BLOCK_CORES = 8
NODE_CORES = 16
DEADBAND_HS06 = 0.005 * CORES * CORE_HS06
ENDLESS = 1e9
WATCHED = "cms"


@dataclass(frozen=True)
class Kind:
    """The jobs of one group."""

    pledge_hs06: float
    mean_seconds: float
    request_cores: int
    eagerness: float
    """Part of what comes free that the pool gives to them by itself, relative to others."""


GROUPS: Mapping[str, Kind] = {
    "alice": Kind(40.0, 6 * HOUR, 1, 6.0),
    "lhcb": Kind(20.0, 6 * HOUR, 1, 2.0),
    WATCHED: Kind(40.0, 8 * HOUR, BLOCK_CORES, 2.0),
}
PLEDGES = {name: kind.pledge_hs06 for name, kind in GROUPS.items()}


@dataclass(frozen=True)
class Scenario:
    """Events of a pool over time."""

    arrivals: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Group -> (hour, cores that arrive in an hour from then on), linear in between.

    A group that is absent has jobs waiting without end."""
    cores: tuple[tuple[float, float], ...] = ((0.0, CORES),)
    """(hour, cores of the pool from then on)."""
    noise: float = 0.0
    """Spread of ends of jobs in a tick and of arrivals: standard deviation of the logarithm."""
    event_hours: float = EVENT_HOURS


ALL = CORES * 0.5
SCENARIOS: Mapping[str, Scenario] = {
    "step in demand": Scenario({WATCHED: ((0, 0), (24, 0), (24, ALL), (96, ALL))}),
    "ramp": Scenario(
        {WATCHED: ((0, 0), (24, 0), (48, 0.05 * CORES), (96, 0.05 * CORES))}, event_hours=48
    ),
    "noise": Scenario(noise=1.0),
    "a group stops": Scenario(
        {WATCHED: ((0, ALL), (24, ALL), (24, -ENDLESS), (48, -ENDLESS), (48, ALL), (96, ALL))},
        event_hours=48,
    ),
    "outage of a third": Scenario(cores=((0, CORES), (24, CORES * 2 / 3))),
    "nodes come back": Scenario(
        cores=((0, CORES), (24, CORES * 2 / 3), (48, CORES)), event_hours=48
    ),
}

LAWS: Mapping[str, Control] = {
    "latest": Control("latest"),
    "ewma": Control("ewma", ewma=Ewma()),
    "pid": Control("pid", pid=Pid()),
}


@dataclass(frozen=True)
class Moment:
    """The pool at one cycle."""

    hours: float
    error_ratio: float
    """Error of the group that is watched, of the power in use."""
    idle_ratio: float
    cores: Mapping[str, float]


@dataclass
class Pool:
    """The plant: what each group holds, what waits, what is kept for whom."""

    scenario: Scenario
    random: Random
    held: dict[str, float] = field(default_factory=lambda: dict.fromkeys(GROUPS, 0.0))
    waiting: dict[str, float] = field(default_factory=lambda: dict.fromkeys(GROUPS, 0.0))
    gathered: dict[str, float] = field(default_factory=lambda: dict.fromkeys(GROUPS, 0.0))
    targets: dict[tuple[str, str], float] = field(default_factory=dict)
    """Group held back, group helped -> cores still to change hands."""
    coming: list[tuple[int, dict[tuple[str, str], float]]] = field(default_factory=list)
    """Targets that are published and not yet in force: second, targets."""
    capacity: float = CORES

    def tick(self, second: int) -> None:
        """One tick."""
        hours = second / HOUR
        self._shrink_or_grow(
            next(cores for hour, cores in reversed(self.scenario.cores) if hour <= hours)
        )
        for name in GROUPS:
            arrived = (
                self._noisy(_at(self.scenario.arrivals.get(name, ((0, ENDLESS),)), hours))
                * TICK_SECONDS
                / HOUR
            )
            self.waiting[name] = min(ENDLESS, max(0.0, self.waiting[name] + arrived))
        while self.coming and self.coming[0][0] <= second:
            self.targets = self.coming.pop(0)[1]
        for name, kind in GROUPS.items():
            ending = self.held[name] * min(
                1.0, self._noisy(1 - exp(-TICK_SECONDS / kind.mean_seconds))
            )
            self._keep_for_others(name, ending)
            self.held[name] -= ending
        for name in GROUPS:
            self._start_blocks(name)
        self._compete()

    def _noisy(self, value: float) -> float:
        spread = self.scenario.noise
        # A mean of 1: noise makes no more jobs end.
        return value * self.random.lognormvariate(-0.5 * spread**2, spread) if spread else value

    def _shrink_or_grow(self, capacity: float) -> None:
        """Nodes that go down take their jobs along, most of them of the watched group."""
        part = 1 - capacity / self.capacity
        share = self.held[WATCHED] / (sum(self.held.values()) or 1.0)
        for name in GROUPS if part > 0 else ():
            self.held[name] *= 1 - part * (
                1.5 if name == WATCHED else (1 - 1.5 * share) / (1 - share)
            )
            self.gathered[name] *= 1 - part
        self.capacity = capacity

    def _keep_for_others(self, name: str, ending: float) -> None:
        """Of the cores that come free, those on targeted nodes wait for the helped group."""
        if self.held[name] <= 0:
            return
        for pair, cores in self.targets.items():
            if pair[0] == name:
                on_such_nodes = min(1.0, cores * NODE_CORES / BLOCK_CORES / self.held[name])
                kept = min(cores, ending * on_such_nodes)
                self.targets[pair] = cores - kept
                self.gathered[pair[1]] += kept

    def _start_blocks(self, name: str) -> None:
        blocks = min(self.gathered[name], self.waiting[name]) // BLOCK_CORES * BLOCK_CORES
        self.gathered[name] -= blocks
        self.waiting[name] -= blocks
        self.held[name] += blocks
        if self.waiting[name] < BLOCK_CORES:
            self.gathered[name] = 0.0

    def _compete(self) -> None:
        """All other free cores go to the groups that wait, by eagerness."""
        for _ in GROUPS:
            free = self.capacity - sum(self.held.values()) - sum(self.gathered.values())
            eager = {
                name: kind.eagerness for name, kind in GROUPS.items() if self.waiting[name] > 0
            }
            if free <= 0 or not eager:
                return
            for name, weight in eager.items():
                got = min(self.waiting[name], free * weight / sum(eager.values()))
                self.held[name] += got
                self.waiting[name] -= got

    def snapshot(self, second: int) -> Snapshot:
        """Snapshot of this pool."""
        node = Node("pool", "pool", round(self.capacity), CORE_HS06, controlled=True)
        held = tuple(
            RunningJobs("pool", name, 1, CORE_HS06, 0, round(cores))
            for name, cores in self.held.items()
        )
        waiting = tuple(
            PendingJobs(
                name, kind.request_cores, int(min(self.waiting[name], CORES)) // kind.request_cores
            )
            for name, kind in GROUPS.items()
        )
        return Snapshot(second, (node,), held, tuple(jobs for jobs in waiting if jobs.jobs))


def _at(points: tuple[tuple[float, float], ...], hours: float) -> float:
    """Value of the broken line at ``hours``."""
    past = [point for point in points if point[0] <= hours]
    (hour, value), later = past[-1], points[len(past) :]
    if not later or later[0][0] == hour:
        return value
    return value + (later[0][1] - value) * (hours - hour) / (later[0][0] - hour)


def targets_of(said: tuple[GroupControl, ...]) -> dict[tuple[str, str], float]:
    """Cores that change hands by the outputs: from all that give to all that wait."""
    gives = {row.group: row.output_hs06 for row in said if row.output_hs06 > 0}
    takes = {
        row.group: -row.output_hs06
        for row in said
        if row.output_hs06 < 0 and row.error.usage.pending_by_cores
    }
    most = max(sum(gives.values()), sum(takes.values()))
    return {
        (one, other): give * take / most / CORE_HS06
        for one, give in gives.items()
        for other, take in takes.items()
    }


def simulate(control: Control, scenario: Scenario, *, steered: bool = True) -> Iterator[Moment]:
    """The pool at every cycle, from a pool that nobody has used until the end."""
    pool = Pool(scenario, Random(1))
    config = SteeringConfig(control)
    kept: Mapping[str, Mapping[str, float]] = {}
    idle: list[float] = []
    for second in range(0, int(HOURS * HOUR), TICK_SECONDS):
        pool.tick(second)
        idle.append(sum(pool.gathered.values()) / pool.capacity)
        if second % CYCLE_SECONDS == 0:
            said = steer(PLEDGES, DEADBAND_HS06, config, kept, pool.snapshot(second), second)
            kept = {row.group: row.state for row in said}
            if steered:
                pool.coming.append((second + DEAD_SECONDS, targets_of(said)))
            watched = next(row for row in said if row.group == WATCHED)
            in_use = sum(row.error.usage.power_hs06 for row in said) or 1.0
            yield Moment(
                second / HOUR,
                watched.error.error_hs06 / in_use,
                sum(idle) / len(idle),
                dict(pool.held),
            )
            idle = []


@dataclass(frozen=True)
class Figures:
    """How a law did in a scenario."""

    settling_hours: float
    overshoot_ratio: float
    steady_ratio: float
    idle_ratio: float


def figures_of(moments: Sequence[Moment], event_hours: float) -> Figures:
    """Settling time, overshoot, steady error and idle cores since the event."""
    since = [moment for moment in moments if moment.hours >= event_hours]
    last = [moment.error_ratio for moment in since if moment.hours >= HOURS - LAST_HOURS]
    end = sum(last) / len(last)
    outside = [moment.hours for moment in since if abs(moment.error_ratio - end) > BAND]
    return Figures(
        settling_hours=(outside[-1] if outside else event_hours) - event_hours,
        overshoot_ratio=max(0.0, max(moment.error_ratio for moment in since) - end),
        steady_ratio=sqrt(sum(error**2 for error in last) / len(last)),
        idle_ratio=sum(moment.idle_ratio for moment in since) / len(since),
    )


def main() -> int:
    """Print the table; 1 if a law is worse than none."""
    print(
        f"{'scenario':18} {'law':8} {'settling h':>10} {'overshoot %':>11} {'steady %':>8} "
        f"{'idle %':>6}"
    )
    worse = 0
    for name, scenario in SCENARIOS.items():
        none = figures_of(list(simulate(Control(), scenario, steered=False)), scenario.event_hours)
        rows = {"none": none}
        rows.update(
            {
                law: figures_of(list(simulate(control, scenario)), scenario.event_hours)
                for law, control in LAWS.items()
            }
        )
        for law, row in rows.items():
            hours = "-" if scenario.noise else f"{row.settling_hours:.1f}"
            print(
                f"{name:18} {law:8} {hours:>10} {row.overshoot_ratio:11.1%} "
                f"{row.steady_ratio:8.1%} {row.idle_ratio:6.2%}"
            )
        worse += sum(row.steady_ratio > none.steady_ratio for row in rows.values())
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
