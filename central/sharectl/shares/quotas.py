"""HTCondor's group quotas, from the pledges: what the negotiator should aim at by itself.

Accounting groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Optional

from sharectl.errors import ConfigError
from sharectl.shares.groups import GroupTree, above_of, first_level

ROOT = "<none>"
"""HTCondor's name for the group of jobs that are in no other."""


@dataclass(frozen=True)
class Group:
    """An accounting group. Quota and use are in weighted slots: the unit of SlotWeight."""

    name: str
    quota: Optional[float]
    """What it may use by itself, None if that is not known (as before the first negotiation cycle)."""
    used: Optional[float]
    surplus: Optional[str]
    """``no``, ``byquota`` (GROUP_ACCEPT_SURPLUS) or ``regroup`` (GROUP_AUTOREGROUP); None if not known."""

    @property
    def limit(self) -> Optional[float]:
        """The quota as the negotiator keeps it: it cuts quotas to whole numbers."""
        return None if self.quota is None else float(floor(self.quota))

    @property
    def room(self) -> Optional[float]:
        """Unused part of the limit."""
        return None if self.limit is None or self.used is None else max(0.0, self.limit - self.used)

    @property
    def has_quota_of_its_own(self) -> bool:
        """Tells if the quota is a promise: the root group has what is left over."""
        return self.name != ROOT


DIGITS = 6
"""Decimals of a quota: a millionth of a pool is less than a core in all of them."""


def quota_shares(pledge_hs06: Mapping[str, float]) -> dict[str, str]:
    """Group → its share of all pledges as a decimal number, groups by name; the shares sum to exactly 1.

    Parameters
    ----------
    pledge_hs06
        Group → pledge, HS06, finite and >= 0, at least one of them above 0.

    Raises
    ------
    ValueError
        If there is no pledge above 0.

    Notes
    -----
    The largest remainders are rounded up, ties in order of the names: HTCondor scales shares down
    that sum to more than 1, and gives what is missing from 1 to nobody.
    """
    pledges = {group: Fraction(pledge_hs06[group]) for group in sorted(pledge_hs06)}
    total = sum(pledges.values())
    if total <= 0:
        raise ValueError("all pledges are 0: there is nothing to share by")
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
        inner = {
            name: pledge for name, pledge in tree.pledge_hs06.items() if above_of(name) == above
        }
        parts = {**inner, above: own_hs06}
        if any(parts.values()):
            shares.update(
                {name: share for name, share in quota_shares(parts).items() if name != above}
            )
        else:
            shares.update(dict.fromkeys(inner, _decimal(0)))
    return {name: shares[name] for name in sorted(shares)}


def central_manager_configuration(tree: GroupTree) -> str:
    """HTCondor configuration with a group for each pledge, and its share of the pool or of the group above as quota.

    Parameters
    ----------
    tree
        At least one pledge is above 0.

    Raises
    ------
    ConfigError
        If a group has a name that cannot be part of a knob's: one with ``-`` stops every daemon
        that reads it.
    """
    problems = [
        f"groups.{group.replace('.', '.groups.')}: HTCondor has no quotas for names with '-'; "
        "write the group with "
        "'_', here and wherever accounting_group is set"
        for group in sorted(tree.names)
        if "-" in group
    ]
    if problems:
        raise ConfigError(problems)
    shares = quota_shares({name: tree.pledge_hs06[name] for name in first_level(tree.names)})
    lines = [
        (
            "# Groups and quotas of the negotiator, from the pledges in sharectl's configuration. "
            "Change them there, then:"
        ),
        (
            "#   sharectl render central-manager > "
            "/etc/condor/config.d/60-sharectl-central-manager.conf; condor_reconfig"
        ),
        "",
        (
            "# One accounting group a pledge. A job counts for the longest of these names that "
            "AccountingGroup begins with, part by part."
        ),
        f"GROUP_NAMES = {', '.join(sorted(tree.names))}",
        "",
        "# Share of the pool that each group was promised, 0 to 1; they sum to 1.",
        *(f"GROUP_QUOTA_DYNAMIC_{group} = {share}" for group, share in shares.items()),
        *_nested_lines(tree),
        "",
        (
            "# What a group cannot use, others may. Boolean, HTCondor's default is False: cores "
            "would stay idle."
        ),
        "GROUP_ACCEPT_SURPLUS = True",
    ]
    return "\n".join(lines) + "\n"


def _nested_lines(tree: GroupTree) -> list[str]:
    """Lines for groups within others; none if there are no such."""
    shares = nested_quota_shares(tree)
    if not shares:
        return []
    return [
        "",
        "# Share of the group above it that each group within another was promised, 0 to 1.",
        *(f"GROUP_QUOTA_DYNAMIC_{group} = {share}" for group, share in shares.items()),
        "",
        (
            "# A group with others within it has for jobs of its own what these leave of its quota, "
            "not all of it once more."
        ),
        "# Boolean, HTCondor's default is True.",
        "NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION = False",
    ]


def _decimal(units: int) -> str:
    whole, part = divmod(units, 10**DIGITS)
    return f"{whole}.{part:0{DIGITS}}"
