"""What the configuration says of groups: what each was promised, and which groups lie within it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Optional, Union

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from sharectl.config.control import GroupControlConfig
from sharectl.config.fields import Section, wrong
from sharectl.config.places import CricName, may_leave_out
from sharectl.model import MAX_HS06, OTHER
from sharectl.shares.groups import GROUP_NAME, MAX_GROUP_LENGTH, GroupTree
from sharectl.words import quoted

MAX_LEVELS = 6
"""Levels of groups within each other, the first included."""

RESERVED_GROUPS = {
    OTHER: "jobs of groups that are not configured are counted there",
    "none": "nodes publish it where there is no target",
}
_PART = "letters, digits, _ and -, a letter or digit first, at most 64"


def _group_name(name: str) -> str:
    folded = name.lower()
    first, dot, rest = folded.partition(".")
    if dot and GROUP_NAME.fullmatch(first) and GROUP_NAME.fullmatch(rest):
        raise wrong(f"{quoted(name)} is two names; write {rest} below groups of {first}")
    if not GROUP_NAME.fullmatch(folded):
        raise wrong(
            f"{quoted(name)} is no group name; write the first part of AccountingGroup: {_PART}"
        )
    if folded in RESERVED_GROUPS:
        raise wrong(
            f"{quoted(name)} is reserved, since {RESERVED_GROUPS[folded]}; choose another name"
        )
    return folded


def _part_name(name: str) -> str:
    folded = name.lower()
    if not GROUP_NAME.fullmatch(folded):
        raise wrong(
            f"{quoted(name)} is no part of a group's name; write one part of AccountingGroup: "
            f"{_PART}"
        )
    return folded


def no_group_twice(groups: Any) -> Any:
    """``groups``, if no two names differ in case only."""
    if isinstance(groups, Mapping):
        seen: dict[str, str] = {}
        for name in (name for name in groups if isinstance(name, str)):
            first = seen.setdefault(name.lower(), name)
            if first != name:
                raise wrong(
                    f"{quoted(name)} and {quoted(first)} are the same group, case does not "
                    "count; keep one",
                    name,
                )
    return groups


GroupName = Annotated[str, AfterValidator(_group_name)]
PartName = Annotated[str, AfterValidator(_part_name)]


class _AnyGroup(Section):
    """What a group of any level may say."""

    hs06: Optional[float] = Field(
        None,
        alias="pledge_hs06",
        ge=0,
        le=MAX_HS06,
        description="Computing power promised to the group.",
    )
    hepscore23: Optional[float] = Field(
        None,
        alias="pledge_hepscore23",
        ge=0,
        le=MAX_HS06,
        description="The same, where pledges are in HEPscore23.",
    )
    control: Optional[GroupControlConfig] = Field(
        None,
        description="A control law of its own, and of the groups within it; null for that of `control`.",
    )
    max_borrowed_hs06: Optional[float] = Field(
        None,
        ge=0,
        le=MAX_HS06,
        description="Most above its own share that its setpoint gets of what others lend (Kueue's borrowingLimit); null "
        "for no limit.",
    )
    max_lent_hs06: Optional[float] = Field(
        None,
        ge=0,
        le=MAX_HS06,
        description="Most of its share that others may have while it has no jobs for it (Kueue's lendingLimit); null "
        "lends nothing: setpoints are then the shares (docs/control.md).",
    )
    groups: Optional[
        Annotated[Mapping[PartName, SubgroupConfig], BeforeValidator(no_group_twice)]
    ] = Field(
        None,
        description="Groups within it, by the next part of AccountingGroup: `groups: {prod: {share: 0.7}}` of `alice` is "
        "`alice.prod` (docs/nested-groups.md). Together they promise no more than it has; what "
        "is left over is for "
        "jobs of its own.",
    )

    @model_validator(mode="after")
    def _loans_where_it_is_steered(self) -> _AnyGroup:
        written = [
            key for key in ("max_borrowed_hs06", "max_lent_hs06") if getattr(self, key) is not None
        ]
        if self.groups and written:
            raise wrong(
                f"a group with subgroups is steered through them; write {' and '.join(written)} "
                "there"
            )
        return self

    @property
    def written_hs06(self) -> Optional[float]:
        """The pledge, HS06, from whichever key was written; None if neither was."""
        return self.hs06 if self.hs06 is not None else self.hepscore23


class _Share(Section):
    share: Optional[float] = Field(
        None, ge=0, le=1, description="Part of what the group above it was promised, such as `0.7`."
    )


class SubgroupConfig(_AnyGroup, _Share):
    """A group within another one, at any level: one of three keys says how much of that one's pledge it gets."""

    @model_validator(mode="after")
    def _one_promise(self, info: ValidationInfo) -> SubgroupConfig:
        said = sum(promise is not None for promise in (self.share, self.hs06, self.hepscore23))
        if said > 1 or (not said and not may_leave_out(info.context, "subgroup")):
            raise wrong(
                "a subgroup has exactly one of share, pledge_hs06 and pledge_hepscore23; write "
                "one, such as share: 0.5"
            )
        return self

    def pledge_of(self, above: Fraction) -> Fraction:
        """Its pledge, HS06, where the group above it has the pledge ``above``; both as exact as they were written.

        0 if the source of pledges has it.
        """
        return above * _exact(self.share) if self.share is not None else _exact(self.written_hs06)


class GroupConfig(_AnyGroup):
    """What one group was promised: exactly one of the two pledges, on the same scale; with another source none is needed."""

    cric_vo: Optional[CricName] = Field(
        None,
        description="Name of the group's VO in CRIC, with `pledges: {from: cric}`; case does not count. null: the "
        "group's own.",
    )

    @model_validator(mode="after")
    def _one_pledge(self, info: ValidationInfo) -> GroupConfig:
        said = sum(pledge is not None for pledge in (self.hs06, self.hepscore23))
        if said > 1 or (not said and not may_leave_out(info.context, "group")):
            raise wrong(
                "a group has exactly one pledge; write either pledge_hs06 or pledge_hepscore23"
            )
        return self

    @property
    def pledge_hs06(self) -> float:
        """The pledge, HS06, from whichever key was written; 0 if the source of pledges has it."""
        return self.written_hs06 or 0.0


def sound_groups(groups: Mapping[str, GroupConfig]) -> Mapping[str, GroupConfig]:
    """``groups``, if something is promised, no group promises more than it has, and no name is too long."""
    if not groups:
        raise wrong("there is no group; write at least one, such as cms: {pledge_hs06: 87100}")
    if all(group.written_hs06 == 0 for group in groups.values()):
        raise wrong(
            "all pledges are 0, so there is nothing to share by; write a pledge above 0 for at "
            "least one group"
        )
    faults = [
        InitErrorDetails(type=error, loc=place, input={})
        for name, group in groups.items()
        for place, error in _faults((name,), name, group, _exact(group.written_hs06, MAX_HS06))
    ]
    if faults:
        raise ValidationError.from_exception_data("groups", faults)
    return groups


def tree_of(
    groups: Mapping[str, GroupConfig], pledge_hs06: Optional[Mapping[str, float]] = None
) -> GroupTree:
    """All groups of every level with their pledges.

    Parameters
    ----------
    groups
        Those of the first level.
    pledge_hs06
        Full name of a group → pledge, HS06, where that is known from elsewhere than the file.
    """
    told = pledge_hs06 or {}
    pledges: dict[str, float] = {}
    for name, group in groups.items():
        pledge = _exact(told.get(name, group.pledge_hs06))
        pledges.update((full, float(exact)) for full, exact in _pledges(name, group, pledge, told))
    return GroupTree(pledges)


def _pledges(
    name: str, group: _AnyGroup, pledge: Fraction, told: Mapping[str, float]
) -> Iterator[tuple[str, Fraction]]:
    """Full name and pledge of a group and of all within it, each before those within it."""
    yield name, pledge
    for part, inner in (group.groups or {}).items():
        full = f"{name}.{part}"
        yield from _pledges(
            full, inner, _exact(told[full]) if full in told else inner.pledge_of(pledge), told
        )


def _faults(
    place: tuple[Union[str, int], ...], name: str, group: _AnyGroup, pledge: Fraction
) -> Iterator[tuple[tuple[Union[str, int], ...], PydanticCustomError]]:
    """Place and error of everything wrong with the groups within ``group``."""
    inner = {part: one.pledge_of(pledge) for part, one in (group.groups or {}).items()}
    total = sum(inner.values(), Fraction(0))
    if total > pledge:
        yield (
            (*place, "groups"),
            wrong(
                f"the groups of {name} are promised {_text(total)} HS06 of its {_text(pledge)}; "
                "lower their shares or "
                "pledges, or raise its own"
            ),
        )
    for part, one in (group.groups or {}).items():
        full, at = f"{name}.{part}", (*place, "groups", part)
        if len(full) > MAX_GROUP_LENGTH:
            yield (
                at,
                wrong(
                    f"{quoted(full)} has {len(full)} characters; write at most "
                    f"{MAX_GROUP_LENGTH} in all"
                ),
            )
        elif full.count(".") >= MAX_LEVELS:
            yield at, wrong(f"{quoted(full)} has more than {MAX_LEVELS} parts; write fewer levels")
        else:
            yield from _faults(at, full, one, inner[part])


def _exact(number: Optional[float], unwritten: float = 0.0) -> Fraction:
    """The decimal number that was written: 0.1 + 0.2 is 0.3."""
    return Fraction(repr(float(unwritten if number is None else number)))


def _text(number: Fraction) -> str:
    return f"{float(number):.12g}"
