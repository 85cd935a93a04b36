"""``sharectl explain job``, as JSON and as one screen.

What all explanations say alike: codes with their sentences, targets, exchanges, and what would
change it.

``sharectl explain cycle``, as JSON and as one screen.

``sharectl explain group``, as JSON and as one screen.

``sharectl explain node``, as JSON and as one screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional, TextIO

from sharectl.explain import job as job_reasons
from sharectl.explain.again import Explained
from sharectl.explain.codes import says
from sharectl.explain.cycle import CycleExplanation
from sharectl.explain.group import (
    Exchange,
    Formula,
    GroupExplanation,
    given_hs06,
    is_withheld,
    number,
)
from sharectl.explain.job import Headroom, ObstacleCount, ShortageCount, TargetCount, Verdict
from sharectl.explain.node import NodeExplanation
from sharectl.explain.what_if import Flip, targets_in_all
from sharectl.model import GroupControl, JobWaits, LimitNote, PendingJobs, Target, WaitTimes
from sharectl.plan.diff import ESTIMATING, KINDS, PlanDiff
from sharectl.plan.nodes import QUIET, SWITCHES, NodeWords
from sharectl.plan.records import CycleRecord, GroupReason, NodeRecord
from sharectl.report.plans import target_words
from sharectl.report.tables import listed, print_screen
from sharectl.times import shown, span
from sharectl.words import counted

NODES_LISTED = 4
KINDS_LISTED = 3

ELSE = "something else"
ABOUT = "about as many {}, not all of them the same"
"""What deciding again comes to, where that is not what was recorded."""

_OVERRULED = "what would change it is told as if sharectl had not been kept from publishing"
_DISAGREES = (
    "deciding again now comes to {what}: the configuration was changed since, or the ledger "
    "does not hold "
    "enough (since when targets stood, the run times known then{lacking})"
)
_LEFT_OUT = "left out: it would tell of that other decision, and not of this one"
_WITHOUT_MEMORY = (
    ", and the memory that pending jobs request, which this row lacks: here they fit anywhere"
)


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
    return (
        f"{counted(record.idle_cores, 'core')}: {target} under targets, {grace} in grace, {rest} "
        "others"
    )


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
        f"{other} on {counted(len(exchange.nodes), 'node')}, by {exchange.request_cores}-core "
        f"jobs, {moved:.0f} HS06 still "
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
        rows.append(
            f"targets for other groups close {counted(reason.closed_nodes, 'node')} to its jobs"
        )
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
    rows = [
        ("limits", f"{spoken('limit', note.code)}: {counted(note.nodes, 'node')}")
        for note in limits
    ]
    return rows or [("limits", "none bounded the change of targets")]


def limit_data(limits: Iterable[LimitNote]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [{**coded("limit", note.code), "nodes": note.nodes} for note in limits]


def flip_rows(
    flips: Iterable[Flip], *, tried_all: bool, told: bool = True
) -> list[tuple[str, str]]:
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
        return (
            f"without {flip.what} ({number(flip.value, 2).rstrip('0').rstrip('.')}): {flip.outcome}"
        )
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


GROUPS_LISTED = 6
PAIRS_LISTED = 3
CHANGES_LISTED = 3
FLIPS_LISTED = 5


def cycle_as_data(found: CycleExplanation) -> dict[str, Any]:
    """All that is known, each code with its sentence."""
    record = found.record
    return {
        "cycle": record.number or None,
        "taken_at": record.taken_at,
        "seconds": None if record.imported else record.seconds,
        "complete": record.complete,
        "imported": record.imported,
        "sources": [asdict(source) for source in record.sources],
        "problems": list(record.problems),
        "configuration": record.configuration,
        "configuration_changed": found.configuration_changed,
        "strategy": coded("strategy", record.strategy),
        "setpoint": coded("setpoint", record.setpoint),
        "reason": coded("plan", record.reason) if record.reason else None,
        "sequence": record.sequence,
        "published": list(record.published),
        "targets": [asdict(node.target) for node in record.nodes if node.target],
        "exchanges": [exchange_data(exchange) for exchange in found.exchanges],
        "limits": limit_data(record.limits),
        "groups": [_group_data(control, known=not record.imported) for control in record.groups],
        "nodes": len(record.nodes),
        "node_reasons": [
            {**coded("node", code), "nodes": nodes} for code, nodes in found.node_reasons.items()
        ],
        "idle_cores": record.idle_cores if record.complete and not record.imported else None,
        "idle_target_cores": record.idle_target_cores,
        "idle_grace_cores": record.idle_grace_cores,
        "before": _before(found),
        "changes": _changes_data(found.diff),
        **_otherwise_data(found),
    }


def print_cycle(found: CycleExplanation, to: TextIO, *, everything: bool) -> None:
    """Print it on one screen, or all of it."""
    record = found.record
    took = "" if record.imported else f", took {record.seconds:.1f} s"
    title = f"cycle {record.number}: {shown(record.taken_at)}{took}"
    print_screen(title, list(_cycle_rows(found, everything=everything)), to, everything=everything)


def _cycle_rows(found: CycleExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    record = found.record
    if not record.imported:
        yield from _looked(record, everything=everything)
    yield from (("problem", problem) for problem in record.problems)
    if found.configuration_changed:
        yield "note", "the configuration that decides is another one than in the cycle before"
    if record.imported:
        yield "note", "from a shares_Error.log: nodes, outputs and plan are not known"
    else:
        yield "plan", _plan(record)
    if record.reason == "no-fit":
        yield "fits", unfit_words(record)
    yield from _exchanges(found, everything=everything)
    if record.groups and not record.imported:
        yield from limit_rows(record.limits)
    yield from _otherwise(found, everything=everything)
    yield from _changes(found, everything=everything)
    yield from _groups(record, everything=everything)
    if record.idle_target_cores or record.idle_grace_cores:
        yield "idle", idle_words(record)
    reasons = found.node_reasons.items()
    if reasons:
        yield (
            "nodes",
            f"{len(record.nodes)}: " + ", ".join(f"{code} {nodes}" for code, nodes in reasons),
        )
    if everything:
        yield from (("", spoken("node", code)) for code in found.node_reasons)


def _looked(record: CycleRecord, *, everything: bool) -> Iterator[tuple[str, str]]:
    answered = [source for source in record.sources if source.problem is None]
    slowest = sorted(answered, key=lambda source: -source.seconds)
    shown_sources = slowest if everything else slowest[:2]
    times = ", ".join(f"{source.name} {source.seconds:.2f} s" for source in shown_sources)
    which = "" if len(shown_sources) == len(answered) else f", the slowest {len(shown_sources)}"
    if record.complete:
        yield (
            "complete",
            f"yes, {counted(len(answered), 'source')} answered"
            + (f"{which}: {times}" if times else ""),
        )
    else:
        yield "complete", "no: missing data is never zero, so nothing was decided"
        yield from (
            ("silent", f"{s.name}: {s.problem}") for s in record.sources if s.problem is not None
        )


def _plan(record: CycleRecord) -> str:
    if record.reason is None:
        return "none: what was published before stands until it runs out"
    targets = sum(node.target is not None for node in record.nodes)
    places = (
        f"; published as {record.sequence} to {', '.join(record.published)}"
        if record.published
        else ""
    )
    return (
        f"{spoken('plan', record.reason)}; {counted(targets, 'target')}, strategy "
        f"{record.strategy}{places}"
    )


def _exchanges(found: CycleExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    most = len(found.exchanges) if everything else PAIRS_LISTED
    for exchange in found.exchanges[:most]:
        nodes = listed(exchange.nodes, len(exchange.nodes) if everything else 2)
        yield (
            "pair",
            (
                f"{exchange.held_back} -> {exchange.helped} by {exchange.request_cores}: "
                f"{counted(len(exchange.nodes), 'node')}, "
                f"{exchange.lost_hs06:.0f} HS06 still to move: {nodes}"
            ),
        )
    if len(found.exchanges) > most:
        yield "pair", f"… and {counted(len(found.exchanges) - most, 'pair')} more: --all"


def _otherwise(found: CycleExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    if found.otherwise is None:
        return
    again, flips = found.otherwise.explained, found.otherwise.flips
    if again is not None:
        what = ABOUT.format("targets") if found.otherwise.alike else ELSE
        yield from note_rows(again, same=again.agrees, what=what)
    listed_flips = flips if everything else flips[:FLIPS_LISTED]
    yield from flip_rows(
        listed_flips, tried_all=found.otherwise.tried_all, told=found.otherwise.alike
    )
    if len(flips) > len(listed_flips):
        yield "otherwise", f"… and {counted(len(flips) - len(listed_flips), 'change')} more: --all"


def _changes(found: CycleExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    if found.before is None:
        yield "changes", "the ledger has no complete cycle before it"
        return
    ago = span(found.record.taken_at - found.before.taken_at)
    beside = f"beside cycle {found.before.number}, {ago} before"
    if found.diff is None:
        yield "changes", f"none {beside}: nothing was decided"
        return
    yield "changes", ", ".join(f"{found.diff.count(kind)} {kind}" for kind in KINDS) + f" {beside}"
    changed = [change for change in found.diff.changes if change.kind != "kept"]
    for change in changed if everything else changed[:CHANGES_LISTED]:
        after = target_words(change.after)
        yield (
            "",
            f"{change.kind} {' -> '.join(change.nodes)}: {target_words(change.before)} -> {after}",
        )


def _groups(record: CycleRecord, *, everything: bool) -> Iterator[tuple[str, str]]:
    groups = sorted(record.groups, key=lambda control: -abs(control.control_error_hs06))
    most = len(groups) if everything else GROUPS_LISTED
    for control in groups[:most]:
        acted = f" ({', '.join(control.acted)})" if control.acted else ""
        given = (
            f", of which the law is given {number(given_hs06(control), 0)}"
            if is_withheld(control)
            else ""
        )
        output = "" if record.imported else f"{given}, output {control.output_hs06:+.0f}"
        yield (
            "groups",
            (
                f"{control.group}: uses {number(control.error.usage.power_hs06, 0)} HS06, is "
                f"due {number(control.setpoint_hs06, 0)}: "
                f"error {control.control_error_hs06:+.0f}{output} HS06{acted}"
            ),
        )
    if len(groups) > most:
        yield "groups", f"… and {counted(len(groups) - most, 'group')} more: --all"


def _group_data(control: GroupControl, *, known: bool) -> dict[str, Any]:
    return {
        "group": control.group,
        "pledge_hs06": control.error.pledge_hs06,
        "power_hs06": control.error.usage.power_hs06,
        "error_hs06": control.error.error_hs06,
        "setpoint_hs06": control.setpoint_hs06,
        "control_error_hs06": control.control_error_hs06,
        "given_hs06": given_hs06(control) if known else None,
        "output_hs06": control.output_hs06 if known else None,
        "law": coded("law", control.law) if known else None,
        "acted": [coded("acted", code) for code in control.acted],
    }


def _otherwise_data(found: CycleExplanation) -> dict[str, Any]:
    """What would change it; None where nothing was decided again."""
    otherwise = found.otherwise
    again = otherwise.explained if otherwise is not None else None
    return {
        "agrees": again.agrees if again is not None else None,
        "decided_again": targets_in_all(again.decision) if again is not None else None,
        "would_change": flip_data(otherwise.flips)
        if otherwise is not None and otherwise.alike
        else None,
        "tried_all": otherwise.tried_all if otherwise is not None else None,
    }


def _before(found: CycleExplanation) -> Any:
    before = found.before
    return {"cycle": before.number, "taken_at": before.taken_at} if before is not None else None


def _changes_data(diff: Any) -> Any:
    if not isinstance(diff, PlanDiff):
        return None
    return {
        "counts": {kind: diff.count(kind) for kind in KINDS},
        "changes": [
            {
                **coded("change", change.kind),
                "before": asdict(change.before) if change.before else None,
                "after": asdict(change.after) if change.after else None,
            }
            for change in diff.changes
        ],
        "effect": asdict(diff.effect),
    }


def group_as_data(explained: Explained, found: GroupExplanation) -> dict[str, Any]:
    """All that is known, each code with its sentence."""
    control, usage, record = found.control, found.control.error.usage, explained.record
    return {
        **origin(explained),
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
        "setpoint": coded("setpoint", record.setpoint),
        "setpoint_hs06": control.setpoint_hs06,
        "control_error_hs06": control.control_error_hs06,
        "output_hs06": control.output_hs06,
        "law": coded("law", control.law),
        "state": dict(control.state),
        "acted": [coded("acted", code) for code in control.acted],
        "formulas": [asdict(formula) for formula in found.formulas],
        "reason": coded("plan", record.reason) if record.reason else None,
        **_outcome_data(record.group_reasons.get(control.group)),
        "gives": [exchange_data(exchange) for exchange in found.gives],
        "receives": [exchange_data(exchange) for exchange in found.receives],
        "limits": limit_data(record.limits),
        "decided_again": found.role,
        "would_change": flip_data(found.flips)
        if explained.tells_otherwise(same=found.alike)
        else None,
        "tried_all": found.tried_all,
    }


def _outcome_data(reason: Optional[GroupReason]) -> dict[str, Any]:
    return {
        "outcome": coded("group", reason.code) if reason else None,
        "closed_nodes": reason.closed_nodes if reason else None,
        "other_sizes_closed_nodes": reason.other_sizes_closed_nodes if reason else None,
    }


def print_group(
    explained: Explained, found: GroupExplanation, to: TextIO, *, everything: bool
) -> None:
    """Print it on one screen, or all of it."""
    title = heading(explained, f"group {found.control.group}")
    print_screen(
        title, group_rows(explained, found, everything=everything), to, everything=everything
    )


def group_rows(
    explained: Explained, found: GroupExplanation, *, everything: bool
) -> list[tuple[str, str]]:
    """Label and text of each row."""
    return [
        *_inputs(explained, found),
        *(_formula(formula) for formula in found.formulas),
        *(("acted", spoken("acted", code)) for code in found.control.acted),
        *_decided(explained, found, everything=everything),
        *limit_rows(explained.record.limits),
        *flip_rows(
            found.flips, tried_all=found.tried_all, told=explained.tells_otherwise(same=found.alike)
        ),
    ]


def _inputs(explained: Explained, found: GroupExplanation) -> Iterator[tuple[str, str]]:
    control, usage = found.control, found.control.error.usage
    sizes = f"{usage.single_cores} by one-core jobs, {usage.multi_cores} by larger ones"
    yield "uses", f"{number(usage.power_hs06)} HS06 on {usage.cores} cores: {sizes}"
    waiting = ", ".join(
        f"{jobs} x {cores}-core" for cores, jobs in usage.pending_by_cores.items() if jobs
    )
    yield "waits", f"{waiting} jobs" if waiting else "no job waits"
    without = ", ".join(
        f"{jobs} x {cores}-core" for cores, jobs in usage.unplaceable_by_cores.items()
    )
    if without:
        yield "no demand", f"{without} of them: no node could run them if it were empty"
    yield from wait_rows(waits for waits in explained.record.waits if waits.group == control.group)
    yield "entitled", f"{explained.record.setpoint}: {says('setpoint', explained.record.setpoint)}"
    yield "law", spoken("law", control.law)


def _formula(formula: Formula) -> tuple[str, str]:
    return formula.name, f"{number(formula.value)} = {formula.numbers}; {formula.words}"


def _decided(
    explained: Explained, found: GroupExplanation, *, everything: bool
) -> Iterator[tuple[str, str]]:
    record, group = explained.record, found.control.group
    for exchange in found.gives:
        yield "gives", exchange_words(exchange, group, everything=everything, gives=True)
    for exchange in found.receives:
        yield "receives", exchange_words(exchange, group, everything=everything, gives=False)
    reason = record.group_reasons.get(group)
    if reason is not None:
        yield "decided", spoken("group", reason.code)
        yield from closed_rows(reason)
    elif not found.gives and not found.receives:
        yield "decided", "it neither gives nor receives"
    yield from plan_rows(record)
    what = ABOUT.format("nodes") if found.alike else ELSE
    yield from note_rows(explained, same=found.same, what=what)


OBSTACLES_LISTED = 8
TARGETS_LISTED = 2
CLAUSE_SHOWN = 100
EXPRESSION_SHOWN = 24

_UNITS = {"memory": " MiB", "disk": " KiB"}
_NUMBER = re.compile(r"[0-9.e+]+", re.IGNORECASE)
_REQUEST = re.compile(
    r"Request(?P<resource>Memory|Disk) = (?:(?P<number>[0-9.e+]+)|.+)", re.IGNORECASE
)


@dataclass(frozen=True)
class JobExplanation:
    """All that is known of a job."""

    job: str
    """Such as ``12.0``."""
    now: int
    """Unix seconds."""
    code: str
    """One of `job_reasons.VERDICTS`."""
    facts: Optional[dict[str, Any]] = None
    """What its access point says; None if none knows it."""
    verdict: Optional[Verdict] = None
    """What the slots make of it; None if it needs none now, or that is not known."""
    headroom: Optional[Headroom] = None
    problem: Optional[str] = None
    """Why the slots could not be asked."""


def job_as_data(found: JobExplanation) -> dict[str, Any]:
    """All of it, each code with its sentence."""
    verdict = found.verdict
    return {
        "job": found.job,
        "now": found.now,
        "code": found.code,
        "says": job_reasons.VERDICTS[found.code],
        "access_point": found.facts,
        "problem": found.problem,
        "nodes": None if verdict is None else _nodes_data(verdict),
        "group": None if found.headroom is None else _headroom_data(found.headroom),
    }


def print_job(found: JobExplanation, to: TextIO, *, everything: bool) -> None:
    """Print it on one screen, or all of it."""
    print_screen(_title(found), _job_rows(found, everything=everything), to, everything=everything)


def _nodes_data(verdict: Verdict) -> dict[str, Any]:
    told = asdict(verdict)
    for name in ("obstacles", "never"):
        told[name] = [
            {
                **asdict(row),
                "says": job_reasons.OBSTACLES[row.code],
                "remedy": remedy_of(row, verdict),
            }
            for row in getattr(verdict, name)
        ]
    for row in told["targets"]:
        row["says"] = job_reasons.TARGET_KINDS[row["target"]["kind"]]
    first, last = told.pop("grace_until")
    slots = {
        "total": told.pop("slots"),
        "refused_by_job": told.pop("slots_refused_by_job"),
        "refusing_job": told.pop("slots_refusing_job"),
        "matching": told.pop("slots_matching"),
    }
    total = told.pop("nodes")
    return {"total": total, **told, "grace_ends": {"first": first, "last": last}, "slots": slots}


def _headroom_data(headroom: Headroom) -> dict[str, Any]:
    error = headroom.error
    return {
        "group": headroom.group,
        "pledge_hs06": error.pledge_hs06 if error else None,
        "power_hs06": error.usage.power_hs06 if error else None,
        "error_hs06": error.error_hs06 if error else None,
        "problem": headroom.problem,
        "quotas": [asdict(quota) for quota in headroom.quotas],
    }


def _title(found: JobExplanation) -> str:
    facts = found.facts
    if facts is None:
        return f"job {found.job}: {found.code}: {job_reasons.VERDICTS[found.code]}"
    owner = f", {facts['owner']}" if facts["owner"] else ""
    group = facts["accounting_group"] or "no accounting group"
    return f"job {found.job} of {facts['schedd']}{owner}, {group}"


def _job_rows(found: JobExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    facts = found.facts
    if facts is None:
        return
    yield "verdict", f"{found.code}: {job_reasons.VERDICTS[found.code]}"
    yield from _state(facts, found)
    if found.problem:
        yield "problem", found.problem
    if found.verdict is not None:
        yield from _verdict(
            found.verdict, found.now, everything=everything, held=found.code == job_reasons.HELD
        )
        yield from _negotiator(facts, found.now)
    if found.headroom is not None:
        yield from _headroom(found.headroom)
    if found.verdict is not None:
        yield "priority", "is the negotiator's: condor_userprio -all, condor_q -better-analyze"


def _state(facts: dict[str, Any], found: JobExplanation) -> Iterator[tuple[str, str]]:
    since = facts["since"]
    ago = f" for {span(max(0, found.now - since))}" if since else ""
    if found.code == job_reasons.HELD:
        yield (
            "held",
            f"{facts['hold_reason'] or 'without a reason'} (code {facts['hold_code']}){ago}",
        )
        yield "change", f"condor_release {found.job}, once the reason is gone"
    elif found.code == job_reasons.RUNNING:
        yield "runs on", f"{facts['host'] or '?'}{ago}"
    elif found.code in (job_reasons.COMPLETED, job_reasons.REMOVED):
        how = facts["remove_reason"] or (
            f"exit code {facts['exit_code']}" if facts["exit_code"] is not None else "-"
        )
        yield "ended", f"{how}{f', {shown(since)}' if since else ''}"
    elif since:
        yield "waits", f"since {shown(since)}{ago}"
    if facts["requests"]:
        yield (
            "asks for",
            ", ".join(
                _request(name, text, facts["request_values"].get(name))
                for name, text in facts["requests"].items()
            ),
        )


def _verdict(
    verdict: Verdict, now: int, *, everything: bool, held: bool
) -> Iterator[tuple[str, str]]:
    could = "once released, " if held else ""
    yield (
        "nodes",
        (
            f"{could}{verdict.fitting_nodes} of {verdict.nodes} would take it now, "
            f"{verdict.fitting_if_empty} if nothing ran there"
        ),
    )
    impossible = verdict.code == job_reasons.COULD_NEVER
    if impossible:
        yield from _obstacles("even empty", verdict.never, everything=everything)
    lasting = {row.code for row in verdict.never}
    for shortage in verdict.shortages:
        if (
            everything
            or not impossible
            or job_reasons.code_of_resource(shortage.resource) in lasting
        ):
            yield "short", _shortage(shortage)
    if everything or not impossible:
        yield from _obstacles("in the way", verdict.obstacles, everything=everything)
    elif verdict.never != verdict.obstacles:
        yield "in the way", "now also what an empty node would not have: --all"
    if everything and not impossible and verdict.never and verdict.never != verdict.obstacles:
        yield from _obstacles("even empty", verdict.never, everything=everything)
    yield from _ours(verdict, now, everything=everything)
    rows = verdict.never if impossible else verdict.obstacles
    remedies = dict.fromkeys(f"{row.code}: {remedy_of(row, verdict)}" for row in rows)
    for remedy in list(remedies)[: None if everything else 3]:
        yield "change", remedy


def _ours(verdict: Verdict, now: int, *, everything: bool) -> Iterator[tuple[str, str]]:
    """Targets and grace; of a job that cannot run anyway only if all is wanted."""
    if verdict.code == job_reasons.COULD_NEVER and not everything:
        return
    listed = verdict.targets if everything else verdict.targets[:TARGETS_LISTED]
    yield from (("target", _job_target(count, now)) for count in listed)
    if len(listed) < len(verdict.targets):
        yield "target", f"… and {len(verdict.targets) - len(listed)} others: --all"
    if verdict.grace_until[1]:
        yield "grace", f"ends in {span(max(0, verdict.grace_until[1] - now))} at the latest"


def remedy_of(row: ObstacleCount, verdict: Verdict) -> str:
    """What would take an obstacle away; on an empty node what is short stays short.

    Of a job that no empty node would take, only what keeps it out there has a remedy.
    """
    never = {(other.code, other.clause): other.nodes for other in verdict.never}
    lasting = never.get((row.code, row.clause), 0)
    impossible = verdict.code == job_reasons.COULD_NEVER
    if impossible and not lasting:
        return job_reasons.NO_USE
    if row.code in job_reasons.SHORT and (impossible or lasting >= row.nodes):
        return job_reasons.TOO_LARGE if lasting >= row.nodes else job_reasons.SMALLER
    end = (
        max((count.target.until for count in verdict.targets), default=0)
        if row.code == "target"
        else 0
    )
    remedy = job_reasons.REMEDIES[row.code]
    return (
        remedy.replace("end;", f"end, {shown(end)} at the latest unless renewed;", 1)
        if end
        else remedy
    )


def _obstacles(
    label: str, rows: Sequence[ObstacleCount], *, everything: bool
) -> Iterator[tuple[str, str]]:
    most = len(rows) if everything else OBSTACLES_LISTED
    for row in rows[:most]:
        alone = f", {row.alone} by this alone" if row.alone else ""
        told = _with_unit(row.clause)
        clause = f": {told if everything else _short(told, CLAUSE_SHOWN)}" if told else ""
        yield (
            label,
            f"{counted(row.nodes, 'node')}{alone}: {job_reasons.OBSTACLES[row.code]}{clause}",
        )
    if len(rows) > most:
        yield label, f"… and {len(rows) - most} others: --all"


def _with_unit(request: str) -> str:
    """A request of memory or disk with its unit, in which HTCondor counts it; anything else as it is."""
    found = _REQUEST.fullmatch(request)
    if found is None:
        return request
    unit = _UNITS[found["resource"].lower()]
    return f"{request}{unit}" if found["number"] else f"{request} ({unit.strip()})"


def _request(name: str, text: str, value: Optional[float]) -> str:
    """A request with its unit, as the number that it comes to; the expression behind it where that is short."""
    if value is None:
        return _with_unit(f"{name} = {_short(text, 40)}")
    number = f"{value:.15g}"
    expression = (
        f" ({text})"
        if text != number and len(text) <= EXPRESSION_SHOWN and not _NUMBER.fullmatch(text)
        else ""
    )
    return _with_unit(f"{name} = {number}") + expression


def _shortage(shortage: ShortageCount) -> str:
    unit = _UNITS.get(shortage.resource.lower(), "")
    asked, free, most = (
        f"{amount:.15g}{unit}" for amount in (shortage.requested, shortage.most_free, shortage.most)
    )
    return (
        f"{shortage.resource}: asks for {asked}; where it is short, at most {free} free, {most} "
        "if nothing ran there"
    )


def _job_target(count: TargetCount, now: int) -> str:
    target = count.target
    ends = (
        f"ends in {span(target.until - now)} unless renewed"
        if target.until > now
        else "end unknown"
    )
    return (
        f"{counted(count.nodes, 'node')}: {job_reasons.TARGET_KINDS[target.kind]}: "
        f"{target.held_back} up to "
        f"{target.cap_cores} cores, {target.helped} by {target.request_cores}; {ends}"
    )


def _negotiator(facts: dict[str, Any], now: int) -> Iterator[tuple[str, str]]:
    if facts["rejected"]:
        ago = f", {span(max(0, now - facts['rejected_at']))} ago" if facts["rejected_at"] else ""
        whose = f" (of {facts['rejected_job']}, which is alike)" if facts["rejected_job"] else ""
        yield "negotiator", f"said: {facts['rejected']}{ago}{whose}"
    if facts["limits"]:
        yield (
            "limits",
            (
                f"it counts for {_short(facts['limits'], CLAUSE_SHOWN)}; condor_userprio -allusers "
                "has their use"
            ),
        )


def _headroom(headroom: Headroom) -> Iterator[tuple[str, str]]:
    error = headroom.error
    if error is not None:
        share = error.usage.power_hs06 - error.error_hs06
        side = "over" if error.error_hs06 > 0 else "under"
        power, pledge = error.usage.power_hs06, error.pledge_hs06
        use = (
            f"{headroom.group} uses {power:.0f} HS06 and is due {share:.0f} HS06: "
            f"{abs(error.error_hs06):.0f} HS06 {side}"
        )
        yield "group", f"{use}; pledge {pledge:.0f} HS06"
    else:
        yield (
            "group",
            f"{headroom.group}: {headroom.problem or 'no configured group, so it has no pledge'}",
        )
    for quota in headroom.quotas:
        limit = "?" if quota.quota is None else f"{quota.quota:.15g}"
        used = "?" if quota.used is None else f"{quota.used:.15g}"
        surplus = "" if quota.surplus in (None, "no") else f", may go beyond ({quota.surplus})"
        yield (
            "quota",
            f"{quota.name}: {used} of {limit} in use, as the negotiator weighs slots{surplus}",
        )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


HELD_LISTED = 6


def node_as_data(explained: Explained, found: NodeExplanation) -> dict[str, Any]:
    """All that is known, each code with its sentence."""
    node = found.node
    return {
        **origin(explained),
        **{key: value for key, value in asdict(node).items() if key != "reason"},
        "held": [jobs._asdict() for jobs in node.held],
        **({} if found.estimated else {"wait_seconds": None, "idle_core_seconds": None}),
        "idle_cores": node.idle_cores,
        "reason": coded("node", node.reason) if node.reason else None,
        "plan_reason": coded("plan", explained.record.reason) if explained.record.reason else None,
        "since": asdict(found.since) if found.since else None,
        "lost_hs06": found.lost_hs06,
        "gained_hs06": found.gained_hs06,
        "says": _said(found.says),
        "limits": limit_data(explained.record.limits),
        "decided_again": "a target" if found.has_target else "no target",
        "would_change": flip_data(found.flips)
        if explained.tells_otherwise(same=found.same)
        else None,
        "tried_all": found.tried_all,
    }


def print_node(
    explained: Explained, found: NodeExplanation, to: TextIO, *, everything: bool
) -> None:
    """Print it on one screen, or all of it."""
    title = heading(explained, f"node {found.node.node}")
    print_screen(
        title, node_rows(explained, found, everything=everything), to, everything=everything
    )


def node_rows(
    explained: Explained, found: NodeExplanation, *, everything: bool
) -> list[tuple[str, str]]:
    """Label and text of each row."""
    node, record = found.node, explained.record
    reasons = [("because", spoken("node", node.reason))] if node.reason else []
    reasons += plan_rows(record)
    reasons += note_rows(explained, same=found.same)
    return [
        *_holds(node, everything=everything),
        *_node_target(found, explained.record),
        *reasons,
        *limit_rows(record.limits),
        *_says(found, explained),
        *flip_rows(
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


def _node_target(found: NodeExplanation, record: CycleRecord) -> Iterator[tuple[str, str]]:
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
        (
            f"{found.lost_hs06:.0f} HS06 from {node.target.held_back} still, "
            f"{found.gained_hs06:.0f} HS06 to {node.target.helped}"
        ),
    )
    free = _free_seconds(node.target, record)
    if free is not None:
        words_free = (
            f"{node.target.request_cores} cores kept free for {node.target.helped} for {span(free)}"
        )
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
        return (
            f"its cores are free, a job is expected in {span(node.wait_seconds)}; {idle} until then"
        )
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
        yield "says now", f"refused: {spoken('job_ctl', said.refusal)}"
    yield from (
        ("says now", f"sharectl is switched off there: {SWITCHES[each]}")
        for each in said.switched_off
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
        "refusal": coded("job_ctl", code) if code is not None and code not in QUIET else None,
        "problem": said.problem,
        "switched_off": [{"code": each, "says": SWITCHES[each]} for each in said.switched_off],
    }
