"""``places.json`` in the state directory: every place that may hold targets.

A place that ``publish:`` names no more is emptied and forgotten. Without that its last targets
would stay in force until they run out, and ``disable`` could not take them away.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Callable

from sharectl.cycle.ports import Publisher
from sharectl.errors import InputError, PublishError, StateError, UnsignedError
from sharectl.files.documents import Document, DocumentError, record
from sharectl.model import Plan
from sharectl.publish import text
from sharectl.times import shown

FILE, COLLECTOR = "file:", "collector:"
"""Begin of a place's name: ``file:PATH``, ``collector:ADDRESS``, ``collector:`` for this pool's."""

_MAX_BYTES = 2**20


@dataclass(frozen=True)
class PlacedPlan:
    """Last plan that was to be published in a place."""

    sequence: int
    valid_until: int
    """Unix seconds at which its targets end by themselves."""


class FormerPlacesFile:
    """Record of places; see `sharectl.cycle.ports.FormerPlaces`.

    Parameters
    ----------
    names
        Names of the places of the configuration.
    publisher_of
        Publisher for the name of a place.
    """

    def __init__(
        self,
        path: Path,
        names: tuple[str, ...],
        publisher_of: Callable[[str], Publisher],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.document = Document(path, _MAX_BYTES)
        self.names = names
        self.publisher_of = publisher_of
        self.clock = clock

    def remember(self, plan: Plan) -> None:
        """Note that every place of the configuration may hold ``plan``."""
        if not plan.targets:
            return
        here = dict.fromkeys(self.names, PlacedPlan(plan.sequence, plan.valid_until))
        try:
            before = self._read()
        except StateError:
            self._write(here)
            raise
        self._write({**before, **here})

    def publishers(self) -> list[Publisher]:
        """Publishers that empty the places that were left."""
        left = {name: held for name, held in self._read().items() if name not in self.names}
        return [_Leaving(name, held, self) for name, held in sorted(left.items())]

    def forget(self, name: str) -> None:
        """Note that a place holds no targets of sharectl."""
        self._write({other: held for other, held in self._read().items() if other != name})

    def _read(self) -> dict[str, PlacedPlan]:
        """Name of a place -> its plan, without those that have run out."""
        try:
            places = self.document.read(
                lambda content: record(dict[str, PlacedPlan], content["places"])
            )
        except (OSError, DocumentError) as error:
            raise StateError(
                f"{self.document.path}: cannot be read: {getattr(error, 'strerror', '') or error}; "
                "remove it: places that publish: names no more then keep their targets until these "
                "run out"
            ) from error
        now = self.clock()
        return {name: held for name, held in (places or {}).items() if held.valid_until > now}

    def _write(self, places: Mapping[str, PlacedPlan]) -> None:
        self.document.replace({"places": {name: asdict(held) for name, held in places.items()}})


@dataclass(frozen=True)
class _Leaving:
    """Takes sharectl's targets from a place that was left, and forgets it."""

    name: str
    held: PlacedPlan
    places: FormerPlacesFile

    def publish(self, plan: Plan) -> str:
        """Publish ``plan``, which has no targets."""
        if self.name.startswith(FILE):
            path = Path(self.name[len(FILE) :])
            if not os.path.lexists(path):
                self.places.forget(self.name)
                return str(path)
            self._refuse_foreign(path)
        try:
            place = self.places.publisher_of(self.name).publish(plan)
        except UnsignedError:
            self.places.forget(self.name)
            raise
        except PublishError as error:
            raise PublishError(
                f"{error}: targets stand there, although publish: names {self.name} no more, until "
                f"{shown(self.held.valid_until)}; the next cycle tries again to take them away"
            ) from error
        self.places.forget(self.name)
        return place

    def _refuse_foreign(self, path: Path) -> None:
        """Raise PublishError if the file is not sharectl's last one there."""
        try:
            sequence = text.read(path).sequence
        except InputError:
            sequence = None
        if sequence is None or sequence > self.held.sequence:
            self.places.forget(self.name)
            raise PublishError(
                f"{path}: publish: names it no more, and it holds what sharectl did not publish "
                "there: left as it is; see who writes there, and whether nodes read it"
            )
