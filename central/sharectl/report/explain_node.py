"""``sharectl explain node``, as JSON and as one screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.core.cycle_record import CycleRecord, NodeRecord
from sharectl.core.explain_node import SWITCHES, NodeExplanation, NodeWords
from sharectl.core.explaining import Explained
from sharectl.core.model import Target
from sharectl.core.node_reasons import QUIET
from sharectl.core.plan_diff import ESTIMATING
from sharectl.core.time_words import shown, span
from sharectl.report import explain_words as words
from sharectl.report.plan_diff import words as target_words
from sharectl.report.screen import print_screen
from sharectl.report.words import counted

HELD_LISTED = 6


def as_data(explained: Explained, found: NodeExplanation) -> dict[str, Any]:
    """All that is known, each code with its sentence."""
    node = found.node
    return {
        **words.origin(explained),
        **{key: value for key, value in asdict(node).items() if key != "reason"},
        "held": [jobs._asdict() for jobs in node.held],
        **({} if found.estimated else {"wait_seconds": None, "idle_core_seconds": None}),
        "idle_cores": node.idle_cores,
        "reason": words.coded("node", node.reason) if node.reason else None,
        "plan_reason": words.coded("plan", explained.record.reason) if explained.record.reason else None,
        "since": asdict(found.since) if found.since else None,
        "lost_hs06": found.lost_hs06,
        "gained_hs06": found.gained_hs06,
        "says": _said(found.says),
        "limits": words.limit_data(explained.record.limits),
        "decided_again": "a target" if found.has_target else "no target",
        "would_change": words.flip_data(found.flips) if explained.tells_otherwise(same=found.same) else None,
        "tried_all": found.tried_all,
    }


def print_node(explained: Explained, found: NodeExplanation, to: TextIO, *, everything: bool) -> None:
    """Print it on one screen, or all of it."""
    title = words.heading(explained, f"node {found.node.node}")
    print_screen(title, rows(explained, found, everything=everything), to, everything=everything)


def rows(explained: Explained, found: NodeExplanation, *, everything: bool) -> list[tuple[str, str]]:
    """Label and text of each row."""
    node, record = found.node, explained.record
    reasons = [("because", words.spoken("node", node.reason))] if node.reason else []
    reasons += words.plan_rows(record)
    reasons += words.note_rows(explained, same=found.same)
    return [
        *_holds(node, everything=everything),
        *_target(found, explained.record),
        *reasons,
        *words.limit_rows(record.limits),
        *_says(found, explained),
        *words.flip_rows(
            found.flips, tried_all=found.tried_all, told=explained.tells_otherwise(same=found.same)
        ),
    ]


def _holds(node: NodeRecord, *, everything: bool) -> Iterator[tuple[str, str]]:
    memory = f", {node.memory_mib} MiB" if node.memory_mib else ""
    states = {
        "not under control": not node.controlled,
        "reserved": node.reserved,
        "draining": node.draining,
    }
    marks = "".join(f", {state}" for state, is_so in states.items() if is_so)
    # A list of jobs tells no node's size.
    size = f"{node.cores} cores, {node.idle_cores} idle, " if node.cores else ""
    yield "is", f"{size}{node.hs06_per_core:.2f} HS06 a core{memory}{marks}"
    held = sorted(node.held, key=lambda jobs: (-jobs.jobs * jobs.cores, jobs.group, jobs.cores))
    for jobs in held if everything else held[:HELD_LISTED]:
        cores = jobs.jobs * jobs.cores
        what = f"{counted(jobs.jobs, 'job')} of {counted(jobs.cores, 'core')}"
        yield "holds", f"{jobs.group} {cores} cores: {what}, {span(jobs.seconds)} old on average"
    if len(held) > HELD_LISTED and not everything:
        yield "holds", f"… and {len(held) - HELD_LISTED} kinds more: --all"
    if not held:
        yield "holds", "no job"


def _target(found: NodeExplanation, record: CycleRecord) -> Iterator[tuple[str, str]]:
    node = found.node
    if node.target is None:
        yield "target", "none"
        return
    since = ""
    if found.since is not None:
        bound = "since" if found.since.exact else "since before"
        since = f", {bound} {shown(found.since.at)} ({span(record.taken_at - found.since.at)})"
    yield "target", f"{target_words(node.target)}{since}"
    yield (
        "moves",
        f"{found.lost_hs06:.0f} HS06 from {node.target.held_back} still, {found.gained_hs06:.0f} HS06 to {node.target.helped}",
    )
    free = _free_seconds(node.target, record)
    if free is not None:
        words_free = f"{node.target.request_cores} cores kept free for {node.target.helped} for {span(free)}"
        yield "free", f"{words_free}, no job came"
    yield "costs", _costs(found, record.strategy, is_free=free is not None)


def _free_seconds(target: Target, record: CycleRecord) -> Optional[int]:
    """How long the cores for the target have stood free; None if they do not."""
    kept = (target.node, target.helped, target.request_cores)
    times = (block.free_since for block in record.blocks.open if (block.node, *block.kind) == kept)
    since = next(times, None)
    return None if since is None else max(0, record.taken_at - since)


def _costs(found: NodeExplanation, strategy: str, *, is_free: bool) -> str:
    node = found.node
    if strategy not in ESTIMATING:
        return f"not known: strategy {strategy} does not estimate it"
    if not found.estimated:
        return "not estimated"
    idle = f"{node.idle_core_seconds:.0f} idle core-seconds"
    if is_free:
        return f"its cores are free, a job is expected in {span(node.wait_seconds)}; {idle} until then"
    if node.wait_seconds < 1:
        return f"its cores are free now; {idle} expected"
    return f"its cores are expected free in {span(node.wait_seconds)}; {idle} until then"


def _says(found: NodeExplanation, explained: Explained) -> Iterator[tuple[str, str]]:
    said = found.says
    if said is None:
        return
    if said.problem is not None:
        yield "says now", f"not known: {said.problem}"
        return
    if said.refusal is not None:
        yield "says now", f"refused: {words.spoken('job_ctl', said.refusal)}"
    yield from (
        ("says now", f"sharectl is switched off there: {SWITCHES[each]}") for each in said.switched_off
    )
    yield "says now", _obeyed(said.obeyed_sequence, explained.record.sequence)


def _obeyed(sequence: Optional[int], decided: Optional[int]) -> str:
    if sequence is None:
        return "it publishes nothing of job_ctl, or acts on a target without a number"
    if sequence == 0:
        return "it acts on no target"
    if decided is None:
        return f"it acts on the target of plan {sequence}"
    if sequence == decided:
        return f"obeyed: it acts on the target of this plan ({sequence})"
    return f"it acts on the target of plan {sequence}; this one is {decided}"


def _said(said: Optional[NodeWords]) -> Optional[dict[str, Any]]:
    if said is None:
        return None
    code = said.refusal
    return {
        "obeyed_sequence": said.obeyed_sequence,
        "refusal": words.coded("job_ctl", code) if code is not None and code not in QUIET else None,
        "problem": said.problem,
        "switched_off": [{"code": each, "says": SWITCHES[each]} for each in said.switched_off],
    }
