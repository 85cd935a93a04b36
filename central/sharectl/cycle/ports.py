"""What a cycle asks of the world. Adapters satisfy these, and so do the fakes of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Optional, Protocol

from sharectl.model import Disabled, Plan, Snapshot
from sharectl.plan.diff import ChangeRecord
from sharectl.plan.plan import Known, State
from sharectl.plan.records import CycleRecord
from sharectl.shares.pledges import Pledged


class Pool(Protocol):
    """A pool that can be looked at."""

    def snapshot(self, now: int) -> Snapshot:
        """Look at the whole pool at Unix time ``now``.

        A daemon that does not answer makes the snapshot incomplete (`Snapshot.problems`); it never
        raises, and never counts as zero.
        """


class Pledges(Protocol):
    """Where the groups' pledges are from."""

    def resolve(self, now: int) -> Pledged:
        """Pledges that hold at Unix time ``now``, of all groups or of none.

        Never raises: where they cannot be had the source has a problem, and a cycle changes no
        target.
        """


class Publisher(Protocol):
    """A way for targets to reach the nodes."""

    def publish(self, plan: Plan) -> str:
        """Replace what was published before by ``plan``, whole or not at all; returns where, for a log line.

        Raises
        ------
        StateError
            If it could not be written; what was published before then still stands.
        UnsignedError
            If it was, as a withdrawal that could not be signed.
        """


class LeftPlaces(Protocol):
    """Places that may hold targets although the configuration names them no more."""

    def remember(self, plan: Plan) -> None:
        """Note, before it is published, that ``plan`` may stand in every place that the configuration names.

        Raises
        ------
        StateError
            If it cannot be noted.
        """

    def publishers(self) -> Sequence[Publisher]:
        """For each such place a publisher of plans without targets, which forgets the place once it has taken one.

        Raises
        ------
        StateError
            If it is not known which there are.
        """


class History(Protocol):
    """Where a cycle leaves its figures, and what it learns from earlier ones."""

    def record(self, record: CycleRecord, snapshot: Snapshot) -> object:
        """Keep a cycle, complete or not, and what its snapshot tells of jobs.

        Raises
        ------
        StateError
            If that cannot be written; what was there is there still.
        """

    def known(self, groups: Sequence[str]) -> Known:
        """What earlier cycles have learnt of these groups; nothing if there was none.

        Raises
        ------
        StateError
            If it cannot be read.
        """


class StateStore(Protocol):
    """What one cycle leaves for the next."""

    def load(self) -> State:
        """State that was saved last; a fresh one if there is none.

        Raises
        ------
        StateError
            If there is one that cannot be read; `BrokenStateError` if it cannot be understood.
        """

    def save(self, state: State) -> None:
        """Replace the saved state; one that cannot be understood is put aside.

        Raises
        ------
        StateError
            If it cannot be written, or another was put aside.
        """


class Switch(Protocol):
    """Whether an operator has switched sharectl off."""

    def disabled(self) -> Optional[Disabled]:
        """What the operator said, also when its time is over; None if sharectl is on.

        Never raises: in doubt it is off.
        """

    def alone(self) -> AbstractContextManager[None]:
        """Keep others from switching, and from publishing, while the body runs.

        Whoever has it for longer than some seconds keeps nobody: off comes first. The body switches
        nothing itself.
        """

    def enable_after(self, now: int) -> bool:
        """Switch on if what switched it off has run out at Unix time ``now``; returns whether it is on then.

        Raises
        ------
        StateError
            If it has run out and cannot be removed.
        """


class Audit(Protocol):
    """Where each change of a node's target is written down, with who made it and why."""

    def changed(self, record: ChangeRecord, now: int) -> None:
        """Write down what a publication changed. It is in force already.

        Raises
        ------
        StateError
            If it cannot be written.
        """

    def switched(self, on: bool, said: Disabled, now: int) -> None:  # noqa: FBT001 - a port's implementations share it
        """Write down that sharectl was switched off, or on again after that. Raises as `changed`."""
