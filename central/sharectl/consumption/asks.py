"""Slots with a consumption policy, and the negotiator's matches of requests with them.

Ads are rows of text. HTCondor's library evaluates them, in a child because any node may have sent
them; the arithmetic is `sharectl.consumption.cost`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, Optional

from sharectl.condor import daemons
from sharectl.condor.ad_rows import AdRow, long_of, names_reached, row_of
from sharectl.condor.ads import ad_of_long, classads, expression, is_true, value_of
from sharectl.condor.configuration import words_of
from sharectl.condor.deadline import Question, ask_all
from sharectl.consumption.cost import Amount, Look, Match, match_of, whole_if_it_is
from sharectl.errors import InputError
from sharectl.model import PoolConfig

MOST_CLAIMS = 10_000
"""Matches that are counted on one slot at most: a policy may charge next to nothing."""
EVALUATION_SECONDS = 20.0
"""Deadline of a question to the library, which evaluates a job on a slot in some 0.1 ms."""
REQUEST_SECONDS = 0.5
"""More for each request: 256 that fit on a slot take some 0.05 s."""
MOST_MEMORY_BYTES = 2 * 2**30
_DEFAULT_WEIGHT = "Cpus"
"""SLOT_WEIGHT of HTCondor, which the negotiator takes where that of a slot is no number."""


@dataclass(frozen=True)
class NamedAd:
    """Ad of a slot, or of a job."""

    name: str
    row: AdRow


def assets_of(slot: AdRow) -> list[str]:
    """Assets of a slot with a consumption policy, but Swap; empty without one."""
    named = {n.lower(): n for n in words_of(slot.get("machineresources", "").strip('"'))}
    named.pop("swap", None)
    has_policy = all(f"consumption{asset}" in slot for asset in named)
    is_partitionable = slot.get("partitionableslot", "").lower() == "true"
    return sorted(named.values()) if has_policy and is_partitionable else []


# ---- a slot with a job, in a child


def _number(ad: Any, name: str, target: Any = None) -> Optional[float]:
    """Value of an attribute, a boolean as 0 or 1; None if it is no finite number."""
    value = value_of(expression(f"MY.{name}"), ad, target)
    return value + 0 if type(value) in (bool, int, float) and isfinite(value) else None


def _met(ad: Any, target: Any) -> Optional[bool]:
    if "Requirements" not in ad:
        return None
    return is_true(value_of(expression("MY.Requirements"), ad, target))


def _match(row: AdRow, job: AdRow, most: int) -> Match:
    """Match of a slot with a job."""
    slot, names = ad_of_long(long_of(row)), assets_of(row)
    if _number(slot, "SlotWeight") is None:
        slot["SlotWeight"] = expression(_DEFAULT_WEIGHT)
    amounts = {name: _number(slot, name) for name in names}
    requests = {name: f"request{name.lower()}" for name in names}
    # For the policy of an asset, a missing request of it is 0.
    asking = {n: ad_of_long(long_of({request: "0", **job})) for n, request in requests.items()}

    def look(assets: Mapping[str, Amount]) -> Look:
        slot.update(assets)
        consumed = {name: _number(slot, f"Consumption{name}", asking[name]) for name in names}
        weight = _number(slot, "SlotWeight")
        if any(amount is None or amount < 0 for amount in consumed.values()):
            return Look(weight, consumed)
        # Requirements see the amounts that the policy takes in place of the requests.
        replaced = dict(job)
        for name, request in requests.items():
            if request in job:
                replaced[f"_cp_orig_{request}"] = job[request]
                replaced[request] = str(whole_if_it_is(consumed[name] or 0))
        changed = ad_of_long(long_of(replaced))
        return Look(weight, consumed, _met(slot, changed), _met(changed, slot))

    return match_of({n: whole_if_it_is(v) for n, v in amounts.items() if v is not None}, look, most)


def _row(slot: AdRow, jobs: Sequence[AdRow], most: int) -> list[Match]:
    return [_match(slot, job, most) for job in jobs]


# ---- kinds of slots

_SEEN = ("partitionableslot", "machineresources", "slotweight", "requirements")
_SEEN_PREFIXES = ("consumption", "request")
_UNSTEADY = ("disk", "totalslotdisk")
"""Assets that differ from node to node and from minute to minute: two digits count."""


def kinds(ads: Sequence[NamedAd], seen: set[str]) -> list[list[NamedAd]]:
    """Ads that do not differ in attributes that are ``seen``."""
    members: defaultdict[frozenset[tuple[str, str]], list[NamedAd]] = defaultdict(list)
    for ad in ads:
        members[frozenset((n, _shown(n, ad.row[n])) for n in seen & ad.row.keys())].append(ad)
    return list(members.values())


def _shown(name: str, text: str) -> str:
    with suppress(ValueError):
        return f"{float(text):.1e}" if name in _UNSTEADY else text
    return text


def seen_names(rows: Iterable[AdRow]) -> set[str]:
    """Names that policies, weights and Requirements may refer to; eval() sees more."""
    texts: defaultdict[str, str] = defaultdict(str)
    for name, text in {pair for row in rows for pair in row.items()}:
        texts[name] += f" {text}"
    first = {*_SEEN, *(name for name in texts if name.startswith(_SEEN_PREFIXES))}
    names = names_reached(first, texts)
    assets = {name.removeprefix("request") for name in names}
    return names_reached(names | assets, texts)


# ---- prices


def price(
    slots: Sequence[NamedAd],
    jobs: Sequence[NamedAd],
    most: int = MOST_CLAIMS,
    deadline_seconds: float = EVALUATION_SECONDS,
) -> list[tuple[list[NamedAd], list[Match]]]:
    """Each kind of slots with the match of its first one, as it is, with each of the jobs.

    At most ``most`` of these are counted on one slot. InputError if HTCondor's library cannot
    evaluate the ads.
    """
    classads()  # before children fork
    rows = [job.row for job in jobs]
    seconds = deadline_seconds + REQUEST_SECONDS * len(rows)
    prices = []
    for kind in kinds(slots, seen_names(ad.row for ad in (*slots, *jobs))):
        name, ask = kind[0].name, partial(_row, kind[0].row, rows, most)
        answer = ask_all({name: Question(ask, seconds, more_bytes=MOST_MEMORY_BYTES)})[name]
        if problem := answer.source.problem:
            fact = f"HTCondor's library cannot evaluate {name} with these jobs: {problem}"
            raise InputError([f"{fact}; price one request at a time"])
        prices.append((kind, answer.value))
    return prices


# ---- a pool


def look(pool: PoolConfig) -> list[NamedAd]:
    """Slots of the pool with a policy; or PoolUnavailableError."""
    return daemons.ask_collector(pool.collector, pool.collector_deadline_seconds, _slots)


def _slots(collector: Any) -> list[NamedAd]:
    slots = (NamedAd(str(ad.get("Name")), row_of(ad)) for ad in daemons.slots(collector))
    return [slot for slot in slots if assets_of(slot.row)]
