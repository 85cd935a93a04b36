"""What matches cost and how many claims there are, as JSON content and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, Optional

from sharectl.core.claim_capacity import Group, GroupCost, Offer, claims_within, counted, leftover_claims
from sharectl.core.claim_offers import Priced, PricedJobs, PricedSlots
from sharectl.core.match_cost import STARTD_LEAST, Match, reasons
from sharectl.report.match_cost_verdicts import verdicts


def priced(found: Priced, empty: Mapping[tuple[int, int], Match]) -> dict[str, Any]:
    """Keys: slots, jobs (kinds of them), matches (one for each pair, by their numbers), notes.

    Parameters
    ----------
    empty
        Matches with the empty slots, of the pairs that make none.
    """
    return {
        "slots": [_slots(slots) for slots in found.slots],
        "jobs": [_jobs(jobs) for jobs in found.jobs],
        "matches": [
            {
                "slots": slots,
                "jobs": jobs,
                **_match(match, found.slots[slots].num_claims, empty.get((slots, jobs))),
            }
            for (slots, jobs), match in sorted(found.matches.items())
        ],
        "notes": list(found.notes),
    }


def sequence(found: Iterable[tuple[Sequence[str], Sequence[Match]]], jobs: Sequence[str]) -> dict[str, Any]:
    """Key sequences: for each kind of slot its matches in the order of the jobs, and the sum of their costs."""
    return {
        "sequences": [
            {
                "slots": list(names),
                "cost": sum(match.cost for match in matches if match.cost is not None),
                "matches": [{"job": job, **_match(match, None)} for job, match in zip(jobs, matches)],
            }
            for names, matches in found
        ]
    }


def groups(costs: Sequence[GroupCost]) -> list[dict[str, Any]]:
    """Each group with its sums, and what they mean for it, key verdicts."""
    return [
        {
            **asdict(cost),
            **asdict(cost.group),
            "room": cost.group.room,
            "quota_below_every_weight": cost.quota_below_every_weight,
            "one_match_at_a_time": cost.one_match_at_a_time,
            "quota_below_every_cost": cost.quota_below_every_cost,
            "past_quota": cost.past_quota,
            "verdicts": verdicts(cost),
        }
        for cost in costs
    ]


def capacity(
    smallest: Sequence[tuple[PricedSlots, Optional[Offer]]],
    known: Sequence[Group],
    *,
    leftovers: bool,
    empty: bool,
) -> dict[str, Any]:
    """Keys: slots, types, groups, leftovers, claims: how many claims of the smallest request there are.

    Parameters
    ----------
    smallest
        Each kind of slot and what it makes of the smallest request; None if that takes nothing that can be counted.
    leftovers
        Whether schedds use what is left of slots.
    empty
        Whether slots are taken as they are when nothing runs on them.
    """
    free = [offer for slots, offer in smallest if offer is not None and not slots.state]
    by_type: dict[Optional[int], list[tuple[PricedSlots, Optional[Offer]]]] = {}
    for slots, offer in smallest:
        by_type.setdefault(slots.slot_type, []).append((slots, offer))
    return {
        "claims": _total(smallest),
        "types": [
            {
                "slot_type": slot_type,
                "slots": sum(len(slots.names) for slots, _ in members),
                "policy_slots": sum(len(slots.names) for slots, _ in members if slots.support.supported),
                "claims": _total(members),
                "weight": _weight(members),
            }
            for slot_type, members in sorted(
                by_type.items(), key=lambda item: (item[0] is None, item[0] or 0)
            )
        ],
        "leftovers": leftovers if known else None,
        "groups": [_room(group, free, leftovers=leftovers) for group in known],
        "slots": [{**_slots(slots), **_claims(slots, offer, empty=empty)} for slots, offer in smallest],
    }


def shapes(
    found: Priced,
    named: Sequence[tuple[PricedJobs, Optional[Group]]],
    empty: Mapping[tuple[int, int], Match],
) -> list[dict[str, Any]]:
    """Each kind of job that was asked for: claims on all slots as they are, and within its group's quota."""
    waiting = {job for (_, job), match in empty.items() if not match.refused}
    return [
        {
            **_jobs(jobs),
            "quota_group": group.name if group is not None else None,
            "slots": sum(offer.slots for offer in taken),
            "claims": sum(offer.slots * offer.match.fits for offer in offers) if counted(offers) else None,
            "fits_empty_slot": True
            if number in waiting or any(offer.match.fits for offer in taken)
            else None
            if taken
            else False,
            "costs": sorted({offer.match.cost for offer in taken if offer.match.cost is not None}),
            "claims_within_quota": _room(group, offers, leftovers=False)["claims"]
            if group is not None
            else None,
        }
        for number, (jobs, group) in enumerate(named)
        for offers in [found.offers(number)]
        for taken in [[offer for offer in offers if offer.match.fits or not offer.match.fits_known]]
    ]


def _slots(slots: PricedSlots) -> dict[str, Any]:
    return {
        "names": list(slots.names),
        "count": len(slots.names),
        "slot_type": slots.slot_type,
        "state": slots.state or None,
        "kind": slots.support.kind.value,
        "no_policy_because": list(slots.support.why_not),
        "assets": dict(slots.support.assets),
        "num_claims": slots.num_claims,
    }


def _jobs(jobs: PricedJobs) -> dict[str, Any]:
    return {"names": list(jobs.names), "count": jobs.count, "accounting_group": jobs.accounting_group or None}


def _match(match: Match, num_claims: Optional[int], empty: Optional[Match] = None) -> dict[str, Any]:
    claim = match.claim
    return {
        "consumed": _numbers(match.consumed),
        "cost": match.cost,
        "weight_before": claim.weight_before if claim else None,
        "weight_after": claim.weight_after if claim else None,
        "remaining": dict(match.remaining),
        "fits": match.fits if match.fits_known else None,
        "fits_in_a_cycle": None
        if not match.fits_known
        else match.fits
        if num_claims is None
        else min(match.fits, num_claims),
        "at_least": match.at_least,
        "usage": match.usage,
        "startd_takes_more": _raised(match),
        "refused": reasons(match, empty),
    }


def _numbers(consumed: Mapping[str, Optional[float]]) -> dict[str, Optional[float]]:
    """What is taken; None where that is no number, such as NaN, of which JSON has none."""
    return {
        asset: amount if amount is not None and isfinite(amount) else None
        for asset, amount in consumed.items()
    }


def _raised(match: Match) -> list[str]:
    """Assets of which the startd takes more than the policy."""
    return [
        asset
        for asset, amount in match.consumed.items()
        if amount is not None and 0 <= amount < STARTD_LEAST.get(asset.lower(), 0)
    ]


def _claims(slots: PricedSlots, offer: Optional[Offer], *, empty: bool = False) -> dict[str, Any]:
    """What the smallest request takes of a slot, and how many of it there can be."""
    if offer is None or slots.state:
        return {
            **dict.fromkeys(("claims_each", "claims", "claims_in_a_cycle"), 0 if slots.state else None),
            "cost": None,
            "weight": slots.weight,
            "consumed": {},
            "because": slots.state or "no smallest request is matched",
        }
    if not offer.match.fits_known:
        return {
            **dict.fromkeys(("claims_each", "claims", "claims_in_a_cycle")),
            "cost": offer.match.cost,
            "weight": slots.weight,
            "consumed": {},
            "because": "what it has is not known",
        }
    fits = offer.match.fits
    cycle = {True: slots.num_claims, False: 1}[slots.support.supported]
    return {
        "claims_each": fits,
        "claims": fits * offer.slots,
        "claims_in_a_cycle": fits if cycle is None else min(fits, cycle),
        "cost": offer.match.cost,
        "weight": slots.weight,
        "consumed": _numbers(offer.match.consumed),
        "because": "; ".join(reasons(offer.match, offer.match if empty else None)),
    }


def _total(members: Iterable[tuple[PricedSlots, Optional[Offer]]]) -> Optional[int]:
    """Claims of slots; None if one of them cannot be counted."""
    claims = [_claims(slots, offer)["claims"] for slots, offer in members]
    return None if None in claims else sum(claims)


def _weight(members: Iterable[tuple[PricedSlots, Optional[Offer]]]) -> Optional[float]:
    weights = [(len(slots.names), slots.weight) for slots, _ in members]
    return (
        None
        if any(weight is None for _, weight in weights)
        else sum(count * (weight or 0.0) for count, weight in weights)
    )


def _room(group: Group, offers: Sequence[Offer], *, leftovers: bool) -> dict[str, Any]:
    """Claims of a group: its room by cost, or what the slots have; all that they have for the root group."""
    room = group.room if group.has_quota_of_its_own else float("inf")
    known = {**asdict(group), "room": group.room}
    if room is None or not counted(offers):
        return {**known, "claims": None, "leftover_claims": None, "past_quota": None}
    unasked, usage = leftover_claims(room, offers) if leftovers else (None, 0.0)
    return {
        **known,
        "claims": claims_within(room, offers),
        "leftover_claims": unasked,
        "past_quota": max(0.0, usage - room) if group.has_quota_of_its_own else None,
    }
