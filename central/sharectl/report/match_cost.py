"""Costs of matches and numbers of claims, as JSON content and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.consumption.cost import (
    STARTD_LEAST,
    GroupCost,
    Match,
    Offer,
    Priced,
    PricedJobs,
    PricedSlots,
    claims_within,
    leftover_claims,
    told_apart,
)
from sharectl.report.tables import print_table, printable
from sharectl.shares.quotas import ROOT, Group

UNKNOWN, NONE = "?", "-"
_REQUIREMENTS = "Requirements"

# ---- JSON content


def priced(found: Priced) -> dict[str, Any]:
    """Keys: slots, jobs (kinds of them), matches (one for each pair, by their numbers), notes."""
    counted_to = {
        slots: match.fits for (slots, _), match in found.matches.items() if match.at_least
    }
    return {
        "slots": [_slots(slots) for slots in found.slots],
        "jobs": [_jobs(jobs) for jobs in found.jobs],
        "matches": [
            {"slots": pair[0], "jobs": pair[1], **_match(found, pair)}
            for pair in sorted(found.matches)
        ],
        "notes": [_counted_to(found.slots[slots], most) for slots, most in counted_to.items()],
    }


def groups(costs: Sequence[GroupCost]) -> list[dict[str, Any]]:
    """Each group with its sums."""
    return [
        {
            **asdict(cost),
            **asdict(cost.group),
            "room": cost.group.room,
            "quota_below_every_weight": cost.quota_below_every_weight,
            "past_quota": cost.past_quota,
        }
        for cost in costs
    ]


Smallest = Sequence[tuple[PricedSlots, Optional[Offer]]]
"""Each kind of slot, and its offer to the smallest request; None if that takes nothing."""


def capacity(
    smallest: Smallest, known: Sequence[Group], *, leftovers: bool, empty: bool
) -> dict[str, Any]:
    """Keys: claims, types, leftovers, groups, slots, notes: claims of the smallest request.

    Parameters
    ----------
    leftovers
        Schedds use the rest of slots.
    empty
        Slots are taken as they are when nothing runs on them.
    """
    free = [offer for slots, offer in smallest if offer is not None and not slots.state]
    by_type: dict[Optional[int], list[tuple[PricedSlots, Optional[Offer]]]] = {}
    for slots, offer in smallest:
        by_type.setdefault(slots.slot_type, []).append((slots, offer))
    in_order = sorted(by_type.items(), key=lambda item: (item[0] is None, item[0] or 0))
    return {
        "claims": _sum(_claims(*pair) for pair in smallest),
        "types": [{"slot_type": number, **_of_type(members)} for number, members in in_order],
        "leftovers": leftovers if known else None,
        "groups": [_room(group, free, leftovers=leftovers) for group in known],
        "slots": [{**_slots(slots), **_smallest(slots, offer, empty)} for slots, offer in smallest],
        "notes": [
            _counted_to(slots, offer.match.fits)
            for slots, offer in smallest
            if offer is not None and offer.match.at_least
        ],
    }


def shapes(found: Priced, named: Sequence[Optional[Group]]) -> list[dict[str, Any]]:
    """Each kind of jobs, with its group: claims on all slots as they are, and within the quota."""
    return [
        {
            **_jobs(jobs),
            "quota_group": group.name if group is not None else None,
            "slots": sum(offer.slots for offer in offers),
            "claims": sum(offer.slots * offer.match.fits for offer in offers),
            "fits_empty_slot": found.fits_empty(number),
            "costs": sorted({o.match.cost for o in offers if o.match.cost is not None}),
            "claims_within_quota": _room(group, offers)["claims"] if group is not None else None,
        }
        for number, (jobs, group) in enumerate(zip(found.jobs, named))
        for offers in [found.offers(number)]
    ]


def _counted_to(slots: PricedSlots, most: int) -> str:
    return f"{slots.names[0]}: claims are counted up to {most} a slot; it may have more"


def _slots(slots: PricedSlots) -> dict[str, Any]:
    return {
        "names": list(slots.names),
        "count": len(slots.names),
        "slot_type": slots.slot_type,
        "state": slots.state or None,
        **asdict(slots.slot),
        "kind": slots.slot.kind.value,
        "num_claims": slots.num_claims,
    }


def _jobs(jobs: PricedJobs) -> dict[str, Any]:
    return {
        "names": list(jobs.names),
        "count": jobs.count,
        "accounting_group": jobs.accounting_group or None,
    }


def _match(found: Priced, pair: tuple[int, int]) -> dict[str, Any]:
    match, slots = found.matches[pair], found.slots[pair[0]]
    return {
        "consumed": dict(match.consumed),
        "cost": match.cost,
        "weight_before": match.weight_before,
        "weight_after": match.weight_after,
        "remaining": dict(match.remaining),
        "fits": match.fits,
        "fits_in_a_cycle": _in_a_cycle(slots, match),
        "at_least": match.at_least,
        "usage": match.usage,
        "startd_takes_more": [
            asset
            for asset, amount in match.consumed.items()
            if amount is not None and 0 <= amount < STARTD_LEAST.get(asset.lower(), 0)
        ],
        "refused": [str(reason) for reason in told_apart(match, found.empty.get(pair))],
    }


def _in_a_cycle(slots: PricedSlots, match: Match) -> int:
    """Jobs of one cycle; without a policy the negotiator makes one match, and leftovers follow."""
    most = slots.num_claims if slots.slot.has_policy else 1
    return match.fits if most is None else min(match.fits, most)


def _claims(slots: PricedSlots, offer: Optional[Offer]) -> Optional[int]:
    """Claims of the smallest request; None if they cannot be counted."""
    return 0 if slots.state else None if offer is None else offer.slots * offer.match.fits


def _smallest(slots: PricedSlots, offer: Optional[Offer], empty: bool) -> dict[str, Any]:  # noqa: FBT001
    if offer is None or slots.state:
        nothing = dict.fromkeys(
            ("claims_each", "claims", "claims_in_a_cycle"), _claims(slots, offer)
        )
        because = slots.state or "no smallest request is matched"
        return {**nothing, "cost": None, "weight": slots.weight, "consumed": {}, "because": because}
    match = offer.match
    return {
        "claims_each": match.fits,
        "claims": _claims(slots, offer),
        "claims_in_a_cycle": _in_a_cycle(slots, match),
        "cost": match.cost,
        "weight": slots.weight,
        "consumed": dict(match.consumed),
        "because": "; ".join(map(str, told_apart(match, match if empty else None))),
    }


def _of_type(members: Smallest) -> dict[str, Any]:
    weights = [
        None if slots.weight is None else len(slots.names) * slots.weight for slots, _ in members
    ]
    return {
        "slots": sum(len(slots.names) for slots, _ in members),
        "policy_slots": sum(len(s.names) for s, _ in members if s.slot.has_policy),
        "claims": _sum(_claims(*pair) for pair in members),
        "weight": _sum(weights),
    }


def _sum(amounts: Iterable[Any]) -> Any:
    """Sum; None if an amount is unknown."""
    every = list(amounts)
    return None if None in every else sum(every)


def _room(group: Group, offers: Sequence[Offer], *, leftovers: bool = False) -> dict[str, Any]:
    """Claims of a group: its room by cost, or all that slots have; for the root group all."""
    room = group.room if group.has_quota_of_its_own else float("inf")
    known = {**asdict(group), "room": group.room}
    if room is None:
        return {**known, "claims": None, "leftover_claims": None, "past_quota": None}
    unasked, usage = leftover_claims(room, offers) if leftovers else (None, 0.0)
    return {
        **known,
        "claims": claims_within(room, offers),
        "leftover_claims": unasked,
        "past_quota": max(0.0, usage - room) if group.has_quota_of_its_own else None,
    }


# ---- tables


def cost_tables(content: Mapping[str, Any], to: TextIO) -> None:
    """Print `priced`, or `groups` in its place."""
    if "groups" in content:
        print_table(
            "groups, in weighted slots",
            (
                *("group", "quota", "used", "surplus", "jobs", "no slot", "their cost"),
                *("usage later", "least cost", "least weight", "past quota"),
            ),
            [_group_row(group) for group in content["groups"]],
            to,
        )
    elif content["jobs"]:
        slots, jobs = content["slots"], content["jobs"]
        state = "empty slot" if content.get("empty") else "slot as it is"
        print_table(
            f"matches, each job with each {state}",
            ("slots", "jobs", "takes", "cost", "usage", "remains", "fit", "in a cycle", "refused"),
            [
                (_some(slots[match["slots"]]), _some(jobs[match["jobs"]]), *_match_row(match))
                for match in content["matches"]
            ],
            to,
        )
        for slot in slots:
            if slot["no_policy_because"] and slot["kind"].startswith("partitionable"):
                reasons = ", ".join(slot["no_policy_because"])
                to.write(f"{printable(_some(slot))}: no policy: {printable(reasons)}\n")
    if not content["jobs"]:
        _no_job(content, to)
    to.writelines(f"note: {printable(note)}\n" for note in content["notes"])


def capacity_tables(content: Mapping[str, Any], to: TextIO) -> None:
    """Print `capacity` and `shapes`."""
    state = "on empty slots" if content.get("empty") else "now"
    print_table(
        f"claims of the smallest request {state}: {shown_number(content['claims'])}",
        ("slot type", "slots", "with policy", "claims", "weight"),
        [_cells(row, "slot_type slots policy_slots claims weight") for row in content["types"]],
        to,
    )
    if content["groups"]:
        print_table(
            "by group's quota, in weighted slots",
            ("group", "quota", "used", "surplus", "claims", "through leftovers", "past quota"),
            [
                (
                    *_cells(group, "name quota used surplus claims"),
                    shown_number(group["leftover_claims"]) if content["leftovers"] else NONE,
                    _past_quota(group),
                )
                for group in content["groups"]
            ],
            to,
        )
    if content.get("jobs"):
        print_table(
            "jobs that were asked for",
            (
                *("jobs", "of them", "group", "slots", "claims", "within quota", "cost"),
                "on an empty slot",
            ),
            [
                (
                    _some(job),
                    *_cells(job, "count quota_group slots claims claims_within_quota"),
                    " to ".join(map(shown_number, sorted({*job["costs"][:1], *job["costs"][-1:]})))
                    or NONE,
                    "fits" if job["fits_empty_slot"] else "never fits",
                )
                for job in content["jobs"]
            ],
            to,
        )
    elif "jobs" in content:
        _no_job(content, to)
    print_table(
        "by slot",
        (
            *("slots", "kind", "weight", "claims each", "in a cycle", "cost of one", "takes"),
            "because",
        ),
        [
            (
                _some(slot),
                *_cells(slot, "kind weight claims_each claims_in_a_cycle"),
                shown_number(slot["cost"]) if slot["claims_each"] else NONE,
                _amounts(slot["consumed"]),
                slot["because"] or NONE,
            )
            for slot in content["slots"]
        ],
        to,
    )
    to.writelines(f"note: {printable(note)}\n" for note in content["notes"])


def shown_number(value: Any) -> str:
    """``value`` for people."""
    return UNKNOWN if value is None else f"{value:.6g}" if type(value) is float else str(value)


def _cells(row: Mapping[str, Any], keys: str) -> list[str]:
    return [shown_number(row[key]) for key in keys.split()]


def _no_job(content: Mapping[str, Any], to: TextIO) -> None:
    constraint = content.get("job_constraint")
    which = "that waits for a slot meets --job-constraint" if constraint else "waits for a slot"
    to.write(f"no job {which}: there is nothing to match\n")


def _group_row(group: Mapping[str, Any]) -> list[str]:
    figures = [
        (key, differs and group[differs])
        for key, differs in (
            ("cost", "cost_differs"),
            ("usage", "usage_differs"),
            ("smallest_cost", ""),
            ("smallest_weight", ""),
        )
    ]
    matched = group["jobs"] > group["jobs_without_slot"]
    return [
        *_cells(group, "name quota used surplus jobs jobs_without_slot"),
        *(
            f"{'>= ' if bound and group[key] is not None else ''}{shown_number(group[key])}"
            if matched
            else NONE
            for key, bound in figures
        ),
        _past_quota(group),
    ]


def _match_row(match: Mapping[str, Any]) -> list[str]:
    others = [reason for reason in match["refused"] if not reason.endswith(_REQUIREMENTS)]
    # Requirements mostly refuse because something is short.
    reasons = "; ".join(others or match["refused"])
    if reasons:
        return [_amounts(match["consumed"]), *[NONE] * 3, "0", "0", reasons]
    return [
        _amounts(match["consumed"]),
        *_cells(match, "cost usage"),
        _amounts(match["remaining"]),
        f"{'>= ' if match['at_least'] else ''}{match['fits']}",
        str(match["fits_in_a_cycle"]),
        NONE,
    ]


def _past_quota(group: Mapping[str, Any]) -> str:
    return NONE if group["name"] == ROOT else shown_number(group["past_quota"])


def _some(kind: Mapping[str, Any]) -> str:
    """The first name, and the number of them."""
    first, count = str(kind["names"][0]), kind["count"]
    return f"{first} ({count} alike)" if count > 1 else first


def _amounts(amounts: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={shown_number(value)}" for name, value in amounts.items()) or NONE
