"""Accounting groups and their quotas, from the negotiator's ads or from knobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Optional

from sharectl.condor.ad_files import AdOfFile, number_of, text_of
from sharectl.condor.configuration import literal
from sharectl.errors import InputError
from sharectl.shares.quotas import ROOT, Group
from sharectl.words import Problems

_NO_GROUP = "no group; write what condor_status -any -constraint IsAccountingGroup -long prints"
_POLICIES = ("no", "byquota", "regroup")
_STATIC, _DYNAMIC = "group_quota_", "group_quota_dynamic_"
_SURPLUS = {"group_accept_surplus": "byquota", "group_autoregroup": "regroup"}
_NAMES = "group_names"
_OVERSUBSCRIBE = "negotiator_allow_quota_oversubscription"
_OF_NO_GROUP = (
    "group_quota_max_allocation_rounds",
    "group_quota_round_robin_rate",
)
_PREFIXES = (_DYNAMIC, _STATIC, *(f"{knob}_" for knob in _SURPLUS))
_KNOB = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=(?!=)\s*(.*?)\s*")
_WRITE = "write GROUP_QUOTA_<group> = number"


@dataclass(frozen=True)
class Knob:
    """A knob and the place of its value."""

    place: str
    name: str
    value: str

    @property
    def key(self) -> str:
        """Name without case."""
        return self.name.lower()

    @property
    def group(self) -> str:
        """Group in the name, lower case; empty if the knob is for all groups."""
        return _group_in(self.key)


@dataclass(frozen=True)
class Quota:
    """Configured quota of a group."""

    value: float
    """Weighted slots if static, else a share of what its parent has left, 0 to 1; >= 0."""
    static: bool


def groups_of(ads: Sequence[AdOfFile]) -> list[Group]:
    """Groups of accounting ads, by name, the root last.

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
    groups = {group.name: group for ad in ads for group in [_group_of(ad.attributes)]}
    return sorted(groups.values(), key=lambda group: (group.name == ROOT, group.name.lower()))


def _is_group(ad: Mapping[str, str]) -> bool:
    return bool(
        text_of(ad, "Name")
        and text_of(ad, "MyType").lower() in ("accounting", "")
        and {name.lower() for name in ad} & {"effectivequota", "configquota", "isaccountinggroup"}
    )


def _group_of(ad: Mapping[str, str]) -> Group:
    effective, configured, used = (
        value if isfinite(value) and value >= 0 else None
        for value in (
            number_of(ad, name)
            for name in ("EffectiveQuota", "ConfigQuota", "WeightedResourcesUsed")
        )
    )
    # It is 0 until the first cycle has worked it out.
    quota = None if not effective and configured else effective
    policy = text_of(ad, "SurplusPolicy")
    return Group(text_of(ad, "Name"), quota, used, policy if policy in _POLICIES else None)


def _group_in(key: str) -> str:
    prefix = next((prefix for prefix in _PREFIXES if key.startswith(prefix)), None)
    return "" if prefix is None or key in _OF_NO_GROUP else key[len(prefix) :]


def is_of_quotas(knob: str) -> bool:
    """Tells if a knob of that name sets groups or their quotas."""
    key = knob.lower()
    return key in (_NAMES, _OVERSUBSCRIBE, *_SURPLUS) or bool(_group_in(key))


def names_of(knobs: Iterable[Knob]) -> list[str]:
    """GROUP_NAMES, lower case."""
    values = [knob.value.lower() for knob in knobs if knob.key == _NAMES]
    return [name for name in re.split(r"[\s,]+", values[-1]) if name] if values else []


def knobs_of_text(text: str, name: str) -> list[Knob]:
    """Knobs of quotas of a text, as condor_config_val -dump prints it.

    Raises
    ------
    InputError
        If a line sets no knob. ``name`` stands for the text in places.
    """
    problems = Problems()
    knobs = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _KNOB.fullmatch(line)
        if match is not None and is_of_quotas(match[1]):
            knobs.append(Knob(f"{name}:{number}", match[1], match[2]))
        elif match is None and line.strip() and not line.lstrip().startswith("#"):
            problems.add(f"{name}:{number}", f"{line.strip()[:40]!r} is no knob; {_WRITE}")
    if problems:
        raise InputError(problems.lines())
    return knobs


def groups_of_knobs(knobs: Iterable[Knob], name: str, pool_weight: Optional[float]) -> list[Group]:
    """Groups of knobs of quotas, which count as idle, by name.

    Parameters
    ----------
    knobs
        Of one that is there twice the last counts.
    name
        Stands for the knobs in errors.
    pool_weight
        Sum of the weights of all slots: dynamic quotas are shares of it; None if not known.

    Raises
    ------
    InputError
        If a value is invalid, or no quota is set.
    """
    by_key = {knob.key: knob for knob in knobs}
    problems = Problems()
    for knob in by_key.values():
        for problem in _invalid(knob):
            problems.add(knob.place, problem)
    if not problems and not any(_is_quota(knob) for knob in by_key.values()):
        problems.add(name, f"no quota in it; {_WRITE}")
    if problems:
        raise InputError(problems.lines())
    quotas = {
        knob.group: Quota(float(knob.value), static=not knob.key.startswith(_DYNAMIC))
        for knob in sorted(by_key.values(), key=lambda knob: not knob.key.startswith(_DYNAMIC))
        if _is_quota(knob)
    }
    spelt = {knob.group: knob.name[-len(knob.group) :] for knob in by_key.values() if knob.group}
    # As the negotiator has it, a group without a quota has none to pass on.
    idle = {group: Quota(0.0, static=False) for group in names_of(by_key.values())}
    # HTCondor's own default is True.
    oversubscribe = _OVERSUBSCRIBE not in by_key or _is_on(by_key[_OVERSUBSCRIBE])
    effective = effective_quotas({**idle, **quotas}, pool_weight, oversubscribe=oversubscribe)
    return [
        Group(spelt[group], effective.get(group), 0.0, _surplus(by_key, group))
        for group in sorted(quotas)
    ]


def effective_quotas(
    configured: Mapping[str, Quota], pool_weight: Optional[float], *, oversubscribe: bool = False
) -> dict[str, Optional[float]]:
    """Group -> weighted slots for it and the groups within it, as the negotiator works them out.

    None where that needs a pool weight that is not known. Static quotas come first, shares are of
    what these leave, each group is within its parent.

    Parameters
    ----------
    configured
        Dotted group -> its quota, each group's parents among them; names in one case.
    pool_weight
        Sum of the weights of all slots when nothing runs; None if not known.
    oversubscribe
        NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION: static quotas are not cut to what their parent has.
    """
    weights: dict[str, Optional[float]] = {"": pool_weight}
    parents = [""]
    while parents:
        parent = parents.pop()
        within = {
            name: quota for name, quota in configured.items() if name.rpartition(".")[0] == parent
        }
        weights.update(_shared_out(within, weights[parent], oversubscribe=oversubscribe))
        parents.extend(within)
    return {name: weights[name] for name in configured if name in weights}


def _shared_out(
    quotas: Mapping[str, Quota], weight: Optional[float], *, oversubscribe: bool
) -> dict[str, Optional[float]]:
    """Weighted slots of the groups of one parent, which has ``weight``."""
    if weight is None:
        return {name: quota.value if quota.static else None for name, quota in quotas.items()}
    static_sum = fsum(quota.value for quota in quotas.values() if quota.static)
    share_sum = fsum(quota.value for quota in quotas.values() if not quota.static)
    used = static_sum if oversubscribe else min(static_sum, weight)
    kept_ratio = used / static_sum if static_sum > 0 else 1.0
    unit = max(0.0, weight - used) / max(1.0, share_sum)
    return {
        name: quota.value * (kept_ratio if quota.static else unit) if weight > 0 else 0.0
        for name, quota in quotas.items()
    }


def _is_quota(knob: Knob) -> bool:
    return knob.key.startswith(_STATIC) and bool(knob.group)


def _is_on(knob: Knob) -> bool:
    return literal(knob.value) is True


def _invalid(knob: Knob) -> Iterator[str]:
    fact = f"{knob.name[:60]} is {knob.value[:40]!r}"
    if _is_quota(knob):
        value = number_of({"value": knob.value}, "value")
        if not (isfinite(value) and value >= 0):
            dynamic = knob.key.startswith(_DYNAMIC)
            example = "a share such as 0.25" if dynamic else "a number of weighted slots such as 40"
            yield f"{fact}; write {example}"
    elif knob.key != _NAMES and literal(knob.value) is None:
        yield f"{fact}; write True or False"


def _surplus(knobs: Mapping[str, Knob], group: str) -> str:
    for name, policy in reversed(_SURPLUS.items()):
        knob = knobs.get(f"{name}_{group}", knobs.get(name))
        if knob is not None and _is_on(knob):
            return policy
    return "no"
