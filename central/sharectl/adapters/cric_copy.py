"""The copy of CRIC's last good answer, and the pledges that were taken from it: what holds while nobody answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional

from sharectl.adapters import kept_copy
from sharectl.adapters.config_types import MAX_HS06
from sharectl.adapters.cric_answer import MAX_BYTES
from sharectl.adapters.cric_server import Validators

_MOST_BYTES = 2 * MAX_BYTES
_REMOVE = "remove it: the server is asked again, and pledges that jump are not noticed once"


@dataclass(frozen=True)
class Accepted:
    """A pledge that was in use."""

    hs06: float
    place: str
    said_at: int
    """Unix seconds at which the source last said so."""


@dataclass(frozen=True)
class Copy:
    """What is kept."""

    asked: str
    """What the configuration says is asked, with its placeholders."""
    url: str
    """What was asked."""
    asked_at: int
    """Unix seconds at which the server last sent the answer, or said that it holds."""
    answer: str
    validators: Validators = field(default_factory=Validators)
    accepted: Mapping[str, Accepted] = field(default_factory=dict)
    """Group → its pledge in use."""


def load(path: Path) -> Optional[Copy]:
    """The copy at ``path``; None if there is none.

    Raises
    ------
    InputError
        If there is one that cannot be read.
    """
    return kept_copy.load(path, _MOST_BYTES, _copy, _REMOVE)


def save(path: Path, copy: Copy) -> None:
    """Put ``copy`` at ``path``. Raises StateError as `files.replace`."""
    kept_copy.save(path, asdict(copy))


def _copy(content: Any) -> Copy:
    validators = content["validators"]
    return Copy(
        asked=_typed(content["asked"], str),
        url=_typed(content["url"], str),
        asked_at=_typed(content["asked_at"], int),
        answer=_typed(content["answer"], str),
        validators=Validators(*(_optional_text(validators[name]) for name in ("etag", "last_modified"))),
        accepted={
            group: Accepted(_pledge(row["hs06"]), _typed(row["place"], str), _typed(row["said_at"], int))
            for group, row in content["accepted"].items()
        },
    )


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")
    return value


def _optional_text(value: Any) -> Optional[str]:
    return None if value is None else str(_typed(value, str))


def _pledge(value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value <= MAX_HS06:
        raise ValueError(f"{value!r:.40} is no pledge")
    return float(value)
