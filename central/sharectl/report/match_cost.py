"""Costs of matches and numbers of claims, as JSON content and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.consumption.cost import (
    Match,
    Offer,
    Priced,
    PricedJobs,
    PricedSlots,
    SlotKind,
    by_group,
    claims_within,
)
from sharectl.report.tables import NONE, print_records
from sharectl.shares.pledges import ROOT, Group
from sharectl.words import printable

Row = Mapping[str, Any]

# ---- JSON content


def priced(prices: Priced) -> dict[str, Any]:
    """Keys: slots, jobs (kinds of them), matches (one for each pair, by their numbers)."""
    return {
        "slots": [_slots(slots) for slots in prices.slots],
        "jobs": [_jobs(jobs) for jobs in prices.jobs],
        "matches": [
            {"slots": number, "jobs": job, **_match(slots, match)}
            for number, (slots, row) in enumerate(zip(prices.slots, prices.matches))
            for job, match in enumerate(row)
        ],
    }


def capacity(prices: Priced, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Each kind of jobs, with its group: claims on all slots as they are, and within the quota."""
    of_jobs = {job: group for group, jobs in by_group(groups, prices.jobs) for job in jobs}
    rows = []
    for number, jobs in enumerate(prices.jobs):
        offers, group = prices.offers(number), of_jobs[number]
        row = {
            **_jobs(jobs),
            "quota_group": group.name if group in groups else None,
            "slots": sum(len(slots.names) for slots, _ in offers),
            "claims": sum(len(slots.names) * match.fits for slots, match in offers),
            "claims_within_quota": _within(group, offers) if group in groups else None,
        }
        rows.append(row)
    return rows


def _slots(slots: PricedSlots) -> dict[str, Any]:
    row = {**asdict(slots), "names": list(slots.names), "count": len(slots.names)}
    return {**row, "state": slots.state or None, "kind": slots.kind.value}


def _jobs(jobs: PricedJobs) -> dict[str, Any]:
    return {**asdict(jobs), "accounting_group": jobs.accounting_group or None}


def _match(slots: PricedSlots, match: Match) -> dict[str, Any]:
    # Without a policy the negotiator makes one match in a cycle.
    most = slots.num_claims if slots.has_policy else 1
    return {
        **asdict(match),
        "fits_in_a_cycle": match.fits if most is None else min(match.fits, most),
        "refused": [
            ": ".join(filter(None, (", ".join(match.refused[why]), why.value)))
            for why in match.refused
        ],
    }


def _within(group: Group, offers: Sequence[Offer]) -> Optional[int]:
    """Claims of a group: its room by cost; for the root group all that slots have."""
    room = float("inf") if group.name == ROOT else group.room
    return None if room is None else claims_within(room, offers)


# ---- tables

_MATCHES = """slots, jobs, consumed AS takes, cost, remaining AS remains, fit,
    fits_in_a_cycle AS in a cycle, refused"""
_SHAPES = """name AS jobs, count AS of them, quota_group AS group, slots, claims,
    claims_within_quota AS within quota"""


def cost_tables(content: Row, to: TextIO) -> None:
    """Print `priced`."""
    slots, jobs = content["slots"], content["jobs"]
    if jobs:
        state = "empty slot" if content["empty"] else "slot as it is"
        names = ([_slot_name(row) for row in slots], [_name(row) for row in jobs])
        rows = (_match_cells(match, *names) for match in content["matches"])
        print_records(f"matches, each job with each {state}", _MATCHES, rows, to)
    _end(content, to)


def capacity_tables(content: Row, to: TextIO) -> None:
    """Print `capacity`."""
    if content["jobs"]:
        state = "on empty slots" if content["empty"] else "now"
        rows = ({**jobs, "name": _name(jobs)} for jobs in content["jobs"])
        print_records(f"claims {state}", _SHAPES, rows, to)
    _end(content, to)


def _slot_name(row: Row) -> str:
    has_policy = row["kind"] == SlotKind.POLICY.value
    return _name(row) if has_policy else f"{_name(row)}, no policy"


def _name(row: Row) -> str:
    """The first name, and the number of them."""
    first, count = str(row["names"][0]), row["count"]
    return f"{first} ({count} alike)" if count > 1 else first


def _match_cells(match: Row, slots: Sequence[str], jobs: Sequence[str]) -> Row:
    hidden = {} if match["fits"] else {"cost": NONE, "remaining": NONE}
    return {
        **match,
        "slots": slots[match["slots"]],
        "jobs": jobs[match["jobs"]],
        "fit": f"{'>= ' if match['at_least'] else ''}{match['fits']}",
        "refused": "; ".join(match["refused"]),
        **hidden,
    }


def _end(content: Row, to: TextIO) -> None:
    if content.get("jobs") == []:
        to.write("no job waits for a slot: there is nothing to match\n")
    to.writelines(f"note: {printable(note)}\n" for note in content["notes"])
