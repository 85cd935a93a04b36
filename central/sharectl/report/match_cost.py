"""Costs of matches and numbers of claims, as JSON content and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Callable, Optional, TextIO, Union

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
    reasons_against,
)
from sharectl.report.tables import print_table, printable
from sharectl.shares.quotas import ROOT, Group

UNKNOWN, NONE = "?", "-"
Cell = Callable[[Mapping[str, Any]], str]
Columns = Mapping[str, Union[str, Cell]]
"""Heading -> key of the row, or a function of the row."""

# ---- JSON content


def priced(prices: Priced) -> dict[str, Any]:
    """Keys: slots, jobs (kinds of them), matches (one for each pair, by their numbers), notes."""
    counted_to = {
        slots: match.fits for (slots, _), match in prices.matches.items() if match.at_least
    }
    return {
        "slots": [_slots(slots) for slots in prices.slots],
        "jobs": [_jobs(jobs) for jobs in prices.jobs],
        "matches": [
            {"slots": pair[0], "jobs": pair[1], **_match(prices, pair)}
            for pair in sorted(prices.matches)
        ],
        "notes": [_counted_to(prices.slots[slots], most) for slots, most in counted_to.items()],
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


def capacity(
    smallest: Sequence[tuple[PricedSlots, Optional[Offer]]],
    groups: Sequence[Group],
    *,
    leftovers: bool,
    empty: bool,
) -> dict[str, Any]:
    """Keys: claims, types, leftovers, groups, slots, notes: claims of the smallest request.

    Parameters
    ----------
    smallest
        Each kind of slot, and its offer to the smallest request; None if that takes nothing.
    leftovers
        Schedds use the rest of slots.
    empty
        Slots are taken as they are when nothing runs on them.
    """
    offers = [offer for slots, offer in smallest if offer is not None and not slots.state]
    rows = [{**_slots(slots), **_smallest(slots, offer, empty)} for slots, offer in smallest]
    types = sorted({row["slot_type"] for row in rows}, key=lambda number: (number is None, number))
    return {
        "claims": _sum(row["claims"] for row in rows),
        "types": [_of_type(number, rows) for number in types],
        "leftovers": leftovers if groups else None,
        "groups": [_room(group, offers, leftovers=leftovers) for group in groups],
        "slots": rows,
        "notes": [
            _counted_to(slots, offer.match.fits)
            for slots, offer in smallest
            if offer is not None and offer.match.at_least
        ],
    }


def shapes(prices: Priced, named: Sequence[Optional[Group]]) -> list[dict[str, Any]]:
    """Each kind of jobs, with its group: claims on all slots as they are, and within the quota."""
    return [
        {
            **_jobs(jobs),
            "quota_group": group.name if group is not None else None,
            "slots": sum(offer.slots for offer in offers),
            "claims": sum(offer.slots * offer.match.fits for offer in offers),
            "fits_empty_slot": prices.fits_empty(number),
            "costs": sorted({o.match.cost for o in offers if o.match.cost is not None}),
            "claims_within_quota": _room(group, offers)["claims"] if group is not None else None,
        }
        for number, (jobs, group) in enumerate(zip(prices.jobs, named))
        for offers in [prices.offers(number)]
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


def _match(prices: Priced, pair: tuple[int, int]) -> dict[str, Any]:
    match, slots = prices.matches[pair], prices.slots[pair[0]]
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
        "refused": [str(reason) for reason in reasons_against(match, prices.empty.get(pair))],
    }


def _in_a_cycle(slots: PricedSlots, match: Match) -> int:
    """Jobs of one cycle; without a policy the negotiator makes one match, and leftovers follow."""
    most = slots.num_claims if slots.slot.has_policy else 1
    return match.fits if most is None else min(match.fits, most)


def _smallest(slots: PricedSlots, offer: Optional[Offer], empty: bool) -> dict[str, Any]:  # noqa: FBT001
    row: dict[str, Any] = {"cost": None, "weight": slots.weight, "consumed": {}}
    if offer is None or slots.state:
        # Claims that cannot be counted are unknown, not 0.
        claims = dict.fromkeys(_CLAIMS, 0 if slots.state else None)
        return {**claims, **row, "because": slots.state or "no smallest request is matched"}
    match = offer.match
    reasons = reasons_against(match, match if empty else None)
    claims = dict(zip(_CLAIMS, (match.fits, match.fits * offer.slots, _in_a_cycle(slots, match))))
    row.update(cost=match.cost, consumed=dict(match.consumed))
    return {**claims, **row, "because": "; ".join(map(str, reasons))}


_CLAIMS = ("claims_each", "claims", "claims_in_a_cycle")


def _of_type(number: Optional[int], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    members = [row for row in rows if row["slot_type"] == number]
    weights = ((row["weight"], row["count"]) for row in members)
    return {
        "slot_type": number,
        "slots": sum(row["count"] for row in members),
        "policy_slots": sum(row["count"] for row in members if not row["no_policy_because"]),
        "claims": _sum(row["claims"] for row in members),
        "weight": _sum(None if weight is None else weight * count for weight, count in weights),
    }


def _sum(amounts: Iterable[Any]) -> Any:
    """Sum; None if an amount is unknown."""
    every = list(amounts)
    return None if None in every else sum(every)


def _room(group: Group, offers: Sequence[Offer], *, leftovers: bool = False) -> dict[str, Any]:
    """Claims of a group: its room by cost, or all that slots have; for the root group all."""
    room = group.room if group.has_quota_of_its_own else float("inf")
    row = {**asdict(group), "room": group.room}
    if room is None:
        return {**row, "claims": None, "leftover_claims": None, "past_quota": None}
    unasked, usage = leftover_claims(room, offers) if leftovers else (None, 0.0)
    return {
        **row,
        "claims": claims_within(room, offers),
        "leftover_claims": unasked,
        "past_quota": max(0.0, usage - room) if group.has_quota_of_its_own else None,
    }


# ---- tables

Row = Mapping[str, Any]


def _name(row: Row) -> str:
    """The first name, and the number of them."""
    first, count = str(row["names"][0]), row["count"]
    return f"{first} ({count} alike)" if count > 1 else first


def _amounts(key: str) -> Cell:
    return lambda row: " ".join(f"{k}={shown_number(v)}" for k, v in row[key].items()) or NONE


def _if(condition: str, key: str) -> Cell:
    """The value of a key, where another one is not 0."""
    return lambda row: shown_number(row[key]) if row[condition] else NONE


def _bound(key: str, differs: str = "") -> Cell:
    """A figure of the jobs of a group that match a slot, and if it is a lower bound."""

    def cell(row: Row) -> str:
        if row["jobs"] == row["jobs_without_slot"]:
            return NONE
        is_bound = differs and row[differs] and row[key] is not None
        return f"{'>= ' if is_bound else ''}{shown_number(row[key])}"

    return cell


def _past_quota(row: Row) -> str:
    return NONE if row["name"] == ROOT else shown_number(row["past_quota"])


def _reasons(row: Row) -> str:
    """Reasons against a match; Requirements mostly refuse because something else is short."""
    others = [reason for reason in row["refused"] if not reason.endswith("Requirements")]
    return "; ".join(others or row["refused"]) or NONE


def _costs(row: Row) -> str:
    costs = row["costs"]
    return " to ".join(map(shown_number, dict.fromkeys((*costs[:1], *costs[-1:])))) or NONE


_MATCHES: Columns = {
    "slots": "slots",
    "jobs": "jobs",
    "takes": _amounts("consumed"),
    "cost": _if("fits", "cost"),
    "usage": _if("fits", "usage"),
    "remains": lambda row: _amounts("remaining")(row) if row["fits"] else NONE,
    "fit": lambda row: f"{'>= ' if row['at_least'] else ''}{row['fits']}",
    "in a cycle": "fits_in_a_cycle",
    "refused": _reasons,
}
_GROUPS: Columns = {
    "group": "name",
    "quota": "quota",
    "used": "used",
    "surplus": "surplus",
    "jobs": "jobs",
    "no slot": "jobs_without_slot",
    "their cost": _bound("cost", "cost_differs"),
    "usage later": _bound("usage", "usage_differs"),
    "least cost": _bound("smallest_cost"),
    "least weight": _bound("smallest_weight"),
    "past quota": _past_quota,
}
_TYPES: Columns = {
    "slot type": "slot_type",
    "slots": "slots",
    "with policy": "policy_slots",
    "claims": "claims",
    "weight": "weight",
}
_ROOMS: Columns = {
    "group": "name",
    "quota": "quota",
    "used": "used",
    "surplus": "surplus",
    "claims": "claims",
    "through leftovers": _if("leftovers", "leftover_claims"),
    "past quota": _past_quota,
}
_SHAPES: Columns = {
    "jobs": _name,
    "of them": "count",
    "group": "quota_group",
    "slots": "slots",
    "claims": "claims",
    "within quota": "claims_within_quota",
    "cost": _costs,
    "on an empty slot": lambda row: "fits" if row["fits_empty_slot"] else "never fits",
}
_SLOTS: Columns = {
    "slots": _name,
    "kind": "kind",
    "weight": "weight",
    "claims each": "claims_each",
    "in a cycle": "claims_in_a_cycle",
    "cost of one": _if("claims_each", "cost"),
    "takes": _amounts("consumed"),
    "because": lambda row: row["because"] or NONE,
}


def cost_tables(content: Row, to: TextIO) -> None:
    """Print `priced`, or `groups` in its place."""
    slots, jobs = content["slots"], content["jobs"]
    if "groups" in content:
        _print("groups, in weighted slots", _GROUPS, content["groups"], to)
    elif jobs:
        state = "empty slot" if content.get("empty") else "slot as it is"
        rows = [
            {**match, "slots": _name(slots[match["slots"]]), "jobs": _name(jobs[match["jobs"]])}
            for match in content["matches"]
        ]
        _print(f"matches, each job with each {state}", _MATCHES, rows, to)
        for slot in slots:
            if slot["no_policy_because"] and slot["kind"].startswith("partitionable"):
                reasons = ", ".join(slot["no_policy_because"])
                to.write(f"{printable(_name(slot))}: no policy: {printable(reasons)}\n")
    _end(content, to)


def capacity_tables(content: Row, to: TextIO) -> None:
    """Print `capacity` and `shapes`."""
    state = "on empty slots" if content.get("empty") else "now"
    total = f"claims of the smallest request {state}: {shown_number(content['claims'])}"
    _print(total, _TYPES, content["types"], to)
    if content["groups"]:
        rows = [{**group, "leftovers": content["leftovers"]} for group in content["groups"]]
        _print("by group's quota, in weighted slots", _ROOMS, rows, to)
    if content.get("jobs"):
        _print("jobs that were asked for", _SHAPES, content["jobs"], to)
    _print("by slot", _SLOTS, content["slots"], to)
    _end(content, to)


def shown_number(value: Any) -> str:
    """``value`` for people."""
    return UNKNOWN if value is None else f"{value:.6g}" if type(value) is float else str(value)


def _print(title: str, columns: Columns, rows: Iterable[Row], to: TextIO) -> None:
    cells = [
        [
            shown_number(row[cell]) if isinstance(cell, str) else cell(row)
            for cell in columns.values()
        ]
        for row in rows
    ]
    print_table(title, list(columns), cells, to)


def _end(content: Row, to: TextIO) -> None:
    if content.get("jobs") == []:
        constraint = content.get("job_constraint")
        which = "that waits for a slot meets --job-constraint" if constraint else "waits for a slot"
        to.write(f"no job {which}: there is nothing to match\n")
    to.writelines(f"note: {printable(note)}\n" for note in content["notes"])
