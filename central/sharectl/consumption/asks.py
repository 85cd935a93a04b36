"""Slots with a consumption policy, and the negotiator's matches of requests with them.

Ads are rows of text. HTCondor's library evaluates them, in a child because any node may have sent
them; the arithmetic is `sharectl.consumption.cost`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import floor, isfinite, log, nan
from typing import Any, NamedTuple, Optional

from sharectl.condor import daemons
from sharectl.condor.ad_rows import AdRow, long_of, names_reached, row_of
from sharectl.condor.ads import (
    ad_of_long,
    classads,
    expression,
    is_true,
    value_of,
)
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


Kinds = list[list[NamedAd]]
"""Slots: together those that no policy, weight or Requirements can tell apart."""


class Priced(NamedTuple):
    """Each kind of slot with each job."""

    slots: Kinds
    matches: Sequence[Sequence[Match]]
    """A row for each kind of slot."""


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


@contextmanager
def _with(ad: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """Replace attributes of the ad."""
    before = {name: ad.lookup(name) for name in values if name in ad}
    ad.update(values)
    try:
        yield
    finally:
        for name in values:
            del ad[name]
        ad.update(before)


class _Slot:
    """A slot whose assets change from look to look."""

    def __init__(self, row: AdRow) -> None:
        self.ad = ad_of_long(long_of(row))
        self.names = assets_of(row)
        if _number(self.ad, "SlotWeight") is None:
            self.ad["SlotWeight"] = expression(_DEFAULT_WEIGHT)
        amounts = {name: _number(self.ad, name) for name in self.names}
        self.assets = {n: whole_if_it_is(v) for n, v in amounts.items() if v is not None}

    def look(self, job: Any, assets: Mapping[str, Amount]) -> Look:
        """Values for a job with these assets left."""
        self.ad.update(assets)
        consumed = {asset: self._consumed(asset, job) for asset in self.names}
        weight = _number(self.ad, "SlotWeight")
        if any(amount is None or amount < 0 for amount in consumed.values()):
            return Look(weight, consumed)
        # Requirements see the amounts that the policy takes in place of the requests.
        replaced = {}
        for asset, amount in consumed.items():
            if (request := f"Request{asset}") in job:
                replaced[f"_cp_orig_{request}"] = job.lookup(request)
                replaced[request] = whole_if_it_is(amount or 0)
        with _with(job, replaced):
            return Look(weight, consumed, _met(self.ad, job), _met(job, self.ad))

    def _consumed(self, asset: str, job: Any) -> Optional[float]:
        """Amount that a job takes of an asset; a missing request is 0."""
        request, charge = f"Request{asset}", f"Consumption{asset}"
        if request in job:
            return _number(self.ad, charge, job)
        with _with(job, {request: 0}):
            return _number(self.ad, charge, job)


def _met(ad: Any, target: Any) -> Optional[bool]:
    if "Requirements" not in ad:
        return None
    return is_true(value_of(expression("MY.Requirements"), ad, target))


def _row(row: AdRow, jobs: Sequence[AdRow], most: int) -> list[Match]:
    """Match of a slot with each job."""
    slot, job_ads = _Slot(row), [ad_of_long(long_of(job)) for job in jobs]
    return [match_of(slot.assets, partial(slot.look, job), most) for job in job_ads]


# ---- kinds of slots

_SEEN = ("partitionableslot", "machineresources", "slotweight", "requirements")
_SEEN_PREFIXES = ("consumption", "request")
_UNSTEADY, _STEP = ("disk", "totalslotdisk"), 1.01
"""Assets that differ from node to node and from minute to minute: steps of 1 % are of one kind."""


def kinds(ads: Sequence[NamedAd], seen: set[str]) -> Kinds:
    """Ads that do not differ in attributes that are ``seen``."""
    members: defaultdict[frozenset[tuple[str, str]], list[NamedAd]] = defaultdict(list)
    for ad in ads:
        members[frozenset((n, _step(n, ad.row)) for n in seen & ad.row.keys())].append(ad)
    return list(members.values())


def seen_names(rows: Iterable[AdRow]) -> set[str]:
    """Names that policies, weights and Requirements may refer to; eval() sees more."""
    texts: defaultdict[str, str] = defaultdict(str)
    for name, text in {pair for row in rows for pair in row.items()}:
        texts[name] += f" {text}"
    first = {*_SEEN, *(name for name in texts if name.startswith(_SEEN_PREFIXES))}
    names = names_reached(first, texts)
    assets = {name.removeprefix("request") for name in names}
    return names_reached(names | assets, texts)


def _step(name: str, row: AdRow) -> str:
    """Text of an attribute; of disk space the number of its step."""
    value = _number_in(row, name) if name in _UNSTEADY else 0
    return f"step {floor(log(value, _STEP))}" if isfinite(value) and value > 0 else row[name]


def _number_in(row: AdRow, name: str) -> float:
    """Number that an attribute is; NaN if it is missing or something else."""
    try:
        return float(row.get(name, "nan"))
    except ValueError:
        return nan


# ---- prices


def price(
    slots: Sequence[NamedAd],
    jobs: Sequence[NamedAd],
    most: int = MOST_CLAIMS,
    deadline_seconds: float = EVALUATION_SECONDS,
) -> Priced:
    """Matches of the slots, each as it is, with the jobs; ``most`` of these at most on one slot.

    InputError if HTCondor's library cannot evaluate the ads.
    """
    classads()  # before children fork
    slot_kinds = kinds(slots, seen_names(ad.row for ad in (*slots, *jobs)))
    rows = [job.row for job in jobs]
    seconds = deadline_seconds + REQUEST_SECONDS * len(rows)
    questions = {}
    for number, kind in enumerate(slot_kinds):
        least = min(kind, key=lambda slot: _number_in(slot.row, "disk"))
        ask = partial(_row, least.row, rows, most)
        questions[f"{number} {least.name}"] = Question(ask, seconds, more_bytes=MOST_MEMORY_BYTES)
    matches, at_once, names = [], os.cpu_count() or 1, list(questions)
    for start in range(0, len(names), at_once):
        batch = {name: questions[name] for name in names[start : start + at_once]}
        for name, answer in ask_all(batch).items():
            if problem := answer.source.problem:
                slot = name.partition(" ")[2]
                fact = f"HTCondor's library cannot evaluate {slot} with these jobs: {problem}"
                raise InputError([f"{fact}; price one request at a time"])
            matches.append(answer.value)
    return Priced(slot_kinds, matches)


# ---- a pool


def look(pool: PoolConfig) -> list[NamedAd]:
    """Slots of the pool with a policy; or PoolUnavailableError."""
    return daemons.ask_collector(pool.collector, pool.collector_deadline_seconds, _slots)


def _slots(collector: Any) -> list[NamedAd]:
    slots = (NamedAd(str(ad.get("Name")), row_of(ad)) for ad in daemons.slots(collector))
    return [slot for slot in slots if assets_of(slot.row)]
