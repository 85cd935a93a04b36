"""Checks of policies by trial: what HTCondor's own evaluation of them makes of ordinary jobs, and of others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable

from sharectl.adapters.consumption_check_requests import (
    Ad,
    ordinary,
    other_attributes,
    sizes,
    slot_ad,
    smallest,
)
from sharectl.adapters.consumption_check_settings import Setting
from sharectl.adapters.consumption_check_subject import Node, SlotType, Subject
from sharectl.adapters.snippet_subject import Finding
from sharectl.core.match_cost import Match, Refusal

_SHORT = frozenset({Refusal.SHORT})
Wrong = Callable[[Match, str], bool]


def numbers(subject: Subject) -> Iterator[Finding]:
    """Policies that are undefined, an error, or negative, for ordinary jobs.

    cp_compute_consumption makes -999 of what is no number, and cp_sufficient_assets refuses what is negative.
    """
    for node, slot in subject.sound:
        jobs = ordinary(tuple(slot.policies), other_attributes(slot, subject.readable))
        found = tried(subject, node, slot, jobs)
        for asset, policy in slot.policies.items():
            for wrong, said in ((_no_number, "is no number"), (_negative, "is negative")):
                failed = [job for job, match in zip(jobs, found) if wrong(match, asset)]
                if failed:
                    yield Finding(
                        "numbers",
                        policy.place,
                        f"{policy.macro} {said} for {_many(failed, jobs)}: the negotiator refuses them, with a warning in "
                        "its log at each look",
                        _remedy(policy, asset, failed[0]),
                    )
                    break


def zero(subject: Subject) -> Iterator[Finding]:
    """Policies by which a job takes nothing at all: refused ("Consumption for all assets … was zero")."""
    for node, slot in subject.sound:
        jobs = ordinary(tuple(slot.policies), other_attributes(slot, subject.readable))
        found = tried(subject, node, slot, jobs)
        failed = [
            job
            for job, match in zip(jobs, found)
            if any(refused.why is Refusal.ALL_ZERO for refused in match.refused)
        ]
        if failed:
            policy = slot.policies["Cpus"]
            yield Finding(
                "zero",
                policy.place,
                f"{slot.name}: the policy takes nothing of any asset for {_many(failed, jobs)}: the negotiator refuses them, with "
                "a warning in its log at each look",
                f"let one policy be positive always, such as {policy.macro} = quantize(TARGET.RequestCpus, {{1}})",
            )


def paid_for(subject: Subject) -> Iterator[Finding]:
    """Weights by which a match costs less than nothing."""
    for node, slot in subject.sound:
        assets = tuple(slot.policies)
        others = other_attributes(slot, subject.readable)
        jobs = ordinary(assets, others)
        found = tried(subject, node, slot, jobs)
        failed = [
            (job, match.cost)
            for job, match in zip(jobs, found)
            if not match.refused and match.cost is not None and match.cost < 0
        ]
        if failed:
            job, cost = failed[0]
            yield Finding(
                "cost",
                slot.weight.place,
                f"{slot.weight.macro} grows as assets are taken: a match of a job with {said(job)} costs {plain(cost)}, and its "
                "group's usage falls",
                "make the weight one that falls as Cpus, Memory and the other assets do, such as SLOT_WEIGHT = Cpus",
                advice=True,
            )


def accepted(subject: Subject) -> Iterator[Finding]:
    """Slots on which the smallest job finds no place, even while they are empty."""
    for node, slot in subject.sound:
        assets = tuple(slot.policies)
        jobs = [smallest(assets, with_custom=some) for some in (True, False)]
        amounts, _ = sizes(node, slot, subject.size)
        found = subject.matches([slot_ad(node, slot, size) for size in amounts], jobs)
        refusals = [match.refused for of_slot in found for match in of_slot]
        told_elsewhere = all(
            any(refused.why not in _SHORT for refused in refused_for) for refused_for in refusals
        )
        if all(refusals) and not told_elsewhere:
            short = sorted({asset for refused in refusals[-1] for asset in refused.assets})
            policy = slot.policies[short[0]] if short else slot.policy
            took = found[-1][-1].consumed
            yield Finding(
                "room",
                policy.place,
                f"{slot.name}: no room for any job, one with {said(jobs[-1])} takes {amounts_said(took)} of "
                f"{amounts_said(amounts[-1])}",
                f"let {policy.macro} take less",
            )


def said(job: Ad) -> str:
    """A job's requests, for people."""
    return ", ".join(f"{name} = {text}" for name, text in job.items()) or "no request at all"


def tried(subject: Subject, node: Node, slot: SlotType, jobs: Sequence[Ad]) -> list[Match]:
    """Each job on the largest of the slots that the policy may be meant for."""
    amounts, _ = sizes(node, slot, subject.size)
    (found,) = subject.matches([slot_ad(node, slot, amounts[-1])], jobs)
    return found


def _no_number(match: Match, asset: str) -> bool:
    return match.consumed.get(asset) is None


def _negative(match: Match, asset: str) -> bool:
    amount = match.consumed.get(asset)
    return amount is not None and amount < 0


def _remedy(policy: Setting, asset: str, job: Ad) -> str:
    request = f"TARGET.Request{asset}"
    if f"Request{asset}" not in job:
        return f"write ifThenElse({request} =?= undefined, 0, …) where the job may not request any"
    return (
        f"write {policy.macro} = max({{0, {request}}}), or another expression that is a number for every job"
    )


def _many(failed: Sequence[Ad], of: Sequence[Ad]) -> str:
    shown = f"a job with {said(failed[0])}"
    return f"every job, such as {shown}" if len(failed) == len(of) else shown


def amounts_said(amounts: Mapping[str, Any]) -> str:
    """Amounts of assets, for people."""
    return ", ".join(f"{asset} = {plain(amount)}" for asset, amount in amounts.items())


def plain(amount: Any) -> str:
    """An amount for people: a whole number as it is, of others six digits."""
    if not isinstance(amount, (int, float)):
        return "no number"
    return str(int(amount)) if math.isfinite(amount) and amount == int(amount) else f"{amount:g}"
