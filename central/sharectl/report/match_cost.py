"""Costs of matches and numbers of claims, as JSON content and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.consumption.cost import (
    STARTD_LEAST,
    Match,
    Offer,
    Priced,
    PricedJobs,
    PricedSlots,
    by_group,
    claims_within,
    group_cost,
    leftover_claims,
    reasons_against,
)
from sharectl.report.tables import NONE, cell, print_records
from sharectl.shares.quotas import ROOT, Group
from sharectl.words import printable

Row = Mapping[str, Any]

# ---- JSON content


def priced(prices: Priced) -> dict[str, Any]:
    """Keys: slots, jobs (kinds of them), matches (one for each pair, by their numbers), notes."""
    pairs = [(slots, match) for slots, row in zip(prices.slots, prices.matches) for match in row]
    return {
        "slots": [_slots(slots) for slots in prices.slots],
        "jobs": [_jobs(jobs) for jobs in prices.jobs],
        "matches": [
            _match(prices, slots, jobs)
            for slots in range(len(prices.slots))
            for jobs in range(len(prices.jobs))
        ],
        "notes": _notes(pairs),
    }


def groups(every: Sequence[Group], prices: Priced, *, leftovers: bool) -> list[dict[str, Any]]:
    """Each group with the sums of its jobs."""
    return [
        {**_group(group), **group_cost(group, prices, jobs, leftovers=leftovers)}
        for group, jobs in by_group(every, prices.jobs)
    ]


def capacity(
    smallest: Sequence[tuple[PricedSlots, Optional[Match]]],
    groups: Sequence[Group],
    *,
    leftovers: bool,
    empty: bool,
) -> dict[str, Any]:
    """Keys: claims, types, leftovers, groups, slots, notes.

    ``smallest`` are kinds of slots, each with its match of the smallest request, if any. With
    ``leftovers`` schedds use the rest of slots; ``empty`` slots are as when nothing runs on them.
    """
    rows = [_smallest(slots, match, empty=empty) for slots, match in smallest]
    pairs = [(slots, match) for slots, match in smallest if match is not None]
    free = [(slots, match) for slots, match in pairs if not slots.state]
    offers = [Offer(len(slots.names), match, slots.kind) for slots, match in free]
    types = sorted({row["slot_type"] for row in rows}, key=lambda number: (number is None, number))
    return {
        "claims": _sum(row["claims"] for row in rows),
        "types": [_type(number, rows) for number in types],
        "leftovers": leftovers if groups else None,
        "groups": [_room(group, offers, leftovers=leftovers) for group in groups],
        "slots": rows,
        "notes": _notes(pairs),
    }


def shapes(prices: Priced, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Each kind of jobs, with its group: claims on all slots as they are, and within the quota."""
    of_jobs = {job: group for group, jobs in by_group(groups, prices.jobs) for job in jobs}
    rows = []
    for number, jobs in enumerate(prices.jobs):
        offers, group = prices.offers(number), of_jobs[number]
        is_group = group in groups
        row = {
            **_jobs(jobs),
            "quota_group": group.name if is_group else None,
            "slots": sum(offer.slots for offer in offers),
            "claims": sum(offer.slots * offer.match.fits for offer in offers),
            "fits_empty_slot": prices.fits_empty(number),
            "costs": sorted({o.match.cost for o in offers if o.match.cost is not None}),
            "claims_within_quota": _room(group, offers)["claims"] if is_group else None,
        }
        rows.append(row)
    return rows


def _notes(matches: Iterable[tuple[PricedSlots, Match]]) -> list[str]:
    """A line for slots of which claims are counted no further."""
    cut = {slots.names[0]: match.fits for slots, match in matches if match.at_least}
    words = "claims are counted up to {} a slot; it may have more"
    return [f"{name}: {words.format(most)}" for name, most in cut.items()]


def _group(group: Group) -> dict[str, Any]:
    return {**asdict(group), "room": group.room}


def _slots(slots: PricedSlots) -> dict[str, Any]:
    row = {**asdict(slots), "names": list(slots.names), "count": len(slots.names)}
    return {**row, "state": slots.state or None, "kind": slots.kind.value}


def _jobs(jobs: PricedJobs) -> dict[str, Any]:
    return {**asdict(jobs), "accounting_group": jobs.accounting_group or None}


def _match(prices: Priced, slots: int, jobs: int) -> dict[str, Any]:
    match, empty = prices.matches[slots][jobs], prices.empty[slots][jobs]
    return {
        "slots": slots,
        "jobs": jobs,
        **asdict(match),
        "fits_in_a_cycle": _in_a_cycle(prices.slots[slots], match),
        "startd_takes_more": [
            asset
            for asset, amount in match.consumed.items()
            if amount is not None and 0 <= amount < STARTD_LEAST.get(asset.lower(), 0)
        ],
        "refused": [*map(str, reasons_against(match, empty))],
    }


def _in_a_cycle(slots: PricedSlots, match: Match) -> int:
    """Jobs of one cycle; without a policy the negotiator makes one match, and leftovers follow."""
    most = slots.num_claims if slots.has_policy else 1
    return match.fits if most is None else min(match.fits, most)


def _smallest(slots: PricedSlots, match: Optional[Match], *, empty: bool) -> dict[str, Any]:
    match = None if slots.state else match
    # Claims that cannot be counted are unknown, not 0.
    claims = match.fits if match else 0 if slots.state else None
    because = slots.state or "no smallest request is matched"
    if match:
        reasons = reasons_against(match, match if empty else Match({}))
        because = "; ".join(map(str, reasons))
    return {
        **_slots(slots),
        "claims_each": claims,
        "claims": claims and claims * len(slots.names),
        "claims_in_a_cycle": _in_a_cycle(slots, match) if match else claims,
        "cost": match.cost if match else None,
        "consumed": dict(match.consumed) if match else {},
        "because": because,
    }


def _type(number: Optional[int], rows: Sequence[Row]) -> dict[str, Any]:
    members = [row for row in rows if row["slot_type"] == number]
    return {
        "slot_type": number,
        "slots": sum(row["count"] for row in members),
        "policy_slots": sum(row["count"] for row in members if not row["no_policy_because"]),
        "claims": _sum(row["claims"] for row in members),
        "weight": _sum(row["weight"] and row["weight"] * row["count"] for row in members),
    }


def _sum(amounts: Iterable[Any]) -> Any:
    """Sum; None if an amount is unknown."""
    every = list(amounts)
    return None if None in every else sum(every)


def _room(group: Group, offers: Sequence[Offer], *, leftovers: bool = False) -> dict[str, Any]:
    """Claims of a group: its room by cost, or all that slots have; for the root group all."""
    room = float("inf") if group.name == ROOT else group.room
    claims = unasked = past = None
    if room is not None:
        claims = claims_within(room, offers)
        unasked, usage = leftover_claims(room, offers) if leftovers else (None, 0.0)
        past = None if group.name == ROOT else max(0.0, usage - room)
    return {**_group(group), "claims": claims, "leftover_claims": unasked, "past_quota": past}


# ---- tables

_MATCHES = """slots, jobs, consumed AS takes, cost, usage, remaining AS remains, fit,
    fits_in_a_cycle AS in a cycle, refused"""
_GROUPS = """name AS group, quota, used, surplus, jobs, jobs_without_slot AS no slot,
    cost AS their cost, usage AS usage later, smallest_cost AS least cost,
    smallest_weight AS least weight, past_quota AS past quota"""
_TYPES = "slot_type AS slot type, slots, policy_slots AS with policy, claims, weight"
_ROOMS = """name AS group, quota, used, surplus, claims, leftover_claims AS through leftovers,
    past_quota AS past quota"""
_SHAPES = """name AS jobs, count AS of them, quota_group AS group, slots, claims,
    claims_within_quota AS within quota, cost, on_empty AS on an empty slot"""
_SLOTS = """name AS slots, kind, weight, claims_each AS claims each,
    claims_in_a_cycle AS in a cycle, cost AS cost of one, consumed AS takes, because"""


def cost_tables(content: Row, to: TextIO) -> None:
    """Print `priced`, or `groups` in its place."""
    slots, jobs = content["slots"], content["jobs"]
    if "groups" in content:
        groups = map(_group_cells, content["groups"])
        print_records("groups, in weighted slots", _GROUPS, groups, to)
    elif jobs:
        state = "empty slot" if content["empty"] else "slot as it is"
        names = ([_name(row) for row in slots], [_name(row) for row in jobs])
        rows = (_match_cells(match, *names) for match in content["matches"])
        print_records(f"matches, each job with each {state}", _MATCHES, rows, to)
        for slot in slots:
            if slot["no_policy_because"] and slot["kind"].startswith("partitionable"):
                reasons = ", ".join(slot["no_policy_because"])
                to.write(f"{printable(_name(slot))}: no policy: {printable(reasons)}\n")
    _end(content, to)


def capacity_tables(content: Row, to: TextIO) -> None:
    """Print `capacity` and `shapes`."""
    state = "on empty slots" if content["empty"] else "now"
    total = f"claims of the smallest request {state}: {cell(content['claims'])}"
    print_records(total, _TYPES, content["types"], to)
    if content["groups"]:
        hidden = {} if content["leftovers"] else {"leftover_claims": NONE}
        rows = [{**group, **hidden, **_past_quota(group)} for group in content["groups"]]
        print_records("by group's quota, in weighted slots", _ROOMS, rows, to)
    if content.get("jobs"):
        print_records("jobs that were asked for", _SHAPES, map(_shape_cells, content["jobs"]), to)
    slots = [
        {**row, "name": _name(row), "cost": row["cost"] if row["claims_each"] else NONE}
        for row in content["slots"]
    ]
    print_records("by slot", _SLOTS, slots, to)
    _end(content, to)


def _name(row: Row) -> str:
    """The first name, and the number of them."""
    first, count = str(row["names"][0]), row["count"]
    return f"{first} ({count} alike)" if count > 1 else first


def _match_cells(match: Row, slots: Sequence[str], jobs: Sequence[str]) -> Row:
    # Requirements mostly refuse because something else is short.
    others = [reason for reason in match["refused"] if not reason.endswith("Requirements")]
    hidden = {} if match["fits"] else {"cost": NONE, "usage": NONE, "remaining": NONE}
    return {
        **match,
        "slots": slots[match["slots"]],
        "jobs": jobs[match["jobs"]],
        "fit": f"{'>= ' if match['at_least'] else ''}{match['fits']}",
        "refused": "; ".join(others or match["refused"]),
        **hidden,
    }


def _group_cells(group: Row) -> Row:
    """Figures of the jobs of a group that match a slot; lower bounds are written as such."""
    figures = {
        key: cell(group[key]) for key in ("cost", "usage", "smallest_cost", "smallest_weight")
    }
    for key in ("cost", "usage"):
        if group[f"{key}_differs"] and group[key] is not None:
            figures[key] = f">= {figures[key]}"
    if group["jobs"] == group["jobs_without_slot"]:
        figures = dict.fromkeys(figures, NONE)
    return {**group, **figures, **_past_quota(group)}


def _past_quota(group: Row) -> Row:
    return {"past_quota": NONE} if group["name"] == ROOT else {}


def _shape_cells(jobs: Row) -> Row:
    ends = dict.fromkeys((*jobs["costs"][:1], *jobs["costs"][-1:]))
    return {
        **jobs,
        "name": _name(jobs),
        "cost": " to ".join(map(cell, ends)),
        "on_empty": "fits" if jobs["fits_empty_slot"] else "never fits",
    }


def _end(content: Row, to: TextIO) -> None:
    if content.get("jobs") == []:
        constraint = content.get("job_constraint")
        which = "that waits for a slot meets --job-constraint" if constraint else "waits for a slot"
        to.write(f"no job {which}: there is nothing to match\n")
    to.writelines(f"note: {printable(note)}\n" for note in content["notes"])
