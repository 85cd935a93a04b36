"""The copy of CRIC's last good answer, and the pledges that were taken from it: what holds while nobody answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional

from sharectl.adapters import files
from sharectl.adapters.config_types import MAX_HS06
from sharectl.adapters.cric_answer import MAX_BYTES
from sharectl.adapters.cric_server import Validators
from sharectl.adapters.wording import shown
from sharectl.errors import InputError

SCHEMA_VERSION = 1
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
    try:
        text, _ = files.read_regular(path, _MOST_BYTES + 1)
        return _copy(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        said = shown(f"{type(error).__name__}: {error}")
        raise InputError([f"{path}: cannot be read: {said}; {_REMOVE}"]) from error


def save(path: Path, copy: Copy) -> None:
    """Put ``copy`` at ``path``. Raises StateError as `files.replace`."""
    files.replace(path, [json.dumps({"schema_version": SCHEMA_VERSION, **asdict(copy)}), "\n"])


def _copy(text: Optional[bytes]) -> Copy:
    if text is None or len(text) > _MOST_BYTES:
        raise ValueError(f"no regular file of at most {_MOST_BYTES} bytes")
    content = json.loads(text)
    if content["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema_version is not {SCHEMA_VERSION}")
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
