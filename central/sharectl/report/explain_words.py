"""What all explanations say alike: codes with their sentences, targets, exchanges, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Optional

from sharectl.core.cycle_record import CycleRecord, GroupReason
from sharectl.core.explain import says
from sharectl.core.explain_group import Exchange
from sharectl.core.explaining import Explained
from sharectl.core.formulas import number
from sharectl.core.model import JobWaits, LimitNote, PendingJobs, WaitTimes
from sharectl.core.time_words import shown, span
from sharectl.core.what_if import Flip
from sharectl.report.screen import listed
from sharectl.report.words import counted

NODES_LISTED = 4
KINDS_LISTED = 3

ELSE = "something else"
ABOUT = "about as many {}, not all of them the same"
"""What deciding again comes to, where that is not what was recorded."""

_OVERRULED = "what would change it is told as if sharectl had not been kept from publishing"
_DISAGREES = (
    "deciding again now comes to {what}: the configuration was changed since, or the ledger does not hold "
    "enough (since when targets stood, the run times known then{lacking})"
)
_LEFT_OUT = "left out: it would tell of that other decision, and not of this one"
_WITHOUT_MEMORY = ", and the memory that pending jobs request, which this row lacks: here they fit anywhere"


def coded(family: str, code: str) -> dict[str, str]:
    """A code with its sentence, for JSON."""
    return {"code": code, "says": says(family, code)}


def spoken(family: str, code: str) -> str:
    """The same for people."""
    return f"{code}: {says(family, code)}"


def heading(explained: Explained, what: str) -> str:
    """What is explained, of which cycle, from where."""
    record = explained.record
    cycle = f"cycle {record.number}, " if record.number else ""
    return f"{what}: {cycle}{shown(record.taken_at)}, from {explained.source}"


def idle_words(record: CycleRecord) -> str:
    """Idle cores by cause."""
    target, grace = record.idle_target_cores or 0, record.idle_grace_cores or 0
    rest = record.idle_cores - target - grace
    return f"{counted(record.idle_cores, 'core')}: {target} under targets, {grace} in grace, {rest} others"


def note_rows(explained: Explained, *, same: bool, what: str = ELSE) -> list[tuple[str, str]]:
    """What to know of the rows that tell what would change it.

    Parameters
    ----------
    same
        Whether deciding again now comes to what was recorded, for what is explained.
    what
        What it comes to if it does not.
    """
    if explained.overruled:
        return [("note", _OVERRULED)]
    lacking = "" if explained.record.pending_known else _WITHOUT_MEMORY
    return [] if same else [("note", _DISAGREES.format(what=what, lacking=lacking))]


def origin(explained: Explained) -> dict[str, Any]:
    """The same for JSON."""
    record = explained.record
    return {
        "source": explained.source,
        "cycle": record.number or None,
        "taken_at": record.taken_at,
        "sequence": record.sequence,
        "agrees": explained.agrees,
    }


def exchange_words(exchange: Exchange, group: str, *, everything: bool, gives: bool) -> str:
    """One exchange as one of its groups sees it, or one that these are within."""
    own = exchange.held_back if gives else exchange.helped
    other = f"to {exchange.helped}" if gives else f"from {exchange.held_back}"
    other = other if own == group else f"{own} {other}"
    moved = exchange.lost_hs06 if gives else exchange.gained_hs06
    nodes = listed(exchange.nodes, len(exchange.nodes) if everything else NODES_LISTED)
    return (
        f"{other} on {counted(len(exchange.nodes), 'node')}, by {exchange.request_cores}-core jobs, {moved:.0f} HS06 still "
        f"to move: {nodes}"
    )


def exchange_data(exchange: Exchange) -> dict[str, Any]:
    """All of it, for JSON."""
    return asdict(exchange)


def wait_rows(waits: Iterable[JobWaits]) -> list[tuple[str, str]]:
    """Rows of how long the jobs of a group wait, size by size."""
    rows = []
    for each in waits:
        parts = [_wait_words(times) for times in (each.pending, each.started) if times is not None]
        if each.started is not None:
            parts[-1] = f"of those started in the last hour {parts[-1]}"
        rows.append(("waits", f"{each.cores}-core jobs: {'; '.join(parts)}"))
    return rows


def _wait_words(times: WaitTimes) -> str:
    least = "at least " if times.sampled else ""
    return f"longest {least}{span(times.longest_seconds)}, median {span(times.median_seconds)}"


def closed_rows(reason: GroupReason) -> list[tuple[str, str]]:
    """Rows of how many nodes are closed to a group's jobs."""
    rows = []
    if reason.closed_nodes:
        rows.append(f"targets for other groups close {counted(reason.closed_nodes, 'node')} to its jobs")
    if reason.other_sizes_closed_nodes:
        nodes = counted(reason.other_sizes_closed_nodes, "node")
        rows.append(f"targets for it close {nodes} to its pending jobs of other sizes")
    return [("closed", row) for row in rows]


def plan_rows(record: CycleRecord) -> list[tuple[str, str]]:
    """The plan's reason; where no job that waits fits, with what these need and what the nodes have."""
    if record.reason is None:
        return []
    rows = [("plan", spoken("plan", record.reason))]
    return [*rows, ("fits", unfit_words(record))] if record.reason == "no-fit" else rows


def unfit_words(record: CycleRecord) -> str:
    """Requests of pending jobs of groups under their shares, and the size of the largest nodes under control."""
    under = {control.group for control in record.groups if control.output_hs06 < 0}
    kinds = [jobs for jobs in record.pending if jobs.group in under]
    needs = [f"{jobs.group} waits for {needed(jobs)}" for jobs in kinds]
    nodes = [node for node in record.nodes if node.controlled and not node.reserved and not node.draining]
    cores = max((node.cores for node in nodes), default=0)
    memory_mib = max((node.memory_mib for node in nodes), default=0)
    large = any(
        not 0 < node.cores < jobs.cores and not 0 < node.memory_mib < jobs.memory_mib
        for node in nodes
        for jobs in kinds
    )
    has = (
        "no group over its share could give that on a node under control"
        if large
        else "no node under control has that"
    )
    largest = f"largest: {counted(cores, 'core')}" + (f", {memory_mib} MiB" if memory_mib else "")
    more = f" and {len(needs) - KINDS_LISTED} kinds more" if len(needs) > KINDS_LISTED else ""
    return f"{', '.join(needs[:KINDS_LISTED])}{more}; {has} ({largest})"


def needed(jobs: PendingJobs) -> str:
    """What one of the jobs requests."""
    return counted(jobs.cores, "core") + (f" with {jobs.memory_mib} MiB" if jobs.memory_mib else "")


def limit_rows(limits: Iterable[LimitNote]) -> list[tuple[str, str]]:
    """Rows of the limits that acted."""
    rows = [("limits", f"{spoken('limit', note.code)}: {counted(note.nodes, 'node')}") for note in limits]
    return rows or [("limits", "none bounded the change of targets")]


def limit_data(limits: Iterable[LimitNote]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [{**coded("limit", note.code), "nodes": note.nodes} for note in limits]


def flip_rows(flips: Iterable[Flip], *, tried_all: bool, told: bool = True) -> list[tuple[str, str]]:
    """Rows of what would change it; why there are none if that is not to be ``told``."""
    if not told:
        return [("otherwise", _LEFT_OUT)]
    rows = [("otherwise", flip_words(flip)) for flip in flips]
    rows = rows or [("otherwise", "no single change that was tried would change it")]
    return rows if tried_all else [*rows, ("otherwise", "… not all was tried: the pool is large")]


def flip_words(flip: Flip) -> str:
    """One change and what would come of it."""
    if flip.value is None:
        return f"if {flip.what}: {flip.outcome}"
    if flip.becomes is None:
        return f"without {flip.what} ({number(flip.value, 2).rstrip('0').rstrip('.')}): {flip.outcome}"
    return f"{flip.what}: {_plain(flip.value)} -> {_plain(flip.becomes)}: {flip.outcome}"


def flip_data(flips: Iterable[Flip]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [
        {
            **coded("what-if", flip.code),
            "what": flip.what,
            "value": flip.value,
            "becomes": flip.becomes,
            "outcome": flip.outcome,
        }
        for flip in flips
    ]


def _plain(value: Optional[float]) -> str:
    if value is None:
        return "-"
    if value == int(value):
        return str(int(value))
    # Shares lie between 0 and 1.
    return number(value) if abs(value) >= 1 else f"{value:.3g}"
