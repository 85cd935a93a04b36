"""``sharectl explain group``, as JSON and as one screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.core.cycle_record import GroupReason
from sharectl.core.explain import says
from sharectl.core.explain_group import GroupExplanation
from sharectl.core.explaining import Explained
from sharectl.core.formulas import Formula, number
from sharectl.report import explain_words as words
from sharectl.report.screen import print_screen


def as_data(explained: Explained, found: GroupExplanation) -> dict[str, Any]:
    """All that is known, each code with its sentence."""
    control, usage, record = found.control, found.control.error.usage, explained.record
    return {
        **words.origin(explained),
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
        "setpoint": words.coded("setpoint", record.setpoint),
        "setpoint_hs06": control.setpoint_hs06,
        "control_error_hs06": control.control_error_hs06,
        "output_hs06": control.output_hs06,
        "law": words.coded("law", control.law),
        "state": dict(control.state),
        "acted": [words.coded("acted", code) for code in control.acted],
        "formulas": [asdict(formula) for formula in found.formulas],
        "reason": words.coded("plan", record.reason) if record.reason else None,
        **_outcome_data(record.group_reasons.get(control.group)),
        "gives": [words.exchange_data(exchange) for exchange in found.gives],
        "receives": [words.exchange_data(exchange) for exchange in found.receives],
        "limits": words.limit_data(record.limits),
        "decided_again": found.role,
        "would_change": words.flip_data(found.flips) if explained.tells_otherwise(same=found.alike) else None,
        "tried_all": found.tried_all,
    }


def _outcome_data(reason: Optional[GroupReason]) -> dict[str, Any]:
    return {
        "outcome": words.coded("group", reason.code) if reason else None,
        "closed_nodes": reason.closed_nodes if reason else None,
        "other_sizes_closed_nodes": reason.other_sizes_closed_nodes if reason else None,
    }


def print_group(explained: Explained, found: GroupExplanation, to: TextIO, *, everything: bool) -> None:
    """Print it on one screen, or all of it."""
    title = words.heading(explained, f"group {found.control.group}")
    print_screen(title, rows(explained, found, everything=everything), to, everything=everything)


def rows(explained: Explained, found: GroupExplanation, *, everything: bool) -> list[tuple[str, str]]:
    """Label and text of each row."""
    return [
        *_inputs(explained, found),
        *(_formula(formula) for formula in found.formulas),
        *(("acted", words.spoken("acted", code)) for code in found.control.acted),
        *_decided(explained, found, everything=everything),
        *words.limit_rows(explained.record.limits),
        *words.flip_rows(
            found.flips, tried_all=found.tried_all, told=explained.tells_otherwise(same=found.alike)
        ),
    ]


def _inputs(explained: Explained, found: GroupExplanation) -> Iterator[tuple[str, str]]:
    control, usage = found.control, found.control.error.usage
    sizes = f"{usage.single_cores} by one-core jobs, {usage.multi_cores} by larger ones"
    yield "uses", f"{number(usage.power_hs06)} HS06 on {usage.cores} cores: {sizes}"
    waiting = ", ".join(f"{jobs} x {cores}-core" for cores, jobs in usage.pending_by_cores.items() if jobs)
    yield "waits", f"{waiting} jobs" if waiting else "no job waits"
    without = ", ".join(f"{jobs} x {cores}-core" for cores, jobs in usage.unplaceable_by_cores.items())
    if without:
        yield "no demand", f"{without} of them: no node could run them if it were empty"
    yield from words.wait_rows(waits for waits in explained.record.waits if waits.group == control.group)
    yield "entitled", f"{explained.record.setpoint}: {says('setpoint', explained.record.setpoint)}"
    yield "law", words.spoken("law", control.law)


def _formula(formula: Formula) -> tuple[str, str]:
    return formula.name, f"{number(formula.value)} = {formula.numbers}; {formula.words}"


def _decided(explained: Explained, found: GroupExplanation, *, everything: bool) -> Iterator[tuple[str, str]]:
    record, group = explained.record, found.control.group
    for exchange in found.gives:
        yield "gives", words.exchange_words(exchange, group, everything=everything, gives=True)
    for exchange in found.receives:
        yield "receives", words.exchange_words(exchange, group, everything=everything, gives=False)
    reason = record.group_reasons.get(group)
    if reason is not None:
        yield "decided", words.spoken("group", reason.code)
        yield from words.closed_rows(reason)
    elif not found.gives and not found.receives:
        yield "decided", "it neither gives nor receives"
    yield from words.plan_rows(record)
    what = words.ABOUT.format("nodes") if found.alike else words.ELSE
    yield from words.note_rows(explained, same=found.same, what=what)
