"""Groups of the configuration: their promises, and the groups within them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import fsum
from typing import Optional, Union

from sharectl.files.yaml import ValuePath
from sharectl.model import MAX_HS06, OTHER
from sharectl.settings import setting
from sharectl.shares.groups import GROUP_NAME, MAX_GROUP_LENGTH, GroupTree
from sharectl.words import quoted

RESERVED_GROUPS = {
    OTHER: "jobs of groups that are not configured are counted there",
    "none": "nodes publish it where there is no target",
}
_ROUNDING = 1e-9
_PART = "letters, digits, _ and -, a letter or digit first, at most 64"


@dataclass(frozen=True)
class GroupControlConfig:
    """Control law of a group; its parameters and its policy are those of ``control``."""

    law: Optional[str] = setting(None, kind="law")
    """As `control.law`."""


@dataclass(frozen=True)
class _Group:
    pledge_hs06: Optional[float] = setting(None, least=0, most=MAX_HS06)
    """Promised power, HS06 or HEPscore23: it is one scale."""
    control: Optional[GroupControlConfig] = setting(None)
    """Control law of it and of the groups within it; null: that of `control`."""
    max_borrowed_hs06: Optional[float] = setting(None, least=0, most=MAX_HS06)
    """Most that its setpoint gains from lenders (Kueue's borrowingLimit)."""
    max_lent_hs06: Optional[float] = setting(None, least=0, most=MAX_HS06)
    """Most of its share that others may use while its demand is less (Kueue's lendingLimit,
    docs/control.md); null: none."""
    groups: Optional[Mapping[str, SubgroupConfig]] = setting(None)
    """Groups within it, by the next part of AccountingGroup (docs/pledges.md), that promise
    no more than it has."""


@dataclass(frozen=True)
class SubgroupConfig(_Group):
    """Group within another one, at any level, with exactly one promise."""

    share: Optional[float] = setting(None, least=0, most=1)
    """Part of the pledge of the group above it."""


@dataclass(frozen=True)
class GroupConfig(_Group):
    """Group with a pledge, or none where a source has it."""

    cric_vo: Optional[str] = setting(None, kind="cric name")
    """Name of its VO in CRIC, case ignored; null: the group's name."""


AnyGroup = Union[GroupConfig, SubgroupConfig]


def name_fault(name: str, section: type) -> Optional[str]:
    """Why ``name`` cannot be a group of that section; None if it can."""
    folded = name.lower()
    if not GROUP_NAME.fullmatch(folded):
        return f"{quoted(name)} is not a group name; write one part of AccountingGroup: {_PART}"
    if section is GroupConfig and folded in RESERVED_GROUPS:
        why = RESERVED_GROUPS[folded]
        return f"{quoted(name)} is reserved, because {why}; choose another name"
    return None


def all_groups(
    groups: Mapping[str, AnyGroup], line: tuple[AnyGroup, ...] = (), above: str = ""
) -> Iterator[tuple[str, tuple[AnyGroup, ...]]]:
    """Full name, and the group after all that it is within."""
    for name, group in groups.items():
        yield f"{above}{name}", (*line, group)
        yield from all_groups(group.groups or {}, (*line, group), f"{above}{name}.")


def place_of(full_name: str) -> str:
    """Place of a group in the file: ``groups.alice.groups.prod``."""
    return "groups." + full_name.replace(".", ".groups.")


def tree_of(
    groups: Mapping[str, GroupConfig], pledge_hs06: Optional[Mapping[str, float]] = None
) -> GroupTree:
    """All groups with their pledges, 0 if unknown; ``pledge_hs06`` has those of a source."""
    pledges = _pledges(groups, pledge_hs06 or {})
    return GroupTree({name: pledge or 0.0 for name, pledge in pledges.items()})


def _pledges(
    groups: Mapping[str, GroupConfig], of_source: Mapping[str, float]
) -> dict[str, Optional[float]]:
    """Full name → pledge, HS06; None for one that is not known."""
    pledges: dict[str, Optional[float]] = {}
    for name, line in all_groups(groups):
        share, above = getattr(line[-1], "share", None), pledges.get(name.rpartition(".")[0])
        pledges[name] = of_source.get(name, line[-1].pledge_hs06)
        if share is not None and above is not None and name not in of_source:
            # As decimal numbers: 0.1 of 3 is 0.3.
            pledges[name] = float(Decimal(repr(above)) * Decimal(repr(share)))
    return pledges


def group_faults(groups: Mapping[str, GroupConfig]) -> Iterator[tuple[ValuePath, str]]:
    """Place and message: groups that promise more than they have, and names that are too long."""
    if not groups:
        message = "there is no group; write at least one, such as cms: {pledge_hs06: 87100}"
        yield ("groups",), message
    elif all(group.pledge_hs06 == 0 for group in groups.values()):
        nothing = "all pledges are 0, so there is nothing to share by"
        yield ("groups",), f"{nothing}; write a pledge above 0 for at least one group"
    pledges = _pledges(groups, {})
    for name, _ in all_groups(groups):
        at, above = tuple(place_of(name).split(".")), name.rpartition(".")[0]
        if above and len(name) > MAX_GROUP_LENGTH >= len(above):
            most = f"write at most {MAX_GROUP_LENGTH} in all"
            yield at, f"{quoted(name)} has {len(name)} characters; {most}"
    for name, message in overpromised(pledges):
        yield (*place_of(name).split("."), "groups"), message


def overpromised(pledges: Mapping[str, Optional[float]]) -> Iterator[tuple[str, str]]:
    """Full name and message of groups whose groups are promised more than they have, HS06."""
    inner: dict[str, list[float]] = {}
    for name, hs06 in pledges.items():
        inner.setdefault(name.rpartition(".")[0], []).append(hs06 or 0.0)
    for name, hs06 in pledges.items():
        promised = fsum(inner.get(name, ()))
        if hs06 is not None and promised > hs06 + _ROUNDING * max(1.0, hs06):
            fact = f"the groups of {name} are promised {promised:.12g} HS06 of its {hs06:.12g}"
            yield name, f"{fact}; lower their shares or pledges, or raise its own"
