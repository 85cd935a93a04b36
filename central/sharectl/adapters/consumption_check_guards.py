"""Checks of requests that are no amounts: the negotiator is to refuse them, and not to match them in vain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sharectl.adapters.consumption_check_requests import sizes, slot_ad, smallest
from sharectl.adapters.consumption_check_settings import Setting
from sharectl.adapters.consumption_check_subject import Node, SlotType, Subject, left_to_htcondor, typed
from sharectl.adapters.snippet_subject import Finding

_NOT_A_NUMBER, _TEXT = 'real("NaN")', '"1"'
_AMOUNTS = ("0", "1", "1048576")
"""Of which a policy makes different amounts if it asks what the job requests."""
_HAPPENS = {
    _NOT_A_NUMBER: "the negotiator matches it, and then takes the slot for used up: other jobs get nothing of it in "
    "that cycle, nor in later ones where the node refuses the claim",
    _TEXT: "it is matched in every cycle and never starts, and other jobs get nothing of what the policy takes for it",
}


def unguarded(subject: Subject) -> Iterator[Finding]:
    """Policies that let requests through which are no amounts; negative ones are refused, or run as the least amount.

    cp_sufficient_assets asks whether the slot has less than what is consumed, which it has not of NaN, and
    assign_preserve_integers makes the smallest integer of what is left. quantize reads a text as a number, but no dynamic
    slot satisfies a job that asks for a text. Seen on both versions.
    """
    for node, slot in subject.sound:
        told_elsewhere = left_to_htcondor(node, slot)
        for request in _HAPPENS:
            through = {
                asset: policy
                for asset, policy in slot.policies.items()
                if asset not in told_elsewhere and request in _let_through(subject, node, slot, asset)
            }
            if through:
                yield _finding(slot, through, request)
                break


def guarded(asset: str, text: str) -> str:
    """The policy as `sharectl consumption render` would write it."""
    return f"ifThenElse((TARGET.Request{asset} ?: 0) >= 0, {' '.join(text.split())}, -1)"


def _finding(slot: SlotType, through: Mapping[str, Setting], request: str) -> Finding:
    knobs = [_knob(slot, policy) for policy in through.values()]
    # The one that is named is one that a file sets, if any does.
    asset, policy = min(through.items(), key=lambda one: one[1].is_default)
    shown = guarded(asset, policy.text)
    return Finding(
        "requests",
        slot.policy.place if policy.is_default else policy.place,
        f"{', '.join(knobs)}: a job with Request{asset} = {request} passes: {_HAPPENS[request]}",
        f"write {_knob(slot, policy)} = {shown}"
        + (", and the others likewise" if len(knobs) > 1 else "")
        + ", which refuses such jobs (sharectl consumption render writes it)",
        advice=True,
    )


def _knob(slot: SlotType, policy: Setting) -> str:
    """The knob's name, also where none is written."""
    if not policy.is_default:
        return policy.macro
    return (f"SLOT_TYPE_{slot.number}_" if typed(slot.policy.macro) else "") + policy.macro.upper()


def _let_through(subject: Subject, node: Node, slot: SlotType, asset: str) -> set[str]:
    """Requests of `_HAPPENS` that the policy makes something else of than a refusal."""
    (*_, whole), _ = sizes(node, slot, subject.size)
    one = smallest(slot.policies, with_custom=True)
    asked = (_NOT_A_NUMBER, _TEXT, *_AMOUNTS)
    jobs = [{**one, f"Request{asset}": request} for request in asked]
    rows = subject.htcondor.evaluate([slot.policies[asset].text], [slot_ad(node, slot, whole)], jobs)[0]
    values = dict(zip(asked, (rows or [[]])[0]))
    found = set()
    if _is_amount(values.get(_NOT_A_NUMBER)) is None:
        found.add(_NOT_A_NUMBER)
    if _is_amount(values.get(_TEXT)) and len({str(values.get(amount)) for amount in _AMOUNTS}) > 1:
        found.add(_TEXT)
    return found


def _is_amount(value: Any) -> object:
    """Whether it is one that a slot may have; None if it is NaN, which passes for one."""
    if not isinstance(value, (int, float)):
        return False
    return None if math.isnan(value) else 0 <= value < math.inf
