"""Explanations of groups, nodes and cycles: each a page of rows for people and of data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, NamedTuple, Optional, TextIO

from sharectl.explain.codes import says
from sharectl.explain.decisions import (
    ALIKE,
    ANOTHER,
    OVERRULED,
    Exchange,
    Explained,
    Otherwise,
    Since,
    diff_of,
    exchanges,
    targets_of,
)
from sharectl.explain.formulas import control_of, formulas, is_withheld, number
from sharectl.explain.what_if import Flip
from sharectl.model import GroupControl, JobWaits, WaitTimes
from sharectl.plan.diff import ESTIMATING, KINDS, PlanDiff, power_moved_hs06
from sharectl.plan.nodes import QUIET, SWITCHES, NodeWords
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.report import as_json
from sharectl.report.plans import changes_data, target_words
from sharectl.report.tables import listed, print_screen
from sharectl.shares.groups import levels_above
from sharectl.times import shown, span
from sharectl.words import counted

MOST_ROWS = {
    "holds": 6,
    "otherwise": 5,
    "pair": 3,
    "": 3,
    "groups": 6,
    "even empty": 8,
    "in the way": 8,
    "target": 2,
    "change": 3,
}
"""Label -> rows of it on one screen."""
NODES_LISTED, NODES_OF_PAIR, SOURCES_LISTED = 4, 2, 4

_DISAGREES = (
    "deciding again now comes to {}: the configuration was changed since, or the ledger does not "
    "hold enough (since when targets stood, the run times known then)"
)
_NOTES = {
    OVERRULED: "what would change it is told as if sharectl had not been kept from publishing",
    ALIKE: _DISAGREES.format("about as many {}, not all of them the same"),
    ANOTHER: _DISAGREES.format("something else"),
}
_LEFT_OUT = "left out: it would tell of that other decision, and not of this one"
_IMPORTED = "from a shares_Error.log: nodes, outputs and plan are not known"
_OTHER_CONFIGURATION = "the configuration that decides is another one than in the cycle before"


class Row(NamedTuple):
    """Labelled text."""

    label: str
    text: str
    """Text on one screen; empty if only ``--all`` prints it."""
    full: Optional[str] = None
    """Text of ``--all`` if it is another one; empty if only the screen has it."""


class Page(NamedTuple):
    """One explanation."""

    subject: str
    """Such as ``group``."""
    title: str
    rows: Sequence[Row]
    data: Mapping[str, Any]

    def shown(self, *, everything: bool) -> list[tuple[str, str]]:
        """Labels and texts for one screen, or all of them."""
        if everything:
            pairs = ((row.label, row.text if row.full is None else row.full) for row in self.rows)
            return [(label, text) for label, text in pairs if text]
        lines: list[tuple[str, str]] = []
        for label, rows in groupby((row for row in self.rows if row.text), lambda row: row.label):
            texts = [(label, row.text) for row in rows]
            most = MOST_ROWS.get(label, len(texts))
            lines += texts[:most]
            if len(texts) > most:
                lines.append((label, f"… and {len(texts) - most} more: --all"))
        return lines

    def print(self, to: TextIO, *, json: bool, everything: bool) -> None:
        """Print it as JSON, on one screen, or all of its rows."""
        if json:
            to.write(f"{as_json.dumps(f'explain_{self.subject}', self.data)}\n")
        else:
            rows = self.shown(everything=everything)
            print_screen(self.title, rows, to, everything=everything)


# ---- a group


def group_page(explained: Explained, group: str, otherwise: Otherwise) -> Page:
    """Page of a group."""
    record, control = explained.record, control_of(explained.record, group)
    usage, reason = control.error.usage, record.group_reasons.get(group)
    waits = [waits for waits in record.waits if waits.group == group]
    between, terms = exchanges(record), list(formulas(record, group))
    gives = [e for e in between if group in (e.held_back, *levels_above(e.held_back))]
    receives = [e for e in between if group in (e.helped, *levels_above(e.helped))]
    closed, other_sizes = reason[1:] if reason else (None, None)
    rows = [
        *_use_rows(control, waits),
        Row("entitled", _spoken("setpoint", record.setpoint)),
        Row("law", _spoken("law", control.law)),
        *(Row(f.name, f"{number(f.value)} = {f.numbers}; {f.words}") for f in terms),
        *(Row("acted", _spoken("acted", code)) for code in control.acted),
        *(_exchange("gives", e, e.lost_hs06, NODES_LISTED) for e in gives),
        *(_exchange("receives", e, e.gained_hs06, NODES_LISTED) for e in receives),
    ]
    if reason:
        rows.append(Row("decided", _spoken("group", reason.code)))
    elif not (gives or receives):
        rows.append(Row("decided", "it neither gives nor receives"))
    if closed:
        nodes = counted(closed, "node")
        rows.append(Row("closed", f"targets for other groups close {nodes} to its jobs"))
    if other_sizes:
        sizes = f"{counted(other_sizes, 'node')} to its pending jobs of other sizes"
        rows.append(Row("closed", f"targets for it close {sizes}"))
    data = {
        "group": group,
        **fields(usage, "power_hs06", "cores", "single_cores", "multi_cores", "pending_by_cores"),
        "waits": [asdict(times) for times in waits],
        "unplaceable_by_cores": usage.unplaceable_by_cores,
        **fields(control.error, "pledge_hs06", "error_hs06", "error_cores"),
        "power_minus_pledge_hs06": control.error.power_minus_pledge_hs06,
        "setpoint": _coded("setpoint", record.setpoint),
        **fields(control, "setpoint_hs06", "control_error_hs06", "output_hs06"),
        "law": _coded("law", control.law),
        "state": control.state,
        "acted": [_coded("acted", code) for code in control.acted],
        "formulas": [formula._asdict() for formula in terms],
        "reason": _coded("plan", record.reason),
        "outcome": _coded("group", reason.code if reason else None),
        "closed_nodes": closed,
        "other_sizes_closed_nodes": other_sizes,
        "gives": [exchange._asdict() for exchange in gives],
        "receives": [exchange._asdict() for exchange in receives],
    }
    return _decided_page("group", group, explained, otherwise, rows, data)


def _use_rows(control: GroupControl, waits: Iterable[JobWaits]) -> Iterator[Row]:
    usage = control.error.usage
    sizes = f"{usage.single_cores} by one-core jobs, {usage.multi_cores} by larger ones"
    yield Row("uses", f"{number(usage.power_hs06)} HS06 on {usage.cores} cores: {sizes}")
    waiting, without = map(_jobs_by_cores, (usage.pending_by_cores, usage.unplaceable_by_cores))
    yield Row("waits", f"{waiting} jobs" if waiting else "no job waits")
    if without:
        yield Row("no demand", f"{without} of them: no node could run them if it were empty")
    yield from wait_rows(waits)


def _jobs_by_cores(jobs: Mapping[int, int]) -> str:
    return ", ".join(f"{count} x {cores}-core" for cores, count in jobs.items() if count)


def wait_rows(waits: Iterable[JobWaits]) -> Iterator[Row]:
    """Rows of how long the jobs of a group wait, size by size."""
    for size in waits:
        parts = [_wait_words(size.pending)] if size.pending else []
        if size.started:
            parts.append(f"of those started in the last hour {_wait_words(size.started)}")
        yield Row("waits", f"{size.cores}-core jobs: {'; '.join(parts)}")


def _wait_words(times: WaitTimes) -> str:
    least = "at least " if times.sampled else ""
    return f"longest {least}{span(times.longest_seconds)}, median {span(times.median_seconds)}"


# ---- a node


def node_page(
    explained: Explained,
    node: NodeRecord,
    otherwise: Otherwise,
    since: Optional[Since] = None,
    words: Optional[NodeWords] = None,
) -> Page:
    """Page of a node; ``words`` are its own, now."""
    record, target = explained.record, node.target
    lost_hs06, gained_hs06 = power_moved_hs06(target, node) if target else (0.0, 0.0)
    # Held cores never come free at once: without a wait the costs are not known.
    estimated = target is None or node.wait_seconds > 0 or lost_hs06 <= 0
    estimated = estimated or (target is not None and node.idle_cores >= target.request_cores)
    rows = list(_holds_rows(node))
    if target is None:
        rows.append(Row("target", "none"))
    else:
        stood = ""
        if since is not None:
            bound = "since" if since.exact else "since before"
            stood = f", {bound} {shown(since.at)} ({span(record.taken_at - since.at)})"
        lost = f"{lost_hs06:.0f} HS06 from {target.held_back} still"
        costs = "not estimated"
        if record.strategy not in ESTIMATING:
            costs = f"not known: strategy {record.strategy} does not estimate it"
        elif estimated:
            costs = _costs(record, node)
        rows += [
            Row("target", f"{target_words(target)}{stood}"),
            Row("moves", f"{lost}, {gained_hs06:.0f} HS06 to {target.helped}"),
            Row("free", _free_for(record, node)),
            Row("costs", costs),
        ]
    if node.reason:
        rows.append(Row("because", _spoken("node", node.reason)))
    says_now = [Row("says now", text) for text in _says(words, record.sequence)] if words else ()
    data = {
        **{key: value for key, value in asdict(node).items() if key != "reason"},
        "held": [held._asdict() for held in node.held],
        **({} if estimated else {"wait_seconds": None, "idle_core_seconds": None}),
        "idle_cores": node.idle_cores,
        "reason": _coded("node", node.reason),
        "plan_reason": _coded("plan", record.reason),
        "since": since._asdict() if since else None,
        "lost_hs06": lost_hs06,
        "gained_hs06": gained_hs06,
        "says": _says_data(words) if words else None,
    }
    return _decided_page("node", node.node, explained, otherwise, rows, data, says_now)


def _holds_rows(node: NodeRecord) -> Iterator[Row]:
    memory = f", {node.memory_mib} MiB" if node.memory_mib else ""
    marks = {"not under control": not node.controlled, "reserved": node.reserved}
    marks["draining"] = node.draining
    states = "".join(f", {state}" for state, is_so in marks.items() if is_so)
    # A list of jobs tells no node's size.
    size = f"{node.cores} cores, {node.idle_cores} idle, " if node.cores else ""
    yield Row("is", f"{size}{node.hs06_per_core:.2f} HS06 a core{memory}{states}")
    for held in sorted(node.held, key=lambda held: (-held.jobs * held.cores, held)):
        count = f"{counted(held.jobs, 'job')} of {counted(held.cores, 'core')}"
        age = f"{span(held.seconds)} old on average"
        yield Row("holds", f"{held.group} {held.jobs * held.cores} cores: {count}, {age}")
    if not node.held:
        yield Row("holds", "no job")


def _free_for(record: CycleRecord, node: NodeRecord) -> str:
    """Cores that stand free for a target; empty if there are none."""
    kind = node.target.kind if node.target else None
    for block in record.blocks.open:
        if (block.node, block.kind) == (node.node, kind) and block.free_since is not None:
            free = span(max(0, record.taken_at - block.free_since))
            return f"{block.cores} cores kept free for {block.group} for {free}, no job came"
    return ""


def _costs(record: CycleRecord, node: NodeRecord) -> str:
    idle, wait = f"{node.idle_core_seconds:.0f} idle core-seconds", span(node.wait_seconds)
    if _free_for(record, node):
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


# ---- a cycle


def cycle_page(
    record: CycleRecord,
    before: Optional[CycleRecord],
    explained: Optional[Explained],
    otherwise: Optional[Otherwise],
) -> Page:
    """Page of a cycle, beside the complete one before; without ``otherwise`` it has no plan."""
    is_full, diff, between = not record.imported, diff_of(record, before), exchanges(record)
    changed = before is not None and before.configuration != record.configuration
    reasons = Counter(node.reason for node in record.nodes if node.reason is not None)
    nodes_by_reason = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    groups = sorted(record.groups, key=lambda control: -abs(control.control_error_hs06))
    counts = ", ".join(f"{code} {nodes}" for code, nodes in nodes_by_reason)
    rows = [
        *(_source_rows(record) if is_full else ()),
        *(Row("problem", problem) for problem in record.problems),
        Row("note", _OTHER_CONFIGURATION if changed else ""),
        Row("plan", _published(record)) if is_full else Row("note", _IMPORTED),
        *(_exchange("pair", e, e.lost_hs06, NODES_OF_PAIR) for e in between),
        *(_limit_rows(record) if record.groups and is_full else ()),
        *(_otherwise_rows(otherwise, "targets") if otherwise else ()),
        *_change_rows(record, before, diff),
        *(Row("groups", _control_words(control, with_outputs=is_full)) for control in groups),
        Row("idle", _idle_words(record)),
        Row("nodes", f"{len(record.nodes)}: {counts}" if counts else ""),
        *(Row("", "", _spoken("node", code)) for code, _ in nodes_by_reason),
    ]
    data = {
        "cycle": record.number or None,
        "taken_at": record.taken_at,
        "seconds": record.seconds if is_full else None,
        **fields(record, "complete", "imported"),
        "sources": [asdict(source) for source in record.sources],
        **fields(record, "problems", "configuration"),
        "configuration_changed": changed,
        "strategy": _coded("strategy", record.strategy),
        "setpoint": _coded("setpoint", record.setpoint),
        "reason": _coded("plan", record.reason),
        **fields(record, "sequence", "published"),
        "targets": [asdict(target) for target in targets_of(record)],
        "exchanges": [exchange._asdict() for exchange in between],
        "limits": _limits(record),
        "groups": [_control_data(control, with_outputs=is_full) for control in record.groups],
        "nodes": len(record.nodes),
        "node_reasons": [
            {"code": code, "says": says("node", code), "nodes": nodes}
            for code, nodes in nodes_by_reason
        ],
        "idle_cores": record.idle_cores if record.complete and is_full else None,
        **fields(record, "idle_target_cores", "idle_grace_cores"),
        "before": {"cycle": before.number, "taken_at": before.taken_at} if before else None,
        "changes": changes_data(diff) if diff else None,
        "agrees": explained.agrees if explained else None,
        **_otherwise_data(otherwise or Otherwise(None, tried_all=None)),
    }
    took = f", took {record.seconds:.1f} s" if is_full else ""
    title = f"cycle {record.number}: {shown(record.taken_at)}{took}"
    return Page("cycle", title, rows, data)


def _source_rows(record: CycleRecord) -> Iterator[Row]:
    if not record.complete:
        yield Row("complete", "no: missing data is never zero, so nothing was decided")
        silent = (source for source in record.sources if source.problem is not None)
        yield from (Row("silent", f"{source.name}: {source.problem}") for source in silent)
        return
    slowest = sorted(record.sources, key=lambda source: -source.seconds)
    times = [f"{source.name} {source.seconds:.2f} s" for source in slowest]
    answered = f"yes, {counted(len(times), 'source')} answered"
    yield _listed("complete", answered, times, SOURCES_LISTED, ", ")


def _published(record: CycleRecord) -> str:
    if record.reason is None:
        return "none: what was published before stands until it runs out"
    targets, places = counted(len(targets_of(record)), "target"), ", ".join(record.published)
    published = f"; published as {record.sequence} to {places}" if places else ""
    return f"{_spoken('plan', record.reason)}; {targets}, strategy {record.strategy}{published}"


def _change_rows(
    record: CycleRecord, before: Optional[CycleRecord], diff: Optional[PlanDiff]
) -> Iterator[Row]:
    if before is None:
        yield Row("changes", "the ledger has no complete cycle before it")
        return
    beside = f"beside cycle {before.number}, {span(record.taken_at - before.taken_at)} before"
    if diff is None:
        yield Row("changes", f"none {beside}: nothing was decided")
        return
    counts = ", ".join(f"{diff.count(kind)} {kind}" for kind in KINDS)
    yield Row("changes", f"{counts} {beside}")
    for change in diff.changes:
        if change.kind != "kept":
            targets = f"{target_words(change.before)} -> {target_words(change.after)}"
            yield Row("", f"{change.kind} {' -> '.join(change.nodes)}: {targets}")


def _control_words(control: GroupControl, *, with_outputs: bool) -> str:
    """Power, setpoint and error of a group; its output, if ``with_outputs``."""
    output = f", output {control.output_hs06:+.0f}" if with_outputs else ""
    if with_outputs and is_withheld(control):
        output = f", of which the law is given 0{output}"
    acted = f" ({', '.join(control.acted)})" if control.acted else ""
    return (
        f"{control.group}: uses {number(control.error.usage.power_hs06, 0)} HS06, is due "
        f"{number(control.setpoint_hs06, 0)}: error {control.control_error_hs06:+.0f}{output} "
        f"HS06{acted}"
    )


def _control_data(control: GroupControl, *, with_outputs: bool) -> dict[str, Any]:
    outputs = {
        "given_hs06": 0.0 if is_withheld(control) else control.control_error_hs06,
        "output_hs06": control.output_hs06,
        "law": _coded("law", control.law),
    }
    return {
        "group": control.group,
        "pledge_hs06": control.error.pledge_hs06,
        "power_hs06": control.error.usage.power_hs06,
        "error_hs06": control.error.error_hs06,
        **fields(control, "setpoint_hs06", "control_error_hs06"),
        **(outputs if with_outputs else dict.fromkeys(outputs)),
        "acted": [_coded("acted", code) for code in control.acted],
    }


def _idle_words(record: CycleRecord) -> str:
    target, grace = record.idle_target_cores or 0, record.idle_grace_cores or 0
    if not (target or grace):
        return ""
    idle = f"{counted(record.idle_cores, 'core')}: {target} under targets, {grace} in grace"
    return f"{idle}, {record.idle_cores - target - grace} others"


# ---- for all decisions


def _decided_page(
    subject: str,
    name: str,
    explained: Explained,
    otherwise: Otherwise,
    rows: Sequence[Row],
    data: Mapping[str, Any],
    says_now: Sequence[Row] = (),
) -> Page:
    """Page of a group or a node."""
    record = explained.record
    plan = _spoken("plan", record.reason) if record.reason is not None else ""
    note, *changes = _otherwise_rows(otherwise, "nodes")
    common = (Row("plan", plan), note, *_limit_rows(record), *says_now, *changes)
    cycle = f"cycle {record.number}, " if record.number else ""
    title = f"{subject} {name}: {cycle}{shown(record.taken_at)}, from {explained.source}"
    origin = {
        "source": explained.source,
        "cycle": record.number or None,
        **fields(record, "taken_at", "sequence"),
        "agrees": explained.agrees,
    }
    decided = {"limits": _limits(record), **_otherwise_data(otherwise)}
    return Page(subject, title, (*rows, *common), {**origin, **data, **decided})


def _coded(family: str, code: Optional[str]) -> Optional[dict[str, str]]:
    """A code with its sentence, as data."""
    return None if code is None else {"code": code, "says": says(family, code)}


def _spoken(family: str, code: str) -> str:
    return f"{code}: {says(family, code)}"


def fields(record: object, *names: str) -> dict[str, Any]:
    """Attributes of a record by name."""
    return {name: getattr(record, name) for name in names}


def _exchange(label: str, exchange: Exchange, hs06: float, most: int) -> Row:
    nodes = counted(len(exchange.nodes), "node")
    moved = f"by {exchange.request_cores}-core jobs, {hs06:.0f} HS06 still to move"
    text = f"{exchange.held_back} to {exchange.helped} on {nodes}, {moved}"
    return _listed(label, text, exchange.nodes, most)


def _listed(label: str, text: str, names: Sequence[str], most: int, between: str = " ") -> Row:
    """Row with the first ``most`` names, and with all of them for ``--all``."""
    if not names:
        return Row(label, text)
    return Row(label, f"{text}: {listed(names, most, between)}", f"{text}: {between.join(names)}")


def _limits(record: CycleRecord) -> list[dict[str, Any]]:
    return [
        {"code": note.code, "says": says("limit", note.code), "nodes": note.nodes}
        for note in record.limits
    ]


def _limit_rows(record: CycleRecord) -> Iterator[Row]:
    for note in record.limits:
        yield Row("limits", f"{_spoken('limit', note.code)}: {counted(note.nodes, 'node')}")
    if not record.limits:
        yield Row("limits", "none bounded the change of targets")


def _otherwise_rows(otherwise: Otherwise, noun: str) -> Iterator[Row]:
    """How deciding again differs from the record, then changes; outcomes count ``noun``."""
    yield Row("note", _NOTES.get(otherwise.note, "").format(noun))
    if otherwise.flips is None:
        yield Row("otherwise", _LEFT_OUT)
        return
    yield from (Row("otherwise", _flip_words(flip)) for flip in otherwise.flips)
    if not otherwise.flips:
        yield Row("otherwise", "no single change that was tried would change it")
    if not otherwise.tried_all:
        yield Row("", "… not all was tried: the pool is large")


def _flip_words(flip: Flip) -> str:
    if flip.value is None:
        return f"if {flip.name}: {flip.outcome}"
    if flip.becomes is None:
        return f"without {flip.name} ({_plain(flip.value)}): {flip.outcome}"
    return f"{flip.name}: {_plain(flip.value)} -> {_plain(flip.becomes)}: {flip.outcome}"


def _plain(value: float) -> str:
    if value == int(value):
        return str(int(value))
    # Shares lie between 0 and 1.
    return number(value) if abs(value) >= 1 else f"{value:.3g}"


def _otherwise_data(otherwise: Otherwise) -> dict[str, Any]:
    changes = None
    if otherwise.flips is not None:
        changes = [
            {
                "code": flip.code,
                "says": says("what-if", flip.code),
                "what": flip.name,
                **fields(flip, "value", "becomes", "outcome"),
            }
            for flip in otherwise.flips
        ]
    return {
        "decided_again": otherwise.outcome,
        "would_change": changes,
        "tried_all": otherwise.tried_all,
    }
