"""Accounting groups and their quotas: from the negotiator's ads, or from the knobs that set them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Optional

from sharectl.adapters.slot_ads import AdOfFile, number_of, text_of
from sharectl.core.claim_capacity import ROOT, Group
from sharectl.errors import InputError

_STATIC, _DYNAMIC = "group_quota_", "group_quota_dynamic_"
_SURPLUS = {"group_accept_surplus": "byquota", "group_autoregroup": "regroup"}
_POLICIES = ("no", "byquota", "regroup")


def groups_of(ads: Sequence[AdOfFile], pool_weight: Optional[float]) -> list[Group]:
    """Groups by name, the root last.

    Parameters
    ----------
    ads
        Accounting ads of groups, or one with GROUP_QUOTA_… knobs, whose groups count as idle.
    pool_weight
        Sum of the weights of all slots, when nothing runs: dynamic quotas are shares of it; None if not known.

    Raises
    ------
    InputError
        If an ad is neither.
    """
    problems = []
    found: dict[str, Group] = {}
    for ad in ads:
        if any(name.lower().startswith(_STATIC) for name in ad.attributes):
            found.update((group.name, group) for group in _of_knobs(ad.attributes, pool_weight))
        elif name := text_of(ad.attributes, "Name"):
            found[name] = _of_ad(name, ad.attributes)
        else:
            problems.append(
                f"{ad.place}: no group; write GROUP_QUOTA_<group> = number, or what condor_status -any -constraint "
                "IsAccountingGroup -long prints"
            )
    if problems:
        raise InputError(problems)
    return sorted(found.values(), key=lambda group: (group.name == ROOT, group.name.lower()))


def _of_ad(name: str, ad: Mapping[str, str]) -> Group:
    effective, configured = _number(ad, "EffectiveQuota"), _number(ad, "ConfigQuota")
    # It is 0 until the first cycle has worked it out.
    quota = None if not effective and configured else effective
    policy = text_of(ad, "SurplusPolicy")
    return Group(name, quota, _number(ad, "WeightedResourcesUsed"), policy if policy in _POLICIES else None)


def _of_knobs(ad: Mapping[str, str], pool_weight: Optional[float]) -> list[Group]:
    knobs = {name.lower(): name for name in ad}
    static = _named(ad, knobs, _STATIC, but=_DYNAMIC)
    shares = {
        name: share
        for name, share in _named(ad, knobs, _DYNAMIC).items()
        if name.lower() not in {known.lower() for known in static}
    }
    top = [quota for name, quota in static.items() if "." not in name]
    known = pool_weight is not None and None not in top
    left = max(0.0, (pool_weight or 0.0) - sum(quota or 0.0 for quota in top))
    total = max(1.0, sum(share or 0.0 for name, share in shares.items() if "." not in name))
    # A share of a parent's quota would need the whole tree: such a quota is not known.
    dynamic = {
        name: share * left / total if known and share is not None and "." not in name else None
        for name, share in shares.items()
    }
    return [
        Group(name, quota, 0.0, _surplus(ad, knobs, name)) for name, quota in {**static, **dynamic}.items()
    ]


def _named(
    ad: Mapping[str, str], knobs: Mapping[str, str], prefix: str, but: str = "\n"
) -> dict[str, Optional[float]]:
    return {
        name[len(prefix) :]: _number(ad, name)
        for lower, name in knobs.items()
        if lower.startswith(prefix) and not lower.startswith(but)
    }


def _surplus(ad: Mapping[str, str], knobs: Mapping[str, str], group: str) -> str:
    for knob, policy in reversed(_SURPLUS.items()):
        name = knobs.get(f"{knob}_{group.lower()}", knobs.get(knob))
        if name is not None and ad[name].lower() in ("true", "yes", "t", "y", "1"):
            return policy
    return "no"


def _number(ad: Mapping[str, str], name: str) -> Optional[float]:
    value = number_of(ad, name)
    return value if isfinite(value) and value >= 0 else None
