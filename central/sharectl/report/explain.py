"""Explanations of groups, nodes, cycles and jobs: each a page of rows for people and of data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional, TextIO

from sharectl.explain.again import Explained, Otherwise
from sharectl.explain.codes import says
from sharectl.explain.cycle import CycleExplanation
from sharectl.explain.group import Exchange, GroupExplanation, given_hs06, is_withheld, number
from sharectl.explain.job import (
    COMPLETED,
    COULD_NEVER,
    HELD,
    OBSTACLES,
    REMOVED,
    RUNNING,
    TARGET_KINDS,
    VERDICTS,
    Headroom,
    JobExplanation,
    JobFacts,
    ObstacleCount,
    ShortageCount,
    TargetCount,
    Verdict,
    code_of_resource,
)
from sharectl.explain.node import NodeExplanation
from sharectl.explain.what_if import Flip
from sharectl.model import GroupControl, JobWaits, PendingJobs, WaitTimes
from sharectl.plan.diff import ESTIMATING, KINDS
from sharectl.plan.nodes import QUIET, SWITCHES, NodeWords
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.report import as_json
from sharectl.report.plans import changes_data, target_words
from sharectl.report.tables import listed, print_screen
from sharectl.times import shown, span
from sharectl.words import counted

Row = tuple[str, str]
"""Label and text."""

NODES_LISTED, NODES_OF_PAIR, KINDS_LISTED, HELD_LISTED, GROUPS_LISTED = 4, 2, 3, 6, 6
PAIRS_LISTED, CHANGES_LISTED, FLIPS_LISTED, SOURCES_LISTED = 3, 3, 5, 2
OBSTACLES_LISTED, TARGETS_LISTED, REMEDIES_LISTED = 8, 2, 3
CLAUSE_SHOWN, EXPRESSION_SHOWN, REQUEST_SHOWN = 100, 24, 40

_OVERRULED = "what would change it is told as if sharectl had not been kept from publishing"
_DISAGREES = (
    "deciding again now comes to {}: the configuration was changed since, or the ledger does not "
    "hold enough (since when targets stood, the run times known then{})"
)
_WITHOUT_MEMORY = (
    ", and the memory that pending jobs request, which this row lacks: here they fit anywhere"
)
_LEFT_OUT = "left out: it would tell of that other decision, and not of this one"


@dataclass(frozen=True)
class Page:
    """One explanation."""

    subject: str
    """Such as ``group``."""
    title: str
    rows: Sequence[Row]
    data: Mapping[str, Any]

    def print(self, to: TextIO, *, json: bool, everything: bool) -> None:
        """Print it as JSON, on one screen, or all of its rows."""
        if json:
            to.write(f"{as_json.dumps(f'explain_{self.subject}', self.data)}\n")
        else:
            print_screen(self.title, self.rows, to, everything=everything)


def group_page(explained: Explained, why: GroupExplanation, *, everything: bool) -> Page:
    """Page of a group."""
    record, control = explained.record, why.control
    rows = [
        *_use_rows(record, control),
        *((f.name, f"{number(f.value)} = {f.numbers}; {f.words}") for f in why.formulas),
        *(("acted", _spoken("acted", code)) for code in control.acted),
        *_decision_rows(record, why, everything=everything),
        *_plan_rows(record),
        *_note_rows(record, why.otherwise, "nodes"),
        *_limit_rows(record),
        *_flip_rows(why.otherwise),
    ]
    usage, reason = control.error.usage, record.group_reasons.get(control.group)
    data = {
        **_origin(explained),
        "group": control.group,
        "power_hs06": usage.power_hs06,
        "cores": usage.cores,
        "single_cores": usage.single_cores,
        "multi_cores": usage.multi_cores,
        "pending_by_cores": dict(usage.pending_by_cores),
        "waits": [asdict(waits) for waits in record.waits if waits.group == control.group],
        "unplaceable_by_cores": dict(usage.unplaceable_by_cores),
        "pledge_hs06": control.error.pledge_hs06,
        "error_hs06": control.error.error_hs06,
        "error_cores": control.error.error_cores,
        "power_minus_pledge_hs06": control.error.power_minus_pledge_hs06,
        "setpoint": _coded("setpoint", record.setpoint),
        "setpoint_hs06": control.setpoint_hs06,
        "control_error_hs06": control.control_error_hs06,
        "output_hs06": control.output_hs06,
        "law": _coded("law", control.law),
        "state": dict(control.state),
        "acted": [_coded("acted", code) for code in control.acted],
        "formulas": [asdict(formula) for formula in why.formulas],
        "reason": _coded("plan", record.reason),
        "outcome": _coded("group", reason.code if reason else None),
        "closed_nodes": reason.closed_nodes if reason else None,
        "other_sizes_closed_nodes": reason.other_sizes_closed_nodes if reason else None,
        "gives": [asdict(exchange) for exchange in why.gives],
        "receives": [asdict(exchange) for exchange in why.receives],
        "limits": _limits_data(record),
        **_otherwise_data(why.otherwise),
    }
    return Page("group", _title(explained, f"group {control.group}"), rows, data)


def node_page(explained: Explained, why: NodeExplanation, *, everything: bool) -> Page:
    """Page of a node."""
    node, record, words = why.node, explained.record, why.says
    rows = [
        *_holds_rows(node, everything=everything),
        *_target_rows(why, record),
        *([("because", _spoken("node", node.reason))] if node.reason else []),
        *_plan_rows(record),
        *_note_rows(record, why.otherwise, "nodes"),
        *_limit_rows(record),
        *(("says now", text) for text in (_says(words, record.sequence) if words else ())),
        *_flip_rows(why.otherwise),
    ]
    data = {
        **_origin(explained),
        **{key: value for key, value in asdict(node).items() if key != "reason"},
        "held": [held._asdict() for held in node.held],
        **({} if why.estimated else {"wait_seconds": None, "idle_core_seconds": None}),
        "idle_cores": node.idle_cores,
        "reason": _coded("node", node.reason),
        "plan_reason": _coded("plan", record.reason),
        "since": asdict(why.since) if why.since else None,
        "lost_hs06": why.lost_hs06,
        "gained_hs06": why.gained_hs06,
        "says": _says_data(words) if words else None,
        "limits": _limits_data(record),
        **_otherwise_data(why.otherwise),
    }
    return Page("node", _title(explained, f"node {node.node}"), rows, data)


def cycle_page(why: CycleExplanation, *, everything: bool) -> Page:
    """Page of a cycle."""
    record, before, with_outputs = why.record, why.before, not why.record.imported
    again = why.otherwise.explained if why.otherwise else None
    data = {
        "cycle": record.number or None,
        "taken_at": record.taken_at,
        "seconds": record.seconds if with_outputs else None,
        "complete": record.complete,
        "imported": record.imported,
        "sources": [asdict(source) for source in record.sources],
        "problems": list(record.problems),
        "configuration": record.configuration,
        "configuration_changed": why.configuration_changed,
        "strategy": _coded("strategy", record.strategy),
        "setpoint": _coded("setpoint", record.setpoint),
        "reason": _coded("plan", record.reason),
        "sequence": record.sequence,
        "published": list(record.published),
        "targets": [asdict(node.target) for node in record.nodes if node.target],
        "exchanges": [asdict(exchange) for exchange in why.exchanges],
        "limits": _limits_data(record),
        "groups": [_control_data(control, with_outputs=with_outputs) for control in record.groups],
        "nodes": len(record.nodes),
        "node_reasons": [
            {"code": code, "says": says("node", code), "nodes": nodes}
            for code, nodes in why.node_reasons.items()
        ],
        "idle_cores": record.idle_cores if record.complete and with_outputs else None,
        "idle_target_cores": record.idle_target_cores,
        "idle_grace_cores": record.idle_grace_cores,
        "before": {"cycle": before.number, "taken_at": before.taken_at} if before else None,
        "changes": changes_data(why.diff) if why.diff else None,
        "agrees": again.agrees if again else None,
        **_otherwise_data(why.otherwise),
    }
    took = f", took {record.seconds:.1f} s" if with_outputs else ""
    title = f"cycle {record.number}: {shown(record.taken_at)}{took}"
    return Page("cycle", title, list(_cycle_rows(why, everything=everything)), data)


def job_page(why: JobExplanation, *, everything: bool) -> Page:
    """Page of a job."""
    facts, verdict, headroom = why.facts, why.verdict, why.headroom
    sentence = VERDICTS[why.code]
    title = f"job {why.job}: {why.code}: {sentence}"
    if facts is not None:
        owner = f", {facts.owner}" if facts.owner else ""
        group = facts.accounting_group or "no accounting group"
        title = f"job {why.job} of {facts.schedd}{owner}, {group}"
    data = {
        "job": why.job,
        "now": why.now,
        "code": why.code,
        "says": sentence,
        "access_point": asdict(facts) if facts else None,
        "problem": why.problem,
        "nodes": _verdict_data(verdict) if verdict else None,
        "group": asdict(headroom) if headroom else None,
    }
    return Page("job", title, list(_job_rows(why, everything=everything)), data)


def _coded(family: str, code: Optional[str]) -> Optional[dict[str, str]]:
    """A code with its sentence, as data."""
    return None if code is None else {"code": code, "says": says(family, code)}


def _spoken(family: str, code: str) -> str:
    return f"{code}: {says(family, code)}"


def _title(explained: Explained, subject: str) -> str:
    record = explained.record
    cycle = f"cycle {record.number}, " if record.number else ""
    return f"{subject}: {cycle}{shown(record.taken_at)}, from {explained.source}"


def _origin(explained: Explained) -> dict[str, Any]:
    record = explained.record
    return {
        "source": explained.source,
        "cycle": record.number or None,
        "taken_at": record.taken_at,
        "sequence": record.sequence,
        "agrees": explained.agrees,
    }


def _first(rows: Iterable[Row], most: int, noun: str, *, everything: bool) -> Iterator[Row]:
    """The first rows, and how many more there are; or everything."""
    rows = list(rows)
    hidden = 0 if everything else max(0, len(rows) - most)
    yield from rows[: len(rows) - hidden]
    if hidden:
        yield rows[0][0], f"… and {counted(hidden, noun)} more: --all"


def _note_rows(record: CycleRecord, otherwise: Otherwise, noun: str) -> Iterator[Row]:
    """Row of how deciding again differs from the record; ``noun`` is what outcomes count."""
    if otherwise.explained is None:
        return
    if otherwise.explained.overruled:
        yield "note", _OVERRULED
    elif not otherwise.same:
        about = f"about as many {noun}, not all of them the same"
        outcome = about if otherwise.alike else "something else"
        yield "note", _DISAGREES.format(outcome, "" if record.pending_known else _WITHOUT_MEMORY)


def _flip_rows(
    otherwise: Otherwise, most: int = FLIPS_LISTED, *, everything: bool = True
) -> Iterator[Row]:
    if not otherwise.applies:
        yield "otherwise", _LEFT_OUT
        return
    rows = [("otherwise", _flip_words(flip)) for flip in otherwise.flips]
    yield from _first(rows, most, "change", everything=everything)
    if not rows:
        yield "otherwise", "no single change that was tried would change it"
    if not otherwise.tried_all:
        yield "otherwise", "… not all was tried: the pool is large"


def _flip_words(flip: Flip) -> str:
    if flip.value is None:
        return f"if {flip.name}: {flip.outcome}"
    if flip.becomes is None:
        value = number(flip.value, 2).rstrip("0").rstrip(".")
        return f"without {flip.name} ({value}): {flip.outcome}"
    return f"{flip.name}: {_plain(flip.value)} -> {_plain(flip.becomes)}: {flip.outcome}"


def _plain(value: float) -> str:
    if value == int(value):
        return str(int(value))
    # Shares lie between 0 and 1.
    return number(value) if abs(value) >= 1 else f"{value:.3g}"


def _otherwise_data(otherwise: Optional[Otherwise]) -> dict[str, Any]:
    changes = None
    if otherwise is not None and otherwise.applies:
        changes = [
            {
                "code": flip.code,
                "says": says("what-if", flip.code),
                "what": flip.name,
                "value": flip.value,
                "becomes": flip.becomes,
                "outcome": flip.outcome,
            }
            for flip in otherwise.flips
        ]
    return {
        "decided_again": otherwise.outcome if otherwise else None,
        "would_change": changes,
        "tried_all": otherwise.tried_all if otherwise else None,
    }


def _limit_rows(record: CycleRecord) -> list[Row]:
    rows = [
        ("limits", f"{_spoken('limit', note.code)}: {counted(note.nodes, 'node')}")
        for note in record.limits
    ]
    return rows or [("limits", "none bounded the change of targets")]


def _limits_data(record: CycleRecord) -> list[dict[str, Any]]:
    return [
        {"code": note.code, "says": says("limit", note.code), "nodes": note.nodes}
        for note in record.limits
    ]


def _plan_rows(record: CycleRecord) -> Iterator[Row]:
    if record.reason is not None:
        yield "plan", _spoken("plan", record.reason)
    if record.reason == "no-fit":
        yield "fits", unfit_words(record)


def unfit_words(record: CycleRecord) -> str:
    """Requests of groups under their shares, and the size of the largest nodes under control."""
    under = {control.group for control in record.groups if control.output_hs06 < 0}
    kinds = [jobs for jobs in record.pending if jobs.group in under]
    needs = [f"{jobs.group} waits for {_request_size(jobs)}" for jobs in kinds]
    nodes = [
        node for node in record.nodes if node.controlled and not node.reserved and not node.draining
    ]
    cores = max((node.cores for node in nodes), default=0)
    memory_mib = max((node.memory_mib for node in nodes), default=0)
    large = any(
        not 0 < node.cores < jobs.cores and not 0 < node.memory_mib < jobs.memory_mib
        for node in nodes
        for jobs in kinds
    )
    has = "no node under control has that"
    if large:
        has = "no group over its share could give that on a node under control"
    largest = f"largest: {counted(cores, 'core')}" + (f", {memory_mib} MiB" if memory_mib else "")
    more = f" and {len(needs) - KINDS_LISTED} kinds more" if len(needs) > KINDS_LISTED else ""
    return f"{', '.join(needs[:KINDS_LISTED])}{more}; {has} ({largest})"


def _request_size(jobs: PendingJobs) -> str:
    return counted(jobs.cores, "core") + (f" with {jobs.memory_mib} MiB" if jobs.memory_mib else "")


def _use_rows(record: CycleRecord, control: GroupControl) -> Iterator[Row]:
    usage = control.error.usage
    sizes = f"{usage.single_cores} by one-core jobs, {usage.multi_cores} by larger ones"
    yield "uses", f"{number(usage.power_hs06)} HS06 on {usage.cores} cores: {sizes}"
    waiting = _jobs_by_cores({cores: n for cores, n in usage.pending_by_cores.items() if n})
    yield "waits", f"{waiting} jobs" if waiting else "no job waits"
    without = _jobs_by_cores(usage.unplaceable_by_cores)
    if without:
        yield "no demand", f"{without} of them: no node could run them if it were empty"
    yield from wait_rows(waits for waits in record.waits if waits.group == control.group)
    yield "entitled", _spoken("setpoint", record.setpoint)
    yield "law", _spoken("law", control.law)


def _jobs_by_cores(jobs: Mapping[int, int]) -> str:
    return ", ".join(f"{count} x {cores}-core" for cores, count in jobs.items())


def wait_rows(waits: Iterable[JobWaits]) -> list[Row]:
    """Rows of how long the jobs of a group wait, size by size."""
    rows = []
    for size in waits:
        parts = [_wait_words(size.pending)] if size.pending else []
        if size.started:
            parts.append(f"of those started in the last hour {_wait_words(size.started)}")
        rows.append(("waits", f"{size.cores}-core jobs: {'; '.join(parts)}"))
    return rows


def _wait_words(times: WaitTimes) -> str:
    least = "at least " if times.sampled else ""
    return f"longest {least}{span(times.longest_seconds)}, median {span(times.median_seconds)}"


def _decision_rows(
    record: CycleRecord, why: GroupExplanation, *, everything: bool
) -> Iterator[Row]:
    group, reason = why.control.group, record.group_reasons.get(why.control.group)
    for exchange in why.gives:
        words = _side(group, exchange.held_back, f"to {exchange.helped}")
        yield "gives", f"{words} {_moved(exchange, exchange.lost_hs06, everything=everything)}"
    for exchange in why.receives:
        words = _side(group, exchange.helped, f"from {exchange.held_back}")
        yield "receives", f"{words} {_moved(exchange, exchange.gained_hs06, everything=everything)}"
    if reason is None:
        if not why.gives and not why.receives:
            yield "decided", "it neither gives nor receives"
        return
    yield "decided", _spoken("group", reason.code)
    if reason.closed_nodes:
        nodes = counted(reason.closed_nodes, "node")
        yield "closed", f"targets for other groups close {nodes} to its jobs"
    if reason.other_sizes_closed_nodes:
        nodes = counted(reason.other_sizes_closed_nodes, "node")
        yield "closed", f"targets for it close {nodes} to its pending jobs of other sizes"


def _side(group: str, own: str, other: str) -> str:
    """The other group; first the group's subgroup that takes part."""
    return other if own == group else f"{own} {other}"


def _moved(exchange: Exchange, hs06: float, *, everything: bool) -> str:
    count = len(exchange.nodes)
    nodes = listed(exchange.nodes, count if everything else NODES_LISTED)
    return (
        f"on {counted(count, 'node')}, by {exchange.request_cores}-core jobs, {hs06:.0f} HS06 "
        f"still to move: {nodes}"
    )


def _holds_rows(node: NodeRecord, *, everything: bool) -> Iterator[Row]:
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
    rows = []
    for held in sorted(node.held, key=lambda held: (-held.jobs * held.cores, held)):
        jobs = f"{counted(held.jobs, 'job')} of {counted(held.cores, 'core')}"
        age = f"{span(held.seconds)} old on average"
        rows.append(("holds", f"{held.group} {held.jobs * held.cores} cores: {jobs}, {age}"))
    yield from _first(rows or [("holds", "no job")], HELD_LISTED, "kind", everything=everything)


def _target_rows(why: NodeExplanation, record: CycleRecord) -> Iterator[Row]:
    target = why.node.target
    if target is None:
        yield "target", "none"
        return
    since = ""
    if why.since is not None:
        bound = "since" if why.since.exact else "since before"
        since = f", {bound} {shown(why.since.at)} ({span(record.taken_at - why.since.at)})"
    yield "target", f"{target_words(target)}{since}"
    lost, gained = f"{why.lost_hs06:.0f} HS06", f"{why.gained_hs06:.0f} HS06"
    yield "moves", f"{lost} from {target.held_back} still, {gained} to {target.helped}"
    kept = (target.node, target.helped, target.request_cores)
    blocks = (block for block in record.blocks.open if (block.node, *block.kind) == kept)
    free_since = next((block.free_since for block in blocks), None)
    if free_since is not None:
        free = span(max(0, record.taken_at - free_since))
        cores = f"{target.request_cores} cores kept free for {target.helped} for {free}"
        yield "free", f"{cores}, no job came"
    yield "costs", _costs(why, record.strategy, is_free=free_since is not None)


def _costs(why: NodeExplanation, strategy: str, *, is_free: bool) -> str:
    node = why.node
    if strategy not in ESTIMATING:
        return f"not known: strategy {strategy} does not estimate it"
    if not why.estimated:
        return "not estimated"
    idle, wait = f"{node.idle_core_seconds:.0f} idle core-seconds", span(node.wait_seconds)
    if is_free:
        return f"its cores are free, a job is expected in {wait}; {idle} until then"
    if node.wait_seconds < 1:
        return f"its cores are free now; {idle} expected"
    return f"its cores are expected free in {wait}; {idle} until then"


def _says(words: NodeWords, sequence: Optional[int]) -> Iterator[str]:
    """Words of a node; ``sequence`` is that of the plan."""
    if words.problem is not None:
        yield f"not known: {words.problem}"
        return
    if words.refusal is not None:
        yield f"refused: {_spoken('job_ctl', words.refusal)}"
    for switch in words.switched_off:
        yield f"sharectl is switched off there: {SWITCHES[switch]}"
    obeyed = words.obeyed_sequence
    if obeyed is None:
        yield "it publishes nothing of job_ctl, or acts on a target without a number"
    elif obeyed == 0:
        yield "it acts on no target"
    elif sequence == obeyed:
        yield f"obeyed: it acts on the target of this plan ({sequence})"
    else:
        this = f"; this one is {sequence}" if sequence is not None else ""
        yield f"it acts on the target of plan {obeyed}{this}"


def _says_data(words: NodeWords) -> dict[str, Any]:
    return {
        "obeyed_sequence": words.obeyed_sequence,
        "refusal": _coded("job_ctl", None if words.refusal in QUIET else words.refusal),
        "problem": words.problem,
        "switched_off": [
            {"code": switch, "says": SWITCHES[switch]} for switch in words.switched_off
        ],
    }


def _cycle_rows(why: CycleExplanation, *, everything: bool) -> Iterator[Row]:
    record, otherwise = why.record, why.otherwise
    if not record.imported:
        yield from _source_rows(record, everything=everything)
    yield from (("problem", problem) for problem in record.problems)
    if why.configuration_changed:
        yield "note", "the configuration that decides is another one than in the cycle before"
    if record.imported:
        yield "note", "from a shares_Error.log: nodes, outputs and plan are not known"
    else:
        yield "plan", _published(record)
    if record.reason == "no-fit":
        yield "fits", unfit_words(record)
    pairs = (("pair", _pair(exchange, everything=everything)) for exchange in why.exchanges)
    yield from _first(pairs, PAIRS_LISTED, "pair", everything=everything)
    if record.groups and not record.imported:
        yield from _limit_rows(record)
    if otherwise is not None:
        yield from _note_rows(record, otherwise, "targets")
        yield from _flip_rows(otherwise, everything=everything)
    yield from _change_rows(why, everything=everything)
    groups = sorted(record.groups, key=lambda control: -abs(control.control_error_hs06))
    rows = (
        ("groups", _control_words(control, with_outputs=not record.imported)) for control in groups
    )
    yield from _first(rows, GROUPS_LISTED, "group", everything=everything)
    target, grace = record.idle_target_cores or 0, record.idle_grace_cores or 0
    if target or grace:
        others = record.idle_cores - target - grace
        idle = f"{counted(record.idle_cores, 'core')}: {target} under targets, {grace} in grace"
        yield "idle", f"{idle}, {others} others"
    reasons = ", ".join(f"{code} {nodes}" for code, nodes in why.node_reasons.items())
    if reasons:
        yield "nodes", f"{len(record.nodes)}: {reasons}"
    if everything:
        yield from (("", _spoken("node", code)) for code in why.node_reasons)


def _source_rows(record: CycleRecord, *, everything: bool) -> Iterator[Row]:
    if not record.complete:
        yield "complete", "no: missing data is never zero, so nothing was decided"
        for source in record.sources:
            if source.problem is not None:
                yield "silent", f"{source.name}: {source.problem}"
        return
    slowest = sorted(record.sources, key=lambda source: -source.seconds)
    some = slowest if everything else slowest[:SOURCES_LISTED]
    times = ", ".join(f"{source.name} {source.seconds:.2f} s" for source in some)
    which = f", the slowest {len(some)}" if len(some) < len(slowest) else ""
    answered = f"yes, {counted(len(slowest), 'source')} answered"
    yield "complete", f"{answered}{which}: {times}" if times else answered


def _published(record: CycleRecord) -> str:
    if record.reason is None:
        return "none: what was published before stands until it runs out"
    targets = counted(sum(node.target is not None for node in record.nodes), "target")
    places = ", ".join(record.published)
    published = f"; published as {record.sequence} to {places}" if places else ""
    return f"{_spoken('plan', record.reason)}; {targets}, strategy {record.strategy}{published}"


def _pair(exchange: Exchange, *, everything: bool) -> str:
    count = len(exchange.nodes)
    nodes = listed(exchange.nodes, count if everything else NODES_OF_PAIR)
    return (
        f"{exchange.held_back} -> {exchange.helped} by {exchange.request_cores}: "
        f"{counted(count, 'node')}, {exchange.lost_hs06:.0f} HS06 still to move: {nodes}"
    )


def _change_rows(why: CycleExplanation, *, everything: bool) -> Iterator[Row]:
    if why.before is None:
        yield "changes", "the ledger has no complete cycle before it"
        return
    ago = span(why.record.taken_at - why.before.taken_at)
    beside = f"beside cycle {why.before.number}, {ago} before"
    if why.diff is None:
        yield "changes", f"none {beside}: nothing was decided"
        return
    yield "changes", ", ".join(f"{why.diff.count(kind)} {kind}" for kind in KINDS) + f" {beside}"
    changed = [change for change in why.diff.changes if change.kind != "kept"]
    for change in changed if everything else changed[:CHANGES_LISTED]:
        before, after = target_words(change.before), target_words(change.after)
        yield "", f"{change.kind} {' -> '.join(change.nodes)}: {before} -> {after}"


def _control_words(control: GroupControl, *, with_outputs: bool) -> str:
    """Power, setpoint and error of a group; its output, if ``with_outputs``."""
    output = f", output {control.output_hs06:+.0f}" if with_outputs else ""
    if with_outputs and is_withheld(control):
        output = f", of which the law is given {number(given_hs06(control), 0)}{output}"
    acted = f" ({', '.join(control.acted)})" if control.acted else ""
    return (
        f"{control.group}: uses {number(control.error.usage.power_hs06, 0)} HS06, is due "
        f"{number(control.setpoint_hs06, 0)}: error {control.control_error_hs06:+.0f}{output} "
        f"HS06{acted}"
    )


def _control_data(control: GroupControl, *, with_outputs: bool) -> dict[str, Any]:
    return {
        "group": control.group,
        "pledge_hs06": control.error.pledge_hs06,
        "power_hs06": control.error.usage.power_hs06,
        "error_hs06": control.error.error_hs06,
        "setpoint_hs06": control.setpoint_hs06,
        "control_error_hs06": control.control_error_hs06,
        "given_hs06": given_hs06(control) if with_outputs else None,
        "output_hs06": control.output_hs06 if with_outputs else None,
        "law": _coded("law", control.law) if with_outputs else None,
        "acted": [_coded("acted", code) for code in control.acted],
    }


_UNITS = {"memory": " MiB", "disk": " KiB"}
_NUMBER = re.compile(r"[0-9.e+]+", re.IGNORECASE)
_REQUEST = re.compile(
    r"Request(?P<resource>Memory|Disk) = (?:(?P<number>[0-9.e+]+)|.+)", re.IGNORECASE
)


def _job_rows(why: JobExplanation, *, everything: bool) -> Iterator[Row]:
    facts, verdict = why.facts, why.verdict
    if facts is None:
        return
    yield "verdict", f"{why.code}: {VERDICTS[why.code]}"
    yield from _state_rows(why, facts)
    requests = (
        _request(name, text, facts.request_values.get(name))
        for name, text in facts.requests.items()
    )
    if facts.requests:
        yield "asks for", ", ".join(requests)
    if why.problem:
        yield "problem", why.problem
    if verdict is not None:
        could = "once released, " if why.code == HELD else ""
        now, empty = verdict.fitting_nodes, verdict.fitting_if_empty
        yield (
            "nodes",
            f"{could}{now} of {verdict.total} would take it now, {empty} if nothing ran there",
        )
        yield from _verdict_rows(verdict, why.now, everything=everything)
        yield from _negotiator_rows(facts, why.now)
    if why.headroom is not None:
        yield from _headroom_rows(why.headroom)
    if verdict is not None:
        yield "priority", "is the negotiator's: condor_userprio -all, condor_q -better-analyze"


def _state_rows(why: JobExplanation, facts: JobFacts) -> Iterator[Row]:
    ago = f" for {span(max(0, why.now - facts.since))}" if facts.since else ""
    if why.code == HELD:
        yield "held", f"{facts.hold_reason or 'without a reason'} (code {facts.hold_code}){ago}"
        yield "change", f"condor_release {why.job}, once the reason is gone"
    elif why.code == RUNNING:
        yield "runs on", f"{facts.host or '?'}{ago}"
    elif why.code in (COMPLETED, REMOVED):
        code = "-" if facts.exit_code is None else f"exit code {facts.exit_code}"
        at = f", {shown(facts.since)}" if facts.since else ""
        yield "ended", f"{facts.remove_reason or code}{at}"
    elif facts.since:
        yield "waits", f"since {shown(facts.since)}{ago}"


def _request(name: str, text: str, value: Optional[float]) -> str:
    """A request as its value and unit, with its expression if that is short."""
    if value is None:
        return _with_unit(f"{name} = {_short(text, REQUEST_SHOWN)}")
    number = f"{value:.15g}"
    is_plain = text == number or _NUMBER.fullmatch(text) is not None
    expression = "" if is_plain or len(text) > EXPRESSION_SHOWN else f" ({text})"
    return _with_unit(f"{name} = {number}") + expression


def _with_unit(request: str) -> str:
    """A request for memory or disk with HTCondor's unit; any other clause as it is."""
    match = _REQUEST.fullmatch(request)
    if match is None:
        return request
    unit = _UNITS[match["resource"].lower()]
    return f"{request}{unit}" if match["number"] else f"{request} ({unit.strip()})"


def _verdict_rows(verdict: Verdict, now: int, *, everything: bool) -> Iterator[Row]:
    """Shortages, obstacles, targets and remedies.

    Of a job that no empty node takes, obstacles of now matter only if ``everything`` is printed.
    """
    impossible = verdict.code == COULD_NEVER
    lasting = {row.code for row in verdict.never}
    if impossible:
        yield from _obstacle_rows("even empty", verdict.never, everything=everything)
    for shortage in verdict.shortages:
        if everything or not impossible or code_of_resource(shortage.resource) in lasting:
            yield "short", _shortage(shortage)
    if everything or not impossible:
        yield from _obstacle_rows("in the way", verdict.obstacles, everything=everything)
        targets = (("target", _job_target(count, now)) for count in verdict.targets)
        yield from _first(targets, TARGETS_LISTED, "target", everything=everything)
        last = verdict.grace_ends["last"]
        if last:
            yield "grace", f"ends in {span(max(0, last - now))} at the latest"
    elif verdict.never != verdict.obstacles:
        yield "in the way", "now also what an empty node would not have: --all"
    rows = verdict.never if impossible else verdict.obstacles
    remedies = list(dict.fromkeys(f"{row.code}: {verdict.remedy(row)}" for row in rows))
    yield from (("change", text) for text in remedies[: None if everything else REMEDIES_LISTED])


def _obstacle_rows(
    label: str, counts: Iterable[ObstacleCount], *, everything: bool
) -> Iterator[Row]:
    rows = []
    for row in counts:
        alone = f", {row.alone} by this alone" if row.alone else ""
        clause = _with_unit(row.clause)
        clause = clause if everything else _short(clause, CLAUSE_SHOWN)
        text = f"{counted(row.nodes, 'node')}{alone}: {OBSTACLES[row.code]}"
        rows.append((label, f"{text}: {clause}" if clause else text))
    yield from _first(rows, OBSTACLES_LISTED, "obstacle", everything=everything)


def _shortage(shortage: ShortageCount) -> str:
    unit = _UNITS.get(shortage.resource.lower(), "")
    amounts = (shortage.requested, shortage.most_free, shortage.most)
    requested, free, most = (f"{amount:.15g}{unit}" for amount in amounts)
    return (
        f"{shortage.resource}: asks for {requested}; where it is short, at most {free} free, "
        f"{most} if nothing ran there"
    )


def _job_target(count: TargetCount, now: int) -> str:
    target = count.target
    ends = "end unknown"
    if target.until > now:
        ends = f"ends in {span(target.until - now)} unless renewed"
    return (
        f"{counted(count.nodes, 'node')}: {TARGET_KINDS[target.kind]}: {target.held_back} up to "
        f"{target.cap_cores} cores, {target.helped} by {target.request_cores}; {ends}"
    )


def _negotiator_rows(facts: JobFacts, now: int) -> Iterator[Row]:
    if facts.rejected:
        ago = f", {span(max(0, now - facts.rejected_at))} ago" if facts.rejected_at else ""
        whose = f" (of {facts.rejected_job}, which is alike)" if facts.rejected_job else ""
        yield "negotiator", f"said: {facts.rejected}{ago}{whose}"
    if facts.limits:
        limits = _short(facts.limits, CLAUSE_SHOWN)
        yield "limits", f"it counts for {limits}; condor_userprio -allusers has their use"


def _headroom_rows(headroom: Headroom) -> Iterator[Row]:
    power, off, pledge = headroom.power_hs06, headroom.error_hs06, headroom.pledge_hs06
    if power is None or off is None:
        problem = headroom.problem or "no configured group, so it has no pledge"
        yield "group", f"{headroom.group}: {problem}"
    else:
        side = "over" if off > 0 else "under"
        use = f"{headroom.group} uses {power:.0f} HS06 and is due {power - off:.0f} HS06"
        yield "group", f"{use}: {abs(off):.0f} HS06 {side}; pledge {pledge:.0f} HS06"
    for quota in headroom.quotas:
        used, limit = (
            "?" if amount is None else f"{amount:.15g}" for amount in (quota.used, quota.quota)
        )
        surplus = "" if quota.surplus in (None, "no") else f", may go beyond ({quota.surplus})"
        use = f"{quota.name}: {used} of {limit} in use"
        yield "quota", f"{use}, as the negotiator weighs slots{surplus}"


def _verdict_data(verdict: Verdict) -> dict[str, Any]:
    def obstacles(rows: Iterable[ObstacleCount]) -> list[dict[str, Any]]:
        return [
            {**asdict(row), "says": OBSTACLES[row.code], "remedy": verdict.remedy(row)}
            for row in rows
        ]

    return {
        **asdict(verdict),
        "obstacles": obstacles(verdict.obstacles),
        "never": obstacles(verdict.never),
        "targets": [
            {**asdict(count), "says": TARGET_KINDS[count.target.kind]} for count in verdict.targets
        ],
    }


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
