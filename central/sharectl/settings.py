"""Settings of an operator: fields of records with their default, bounds and meaning.

A record of the law with such fields is a section of the configuration file, or a part of one.
`sharectl.config` reads, prints and documents the file by them.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field
from typing import Any, Optional, cast


@dataclass(frozen=True)
class Setting:
    """Key of a section: its unit is the end of its name, its docstring is the reference."""

    least: Optional[float] = None
    above: Optional[float] = None
    """As ``least``, and not the bound itself."""
    most: Optional[float] = None
    key: str = ""
    """Name in the file, where it is not that of the field."""
    choices: tuple[str, ...] = ()
    """Words that it may be; with a ``kind`` only those that a search tries."""
    kind: str = ""
    """Notation of its values, where the type does not tell: one of `sharectl.config.fields`."""
    writes: bool = False
    """A file that cycles write; other paths are read."""
    inline: bool = False
    """The record's keys stand in the section itself."""


def setting(default: Any = MISSING, **more: Any) -> Any:
    """Field of a record that an operator decides; without a default the key is required."""
    return field(default=default, metadata={"setting": Setting(**more)})


def setting_of(item: Field[Any]) -> Optional[Setting]:
    """Setting of a field; None if an operator does not decide it."""
    return cast("Optional[Setting]", item.metadata.get("setting"))
