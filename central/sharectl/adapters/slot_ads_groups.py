"""Accounting groups and their quotas from the negotiator's ads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Optional

from sharectl.adapters.problems_alike import Problems
from sharectl.adapters.slot_ads import AdOfFile, number_of, text_of
from sharectl.core.claim_capacity import ROOT, Group
from sharectl.errors import InputError

_NO_GROUP = "no group; write GROUP_QUOTA_<group> = number, or what condor_status -any -constraint IsAccountingGroup -long prints"
_POLICIES = ("no", "byquota", "regroup")


def groups_of(ads: Sequence[AdOfFile]) -> list[Group]:
    """Groups by name, the root last.

    Raises
    ------
    InputError
        If an ad is no accounting ad of a group.
    """
    problems = Problems()
    for ad in ads:
        if not _is_group(ad.attributes):
            problems.add(ad.place, _NO_GROUP)
    if problems:
        raise InputError(problems.lines())
    found = {name: _of_ad(name, ad.attributes) for ad in ads for name in [text_of(ad.attributes, "Name")]}
    return sorted(found.values(), key=lambda group: (group.name == ROOT, group.name.lower()))


def _is_group(ad: Mapping[str, str]) -> bool:
    """Whether an ad is one of a group: of what the collector has, others have names too."""
    told = {name.lower() for name in ad}
    return bool(
        text_of(ad, "Name")
        and text_of(ad, "MyType").lower() in ("accounting", "")
        and told & {"effectivequota", "configquota", "isaccountinggroup"}
    )


def _of_ad(name: str, ad: Mapping[str, str]) -> Group:
    effective, configured = _number(ad, "EffectiveQuota"), _number(ad, "ConfigQuota")
    # It is 0 until the first cycle has worked it out.
    quota = None if not effective and configured else effective
    policy = text_of(ad, "SurplusPolicy")
    return Group(name, quota, _number(ad, "WeightedResourcesUsed"), policy if policy in _POLICIES else None)


def _number(ad: Mapping[str, str], name: str) -> Optional[float]:
    value = number_of(ad, name)
    return value if isfinite(value) and value >= 0 else None
