"""Hand-written stand-ins for the world of a cycle, and short ways to write snapshots."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from sharectl.cycle.ports import PlacedTargets, Ports
from sharectl.errors import PublishError, StateError
from sharectl.model import Disabled, Node, PendingJobs, Plan, RunningJobs, Snapshot, Source
from sharectl.plan.diff import ChangeRecord
from sharectl.plan.plan import State
from sharectl.plan.records import CycleRecord
from sharectl.plan.waits import RunTimes

Listing = Callable[[str, Callable[[str], Iterable[str]], int], None]
"""Fixture of tests/conftest.py: name of a golden file, outcome of an input, number of inputs."""

NOW = 1_700_000_000


def running(
    node: str, group: str, cores: int, jobs: int = 1, hs06_per_core: float = 10.0
) -> RunningJobs:
    """Jobs that run."""
    return RunningJobs(node, group, cores, hs06_per_core, seconds=60, jobs=jobs)


def snapshot(
    held: Iterable[RunningJobs] = (),
    pending: Mapping[tuple[str, int], int] = {},
    *,
    uncontrolled: Iterable[str] = (),
    sources: Sequence[Source] = (),
) -> Snapshot:
    """Snapshot whose nodes are those where jobs run, all under control but ``uncontrolled``."""
    held = tuple(held)
    kept_out = frozenset(uncontrolled)
    power = {job.node: job.hs06_per_core for job in held}
    return Snapshot(
        taken_at=NOW,
        nodes=tuple(
            Node(name, name, 64, power[name], name not in kept_out) for name in sorted(power)
        ),
        running=held,
        pending=tuple(PendingJobs(group, cores, jobs) for (group, cores), jobs in pending.items()),
        sources=tuple(sources),
    )


@dataclass
class FakePool:
    """A pool that always looks the same."""

    looks_like: Snapshot

    def snapshot(self, now: int) -> Snapshot:
        del now
        return self.looks_like


@dataclass
class FakePublisher:
    """Keeps what it was told to publish; fails if ``broken``."""

    broken: Optional[str] = None
    plans: list[Plan] = field(default_factory=list)
    writer: str = "cm-1:/var/lib/sharectl"
    """Installation that it publishes for."""
    writers: dict[int, str] = field(default_factory=dict)
    """Sequence of a plan -> its writer; one that shares a place has that of another."""

    def publish(self, plan: Plan) -> str:
        if self.broken:
            raise PublishError(self.broken)
        self.plans.append(plan)
        self.writers[plan.sequence] = self.writer
        return "fake"

    def held(self) -> list[PlacedTargets]:
        return [
            PlacedTargets(
                "file",
                "fake",
                targets=len(plan.targets),
                sequence=plan.sequence,
                valid_until=plan.valid_until,
                writer=self.writers.get(plan.sequence),
            )
            for plan in self.plans[-1:]
        ]


@dataclass
class FakeFormerPlaces:
    """Places that were left: a publisher whose last plan has no targets is there no more."""

    left: list[FakePublisher] = field(default_factory=list)
    remembered: list[Plan] = field(default_factory=list)

    def remember(self, plan: Plan) -> None:
        self.remembered.append(plan)

    def publishers(self) -> list[FakePublisher]:
        return [to for to in self.left if not to.plans or to.plans[-1].targets]


@dataclass
class FakeHistory:
    """Keeps what it was told to record; fails if ``broken``."""

    broken: Optional[str] = None
    records: list[CycleRecord] = field(default_factory=list)
    learnt: RunTimes = field(default_factory=dict)

    def record(self, record: CycleRecord, snapshot: Snapshot) -> None:
        del snapshot
        if self.broken:
            raise StateError(self.broken)
        self.records.append(record)

    def run_times(self, groups: Sequence[str]) -> RunTimes:
        del groups
        if self.broken:
            raise StateError(self.broken)
        return self.learnt


@dataclass
class FakeStateStore:
    """State in memory; unreadable if ``broken``, never saved if ``full``."""

    state: State = field(default_factory=State)
    broken: Optional[str] = None
    full: Optional[str] = None

    def load(self) -> State:
        if self.broken:
            raise StateError(self.broken)
        return self.state

    def save(self, state: State) -> None:
        if self.full:
            raise StateError(self.full)
        self.state = state


@dataclass
class FakeSwitch:
    """A switch in memory: on unless ``said`` holds something."""

    said: Optional[Disabled] = None
    stuck: Optional[str] = None
    is_held: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)
    """To be called once nobody holds it."""

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        self.is_held = True
        yield
        self.is_held = False
        while self.waiting:
            self.waiting.pop()()

    def disabled(self) -> Optional[Disabled]:
        return self.said

    def enable_after(self, now: int) -> bool:
        if self.stuck:
            raise StateError(self.stuck)
        if self.said is not None and self.said.in_force_at(now):
            return False
        self.said = None
        return True


@dataclass
class FakeAudit:
    """Keeps what it was told; fails if ``broken``."""

    broken: Optional[str] = None
    records: list[ChangeRecord] = field(default_factory=list)
    switches: list[tuple[bool, Disabled]] = field(default_factory=list)

    def changed(self, record: ChangeRecord, now: int) -> None:
        del now
        if self.broken:
            raise StateError(self.broken)
        self.records.append(record)

    def switched(self, off: Disabled, now: int, *, on: bool) -> None:
        del now
        if self.broken:
            raise StateError(self.broken)
        self.switches.append((on, off))


@dataclass
class World:
    """Everything outside of a cycle; it outlives one that is killed."""

    pool: FakePool
    publishers: list[FakePublisher] = field(default_factory=lambda: [FakePublisher()])
    state: Any = field(default_factory=FakeStateStore)
    switch: FakeSwitch = field(default_factory=FakeSwitch)
    audit: FakeAudit = field(default_factory=FakeAudit)
    former: FakeFormerPlaces = field(default_factory=FakeFormerPlaces)
    history: FakeHistory = field(default_factory=FakeHistory)
    writer: str = "cm-1:/var/lib/sharectl"

    def ports(self) -> Ports:
        return Ports(**vars(self))
