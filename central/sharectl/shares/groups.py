"""Group of a job: its AccountingGroup in, a configured group or `other` out.

What ``alice.prod`` uses is used by ``alice`` too. Steered are the groups that have none within
them. The jobs of a group with subgroups that belong to none of these are *its own*: they are
counted, and share what is left of its pledge, but no target is made for them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum
from typing import Any, Optional, TypeVar

from sharectl.model import OTHER, GroupControl, GroupError, GroupUsage

_Record = TypeVar("_Record", GroupError, GroupUsage)

BY_SUBGROUPS = "by-subgroups"
"""Code of `GroupControl.acted` for a group that is steered through those within it."""


@dataclass(frozen=True)
class GroupTree:
    """The configured groups of every level."""

    pledge_hs06: Mapping[str, float]
    """Full name → pledge with that of its subgroups, HS06; a group comes before its subgroups."""

    @property
    def names(self) -> tuple[str, ...]:
        """All full names, in order."""
        return tuple(self.pledge_hs06)

    @property
    def steered_hs06(self) -> dict[str, float]:
        """Group without subgroups → pledge, HS06: those that targets may name."""
        above = {above_of(name) for name in self.pledge_hs06}
        return {name: pledge for name, pledge in self.pledge_hs06.items() if name not in above}

    @property
    def own_hs06(self) -> dict[str, float]:
        """Group with subgroups → what they leave of its pledge, HS06."""
        # As decimal numbers, so that of 3 less ten times 0.3 nothing is left.
        exact = {name: Fraction(repr(float(pledge))) for name, pledge in self.pledge_hs06.items()}
        inner: dict[str, Fraction] = {}
        for name, pledge in exact.items():
            inner[above_of(name)] = inner.get(above_of(name), Fraction(0)) + pledge
        return {name: max(0.0, float(exact[name] - inner[name])) for name in exact if name in inner}


def above_of(name: str) -> str:
    """Full name of the group that ``name`` is directly within; empty for one of the first level."""
    return name.rpartition(".")[0]


def levels_above(name: str) -> tuple[str, ...]:
    """Full names of all groups that ``name`` is within, the first level first."""
    parts = name.split(".")
    return tuple(".".join(parts[:length]) for length in range(1, len(parts)))


def first_level(names: Iterable[str]) -> tuple[str, ...]:
    """Names that are within no other of ``names``: sums over groups are made of these."""
    names = tuple(names)
    return tuple(name for name in names if set(names).isdisjoint(levels_above(name)))


def in_order(names: Collection[str]) -> tuple[str, ...]:
    """Names and all levels above, each group before those within it, else in the order given."""
    paths = {level: None for name in names for level in (*levels_above(name), name)}
    place = {level: number for number, level in enumerate(paths)}
    return tuple(
        sorted(paths, key=lambda name: [place[level] for level in (*levels_above(name), name)])
    )


def is_within(name: str, group: str) -> bool:
    """True if ``name`` is the group, or one within it."""
    return name == group or name.startswith(f"{group}.")


def with_subgroups(
    errors: Iterable[GroupError], parents: Collection[str]
) -> tuple[GroupError, ...]:
    """Rows with those of ``parents``, so far of their own jobs, summed with all within them."""
    rows = tuple(errors)
    return tuple(
        _total([row for row in rows if is_within(row.group, error.group)])
        if error.group in parents
        else error
        for error in rows
    )


def usage_with_subgroups(own: Mapping[str, GroupUsage]) -> dict[str, GroupUsage]:
    """Usage of each group by its own jobs, summed with all groups within it."""
    return {group: _total([own[name] for name in own if is_within(name, group)]) for group in own}


def controls_with_subgroups(
    controls: Iterable[GroupControl], parents: Collection[str]
) -> tuple[GroupControl, ...]:
    """Controls with those of ``parents`` summed; these put out nothing themselves."""
    rows = tuple(controls)
    errors = with_subgroups((row.error for row in rows), parents)
    summed = []
    for control, error in zip(rows, errors):
        inner = [row for row in rows if is_within(row.group, control.group)]
        total = replace(
            control,
            error=error,
            setpoint_hs06=fsum(row.setpoint_hs06 for row in inner),
            control_error_hs06=fsum(row.control_error_hs06 for row in inner),
            output_hs06=0.0,
            acted=(BY_SUBGROUPS,),
            shadow=None,
        )
        summed.append(total if control.group in parents else control)
    return tuple(summed)


def _total(rows: Sequence[_Record]) -> _Record:
    sums: dict[str, Any] = {}
    for name, first in vars(rows[0]).items():
        values = [getattr(row, name) for row in rows]
        if isinstance(first, GroupUsage):
            sums[name] = _total(values)
        elif isinstance(first, Mapping):
            sums[name] = dict(sorted(sum(map(Counter, values), Counter()).items()))
        elif not isinstance(first, str):
            sums[name] = sum(values)
    return replace(rows[0], **sums)


GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""A part of a name: safe in a ClassAd, a file name and a metric label."""

MAX_GROUP_LENGTH = 64
"""Characters of a whole name."""

NESTED_GROUP_NAME = re.compile(
    rf"(?=.{{1,{MAX_GROUP_LENGTH}}}\Z)[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9][a-z0-9_-]*)*"
)
"""Name of a group of any level, such as ``alice.prod``."""

_PARTS = re.compile(r"[^.@]*(?:[^@]*(?=\.[^.@]*@)|[^@]*\Z)?")
"""The group in a name: all of it without ``@``; else without the last part before the ``@``, which
is the user, unless there is no other part. config.d has the same pattern."""


def first_part(accounting_group: Optional[str]) -> str:
    """First part of the name that a user writes as a job's group, lower case; empty without one."""
    name = (accounting_group or "")[: MAX_GROUP_LENGTH + 1].lower()
    return re.split(r"[.@]", name, maxsplit=1)[0]


def without_user(accounting_group: Optional[str]) -> Optional[str]:
    """Group in an AccountingGroup, of any length, as it is written; None without one."""
    match = _PARTS.match(accounting_group or "")
    return (match.group() or None) if match else None


def group_and_user(
    account: Optional[str], acct_group: Optional[str]
) -> tuple[Optional[str], Optional[str]]:
    """Group and user of an AccountingGroup without domain (``cms.prod.ada``), as it is written.

    Either may have dots. AcctGroup tells where the user begins; without it, or if the two disagree,
    the user is the last part.
    """
    written, begin = account or "", f"{acct_group}."
    if acct_group and written.lower().startswith(begin.lower()):
        return written[: len(begin) - 1], written[len(begin) :] or None
    group = without_user(f"{written}@")
    return group, (written[len(group) + 1 :] or None) if group else None


def group_of(accounting_group: Optional[str], configured: Container[str]) -> str:
    """Name of a job's configured group, the longest that its own begins with, or `OTHER`.

    Parts count as a whole and case does not: with ``alice`` and ``alice.prod`` configured, jobs of
    ``Alice.Prod.mc.bob@site`` belong to ``alice.prod``, those of ``alice.production`` to ``alice``.
    """
    # No configured name is longer, however long what a user wrote is.
    name = (without_user(accounting_group) or "")[: MAX_GROUP_LENGTH + 1].lower()
    while name and name not in configured:
        name = name.rpartition(".")[0]
    return name if name in configured else OTHER
