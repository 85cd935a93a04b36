"""What matches cost and how many claims there are, as JSON content and as tables.

What costs and quotas mean for a group, in words.

Tables of what matches cost and how many claims there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
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
    fits_are_known,
    leftover_claims,
    reasons,
)
from sharectl.report.tables import print_table, printable
from sharectl.shares.quotas import ROOT, Group
from sharectl.words import counted

UNKNOWN = "?"


def verdicts(cost: GroupCost) -> list[str]:
    """What follows for the group, a line each."""
    group = cost.group
    quota = shown_number(group.quota)
    surplus = {
        "byquota": "takes surplus: what others leave unused comes on top of its quota",
        "regroup": "competes for what is left over after its quota, with the root group (autoregroup)",
        None: "whether it takes surplus is not known",
    }.get(group.surplus)
    one_by_one = (
        "on slots without policy it gets one match at a time, charged with the whole slot "
        "(none at all up to HTCondor 8.6): "
        f"its quota of {quota} is below the weight of every such slot that its jobs match "
        f"({shown_number(cost.smallest_weight_without_policy)} at least)"
    )
    running_past = (
        "may run past its quota through leftovers: "
        f"{counted(cost.leftover_claims or 0, 'claim')}, charged "
        f"{shown_number(cost.leftover_usage)} later, {shown_number(cost.past_quota)} beyond its "
        "room"
    )
    nothing = (
        f"its quota of {quota} counts for nothing: the negotiator cuts quotas to whole numbers"
    )
    above = (
        f"its quota of {quota} is below the cost of every match "
        f"({shown_number(cost.smallest_cost)} at least)"
    )
    unknown = (
        "its quota is not known: nothing is said of it (wait for a negotiation cycle, or give "
        "--quotas)"
    )
    never = cost.jobs_without_empty_slot
    waiting = cost.jobs_without_slot - never
    least, most = cost.cost_differs or (None, None)
    differs = (
        f"the same job costs {shown_number(least)} to {shown_number(most)}, by the slot that it "
        "is matched with: their cost is "
        f"{shown_number(cost.cost)} at least, as if all of them fitted where they cost least"
    )
    lines = [
        (group.quota is None and group.has_quota_of_its_own, unknown),
        (group.has_quota_of_its_own and group.quota and not group.limit, nothing),
        (cost.one_match_at_a_time, one_by_one),
        (cost.quota_below_every_cost, above),
        (cost.past_quota, running_past),
        (cost.cost_differs, differs),
        (never, f"{_share(never, cost.jobs)} no slot, not even if it were empty"),
        (waiting, f"{_share(waiting, cost.jobs)} no slot as it is, but would if one were empty"),
        (group.has_quota_of_its_own, surplus),
    ]
    return [text for applies, text in lines if applies and text]


def _share(jobs: int, every: int) -> str:
    """How many of a group's jobs, and a verb for them."""
    return f"{jobs} of {counted(every, 'job')} {'matches' if jobs == 1 else 'match'}"


def shown_number(value: Optional[float]) -> str:
    """``value`` for people."""
    return UNKNOWN if value is None else f"{value:.6g}" if type(value) is float else str(value)


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


def sequence(
    found: Iterable[tuple[Sequence[str], Sequence[Match]]], jobs: Sequence[str]
) -> dict[str, Any]:
    """Key sequences: for each kind of slot its matches in the order of the jobs, and the sum of their costs."""
    return {
        "sequences": [
            {
                "slots": list(names),
                "cost": sum(match.cost for match in matches if match.cost is not None),
                "matches": [
                    {"job": job, **_match(match, None)} for job, match in zip(jobs, matches)
                ],
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
        Each kind of slot and what it makes of the smallest request; None if that takes nothing that
        can be counted.
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
                "policy_slots": sum(
                    len(slots.names) for slots, _ in members if slots.support.supported
                ),
                "claims": _total(members),
                "weight": _weight(members),
            }
            for slot_type, members in sorted(
                by_type.items(), key=lambda item: (item[0] is None, item[0] or 0)
            )
        ],
        "leftovers": leftovers if known else None,
        "groups": [_room(group, free, leftovers=leftovers) for group in known],
        "slots": [
            {**_slots(slots), **_claims(slots, offer, empty=empty)} for slots, offer in smallest
        ],
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
            "claims": sum(offer.slots * offer.match.fits for offer in offers)
            if fits_are_known(offers)
            else None,
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
    return {
        "names": list(jobs.names),
        "count": jobs.count,
        "accounting_group": jobs.accounting_group or None,
    }


def _match(
    match: Match, num_claims: Optional[int], empty: Optional[Match] = None
) -> dict[str, Any]:
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
            **dict.fromkeys(
                ("claims_each", "claims", "claims_in_a_cycle"), 0 if slots.state else None
            ),
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
    if room is None or not fits_are_known(offers):
        return {**known, "claims": None, "leftover_claims": None, "past_quota": None}
    unasked, usage = leftover_claims(room, offers) if leftovers else (None, 0.0)
    return {
        **known,
        "claims": claims_within(room, offers),
        "leftover_claims": unasked,
        "past_quota": max(0.0, usage - room) if group.has_quota_of_its_own else None,
    }


_NONE = "-"
_REQUIREMENTS = "Requirements"
_FIGURES = (
    ("cost", "cost_differs"),
    ("usage", "usage_differs"),
    ("smallest_cost", ""),
    ("smallest_weight", ""),
)
"""Of a group, and what tells that one is a lower bound."""


def cost_tables(content: Mapping[str, Any], to: TextIO) -> None:
    """Print what `priced` or `sequence`, and `groups`, have made."""
    sequences = [found for found in content.get("sequences", ()) if found["matches"]]
    if not content.get("jobs", sequences) and not content.get("groups"):
        _no_job(content, to)
    for found in sequences:
        print_table(
            f"{_some(found['slots'])}: one after another, cost {shown_number(found['cost'])} in "
            "all",
            ("job", "takes", "cost", "remains", "refused"),
            [
                (
                    match["job"],
                    _taken(match),
                    _cost(match),
                    _remaining(match),
                    _reasons(match),
                )
                for match in found["matches"]
            ],
            to,
        )
    if content.get("jobs") and "groups" not in content:
        _matches_table(content, to)
    if content.get("groups"):
        _groups_table(content["groups"], to)
    to.writelines(f"note: {printable(note)}\n" for note in content.get("notes", ()))


def capacity_tables(content: Mapping[str, Any], to: TextIO) -> None:
    """Print what `capacity` and `shapes` have made."""
    print_table(
        f"claims of the smallest request {'on empty slots' if content.get('empty') else 'now'}: "
        f"{shown_number(content['claims'])}",
        ("slot type", "slots", "with policy", "claims", "weight"),
        [
            (
                _or(each["slot_type"]),
                each["slots"],
                each["policy_slots"],
                shown_number(each["claims"]),
                shown_number(each["weight"]),
            )
            for each in content["types"]
        ],
        to,
    )
    if content["groups"]:
        print_table(
            "by group's quota, in weighted slots",
            ("group", "quota", "used", "surplus", "claims", "through leftovers", "past quota"),
            [
                (
                    *(
                        group["name"],
                        shown_number(group["quota"]),
                        shown_number(group["used"]),
                        _or(group["surplus"]),
                    ),
                    shown_number(group["claims"]),
                    shown_number(group["leftover_claims"]) if content["leftovers"] else _NONE,
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
                "jobs",
                "of them",
                "group",
                "slots",
                "claims",
                "within quota",
                "cost",
                "on an empty slot",
            ),
            [
                (
                    *(
                        _some(job["names"]),
                        job["count"],
                        _or(job["quota_group"]),
                        job["slots"],
                        shown_number(job["claims"]),
                    ),
                    *(shown_number(job["claims_within_quota"]), _span(job["costs"])),
                    {True: "fits", False: "never fits", None: UNKNOWN}[job["fits_empty_slot"]],
                )
                for job in content["jobs"]
            ],
            to,
        )
    elif "jobs" in content:
        _no_job(content, to)
    because = ("because",) if any(slot["because"] for slot in content["slots"]) else ()
    print_table(
        "by slot",
        ("slots", "kind", "weight", "claims each", "in a cycle", "cost of one", "takes", *because),
        [
            (
                *(
                    _some(slot["names"]),
                    slot["kind"],
                    shown_number(slot["weight"]),
                    shown_number(slot["claims_each"]),
                ),
                *(
                    shown_number(slot["claims_in_a_cycle"]),
                    _NONE if slot["claims_each"] == 0 else shown_number(slot["cost"]),
                    _amounts(slot["consumed"], UNKNOWN if slot["claims_each"] is None else _NONE),
                ),
                *((slot["because"] or _NONE,) if because else ()),
            )
            for slot in content["slots"]
        ],
        to,
    )
    to.writelines(f"note: {printable(note)}\n" for note in content.get("notes", ()))


def _no_job(content: Mapping[str, Any], to: TextIO) -> None:
    which = (
        "that waits for a slot meets --job-constraint"
        if content.get("job_constraint")
        else "waits for a slot"
    )
    to.write(f"no job {which}: there is nothing to match\n")


def _matches_table(content: Mapping[str, Any], to: TextIO) -> None:
    slots, jobs = content["slots"], content["jobs"]
    print_table(
        f"matches, each job with each {'empty slot' if content.get('empty') else 'slot as it is'}",
        ("slots", "jobs", "takes", "cost", "usage", "remains", "fit", "in a cycle", "refused"),
        [
            (
                *(
                    _some(slots[match["slots"]]["names"]),
                    _some(jobs[match["jobs"]]["names"], jobs[match["jobs"]]["count"]),
                ),
                *(_taken(match), _cost(match), _usage(match), _remaining(match)),
                f"{'>= ' if match['at_least'] else ''}{shown_number(match['fits'])}",
                _in_a_cycle(slots[match["slots"]], match),
                _reasons(match),
            )
            for match in content["matches"]
        ],
        to,
    )
    for slot in slots:
        if slot["no_policy_because"] and slot["kind"].startswith("partitionable"):
            to.write(
                printable(
                    f"{_some(slot['names'])}: no policy: {', '.join(slot['no_policy_because'])}"
                )
                + "\n"
            )
    for number, slot in enumerate(slots):
        raised = {
            asset
            for match in content["matches"]
            if match["slots"] == number
            for asset in match["startd_takes_more"]
            if match["fits"] is not None and match["fits"] > (slot["assets"].get(asset) or 0)
        }
        if raised and slot["kind"] == "consumption policy":
            to.write(
                f"{printable(_some(slot['names']))}: the startd takes 1 at least of "
                f"{printable(', '.join(sorted(raised)))} for each claim, more than "
                "the policy: it refuses some of the claims that are counted here\n"
            )


def _in_a_cycle(slot: Mapping[str, Any], match: Mapping[str, Any]) -> str:
    """Jobs in one cycle: the negotiator makes one match with a slot without policy."""
    if match["fits"] is None:
        return UNKNOWN
    if slot["kind"] == "consumption policy":
        return str(match["fits_in_a_cycle"])
    return "1, then leftovers" if match["fits"] > 1 else str(match["fits"])


def _groups_table(found: Sequence[Mapping[str, Any]], to: TextIO) -> None:
    print_table(
        "groups, in weighted slots",
        (
            "group",
            "quota",
            "used",
            "surplus",
            "jobs",
            "their cost",
            "usage later",
            "least cost",
            "least weight",
            "past quota",
        ),
        [
            (
                *(
                    group["name"],
                    shown_number(group["quota"]),
                    shown_number(group["used"]),
                    _or(group["surplus"]),
                    group["jobs"],
                ),
                *(_of_jobs(group, *each) for each in _FIGURES),
                _past_quota(group),
            )
            for group in found
        ],
        to,
    )
    for group in found:
        to.writelines(f"{printable(group['name'])}: {verdict}\n" for verdict in group["verdicts"])


def _some(names: Sequence[str], count: Optional[int] = None) -> str:
    """The first name, and how many there are."""
    alike = len(names) if count is None else count
    return f"{names[0]} ({alike} alike)" if alike > 1 else str(names[0])


def _of_jobs(group: Mapping[str, Any], key: str, differs: str) -> str:
    """A figure of those jobs of a group that match a slot, if there are any."""
    if group["jobs"] == group["jobs_without_slot"]:
        return _NONE
    bound = ">= " if group[key] is not None and group.get(differs) else ""
    return f"{bound}{shown_number(group[key])}"


def _past_quota(group: Mapping[str, Any]) -> str:
    return _NONE if group["name"] == ROOT else shown_number(group["past_quota"])


def _remaining(match: Mapping[str, Any]) -> str:
    return _NONE if match["refused"] else _amounts(match["remaining"], UNKNOWN)


def _taken(match: Mapping[str, Any]) -> str:
    """What is taken; a match takes something, so that nothing told is nothing known."""
    return _amounts(match["consumed"], _NONE if match["refused"] else UNKNOWN)


def _usage(match: Mapping[str, Any]) -> str:
    return _NONE if match["usage"] is None and match["refused"] else shown_number(match["usage"])


def _cost(match: Mapping[str, Any]) -> str:
    return _NONE if match["cost"] is None and match["refused"] else shown_number(match["cost"])


def _amounts(amounts: Mapping[str, Optional[float]], none: str) -> str:
    return " ".join(f"{asset}={shown_number(amount)}" for asset, amount in amounts.items()) or none


def _reasons(match: Mapping[str, Any]) -> str:
    """What is short; Requirements mostly refuse for that, too, and are told of where it is not so."""
    others = [reason for reason in match["refused"] if not reason.endswith(_REQUIREMENTS)]
    return "; ".join(others or match["refused"]) or _NONE


def _or(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _span(costs: Sequence[float]) -> str:
    if not costs:
        return _NONE
    return (
        shown_number(costs[0])
        if len(costs) == 1
        else f"{shown_number(costs[0])} to {shown_number(costs[-1])}"
    )
