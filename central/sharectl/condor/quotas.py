"""Quotas of groups from a file of the knobs that set them, each line of which must be one.

Accounting groups and their quotas from the negotiator's ads.

What HTCondor's negotiator makes of group quotas: statics first, shares of what is left, each group
within its parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import fsum, isfinite
from pathlib import Path
from typing import Callable, Optional

from sharectl.condor.ad_files import AdOfFile, content_of, number_of, parse, text_of
from sharectl.condor.configuration import literal
from sharectl.errors import InputError
from sharectl.shares.quotas import ROOT, Group
from sharectl.words import Problems

_NO_GROUP = (
    "no group; write GROUP_QUOTA_<group> = number, or what condor_status -any -constraint "
    "IsAccountingGroup -long prints"
)
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
    found = {
        name: _of_ad(name, ad.attributes) for ad in ads for name in [text_of(ad.attributes, "Name")]
    }
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
    effective, configured = _groups_number(ad, "EffectiveQuota"), _groups_number(ad, "ConfigQuota")
    # It is 0 until the first cycle has worked it out.
    quota = None if not effective and configured else effective
    policy = text_of(ad, "SurplusPolicy")
    return Group(
        name,
        quota,
        _groups_number(ad, "WeightedResourcesUsed"),
        policy if policy in _POLICIES else None,
    )


def _groups_number(ad: Mapping[str, str], name: str) -> Optional[float]:
    value = number_of(ad, name)
    return value if isfinite(value) and value >= 0 else None


_ROOT = ""


@dataclass(frozen=True)
class Quota:
    """A group's quota as it is configured."""

    value: float
    """Weighted slots if static, else a share of what its parent has left, 0 to 1; >= 0."""
    static: bool


def effective_quotas(
    configured: Mapping[str, Quota], pool_weight: Optional[float], *, oversubscribe: bool = False
) -> dict[str, Optional[float]]:
    """Group -> weighted slots for it and the groups below it; None where that needs a pool weight that is not known.

    Parameters
    ----------
    configured
        Dotted group -> its quota, each group's parents among them; names in one case.
    pool_weight
        Sum of the weights of all slots when nothing runs; None if not known.
    oversubscribe
        NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION: static quotas are not cut to what their parent has.
    """
    found: dict[str, Optional[float]] = {_ROOT: pool_weight}
    children: dict[str, list[str]] = {}
    for name in configured:
        children.setdefault(name.rpartition(".")[0], []).append(name)
    waiting = [_ROOT]
    while waiting:
        parent = waiting.pop()
        named = children.get(parent, ())
        below = {name: configured[name] for name in named}
        found.update(_shared_out(below, found[parent], oversubscribe=oversubscribe))
        waiting.extend(named)
    return {name: found[name] for name in configured if name in found}


def _shared_out(
    quotas: Mapping[str, Quota], weight: Optional[float], *, oversubscribe: bool
) -> dict[str, Optional[float]]:
    """The same for groups of one parent, which has ``weight``."""
    static_sum = fsum(quota.value for quota in quotas.values() if quota.static)
    share_sum = fsum(quota.value for quota in quotas.values() if not quota.static)
    if weight is None:
        return {name: quota.value if quota.static else None for name, quota in quotas.items()}
    given = static_sum if oversubscribe else min(static_sum, weight)
    kept_ratio = given / static_sum if static_sum > 0 else 1.0
    left = max(0.0, weight - given) / max(1.0, share_sum)
    return {
        name: quota.value * (kept_ratio if quota.static else left) if weight > 0 else 0.0
        for name, quota in quotas.items()
    }


_STATIC, _DYNAMIC = "group_quota_", "group_quota_dynamic_"
_SURPLUS = {"group_accept_surplus": "byquota", "group_autoregroup": "regroup"}
_NAMES = "group_names"
_OVERSUBSCRIBE = "negotiator_allow_quota_oversubscription"
_OF_NO_ACCOUNT = (
    "group_prefix",
    "group_sort_expr",
    "group_dynamic_mach_constraint",
    "group_quota_max_allocation_rounds",
    "group_quota_round_robin_rate",
)
_OF_NO_ACCOUNT_PREFIXES = ("group_prio_factor_", "negotiator_")
_PREFIXES = (_DYNAMIC, _STATIC, *(f"{knob}_" for knob in _SURPLUS))
_KNOB = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=(?!=)\s*(.*?)\s*")
_OF_ADS = re.compile(
    r"^\s*(Name|MyType|EffectiveQuota|IsAccountingGroup)\s*=", re.IGNORECASE | re.MULTILINE
)
_WRITE = "write GROUP_QUOTA_<group> = number"


@dataclass(frozen=True)
class Knob:
    """A knob and where its value is from."""

    place: str
    name: str
    value: str


def quotas(path: Path, pool_weight: Callable[[], Optional[float]]) -> list[Group]:
    """Groups of a file of accounting ads, or of knobs, whose groups count as idle.

    Parameters
    ----------
    pool_weight
        Sum of the weights of all slots, when nothing runs: dynamic quotas are shares of it; None if
        not known.

    Raises
    ------
    InputError
        If it cannot be read, with every line that is neither.
    """
    text, name = content_of(path)
    if text.lstrip()[:1] in ("[", "{") or _OF_ADS.search(text):
        return groups_of(parse(text, name))
    return of_knobs(text, name, pool_weight)


def of_knobs(text: str, name: str, pool_weight: Callable[[], Optional[float]]) -> list[Group]:
    """Groups by name of the knobs in a text, which ``name`` stands for; see `quotas`."""
    problems = Problems()
    return groups_of_knobs(list(_knobs(text, name, problems)), name, pool_weight, problems)


def groups_of_knobs(
    told: Iterable[Knob],
    name: str,
    pool_weight: Callable[[], Optional[float]],
    problems: Optional[Problems] = None,
) -> list[Group]:
    """The same of knobs that were read already, with ``problems``; of one that is there twice the last counts."""
    problems = Problems() if problems is None else problems
    knobs = {knob.name.lower(): knob for knob in told}
    for knob in knobs.values():
        for problem in _problems(knob, knobs):
            problems.add(knob.place, problem)
    if not problems and not any(_group(lower) for lower in knobs if lower.startswith(_STATIC)):
        problems.add(
            name,
            f"no quota in it; {_WRITE}, or what condor_status -any -constraint "
            "IsAccountingGroup -long prints",
        )
    if problems:
        raise InputError(problems.lines())
    quota_of = _quotas(knobs, pool_weight)
    return sorted(
        (Group(group, quota, 0.0, _surplus(knobs, group)) for group, quota in quota_of.items()),
        key=lambda group: group.name.lower(),
    )


def is_of_quotas(knob: str) -> bool:
    """Whether a knob of that name has to do with groups and their quotas."""
    lower = knob.lower()
    return lower in (_NAMES, _OVERSUBSCRIBE, *_SURPLUS) or bool(_group(lower))


def group_of_knob(knob: Knob) -> str:
    """The group that a knob is about, lower case; empty if it is about none."""
    return _group(knob.name.lower())


def names_of(told: Iterable[Knob]) -> list[str]:
    """GROUP_NAMES, lower case."""
    return _names({knob.name.lower(): knob for knob in told})


def knobs_of_text(text: str, name: str) -> list[Knob]:
    """Knobs of a text, which ``name`` stands for.

    Raises
    ------
    InputError
        If a line is none.
    """
    problems = Problems()
    found = list(_knobs(text, name, problems))
    if problems:
        raise InputError(problems.lines())
    return found


def _knobs(text: str, name: str, problems: Problems) -> Iterator[Knob]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KNOB.fullmatch(line)
        if found is None:
            problems.add(f"{name}:{number}", f"{line.strip()[:40]!r} is no knob; {_WRITE}")
        else:
            yield Knob(f"{name}:{number}", found[1], found[2])


def _problems(knob: Knob, knobs: Mapping[str, Knob]) -> Iterator[str]:
    lower = knob.name.lower()
    if lower in _OF_NO_ACCOUNT or lower.startswith(_OF_NO_ACCOUNT_PREFIXES) or lower == _NAMES:
        return
    group = _group(lower)
    if lower not in _SURPLUS and not group:
        yield f"{knob.name[:60]} is no knob of quotas; {_meant(knob.name)}"
        return
    if lower.startswith(_STATIC):
        if _quotas_number(knob.value) is None:
            what = (
                "a share such as 0.25"
                if lower.startswith(_DYNAMIC)
                else "a number of weighted slots such as 40"
            )
            yield f"{knob.name[:60]} is {knob.value[:40]!r}; write {what}"
    elif literal(knob.value) is None:
        yield f"{knob.name[:60]} is {knob.value[:40]!r}; write True or False"
    names = _names(knobs)
    if group and names and group not in names:
        close = get_close_matches(group, names, 1)
        meant = f"write {close[0]}, or add it there" if close else "add it there"
        yield f"group {group[:60]!r} is not in GROUP_NAMES, so that HTCondor ignores it; {meant}"


def _group(lower: str) -> str:
    """The group that a knob is about; empty if there is none."""
    prefix = next((prefix for prefix in _PREFIXES if lower.startswith(prefix)), None)
    return "" if prefix is None or lower in _OF_NO_ACCOUNT else lower[len(prefix) :]


def _meant(name: str) -> str:
    """What to write instead of a name: the nearest beginning of a knob, with what follows it."""
    lower = name.lower()
    beginnings = {
        lower[:length]: prefix
        for prefix in _PREFIXES
        for length in range(len(prefix) - 2, len(prefix) + 3)
        if lower[:length].endswith("_")
        and lower[length:]
        # What follows is the group's, and makes nothing alike.
        and get_close_matches(lower[:length], [prefix], 1, 0.75)
    }
    guesses = [prefix + lower[len(start) :] for start, prefix in beginnings.items()]
    near = get_close_matches(lower, [*guesses, *_SURPLUS, _NAMES], 1, 0.75)
    if not near:
        return _WRITE
    known = next((prefix for prefix in _PREFIXES if near[0].startswith(prefix)), near[0])
    # What follows is the group, in its own letters.
    group = name[len(name) - len(near[0]) + len(known) :] if known != near[0] else ""
    return f"write {known.upper()}{group[:60]}"


def _quotas(
    knobs: Mapping[str, Knob], pool_weight: Callable[[], Optional[float]]
) -> dict[str, Optional[float]]:
    static = _named(knobs, _STATIC, but=_DYNAMIC)
    names = {name.lower(): name for name in (*_named(knobs, _DYNAMIC), *static)}
    configured = {
        name.lower(): Quota(share, static=False) for name, share in _named(knobs, _DYNAMIC).items()
    }
    configured |= {name.lower(): Quota(quota, static=True) for name, quota in static.items()}
    # As the negotiator has it, a group without a quota has none to pass on.
    configured = {**{name: Quota(0.0, static=False) for name in _names(knobs)}, **configured}
    weight = None if all(quota.static for quota in configured.values()) else pool_weight()
    # HTCondor's own default is True.
    oversubscribe = _OVERSUBSCRIBE not in knobs or literal(knobs[_OVERSUBSCRIBE].value) is not False
    found = effective_quotas(configured, weight, oversubscribe=oversubscribe)
    return {name: found.get(lower) for lower, name in names.items()}


def _names(knobs: Mapping[str, Knob]) -> list[str]:
    """GROUP_NAMES, lower case."""
    text = knobs[_NAMES].value.lower() if _NAMES in knobs else ""
    return [name for name in re.split(r"[\s,]+", text) if name]


def _named(knobs: Mapping[str, Knob], prefix: str, but: str = "\n") -> dict[str, float]:
    return {
        knob.name[len(prefix) :]: float(knob.value)
        for lower, knob in knobs.items()
        if lower.startswith(prefix) and not lower.startswith(but) and lower not in _OF_NO_ACCOUNT
    }


def _surplus(knobs: Mapping[str, Knob], group: str) -> str:
    for name, policy in reversed(_SURPLUS.items()):
        knob = knobs.get(f"{name}_{group.lower()}", knobs.get(name))
        if knob is not None and literal(knob.value):
            return policy
    return "no"


def _quotas_number(text: str) -> Optional[float]:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
