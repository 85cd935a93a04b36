"""Checks of SLOT_WEIGHT, by trial: the negotiator can evaluate it in every state, and it follows from the policy.

A match costs the weight before less the weight after (cp_deduct_assets in src/condor_utils/consumption_policy.cpp), so the
weight is to say what a slot can still do: more than nothing while a claim fits, and nothing that no claim can use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Optional

from sharectl.adapters.consumption_check_filling import Filled, after, filled_slots
from sharectl.adapters.consumption_check_requests import (
    Ad,
    Amounts,
    bare_minimum,
    dynamic_slot_ad,
    sizes,
    slot_ad,
)
from sharectl.adapters.consumption_check_subject import Node, SlotType, Subject
from sharectl.adapters.consumption_check_trials import amounts_said, plain, said
from sharectl.adapters.snippet_subject import Finding
from sharectl.core.references import TARGET, Reference, references

_CLOCK = re.compile(r"\b(time|random|formatTime)\s*\(|\bCurrentTime\b", re.IGNORECASE)
_REMEDY = (
    "make the weight what the policy makes of the slot, such as the least of floor(asset / smallest charge) over all "
    "assets that the slot can run out of (sharectl consumption render writes it)"
)
_ALLOWED = ("CurrentTime", "SlotWeight", "PartitionableSlot", "DynamicSlot", "SlotTypeID")


def evaluable(subject: Subject) -> Iterator[Finding]:
    """Weights that are no number in some state of the slot.

    On an empty slot, the negotiator takes its own SLOT_WEIGHT instead; after a match it ends ("Failed to evaluate
    SlotWeight"), is started again, and ends again. Seen with 8 / Cpus on both versions.
    """
    for node, slot in subject.sound:
        amounts, _ = sizes(node, slot, subject.size)
        whole = amounts[-1]
        (full,) = _weights(subject, [slot_ad(node, slot, whole)])
        if _number(full) is None:
            if not _others(subject, node, slot):
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} is {_word(full)} on an empty slot: the negotiator takes its own SLOT_WEIGHT instead",
                    "write an expression over Cpus, Memory, Disk and the slot's custom resources that is a number",
                    advice=True,
                )
            continue
        states = [{**whole, **dict.fromkeys(gone, 0.0)} for gone in _subsets(tuple(whole))]
        weights = _weights(subject, [slot_ad(node, slot, whole, left) for left in states])
        for left, weight in zip(states, weights):
            value = _number(weight)
            if value is None:
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} is {_word(weight)} where {amounts_said(_gone(left))}: the negotiator ends there "
                    "(Failed to evaluate SlotWeight), is started again, and ends again",
                    "make it a number for a slot that has run out of anything: nothing is divided by what can be 0",
                )
                break
            if value < 0:
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} is {plain(value)} where {amounts_said(_gone(left))}: the accountant counts a negative weight "
                    "as 1",
                    f"write max({{0, {slot.weight.text}}})",
                    advice=True,
                )
                break


def steady(subject: Subject) -> Iterator[Finding]:
    """Weights that change without a match, or do not change by one."""
    for node, slot in subject.sound:
        text = subject.readable[slot.weight.text]
        if match := _CLOCK.search(text):
            yield Finding(
                "weight",
                slot.weight.place,
                f"{slot.weight.macro} depends on {match[0].rstrip('(').strip()}: it may change while a match is made, and the "
                "change is added to what the job is charged",
                "make the weight of assets only",
                advice=True,
            )
        for reference in _others(subject, node, slot):
            yield Finding(
                "weight",
                slot.weight.place,
                f"{slot.weight.macro} asks for {reference.name}: the negotiator deducts assets only, so it has the old value "
                "for all matches of a cycle, or none",
                "make the weight of Cpus, Memory, Disk and the slot's custom resources only",
                advice=True,
            )


def follows(subject: Subject) -> Iterator[Finding]:
    """Weights that say something else than the policy: of what still fits, and of what a claim takes."""
    for found in filled_slots(subject):
        node, slot = found[0].node, found[0].slot
        (full,) = _weights(subject, [slot_ad(node, slot, found[-1].whole)])
        if _number(full) is None:
            continue
        for problem in (_free, _stranded, _charged_anew):
            told = [problem(subject, filled) for filled in found]
            if told and all(told):
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} = {_flat(slot.weight.text)}: {told[0]}",
                    _REMEDY,
                    advice=True,
                )
                break


def _free(_: Subject, filled: Filled) -> Optional[str]:
    """A match that costs nothing, though it takes something."""
    left = dict(filled.whole)
    for match in filled.claims:
        if match.claim is not None and match.cost is not None and match.cost == 0:
            return (
                f"where the slot has {amounts_said(left)}, the policy lets a job with {said(filled.job)} in, and the weight "
                f"goes from {plain(match.claim.weight_before)} to {plain(match.claim.weight_after)}: the match costs nothing, and no quota "
                "or share holds such jobs back"
            )
        left = after(left, match)
    return None


def _stranded(subject: Subject, filled: Filled) -> Optional[str]:
    """Weight that is left where no job fits any more."""
    last = filled.claims[-1].claim
    weight, price = last.weight_after if last else None, filled.cost
    if not filled.is_full or weight is None or price is None or weight < price:
        return None
    ad = slot_ad(filled.node, filled.slot, filled.whole, filled.left)
    (tried,) = subject.matches([ad], bare_minimum(tuple(filled.whole)))
    if any(not match.refused for match in tried):
        return None
    return (
        f"after {len(filled.claims)} jobs with {said(filled.job)} the slot has {amounts_said(filled.left)}, and by the policy "
        f"no further job fits (W = 0), but the weight is {plain(weight)}: quotas and shares count what nobody can use"
    )


def _charged_anew(subject: Subject, filled: Filled) -> Optional[str]:
    """A dynamic slot whose own weight is not what the match has cost.

    Accountant::CheckMatches counts the dynamic slot's SlotWeight, from the cycle after the match on.
    """
    claim = filled.claims[0].claim
    if claim is None or claim.cost is None:
        return None
    ad = dynamic_slot_ad(filled.node, filled.slot, claim.consumed, filled.whole)
    weight = _number(_weights(subject, [ad])[0])
    if weight is not None and abs(weight - claim.cost) <= max(1e-6, 1e-3 * abs(claim.cost)):
        return None
    shown = "no number, so 1" if weight is None else f"{plain(weight)}"
    return (
        f"a job with {said(filled.job)} costs {plain(claim.cost)} when it is matched in a slot of {amounts_said(filled.whole)}, and "
        f"from the next cycle on the accountant counts the weight of its dynamic slot, {shown}"
    )


def _others(subject: Subject, node: Node, slot: SlotType) -> list[Reference]:
    """Attributes that the weight asks the slot for, and that no match changes; TARGET's are the check of scopes'."""
    deducted = {asset.lower() for asset in slot.policies}
    known = {f"{prefix}{asset}" for prefix in ("total", "totalslot") for asset in deducted}
    known |= {name.lower() for name in (*node.attributes, *_ALLOWED)} | deducted
    return [
        reference
        for reference in references(subject.readable[slot.weight.text])
        if reference.scope != TARGET
        and reference.name.lower() not in known
        and not reference.name.lower().startswith("request")
    ]


def _weights(subject: Subject, ads: Sequence[Ad]) -> list[Any]:
    rows = subject.htcondor.evaluate(["MY.SlotWeight"], ads, [{}])[0] or []
    return [value for (value,) in rows]


def _subsets(assets: Sequence[str]) -> list[tuple[str, ...]]:
    """Assets that have run out: each, each pair, and all."""
    return [(), *((asset,) for asset in assets), *combinations(assets, 2), tuple(assets)]


def _gone(left: Amounts) -> Amounts:
    return {asset: amount for asset, amount in left.items() if not amount} or left


def _number(value: Any) -> Optional[float]:
    if isinstance(value, (int, float)) and abs(value) < float("inf"):
        return float(value)
    return None


def _word(value: Any) -> str:
    return value if value in ("undefined", "error") else f"{value!r}, no number"


def _flat(text: str, most: int = 100) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 2] + " …"
