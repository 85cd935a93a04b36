"""``sharectl explain cycle``, as JSON and as one screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, TextIO

from sharectl.core.cycle_record import CycleRecord
from sharectl.core.explain_cycle import CycleExplanation
from sharectl.core.formulas import given_hs06, is_withheld, number
from sharectl.core.model import GroupControl
from sharectl.core.plan_diff import KINDS, PlanDiff
from sharectl.core.time_words import shown, span
from sharectl.core.what_if_outcomes import targets_in_all
from sharectl.report import explain_words as words
from sharectl.report.plan_diff import words as target_words
from sharectl.report.screen import listed, print_screen
from sharectl.report.words import counted

GROUPS_LISTED = 6
PAIRS_LISTED = 3
CHANGES_LISTED = 3
FLIPS_LISTED = 5


def as_data(found: CycleExplanation) -> dict[str, Any]:
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
        "strategy": words.coded("strategy", record.strategy),
        "setpoint": words.coded("setpoint", record.setpoint),
        "reason": words.coded("plan", record.reason) if record.reason else None,
        "sequence": record.sequence,
        "published": list(record.published),
        "targets": [asdict(node.target) for node in record.nodes if node.target],
        "exchanges": [words.exchange_data(exchange) for exchange in found.exchanges],
        "limits": words.limit_data(record.limits),
        "groups": [_group_data(control, known=not record.imported) for control in record.groups],
        "nodes": len(record.nodes),
        "node_reasons": [
            {**words.coded("node", code), "nodes": nodes} for code, nodes in found.node_reasons.items()
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
    print_screen(title, list(_rows(found, everything=everything)), to, everything=everything)


def _rows(found: CycleExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
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
        yield "fits", words.unfit_words(record)
    yield from _exchanges(found, everything=everything)
    if record.groups and not record.imported:
        yield from words.limit_rows(record.limits)
    yield from _otherwise(found, everything=everything)
    yield from _changes(found, everything=everything)
    yield from _groups(record, everything=everything)
    if record.idle_target_cores or record.idle_grace_cores:
        yield "idle", words.idle_words(record)
    reasons = found.node_reasons.items()
    if reasons:
        yield "nodes", f"{len(record.nodes)}: " + ", ".join(f"{code} {nodes}" for code, nodes in reasons)
    if everything:
        yield from (("", words.spoken("node", code)) for code in found.node_reasons)


def _looked(record: CycleRecord, *, everything: bool) -> Iterator[tuple[str, str]]:
    answered = [source for source in record.sources if source.problem is None]
    slowest = sorted(answered, key=lambda source: -source.seconds)
    shown_sources = slowest if everything else slowest[:2]
    times = ", ".join(f"{source.name} {source.seconds:.2f} s" for source in shown_sources)
    which = "" if len(shown_sources) == len(answered) else f", the slowest {len(shown_sources)}"
    if record.complete:
        yield (
            "complete",
            f"yes, {counted(len(answered), 'source')} answered" + (f"{which}: {times}" if times else ""),
        )
    else:
        yield "complete", "no: missing data is never zero, so nothing was decided"
        yield from (("silent", f"{s.name}: {s.problem}") for s in record.sources if s.problem is not None)


def _plan(record: CycleRecord) -> str:
    if record.reason is None:
        return "none: what was published before stands until it runs out"
    targets = sum(node.target is not None for node in record.nodes)
    places = f"; published as {record.sequence} to {', '.join(record.published)}" if record.published else ""
    return f"{words.spoken('plan', record.reason)}; {counted(targets, 'target')}, strategy {record.strategy}{places}"


def _exchanges(found: CycleExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    most = len(found.exchanges) if everything else PAIRS_LISTED
    for exchange in found.exchanges[:most]:
        nodes = listed(exchange.nodes, len(exchange.nodes) if everything else 2)
        yield (
            "pair",
            (
                f"{exchange.held_back} -> {exchange.helped} by {exchange.request_cores}: {counted(len(exchange.nodes), 'node')}, "
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
        what = words.ABOUT.format("targets") if found.otherwise.alike else words.ELSE
        yield from words.note_rows(again, same=again.agrees, what=what)
    listed_flips = flips if everything else flips[:FLIPS_LISTED]
    yield from words.flip_rows(listed_flips, tried_all=found.otherwise.tried_all, told=found.otherwise.alike)
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
        yield "", f"{change.kind} {' -> '.join(change.nodes)}: {target_words(change.before)} -> {after}"


def _groups(record: CycleRecord, *, everything: bool) -> Iterator[tuple[str, str]]:
    groups = sorted(record.groups, key=lambda control: -abs(control.control_error_hs06))
    most = len(groups) if everything else GROUPS_LISTED
    for control in groups[:most]:
        acted = f" ({', '.join(control.acted)})" if control.acted else ""
        given = (
            f", of which the law is given {number(given_hs06(control), 0)}" if is_withheld(control) else ""
        )
        output = "" if record.imported else f"{given}, output {control.output_hs06:+.0f}"
        yield (
            "groups",
            (
                f"{control.group}: uses {number(control.error.usage.power_hs06, 0)} HS06, is due {number(control.setpoint_hs06, 0)}: "
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
        "law": words.coded("law", control.law) if known else None,
        "acted": [words.coded("acted", code) for code in control.acted],
    }


def _otherwise_data(found: CycleExplanation) -> dict[str, Any]:
    """What would change it; None where nothing was decided again."""
    otherwise = found.otherwise
    again = otherwise.explained if otherwise is not None else None
    return {
        "agrees": again.agrees if again is not None else None,
        "decided_again": targets_in_all(again.decision) if again is not None else None,
        "would_change": words.flip_data(otherwise.flips)
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
                **words.coded("change", change.kind),
                "before": asdict(change.before) if change.before else None,
                "after": asdict(change.after) if change.after else None,
            }
            for change in diff.changes
        ],
        "effect": asdict(diff.effect),
    }
