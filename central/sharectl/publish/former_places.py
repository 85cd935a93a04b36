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

from sharectl.cycle.ports import PlacedTargets, Publisher
from sharectl.errors import InputError, PublishError, StateError, WithdrawnError
from sharectl.files.documents import Document, DocumentError, record
from sharectl.model import Plan
from sharectl.publish import text
from sharectl.times import shown

_MAX_BYTES = 2**20


@dataclass(frozen=True)
class PlacedPlan:
    """Last plan that was to be published in a place."""

    sequence: int
    valid_until: int
    """Unix seconds at which its targets end by themselves."""


@dataclass(frozen=True)
class FormerPlacesFile:
    """Record of places; see `sharectl.cycle.ports.FormerPlaces`."""

    path: Path
    names: tuple[str, ...]
    """Names of the places of the configuration."""
    publisher_of: Callable[[str], Publisher]
    """Publisher for the name of a place."""
    clock: Callable[[], float] = time.time

    def remember(self, plan: Plan) -> None:
        """Note that every place of the configuration may hold ``plan``."""
        if not plan.targets:
            return
        placed = dict.fromkeys(self.names, PlacedPlan(plan.sequence, plan.valid_until))
        try:
            before = self._read()
        except StateError:
            self._write(placed)
            raise
        self._write({**before, **placed})

    def publishers(self) -> list[Publisher]:
        """Publishers that empty the former places."""
        placed = sorted(self._read().items())
        return [_Emptying(name, plan, self) for name, plan in placed if name not in self.names]

    def forget(self, name: str) -> None:
        """Note that a place holds no targets of sharectl."""
        self._write({other: plan for other, plan in self._read().items() if other != name})

    def _read(self) -> dict[str, PlacedPlan]:
        """Name of a place -> its plan, without those that have run out."""
        try:
            places = Document(self.path, _MAX_BYTES).read(
                lambda content: record(dict[str, PlacedPlan], content["places"])
            )
        except (OSError, DocumentError) as error:
            raise StateError(
                f"{self.path}: cannot be read: {getattr(error, 'strerror', '') or error}; "
                "remove it: places that publish: names no more then keep their targets until these "
                "run out"
            ) from error
        now = self.clock()
        return {name: plan for name, plan in (places or {}).items() if plan.valid_until > now}

    def _write(self, places: Mapping[str, PlacedPlan]) -> None:
        content = {name: asdict(plan) for name, plan in places.items()}
        Document(self.path, _MAX_BYTES).replace({"places": content})


@dataclass(frozen=True)
class _Emptying:
    """Takes sharectl's targets from a former place, and forgets it."""

    name: str
    placed: PlacedPlan
    places: FormerPlacesFile

    def held(self) -> list[PlacedTargets]:
        """None: `publish` itself looks whether they are sharectl's."""
        return []

    def publish(self, plan: Plan) -> str:
        """Publish ``plan``, which has no targets."""
        if self.name.startswith(text.FILE):
            path = Path(self.name[len(text.FILE) :])
            if not os.path.lexists(path):
                self.places.forget(self.name)
                return str(path)
            if _is_foreign(path, self.placed):
                self.places.forget(self.name)
                raise PublishError(
                    f"{path}: publish: names it no more, and it holds what sharectl did not "
                    "publish there: left as it is; see who writes there, and whether nodes read it"
                )
        try:
            place = self.places.publisher_of(self.name).publish(plan)
        except WithdrawnError:
            self.places.forget(self.name)
            raise
        except PublishError as error:
            raise PublishError(
                f"{error}: targets stand there, although publish: names {self.name} no more, until "
                f"{shown(self.placed.valid_until)}; the next cycle tries again to take them away"
            ) from error
        self.places.forget(self.name)
        return place


def _is_foreign(path: Path, placed: PlacedPlan) -> bool:
    """True if the file is not sharectl's last one there."""
    try:
        sequence = text.read(path).sequence
    except InputError:
        return True
    return sequence is None or sequence > placed.sequence
