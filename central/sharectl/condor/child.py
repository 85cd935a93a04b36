"""What HTCondor's own library makes of a configuration: a program, run by `condor_process`.

A broken configuration makes the library end the process that loads it, and another one cannot be
loaded later. Each line of standard input is a JSON object, ``{"macros": [names], "environment":
{…}}``, for which the configuration is read anew, or ``{"expressions": […], "slots": […], "jobs":
[…]}``, or ``{"keep": …}`` (ads to keep: see `Kept`) and then any number of ``{"looks": [[slot, job,
assets]]}`` (what kept slots make of kept jobs: see `Kept.look`); each answer is a line too. It
imports nothing of sharectl, so that it runs by its path.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import classad2
import htcondor2

SUBSYSTEM = "STARTD"
BEYOND_INTEGERS = 2**63
"""Smallest number that a ClassAd's integer cannot hold."""

UNREADABLE = getattr(classad2, "ClassAdException", SyntaxError)
"""What the parser raises; HTCondor 23.9 has no exception of its own."""

_LONE_BACKSLASH = re.compile(r'\\(?!")')


@lru_cache(maxsize=4096)
def expression(text: str) -> Any:
    """The expression ``text`` as a daemon reads it from its configuration; `UNREADABLE` if it cannot.

    Old ClassAd syntax, in which a backslash escapes nothing but a quote: the parser here reads the
    new one.
    """
    return classad2.ExprTree(_LONE_BACKSLASH.sub(r"\\\\", text))


def values(macros: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Macro → its expanded text; without those that are not set, or empty.

    ``environment`` is for this once.
    """
    os.environ.update(environment)
    htcondor2.set_subsystem(SUBSYSTEM)
    htcondor2.reload_config()
    for name in environment:
        del os.environ[name]
    return {macro: str(htcondor2.param[macro]) for macro in macros if macro in htcondor2.param}


def canonical(text: str) -> dict[str, str]:
    """``text`` as HTCondor prints it again (key ``text``), or why it cannot be read (key ``problem``)."""
    try:
        return {"text": str(expression(text))}
    except UNREADABLE as error:
        return {"problem": str(error)}


def ad_of(attributes: Mapping[str, str]) -> Any:
    """ClassAd with these expressions; the unreadable ones are left out, as the daemons do."""
    ad = classad2.ClassAd()
    for name, text in attributes.items():
        try:
            ad[name] = expression(text)
        except UNREADABLE:
            continue
    return ad


def outcome(value: Any) -> Any:
    """``value`` as JSON can tell it: ``undefined`` and ``error`` as those words."""
    if value is classad2.Value.Undefined:
        return "undefined"
    if value is classad2.Value.Error:
        return "error"
    return value if isinstance(value, (bool, int, float)) else str(value)


def evaluated(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Each expression read (``read``), and its value in each slot for each job (``values``, null if unreadable)."""
    read = [canonical(text) for text in asked["expressions"]]
    slots = [ad_of(slot) for slot in asked["slots"]]
    jobs = [ad_of(job) for job in asked["jobs"]]
    return {
        "read": read,
        "values": [
            None
            if tree is None
            else [[outcome(tree.eval(slot, job)) for job in jobs] for slot in slots]
            for text, seen in zip(asked["expressions"], read)
            for tree in [None if "problem" in seen else expression(text)]
        ],
    }


class Kept:
    """Slots and jobs that questions refer to by their numbers, from 0.

    Parameters
    ----------
    asked
        ``slots``: objects with ``ad``, ``charges`` (what precedes an asset in the names of the
        attributes that say what a job takes of it) and ``overrides`` (whether Requirements see that
        in place of the requests); ``jobs``: ads; ``weight``: expression for slots whose SlotWeight
        is no number.
    """

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self.slots = [KeptSlot(slot, asked["weight"]) for slot in asked["slots"]]
        self.jobs = [KeptJob(job) for job in asked["jobs"]]

    def facts(self) -> list[dict[str, Any]]:
        """What is known of each slot by itself."""
        return [slot.facts() for slot in self.slots]

    def looks(self, asked: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """For each slot, job and assets: weight, what the policy takes by asset, Requirements of slot and job."""
        return [self.slots[slot].look(self.jobs[job], assets) for slot, job, assets in asked]


class KeptJob:
    """A job, and what it looks like to Requirements when a policy takes something else than it asks for."""

    MOST_LOOKS = 100

    def __init__(self, attributes: Mapping[str, str]) -> None:
        self.attributes = attributes
        self.ad = ad_of(attributes)
        self._taking: dict[tuple[tuple[str, float], ...], Any] = {}

    def taking(self, consumed: Mapping[str, float]) -> Any:
        """The ad with each request replaced by what is taken; a request that is missing stays so."""
        key = tuple(consumed.items())
        if key not in self._taking:
            if len(self._taking) >= self.MOST_LOOKS:
                self._taking.clear()
            ad = ad_of(self.attributes)
            for asset, amount in consumed.items():
                name = f"Request{asset}"
                if name in ad:
                    ad[f"_cp_orig_{name}"] = ad.lookup(name)
                    ad[name] = (
                        int(amount)
                        if amount < BEYOND_INTEGERS and amount == int(amount)
                        else amount
                    )
            self._taking[key] = ad
        return self._taking[key]


class KeptSlot:
    """A slot whose assets change from question to question."""

    def __init__(self, asked: Mapping[str, Any], weight: str) -> None:
        self.ad = ad_of(asked["ad"])
        self.charges = str(asked["charges"])
        self.overrides = bool(asked["overrides"])
        self.resources = text_in("MachineResources", self.ad)
        names = re.split(r"[\s,]+", self.resources or "")
        self.assets = sorted(
            {name.lower(): name for name in names if name and name.lower() != "swap"}.values()
        )
        self.first = {asset: self.ad.lookup(asset) for asset in self.assets if asset in self.ad}
        if number(value_of("SlotWeight", self.ad)) is None:
            self.ad["SlotWeight"] = expression(weight)

    def facts(self) -> dict[str, Any]:
        """Whether it is partitionable, its assets and what it has of them, and for which it says what a job takes."""
        return {
            "partitionable": value_of("PartitionableSlot", self.ad),
            "resources": self.resources,
            "assets": {asset: number(value_of(asset, self.ad)) for asset in self.assets},
            "charged": [asset for asset in self.assets if self.charges + asset in self.ad],
        }

    def look(self, job: KeptJob, assets: Any) -> list[Any]:
        """Weight, what is taken by asset, and Requirements of slot and job, with these assets left (null: those it has)."""
        for asset, amount in (self.first if assets is None else assets).items():
            self.ad[asset] = amount
        consumed = {asset: self._consumed(asset, job.ad) for asset in self.assets}
        return [number(value_of("SlotWeight", self.ad)), consumed, *self._accepted(job, consumed)]

    def _consumed(self, asset: str, job: Any) -> Any:
        """What a job takes of an asset, its request being 0 if it names none."""
        name = f"Request{asset}"
        missing = name not in job
        sent = f"_condor_{name}"
        override = number(value_of(sent, job)) if sent in job else None
        before = None
        if override is not None:
            before = job.lookup(name)
            job[name] = override
        elif missing and self.overrides:
            job[name] = 0
        consumed = number(value_of(self.charges + asset, self.ad, job))
        if missing:
            job.pop(name, None)
        elif override is not None:
            job[name] = before
        return consumed

    def _accepted(self, job: KeptJob, consumed: Mapping[str, Any]) -> list[Any]:
        """Whether the Requirements of slot and job hold, null for an ad without any, or where nothing can be taken."""
        if any(amount is None or not 0 <= amount < float("inf") for amount in consumed.values()):
            return [None, None]
        ad = job.taking(consumed) if self.overrides else job.ad
        return [
            truth(value_of("Requirements", mine, other)) if "Requirements" in mine else None
            for mine, other in ((self.ad, ad), (ad, self.ad))
        ]


@lru_cache(maxsize=1000)
def _of_itself(name: str) -> Any:
    return classad2.ExprTree(f"MY.{name}")


def value_of(name: str, ad: Any, target: Any = None) -> Any:
    """Value of an attribute of an ad, as `outcome`; ``error`` where the library gives up."""
    try:
        return outcome(_of_itself(name).eval(ad, target))
    except (UNREADABLE, RuntimeError, TypeError, ValueError):
        return "error"


def text_in(name: str, ad: Any) -> Any:
    """Value of an attribute of an ad, None if that is no text."""
    try:
        value = _of_itself(name).eval(ad)
    except (UNREADABLE, RuntimeError, TypeError, ValueError):
        return None
    return value if isinstance(value, str) else None


def number(value: Any) -> Any:
    """``value`` if HTCondor takes it for a number, which it does of booleans too; None if not."""
    return value + 0 if isinstance(value, (bool, int, float)) else None


def truth(value: Any) -> bool:
    """Whether HTCondor takes ``value`` for true."""
    return isinstance(value, (bool, int, float)) and bool(value)


def answer_to(asked: Mapping[str, Any], kept: Kept) -> tuple[dict[str, Any], Kept]:
    """Answer to a question, and what is kept from now on."""
    if "macros" in asked:
        return {"values": values(asked["macros"], asked["environment"])}, kept
    if "keep" in asked:
        kept = Kept(asked["keep"])
        return {"slots": kept.facts()}, kept
    if "looks" in asked:
        return {"looks": kept.looks(asked["looks"])}, kept
    return evaluated(asked), kept


def main() -> int:
    """Answer the questions on standard input until it ends."""
    kept = Kept({"slots": [], "jobs": [], "weight": "1"})
    for line in sys.stdin:
        answer, kept = answer_to(json.loads(line), kept)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
