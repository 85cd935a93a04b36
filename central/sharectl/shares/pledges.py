"""Pledges of groups, with the source and age of each figure, and the quotas of the negotiator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from fractions import Fraction
from typing import Optional

from sharectl.errors import ConfigError
from sharectl.model import Source
from sharectl.shares.groups import GroupTree, above_of, first_level

SOURCES = {
    "yaml": "the configuration",
    "negotiator": "the negotiator's group quotas",
    "cric": "WLCG CRIC",
}
"""Origin of pledges -> its name in messages."""

SOURCE_NAME = "pledges"
"""Name of the source of pledges among those of a cycle."""


@dataclass(frozen=True)
class Pledge:
    """Pledge of one group."""

    group: str
    hs06: float
    """Power, HS06 (or HEPscore23, which is on the same scale)."""
    source: str
    """One of `SOURCES`."""
    place: str
    """A key, a knob, a federation and a period."""
    said_at: Optional[int] = None
    """Unix seconds of the source's last answer; None if it is of now, or is the configuration."""
    instead_of_hs06: Optional[float] = None
    """Pledge of the source where the configuration overrides it; else None."""
    surplus: Optional[str] = None
    """Use of power that others leave: ``no``, ``byquota`` or ``regroup``; None if unknown."""


@dataclass(frozen=True)
class Pledged:
    """All pledges of one moment, or why they cannot be had."""

    source: Source
    """How the source answered; with a problem there are no pledges."""
    pledges: tuple[Pledge, ...] = ()
    """By the order of the configuration."""
    warnings: tuple[str, ...] = ()
    """Lines on what an operator should mend: a copy in use, a pledge that jumps."""
    notes: tuple[str, ...] = ()
    """Lines on what may be meant so: a pledge that differs, a group that is not steered."""

    @property
    def hs06(self) -> dict[str, float]:
        """Group (dotted where nested) -> pledge, HS06."""
        return {pledge.group: pledge.hs06 for pledge in self.pledges}


@dataclass(frozen=True)
class Period:
    """A quarter of a WLCG year, which begins in April: Q4 of 2026 ends in March 2027."""

    year: int
    quarter: int
    """1 to 4."""

    def __str__(self) -> str:
        return f"{self.year} Q{self.quarter}"


def period_at(now: int) -> Period:
    """The quarter that the Unix time ``now`` is in, by UTC."""
    date = datetime.fromtimestamp(now, timezone.utc)
    months = 12 * date.year + date.month - 4
    return Period(months // 12, months % 12 // 3 + 1)


def jumps(before: float, after: float, factor: float) -> bool:
    """True if a pledge rose or fell by more than ``factor``, > 1."""
    return not before / factor <= after <= before * factor


ROOT = "<none>"
"""HTCondor's name for the group of jobs that are in no other."""


@dataclass(frozen=True)
class Group:
    """An accounting group. Quota and use are in weighted slots: the unit of SlotWeight."""

    name: str
    quota: Optional[float]
    """Most that it may use by itself; None if unknown, as before the first negotiation cycle."""
    used: Optional[float]
    surplus: Optional[str]
    """``no``, ``byquota`` (GROUP_ACCEPT_SURPLUS), ``regroup`` (GROUP_AUTOREGROUP) or None."""


DIGITS = 6
"""Decimals of a quota: a millionth of a pool is less than a core in all of them."""


def quota_shares(pledge_hs06: Mapping[str, float]) -> dict[str, str]:
    """Group → its share of all pledges as a decimal number, by name; the shares sum to exactly 1.

    The largest remainders are rounded up, ties in order of the names: HTCondor scales shares down
    that sum to more than 1, and gives what is missing from 1 to nobody. Of pledges that are all 0
    every share is 0.
    """
    pledges = {group: Fraction(pledge_hs06[group]) for group in sorted(pledge_hs06)}
    total = sum(pledges.values())
    if not total:
        return dict.fromkeys(pledges, _decimal(0))
    exact = {group: pledge / total * 10**DIGITS for group, pledge in pledges.items()}
    units = {group: int(share) for group, share in exact.items()}
    by_remainder = sorted(units, key=lambda group: units[group] - exact[group])
    for group in by_remainder[: 10**DIGITS - sum(units.values())]:
        units[group] += 1
    return {group: _decimal(share) for group, share in units.items()}


def nested_quota_shares(tree: GroupTree) -> dict[str, str]:
    """Group within another → its share of that one's pledge as a decimal number, by name.

    With what is left for jobs of the other group's own, the shares within one group sum to exactly
    1. Shares of a pledge of 0 are 0.
    """
    shares: dict[str, str] = {}
    for above, own_hs06 in tree.own_hs06.items():
        inner = {name: hs06 for name, hs06 in tree.pledge_hs06.items() if above_of(name) == above}
        parts = quota_shares({**inner, above: own_hs06})
        shares.update((name, parts[name]) for name in inner)
    return dict(sorted(shares.items()))


def central_manager_configuration(tree: GroupTree) -> str:
    """HTCondor configuration: a group for each pledge, with its share of the level above as quota.

    Raises ConfigError for a name with ``-``: as part of a knob it stops every daemon.
    """
    problems = [
        f"groups.{group.replace('.', '.groups.')}: HTCondor has no quotas for names with '-'; "
        "write the group with '_', here and wherever accounting_group is set"
        for group in sorted(tree.names)
        if "-" in group
    ]
    if problems:
        raise ConfigError(problems)
    shares = quota_shares({name: tree.pledge_hs06[name] for name in first_level(tree.names)})
    nested = nested_quota_shares(tree)
    return _TEXT.format(
        names=", ".join(sorted(tree.names)),
        quotas=_lines(shares),
        nested=_NESTED.format(quotas=_lines(nested)) if nested else "",
    )


def _lines(shares: Mapping[str, str]) -> str:
    return "".join(f"GROUP_QUOTA_DYNAMIC_{group} = {share}\n" for group, share in shares.items())


def _decimal(units: int) -> str:
    whole, part = divmod(units, 10**DIGITS)
    return f"{whole}.{part:0{DIGITS}}"


_TEXT = """\
# Groups and quotas of the negotiator, by `sharectl render central-manager`. \
Change the pledges, then render again.

# A job counts for the longest of these names that AccountingGroup begins with.
GROUP_NAMES = {names}

{quotas}{nested}
# Boolean, default False.
GROUP_ACCEPT_SURPLUS = True
"""

_NESTED = """
# Share of the group above it that each group within another was promised, 0 to 1.
{quotas}
# A group with others within it has for jobs of its own what these leave of its quota, \
not all of it once more.
# Boolean, HTCondor's default is True.
NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = False
"""
