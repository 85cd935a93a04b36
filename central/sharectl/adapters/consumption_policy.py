"""What the negotiator makes of slots and jobs that are given as ads: consumption policies and match costs.

Ads are name → expression, as text. They are evaluated in HTCondor's library, in the child process, since they may come
from anyone; the arithmetic is `sharectl.core.match_cost`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Optional

from sharectl.adapters.condor_process import CondorProcess
from sharectl.core.claim_offers import SlotKind, Support
from sharectl.core.match_cost import (
    Amount,
    Look,
    Match,
    Slot,
    Trial,
    again_and_again,
    one_after_another,
    whole_if_it_is,
)

Ad = Mapping[str, str]

MOST_CLAIMS = 10_000
"""Matches that are counted on one slot at most: a policy may charge next to nothing."""
DEFAULT_WEIGHT = "Cpus"
"""SLOT_WEIGHT of HTCondor: what the negotiator takes for a slot whose own is no number."""

_LOOKS_AT_ONCE = 2000
"""A question of 0.1 s: the deadline is for what hangs."""
_POLICY, _LEFTOVER = "Consumption", "_sharectl_leftover_"
_LEFTOVERS = {
    "cpus": "quantize(ifThenElse(isUndefined(TARGET.RequestCpus), 1, TARGET.RequestCpus), {1})",
    "memory": "quantize(TARGET.RequestMemory, {128})",
    "disk": "quantize(TARGET.RequestDisk, {1024})",
}
"""What a startd takes for a job off a slot without policy: its default MODIFY_REQUEST_EXPR_REQUEST…"""


def supports(process: CondorProcess, slots: Sequence[Ad], weight: str = DEFAULT_WEIGHT) -> list[Support]:
    """For each slot, whether the negotiator follows a consumption policy on it, and why not."""
    facts = process.keep([_asked(slot, _POLICY) for slot in slots], [], weight)
    return [_support(fact) for fact in facts]


def matches(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    *,
    most: int = MOST_CLAIMS,
    num_claims: Optional[Sequence[Optional[int]]] = None,
    weight: str = DEFAULT_WEIGHT,
) -> list[list[Match]]:
    """What each slot, as it is, makes of each job: a list for each slot.

    Parameters
    ----------
    most
        Count no more jobs than this; 1 if only costs are wanted.
    num_claims
        For each slot, claim ids that it has for a cycle; None where it is not known.
    weight
        SLOT_WEIGHT of the negotiator.

    Raises
    ------
    sharectl.adapters.condor_process.UnreadableConfigurationError
        If the library ended, or did not answer by its deadline: an ad may be made to do that.
    """
    return [row for _, row in judged(process, slots, jobs, most=most, num_claims=num_claims, weight=weight)]


def judged(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    *,
    most: int = MOST_CLAIMS,
    num_claims: Optional[Sequence[Optional[int]]] = None,
    weight: str = DEFAULT_WEIGHT,
) -> list[tuple[Support, list[Match]]]:
    """Each slot by itself, and what it makes of each job; parameters and errors are those of `matches`."""
    kept = _keep(process, slots, jobs, weight, num_claims)
    trials = [
        (index, again_and_again(slot, job, most))
        for index, (_, slot) in enumerate(kept)
        for job in range(len(jobs))
    ]
    found = [match for (match,) in _results(process, trials)]
    return [
        (support, found[index * len(jobs) : (index + 1) * len(jobs)])
        for index, (support, _) in enumerate(kept)
    ]


def in_sequence(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    *,
    num_claims: Optional[Sequence[Optional[int]]] = None,
    weight: str = DEFAULT_WEIGHT,
) -> list[list[Match]]:
    """What each slot makes of the jobs one after another, as in a cycle: each finds what those before it have left.

    A job that is refused takes nothing, and the next is tried. ``fits`` is 1 or 0. The parameters are those of `matches`.
    """
    kept = _keep(process, slots, jobs, weight, num_claims)
    trials = [(index, one_after_another(slot, range(len(jobs)))) for index, (_, slot) in enumerate(kept)]
    return _results(process, trials)


def _asked(slot: Ad, charges: str) -> dict[str, object]:
    return {"ad": dict(slot), "charges": charges, "overrides": charges == _POLICY}


def _support(fact: Mapping[str, object]) -> Support:
    assets = fact["assets"]
    charged = fact["charged"]
    assert isinstance(assets, dict)  # noqa: S101 - the child says so
    assert isinstance(charged, list)  # noqa: S101
    missing = tuple(asset for asset in assets if asset not in charged)
    partitionable = fact["partitionable"]
    is_partitionable = isinstance(partitionable, (bool, int, float)) and bool(partitionable)
    named = fact["resources"] is not None
    why_not = [
        reason
        for applies, reason in (
            (not is_partitionable, "PartitionableSlot is not true"),
            (not named, "MachineResources is no text"),
            *((True, f"no Consumption{asset}") for asset in missing),
        )
        if applies
    ]
    kind = SlotKind.POLICY if not why_not else SlotKind.PARTITIONABLE if is_partitionable else SlotKind.STATIC
    return Support(kind, assets, missing, tuple(why_not))


def _keep(
    process: CondorProcess,
    slots: Sequence[Ad],
    jobs: Sequence[Ad],
    weight: str,
    num_claims: Optional[Sequence[Optional[int]]],
) -> list[tuple[Support, Slot]]:
    """The slots, which the child keeps with what they take for jobs where they have no policy."""
    found = supports(process, slots, weight)
    kept = [
        _asked(slot, _POLICY) if support.supported else _asked({**slot, **_leftovers(support)}, _LEFTOVER)
        for slot, support in zip(slots, found)
    ]
    process.keep(kept, jobs, weight)
    caps = [None] * len(slots) if num_claims is None else num_claims
    return [(support, _slot(support, cap)) for support, cap in zip(found, caps)]


def _slot(support: Support, num_claims: Optional[int]) -> Slot:
    assets = {asset: whole_if_it_is(amount) for asset, amount in support.assets.items() if amount is not None}
    claims = {SlotKind.STATIC: 1, SlotKind.POLICY: num_claims}.get(support.kind)
    return Slot(assets, support.supported, support.kind is not SlotKind.STATIC, claims)


def _leftovers(support: Support) -> dict[str, str]:
    """What a job takes of a slot without policy: all of a static one, whose assets its Requirements compare."""
    if support.kind is SlotKind.STATIC:
        return {f"{_LEFTOVER}{asset}": asset for asset in support.assets}
    return {
        f"{_LEFTOVER}{asset}": _LEFTOVERS.get(asset.lower(), _of_custom(asset)) for asset in support.assets
    }


def _of_custom(asset: str) -> str:
    return f"ifThenElse(isUndefined(TARGET.Request{asset}), 0, TARGET.Request{asset})"


def _results(process: CondorProcess, trials: Sequence[tuple[int, Trial]]) -> list[list[Match]]:
    """What each trial, on the slot of that number, comes to; they all go on by a look at a time."""
    results: list[list[Match]] = [[] for _ in trials]
    asks = {number: (slot, *next(trial)) for number, (slot, trial) in enumerate(trials)}
    while asks:
        looks = _looks(process, list(asks.values()))
        for number, look in zip(list(asks), looks):
            slot, trial = trials[number]
            try:
                asks[number] = (slot, *trial.send(look))
            except StopIteration as ended:
                results[number] = ended.value
                del asks[number]
    return results


def _looks(
    process: CondorProcess, asks: Sequence[tuple[int, int, Optional[Mapping[str, Amount]]]]
) -> Iterator[Look]:
    for start in range(0, len(asks), _LOOKS_AT_ONCE):
        for weight, consumed, slot, job in process.looks(asks[start : start + _LOOKS_AT_ONCE]):
            yield Look(weight, consumed, slot, job)
