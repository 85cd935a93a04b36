"""What the models say about a key: where it belongs, its unit, its range, its default."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, Optional, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sharectl.adapters.config_control import ControlConfig, NodesConfig
from sharectl.adapters.config_groups import GroupConfig, SubgroupConfig
from sharectl.adapters.config_laws import CarryOverConfig, EwmaConfig, GroupControlConfig, PidConfig
from sharectl.adapters.config_ledger import LedgerConfig
from sharectl.adapters.config_model import (
    Config,
    HistoryConfig,
    PoolConfig,
)
from sharectl.adapters.config_pledges import CricPledgesConfig, NegotiatorPledgesConfig, PledgesConfig
from sharectl.adapters.config_publish import (
    CollectorPublisherConfig,
    HttpsPublisherConfig,
    PublisherConfig,
)
from sharectl.adapters.yaml_syntax import Path

Sections = Mapping[Path, type[BaseModel]]
"""Path of a mapping in a file (``*`` for any name or number) -> its model."""

SECTIONS: Sections = {
    (): Config,
    ("groups", "*"): GroupConfig,
    ("groups", "*", "groups", "*"): SubgroupConfig,
    ("pledges",): PledgesConfig,
    ("pledges", "negotiator"): NegotiatorPledgesConfig,
    ("pledges", "cric"): CricPledgesConfig,
    ("nodes",): NodesConfig,
    ("control",): ControlConfig,
    ("control", "ewma"): EwmaConfig,
    ("control", "pid"): PidConfig,
    ("control", "carry_over"): CarryOverConfig,
    ("groups", "*", "control"): GroupControlConfig,
    ("pool",): PoolConfig,
    ("publish", "*"): PublisherConfig,
    ("publish", "*", "https"): HttpsPublisherConfig,
    ("publish", "*", "collector"): CollectorPublisherConfig,
    ("history",): HistoryConfig,
    ("ledger",): LedgerConfig,
}
"""Those of the configuration file."""


def section_at(path: Path, sections: Sections = SECTIONS) -> Optional[type[BaseModel]]:
    """Model of the mapping at ``path``; None if there is none."""
    path = _of_any_group(_of_second_level(path))
    return next((section for pattern, section in sections.items() if _matches(pattern, path)), None)


def _of_second_level(path: Path) -> Path:
    """``path`` without levels of groups beyond the second: what can be written is the same in all of them."""
    while path[:6:2] == ("groups",) * 3:
        path = path[:2] + path[4:]
    return path


def _of_any_group(path: Path) -> Path:
    """``path`` without a subgroup before its ``control``, and without any group before a law's parameters."""
    if path[:3:2] == ("groups", "groups") and path[4:5] == ("control",):
        path = path[:2] + path[4:]
    return path[2:] if path[:3:2] == ("groups", "control") and path[3:] else path


def _matches(pattern: Path, path: Path) -> bool:
    return len(pattern) == len(path) and all(part in ("*", key) for part, key in zip(pattern, path))


def keys_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Key -> field, as the file writes it, in the order of the model."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def field_at(path: Path, sections: Sections = SECTIONS) -> Optional[FieldInfo]:
    """Field of the value at ``path``; None if it is no key of a section."""
    section = section_at(path[:-1], sections) if path else None
    return keys_of(section).get(str(path[-1])) if section else None


def range_of(field: FieldInfo) -> str:
    """Numbers that a field may be, such as ``2 to 1024``; empty if it has no limits."""
    limits = _limits(field)
    if "le" not in limits:
        return ""
    least = f"above {_number(limits['gt'])}" if "gt" in limits else _number(limits["ge"])
    return f"{least} to {_number(limits['le'])}"


def admits(field: FieldInfo, number: Decimal) -> bool:
    """Whether a field may be ``number``."""
    limits = _limits(field)
    above = number > Decimal(limits["gt"]) if "gt" in limits else number >= Decimal(limits.get("ge", "-inf"))
    return above and number <= Decimal(limits.get("le", "inf")) and (number % 1 == 0 or not is_whole(field))


def is_whole(field: FieldInfo) -> bool:
    """Whether the values of a field are whole numbers."""
    return field.annotation is int or int in get_args(field.annotation)


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Words that a field may be; empty if it is not a choice of words."""
    kinds = (field.annotation, *get_args(field.annotation))
    return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())


def _limits(field: FieldInfo) -> dict[str, float]:
    """Limits by kind: gt, ge, le."""
    return {
        kind: getattr(limit, kind)
        for limit in field.metadata
        for kind in ("gt", "ge", "le")
        if hasattr(limit, kind)
    }


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
