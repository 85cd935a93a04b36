"""Ways of targets to the nodes: their sections of the configuration, and what each place holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Protocol

from sharectl.cycle.ports import Publisher
from sharectl.settings import setting


@dataclass(frozen=True)
class HttpsWay:
    """File on the site's web server, fetched after writing and in ``status``."""

    file: Path = setting(writes=True)
    """File below the document root, replaced by rename."""
    url: str = setting(kind="url")
    """Address that nodes fetch, `https://HOST[:PORT]/PATH`."""
    ca_file: Optional[Path] = setting(None)
    """Trusted certificates, PEM; null: those of this machine."""
    deadline_seconds: float = setting(20.0, above=0, most=600)
    """Time for the server."""


@dataclass(frozen=True)
class CollectorWay:
    """Ads in the pool's collectors, replaced at every cycle."""

    identity: Optional[str] = setting(None, kind="identity")
    """Identity of sharectl in the collectors, the only one that nodes believe (docs/transports.md);
    null only reports it."""
    deadline_seconds: float = setting(20.0, above=0, most=600)
    """Time for each collector; they are asked together."""


@dataclass(frozen=True)
class Way:
    """Way of targets to the nodes: one of the keys."""

    file: Optional[Path] = setting(None, writes=True)
    """File that nodes share, or that is copied to them; replaced by rename. A link is replaced, a
    device or folder refused."""
    https: Optional[HttpsWay] = setting(None)
    """File on a web server."""
    collector: Optional[CollectorWay] = setting(None)
    """Ads in the pool's collectors; `{}` for the defaults."""


@dataclass(frozen=True)
class PlacedTargets:
    """Targets in one place, as nodes find them."""

    way: str
    """Key of `Way`."""
    place: str
    problem: Optional[str] = None
    targets: Optional[int] = None
    """Their number; None if the place cannot be read."""
    sequence: Optional[int] = None
    valid_until: Optional[int] = None
    """Unix seconds."""
    pool: Optional[str] = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """Facts that only this way has."""


class Transport(Publisher, Protocol):
    """A publisher whose place can be looked at."""

    @property
    def name(self) -> str:
        """Name of the place: ``file:PATH``, ``collector:ADDRESS``, ``collector:`` for this pool."""

    def look(self) -> list[PlacedTargets]:
        """Look at the places; never raises."""
