"""What a cycle asks of the world. Adapters satisfy these, and so do the fakes of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sharectl.core.model import GroupError, Plan, Snapshot
from sharectl.core.plan import State


class Pool(Protocol):
    """A pool that can be looked at."""

    def snapshot(self, now: int) -> Snapshot:
        """Look at the whole pool at Unix time ``now``.

        A daemon that does not answer makes the snapshot incomplete (`Snapshot.problems`); it never raises,
        and never counts as zero.
        """


class Publisher(Protocol):
    """A way for targets to reach the nodes."""

    def publish(self, plan: Plan) -> str:
        """Replace what was published before by ``plan``, whole or not at all; returns where, for a log line.

        Raises
        ------
        StateError
            If it could not be written; what was published before then still stands.
        """


class History(Protocol):
    """Where a cycle leaves its figures."""

    def record(self, snapshot: Snapshot, errors: Sequence[GroupError]) -> None:
        """Keep the jobs and the errors of a complete snapshot.

        Raises
        ------
        StateError
            If that cannot be written.
        """


class StateStore(Protocol):
    """What one cycle leaves for the next."""

    def load(self) -> State:
        """State that was saved last; a fresh one if there is none.

        Raises
        ------
        StateError
            If there is one that cannot be read.
        """

    def save(self, state: State) -> None:
        """Replace the saved state.

        Raises
        ------
        StateError
            If it cannot be written.
        """
