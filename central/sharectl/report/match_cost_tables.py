"""Tables of what matches cost and how many claims there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, TextIO

from sharectl.core.claim_capacity import ROOT
from sharectl.report.match_cost_verdicts import UNKNOWN, shown_number
from sharectl.report.table_layout import shown
from sharectl.report.tables import print_table

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
            f"{_some(found['slots'])}: one after another, cost {shown_number(found['cost'])} in all",
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
    to.writelines(f"note: {shown(note)}\n" for note in content.get("notes", ()))


def capacity_tables(content: Mapping[str, Any], to: TextIO) -> None:
    """Print what `capacity` and `shapes` have made."""
    print_table(
        f"claims of the smallest request {'on empty slots' if content.get('empty') else 'now'}: {shown_number(content['claims'])}",
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
            ("jobs", "of them", "group", "slots", "claims", "within quota", "cost", "on an empty slot"),
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
    to.writelines(f"note: {shown(note)}\n" for note in content.get("notes", ()))


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
                shown(f"{_some(slot['names'])}: no policy: {', '.join(slot['no_policy_because'])}") + "\n"
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
                f"{shown(_some(slot['names']))}: the startd takes 1 at least of {shown(', '.join(sorted(raised)))} for each claim, more than "
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
        to.writelines(f"{shown(group['name'])}: {verdict}\n" for verdict in group["verdicts"])


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
