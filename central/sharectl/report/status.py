"""The screen of ``sharectl status``: the last cycle, places of targets, nodes and groups.

Its columns are the same on a terminal and in a pipe. Five groups fit on 80 x 24 characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional, TextIO

from sharectl import __version__
from sharectl.model import Disabled
from sharectl.plan.plan import REASONS
from sharectl.report.pool import block_rows, disabled_words, unanswered_words
from sharectl.report.tables import NONE, UNKNOWN, listed, number, print_table
from sharectl.shares.groups import is_within
from sharectl.times import span
from sharectl.words import counted, printable

Row = Mapping[str, Any]

MOST_HOT = 3
"""Hot nodes that are named."""
_TITLE = "groups then: HS06, pending jobs and longest waits"
_GROUPS = "group|pledge|used|due|lack|1core|wait|multi|wait|is"


def shortfall_words(cycle: Row) -> str:
    """Sentence on the group that lacks most, and on all; empty if that is unknown."""
    missing_hs06, present_hs06 = cycle.get("shortfall_hs06"), cycle.get("present_hs06")
    if missing_hs06 is None or not present_hs06:
        return ""
    if round(missing_hs06) == 0:
        return "every group has its due"
    worst = max(cycle["controllers"], key=lambda row: float(row["shortfall_hs06"]))
    part = f"{100 * missing_hs06 / present_hs06:.0f} % of power"
    words = f"{worst['group']}: {worst['shortfall_hs06']:,.0f} HS06 short of its due"
    return f"{words} (all: {missing_hs06:,.0f}, {part})"


def status_tables(status: Row, off: Optional[Disabled], to: TextIO) -> None:
    """Print the two tables of the content of ``status --json``."""
    cycle, nodes = status["last_cycle"] or {}, status["nodes"]
    rows: list[tuple[str, object]] = [("disabled", disabled_words(off))] if off else []
    rows += [("mode", _mode(status["mode"], cycle))]
    rows += _cycle_rows(cycle, status["now"]) if cycle else []
    rows += [
        ("published", f"{place['place']}: {place_words(place)}")
        for place in status["published"]
        if "targets" in place
    ]
    rows += _node_rows(nodes) if nodes["problem"] is None else []
    rows += block_rows(status["blocks"])
    print_table("status", ("what", "is"), rows, to)
    if cycle.get("errors"):
        print_table(_TITLE, _GROUPS.split("|"), _group_rows(cycle), to)


def _mode(mode: str, cycle: Row) -> str:
    if mode != "observe":
        return mode
    if not cycle:
        return "observe: nothing is steered; no cycle has run yet"
    count = counted(cycle.get("planned_targets") or 0, "target")
    return f"observe: nothing is steered; would have published {count}"


def _cycle_rows(cycle: Row, now: int) -> Iterator[tuple[str, object]]:
    plan, ago = cycle["plan"] or {}, now - cycle["taken_at"]
    when = f"{span(ago)} ago" if ago >= 0 else f"in the future, by {span(ago)}"
    whole = "complete" if cycle["complete"] else "incomplete: targets unchanged"
    yield "last cycle", f"{when}, took {number(cycle['seconds'])} s, {whole}"
    pair = f"{plan['held_back']} for {plan['helped']}: " if plan.get("helped") else ""
    reason = f"{pair}{REASONS.get(cycle.get('reason') or '', NONE)}"
    if not cycle["complete"]:
        reason = unanswered_words(cycle.get("unanswered", ()))
    yield "reason", reason
    limits = (f"{note['code']} {counted(note['nodes'], 'node')}" for note in plan.get("limits", ()))
    if words := ", ".join(limits):
        yield "limits", words
    if words := shortfall_words(cycle):
        yield "shortfall then", words
    if idle := cycle.get("idle_cores"):
        others = idle["all"] - idle["target"] - idle["grace"]
        words = f"{idle['target']} under targets, {idle['grace']} in grace, {others} others"
        yield "idle cores then", words
    if seen := cycle.get("nodes"):
        words = f"{seen['target']} of {seen['controlled']} controlled ones with a target"
        yield "nodes then", f"{words}, {seen['not_obeying']} not obeying, {seen['refused']} refused"


def place_words(place: Row) -> str:
    """Content of a place, in words."""
    targets, seconds = counted(place["targets"], "target"), place["valid_for_seconds"]
    words = [f"{targets}, by hand: without sequence and end"]
    if seconds is not None:
        valid = f"valid for {span(seconds)}" if seconds > 0 else f"ran out {span(seconds)} ago"
        words = [f"{targets}, sequence {place['sequence']}, {valid}"]
    if place.get("signed_by"):
        verified = "" if place["verified"] else " (not verified)"
        words.append(f"signed by {place['signed_by']}{verified}")
    if place.get("foreign"):
        words.append(f"by {printable(place['writer'])}")
    if place.get("identity"):
        words.append(f"from {place['identity']}")
    if place.get("served") is not None:
        words.append("served" if place["served"] else "NOT served")
    return ", ".join(words)


def _node_rows(nodes: Row) -> Iterator[tuple[str, object]]:
    words = [
        f"{nodes['slots']} partitionable slots",
        f"{nodes['controlled']} under control",
        f"{nodes['with_target']} act on a target",
    ]
    if nodes["in_grace"]:
        cores = counted(nodes["idle_grace_cores"], "core")
        words.append(f"{nodes['in_grace']} in grace with {cores}")
    for key, label in (
        ("disabled", "off by file"),
        ("disabled_by_knob", "off by knob"),
        ("multicore_only", "for multicore jobs alone"),
    ):
        words += [f"{nodes[key]} {label}"] if nodes[key] else []
    if hot := nodes["hot"]:
        words.append(f"too hot: {listed(hot, MOST_HOT)}")
    yield "nodes now", ", ".join(words)
    reasons = " ".join(f"{code}:{count}" for code, count in nodes["reasons"].items())
    versions = " ".join(f"{version}:{count}" for version, count in nodes["versions"].items())
    yield "job_ctl says", f"{reasons or NONE}, version {versions or NONE}, here {__version__}"


def _group_rows(cycle: Row) -> Iterator[tuple[object, ...]]:
    lacking = {row["group"]: row for row in cycle.get("controllers", ())}
    reasons = {row["group"]: row["code"] for row in cycle.get("groups", ())}
    for row in cycle["errors"]:
        group = row["group"]
        lack = [lacking.get(group, {}).get(key) for key in ("due_hs06", "shortfall_hs06")]
        yield (
            group,
            round(row["pledge_hs06"]),
            round(row["power_hs06"]),
            *(UNKNOWN if hs06 is None else round(hs06) for hs06 in lack),
            row["pending_single_jobs"],
            _longest(cycle, group, multicore=False),
            row["pending_multi_jobs"],
            _longest(cycle, group, multicore=True),
            reasons.get(group, NONE),
        )


def _longest(cycle: Row, group: str, *, multicore: bool) -> str:
    """Longest wait of pending jobs of a group, as ``3h``; ``>`` where only a sample is known."""
    waits = [
        row["pending"]
        for row in cycle.get("waits", ())
        if row["pending"] and is_within(row["group"], group) and (row["cores"] > 1) is multicore
    ]
    if not waits:
        return NONE
    longest = max(waits, key=lambda times: int(times["longest_seconds"]))
    words = span(longest["longest_seconds"], 1).replace(" ", "")
    return f">{words}" if longest["sampled"] else words
