"""Places that held targets and that ``publish:`` names no more: remembered, emptied, forgotten.

Without it whoever takes a way out of ``publish:`` leaves its last targets in force until they run
out, and ``disable`` cannot take them away. ``places.json`` in the state directory has every place
that may hold targets.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from sharectl.cycle.ports import Publisher
from sharectl.errors import InputError, PublishError, StateError, UnsignedError
from sharectl.files import files
from sharectl.model import Plan
from sharectl.publish import text as sharectl_file
from sharectl.times import shown

SCHEMA_VERSION = 1
MAX_BYTES = 2**20
MAX_PLACES = 64
FILE, COLLECTOR = "file:", "collector:"


@dataclass(frozen=True)
class Held:
    """What a place may hold."""

    sequence: int
    """Of the last plan that was to be published there."""
    valid_until: int
    """Unix seconds at which its targets end by themselves."""


class LeftPlacesFile:
    """Remembers in a file where targets are, and has a publisher for each place that was left.

    Parameters
    ----------
    names
        The places of the configuration: ``file:PATH`` or ``collector:ADDRESS``, without an address
        for the pool's own.
    publisher_of
        A publisher for such a name, which is to take targets away.
    """

    def __init__(
        self,
        path: Path,
        names: tuple[str, ...],
        publisher_of: Callable[[str], Publisher],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self.names = names
        self.publisher_of = publisher_of
        self.clock = clock

    def remember(self, plan: Plan) -> None:
        """Note that every place of the configuration may hold ``plan``.

        Raises as `sharectl.cycle.ports.LeftPlaces`.
        """
        if not plan.targets:
            return
        here = dict.fromkeys(self.names, Held(plan.sequence, plan.valid_until))
        try:
            before = self._read()
        except StateError:
            self._write(here)
            raise
        self._write({**before, **here})

    def publishers(self) -> list[Publisher]:
        """A publisher for each place that was left; raises as `sharectl.cycle.ports.LeftPlaces`."""
        left = {name: held for name, held in self._read().items() if name not in self.names}
        return [_Leaving(name, held, self) for name, held in sorted(left.items())]

    def forget(self, name: str) -> None:
        """Note that nothing of ours is in that place."""
        self._write({other: held for other, held in self._read().items() if other != name})

    def _read(self) -> dict[str, Held]:
        """Place -> what it may hold; without those whose targets have run out."""
        try:
            text, _ = files.read_regular(self.path, MAX_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error
        try:
            found = _parsed(text)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise self._unreadable(str(error)) from error
        now = self.clock()
        return {name: held for name, held in found.items() if held.valid_until > now}

    def _unreadable(self, why: str) -> StateError:
        return StateError(
            f"{self.path}: cannot be read: {why}; remove it: places that publish: names no more "
            "then keep their targets "
            "until these run out"
        )

    def _write(self, places: Mapping[str, Held]) -> None:
        newest = sorted(places.items(), key=lambda place: place[1].valid_until, reverse=True)[
            :MAX_PLACES
        ]
        rows = {
            name: {"sequence": held.sequence, "valid_until": held.valid_until}
            for name, held in newest
        }
        content = {"schema_version": SCHEMA_VERSION, "places": rows}
        files.replace(self.path, [json.dumps(content, indent=2), "\n"])


def _parsed(text: Any) -> dict[str, Held]:
    if text is None or len(text) > MAX_BYTES:
        raise ValueError(f"no regular file of at most {MAX_BYTES} bytes")
    content = json.loads(text)
    if content["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema_version is not {SCHEMA_VERSION}")
    found = {}
    for name, row in content["places"].items():
        sequence, valid_until = row["sequence"], row["valid_until"]
        if type(sequence) is not int or type(valid_until) is not int:
            raise TypeError(f"a number of {name!r} is none")
        if name.startswith((FILE, COLLECTOR)):
            found[name] = Held(sequence, valid_until)
    return found


@dataclass(frozen=True)
class _Leaving:
    """Takes the targets from a place that was left, if they are still ours."""

    name: str
    held: Held
    places: LeftPlacesFile

    def publish(self, plan: Plan) -> str:
        """Publish ``plan``, which is to have no targets, and forget the place.

        Raises as `sharectl.cycle.ports.Publisher`.
        """
        path = Path(self.name[len(FILE) :]) if self.name.startswith(FILE) else None
        if path is not None and not os.path.lexists(path):
            self.places.forget(self.name)
            return str(path)
        if path is not None:
            self._refuse_others(path)
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

    def _refuse_others(self, path: Path) -> None:
        """PublishError if what is there is not what was published, since somebody else may publish there by now."""
        try:
            read = sharectl_file.read(path)
            ours = read.sequence is not None and read.sequence <= self.held.sequence
        except InputError:
            ours = False
        if not ours:
            self.places.forget(self.name)
            raise PublishError(
                f"{path}: publish: names it no more, and it holds what sharectl did not publish "
                "there: left as it is; see "
                "who writes there, and whether nodes read it"
            )
