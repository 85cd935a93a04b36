"""What the models say about a key: where it belongs, its unit, its range, its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Optional, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sharectl.adapters.config_model import (
    Config,
    ControlConfig,
    FilePublisher,
    GroupConfig,
    HistoryConfig,
    NodesConfig,
    PoolConfig,
)
from sharectl.adapters.yaml_tree import Path

SECTIONS: Mapping[Path, type[BaseModel]] = {
    (): Config,
    ("groups", "*"): GroupConfig,
    ("nodes",): NodesConfig,
    ("control",): ControlConfig,
    ("pool",): PoolConfig,
    ("publish", "*"): FilePublisher,
    ("history",): HistoryConfig,
}
"""Path of a mapping in the file (``*`` for any name or number) -> its model."""


def section_at(path: Path) -> Optional[type[BaseModel]]:
    """Model of the mapping at ``path``; None if there is none."""
    if path in SECTIONS:
        return SECTIONS[path]
    return SECTIONS.get((*path[:-1], "*"))


def keys_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Key -> field, as the file writes it, in the order of the model."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def field_at(path: Path) -> Optional[FieldInfo]:
    """Field of the value at ``path``; None if it is no key of a section."""
    section = section_at(path[:-1]) if path else None
    return keys_of(section).get(str(path[-1])) if section else None


def range_of(field: FieldInfo) -> str:
    """Values that a field may have, such as ``2 to 1024`` or ``keep, withdraw``; empty if that is no range."""
    choices = choices_of(field)
    if choices:
        return ", ".join(choices)
    limits = {type(limit).__name__: limit for limit in field.metadata}
    least = _number(getattr(limits.get("Ge"), "ge", None))
    most = _number(getattr(limits.get("Le"), "le", None))
    if "Gt" in limits:
        least = f"above {_number(limits['Gt'].gt)}"
    return f"{least} to {most}" if most else ""


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Words that a field may be; empty if it is not a choice of words."""
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def _number(value: Optional[float]) -> str:
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else str(value)
