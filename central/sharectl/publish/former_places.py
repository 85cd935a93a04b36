"""``places.json`` in the state directory: every place that may hold targets.

A place that ``publish:`` names no more is emptied and forgotten. Without that its last targets
would stay in force until they run out, and ``disable`` could not take them away.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from sharectl.cycle.ports import PlacedTargets, Publisher
from sharectl.errors import NewerFileError, PublishError, StateError, WithdrawnError
from sharectl.files.documents import Document, DocumentError, record
from sharectl.model import Plan
from sharectl.times import shown

_MAX_BYTES = 2**20


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
        if plan.targets:
            places = dict.fromkeys(self.names, plan.valid_until)
            try:
                self._write({**self._read(), **places})
            except NewerFileError:
                raise
            except StateError:
                self._write(places)
                raise

    def publishers(self) -> list[Publisher]:
        """Publishers that empty the former places."""
        places = sorted(self._read().items())
        return [_Emptying(name, until, self) for name, until in places if name not in self.names]

    def forget(self, name: str) -> None:
        """Note that a place holds no targets of sharectl."""
        self._write({other: until for other, until in self._read().items() if other != name})

    def _read(self) -> dict[str, int]:
        """Name of a place -> Unix seconds when its targets end, without those that have ended."""
        try:
            places = Document(self.path, _MAX_BYTES).read(
                lambda content: record(dict[str, int], content["places"])
            )
        except (OSError, DocumentError) as error:
            raise StateError(
                f"{self.path}: cannot be read: {getattr(error, 'strerror', '') or error}; "
                "remove it: places that publish: names no more then keep their targets until these "
                "run out"
            ) from error
        now = self.clock()
        return {name: until for name, until in (places or {}).items() if until > now}

    def _write(self, places: Mapping[str, int]) -> None:
        Document(self.path, _MAX_BYTES).replace({"places": places})


@dataclass(frozen=True)
class _Emptying:
    name: str
    valid_until: int
    places: FormerPlacesFile

    def held(self) -> Sequence[PlacedTargets]:
        """Targets in a file; those in a collector have the identity of their publisher."""
        is_collector = self.name.startswith("collector:")
        return [] if is_collector else self.places.publisher_of(self.name).held()

    def publish(self, plan: Plan) -> str:
        """Publish ``plan``, which has no targets, unless the place is a file that is gone."""
        kind, _, place = self.name.partition(":")
        is_file = kind == "file" and os.path.lexists(place)
        if is_file and all(placed.sequence is None for placed in self.held()):
            self.places.forget(self.name)
            raise PublishError(
                f"{place}: publish: names it no more, and it holds what sharectl did not publish: "
                "left as it is; see who writes there, and whether nodes read it"
            )
        try:
            if kind != "file" or is_file:
                place = self.places.publisher_of(self.name).publish(plan)
        except WithdrawnError:
            self.places.forget(self.name)
            raise
        except PublishError as error:
            raise PublishError(
                f"{error}: targets stand there, although publish: names {self.name} no more, until "
                f"{shown(self.valid_until)}; the next cycle tries again to take them away"
            ) from error
        self.places.forget(self.name)
        return place
