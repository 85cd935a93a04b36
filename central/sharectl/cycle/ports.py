"""Ports of a cycle. The edges satisfy these Protocols, and so do the fakes of the tests.

Methods raise StateError where reading or writing fails; those that never raise say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Protocol

if TYPE_CHECKING:  # the configuration names a port, and verbs that look only need no plans
    from sharectl.model import Disabled, Plan, Snapshot
    from sharectl.plan.diff import ChangeRecord
    from sharectl.plan.plan import State
    from sharectl.plan.records import CycleRecord
    from sharectl.plan.waits import RunTimes


class Pool(Protocol):
    """A pool that can be looked at."""

    def snapshot(self, now: int) -> Snapshot:
        """Look at the whole pool at Unix time ``now``; incomplete if a daemon does not answer."""


class Publisher(Protocol):
    """A way of targets to the nodes."""

    def publish(self, plan: Plan) -> str:
        """Replace the last plan by ``plan``, whole or not at all; returns the place.

        Raises StateError if the last plan still stands, WithdrawnError if ``plan``, a withdrawal,
        stands there unsigned or as no plan, and PartlyPublishedError if the last plan still stands
        in a part.
        """

    def held(self) -> Sequence[PlacedTargets]:
        """Targets that `publish` would replace; never raises."""


@dataclass(frozen=True)
class PlacedTargets:
    """Targets in one place, as nodes find them; None stands for a figure that is unknown."""

    way: str
    """Key of `sharectl.model.Way`."""
    place: str
    problem: Optional[str] = None
    targets: Optional[int] = None
    """Their number."""
    sequence: Optional[int] = None
    valid_until: Optional[int] = None
    """Unix seconds."""
    writer: Optional[str] = None
    """Installation that published them, as of `sharectl.cycle.publication`."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Facts that only this way has."""


class Transport(Publisher, Protocol):
    """A publisher whose place can be looked at."""

    def look(self) -> list[PlacedTargets]:
        """Look at the places; never raises."""


class FormerPlaces(Protocol):
    """Places that may hold targets although the configuration names them no more."""

    def remember(self, plan: Plan) -> None:
        """Note that ``plan`` may soon stand in every place that the configuration names."""

    def publishers(self) -> Sequence[Publisher]:
        """Publishers of plans without targets; each forgets its place once it has published one."""


class History(Protocol):
    """Records of cycles."""

    def record(self, record: CycleRecord, snapshot: Snapshot) -> object:
        """Keep a cycle, complete or not, and the jobs of its snapshot."""

    def run_times(self, groups: Sequence[str]) -> RunTimes:
        """Lessons of earlier cycles about these groups."""


class StateStore(Protocol):
    """State that one cycle leaves for the next."""

    def load(self) -> State:
        """State that was saved last, or a fresh one. Raises `BrokenStateError` if it is invalid."""

    def save(self, state: State) -> None:
        """Replace the saved state; an invalid state is put aside, which raises StateError too."""


class Switch(Protocol):
    """Switch by which an operator keeps plans from being published."""

    def disabled(self) -> Optional[Disabled]:
        """Operator's reason, also after its time; in doubt sharectl is off. Never raises."""

    def alone(self) -> AbstractContextManager[None]:
        """Keep others for some seconds from switching and publishing. The body does not switch."""

    def enable_after(self, now: int) -> bool:
        """Switch on if the reason has run out at Unix time ``now``; returns true if it is on."""


class Audit(Protocol):
    """Record of each change of a node's target, with its author and reason."""

    def changed(self, record: ChangeRecord, now: int) -> None:
        """Write down the changes of a publication. They are in force already."""

    def switched(self, off: Disabled, now: int, *, on: bool) -> None:
        """Write down that sharectl was switched off, or on again."""


@dataclass(frozen=True)
class Outlets:
    """World of a publication."""

    publishers: Sequence[Publisher]
    state: StateStore
    switch: Switch
    audit: Audit
    former: FormerPlaces
    writer: str
    """Name of this installation."""


@dataclass(frozen=True)
class Ports(Outlets):
    """World of a cycle."""

    pool: Pool
    history: History
