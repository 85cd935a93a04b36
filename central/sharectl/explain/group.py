"""Explanation of a group: its formulas, what it gives and receives, and changes of that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

from sharectl.control.laws import (
    AVERAGE,
    AVERAGE_BEFORE,
    ERROR,
    GAIN,
    NO_CLAIMANT,
    NO_DEMAND,
    PID_STATE,
    SLOPE,
    SLOPE_GAIN,
    WEIGHT_BEFORE,
    pid_terms,
)
from sharectl.control.setpoints import SETPOINTS, shared_ratio
from sharectl.explain.again import Explained, Otherwise, alike, targets_of
from sharectl.explain.what_if import Flip, counts, group_knobs, limit_knobs, role
from sharectl.model import GroupControl
from sharectl.plan.diff import power_moved_hs06
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.shares.groups import BY_SUBGROUPS, first_level_of, levels_above

ROUNDING_HS06 = 0.05
"""Numbers that differ by less are shown alike."""

_SHARED = {
    "in_use": "pledge x (all power used / all pledges)",
    "present": "pledge x (power of all nodes / all pledges)",
    "pledge": "the pledge itself",
}


@dataclass(frozen=True)
class Formula:
    """One equation."""

    name: str
    """Left side, such as ``DHS``."""
    value: float
    numbers: str
    """Right side with numbers, such as ``62615.0 - 71400.0 x 0.7006``."""
    words: str
    """Right side in words."""


@dataclass(frozen=True)
class Exchange:
    """Power that one group gives to another, by jobs of one size."""

    held_back: str
    helped: str
    request_cores: int
    nodes: tuple[str, ...]
    lost_hs06: float
    """Power that the held-back group is still to lose."""
    gained_hs06: float
    """Power that the helped group gains in whole jobs."""


@dataclass(frozen=True)
class GroupExplanation:
    """Everything that led to what one group does in one cycle."""

    control: GroupControl
    formulas: tuple[Formula, ...]
    gives: tuple[Exchange, ...]
    """Exchanges of it or of groups within it."""
    receives: tuple[Exchange, ...]
    otherwise: Otherwise


def explain_group(explained: Explained, group: str) -> GroupExplanation:
    """Explanation of a group of the record."""
    record = explained.record
    between = exchanges(record)
    return GroupExplanation(
        control=_control(record, group),
        formulas=tuple(formulas(record, group)),
        gives=tuple(e for e in between if group in (e.held_back, *levels_above(e.held_back))),
        receives=tuple(e for e in between if group in (e.helped, *levels_above(e.helped))),
        otherwise=_otherwise(explained, group),
    )


def exchanges(record: CycleRecord) -> tuple[Exchange, ...]:
    """Exchanges of a cycle, the most power first."""
    by_purpose: defaultdict[tuple[str, str, int], list[NodeRecord]] = defaultdict(list)
    for node in record.nodes:
        if node.target is not None:
            purpose = (node.target.held_back, node.target.helped, node.target.request_cores)
            by_purpose[purpose].append(node)
    rows = []
    for purpose, nodes in by_purpose.items():
        moved = [power_moved_hs06(node.target, node) for node in nodes if node.target is not None]
        lost, gained = map(fsum, zip(*moved))
        rows.append(Exchange(*purpose, tuple(node.node for node in nodes), lost, gained))
    return tuple(sorted(rows, key=lambda e: (-e.lost_hs06, e.held_back, e.helped, e.request_cores)))


def is_withheld(control: GroupControl) -> bool:
    """True if the law got an error of 0 because nobody is to collect the error later."""
    return bool({NO_DEMAND, NO_CLAIMANT}.intersection(control.acted))


def given_hs06(control: GroupControl) -> float:
    """Error that the law got, HS06."""
    return 0.0 if is_withheld(control) else control.control_error_hs06


def number(value: float, digits: int = 1) -> str:
    """Value with a fixed number of digits, never ``-0.0``."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text


def formulas(record: CycleRecord, group: str) -> Iterator[Formula]:
    """DHS, setpoint, error and output of a group of a complete cycle."""
    control = _control(record, group)
    pledge_hs06, power_hs06 = control.error.pledge_hs06, control.error.usage.power_hs06
    yield Formula(
        "DHS",
        control.error.error_hs06,
        f"{number(power_hs06)} - {number(pledge_hs06)} x {_ratio(record, 'in_use'):.6g}",
        "power - pledge x (all power used / all pledges)",
    )
    yield _setpoint(record, control)
    yield Formula(
        "error",
        control.control_error_hs06,
        f"{number(power_hs06)} - {number(control.setpoint_hs06)}",
        f"power - setpoint{'; the law is given 0' if is_withheld(control) else ''}",
    )
    yield from _output(control)


def _control(record: CycleRecord, group: str) -> GroupControl:
    return next(control for control in record.groups if control.group == group)


def _ratio(record: CycleRecord, setpoint: str) -> float:
    groups = first_level_of(record.groups)
    return shared_ratio(
        setpoint,
        {control.group: control.error.pledge_hs06 for control in groups},
        {control.group: control.error.usage for control in groups},
        fsum(node.cores * node.hs06_per_core for node in record.nodes),
    )


def _setpoint(record: CycleRecord, control: GroupControl) -> Formula:
    if record.setpoint not in SETPOINTS:
        return Formula("setpoint", control.setpoint_hs06, "as recorded", record.setpoint)
    words, ratio = _SHARED[record.setpoint], _ratio(record, record.setpoint)
    moved_hs06 = control.setpoint_hs06 - control.error.pledge_hs06 * ratio
    numbers = f"{number(control.error.pledge_hs06)} x {ratio:.6g}"
    if abs(moved_hs06) >= ROUNDING_HS06:
        sign = "+" if moved_hs06 > 0 else "-"
        numbers += f" {sign} {number(abs(moved_hs06))}"
        words += f" {sign} what is lent, borrowed or carried over"
    return Formula("setpoint", control.setpoint_hs06, numbers, words)


def _output(control: GroupControl) -> Iterator[Formula]:
    """Terms of the law, and the output that they come to."""
    state = control.state
    if BY_SUBGROUPS in control.acted:
        words = "the groups within it have controllers"
        yield Formula("output", control.output_hs06, "none of its own", words)
    elif control.law == "latest":
        yield _sum(control, "error", control.control_error_hs06, "the latest error alone")
    elif control.law == "ewma" and WEIGHT_BEFORE in state:
        yield _average(control)
        yield _sum(control, "average", state[AVERAGE], "the average of the errors")
    elif control.law == "pid" and state.keys() >= set(PID_STATE):
        terms = pid_terms(state)
        numbers = (
            f"{state[GAIN]:g} x {number(state[ERROR])}",
            "as recorded",
            f"{state[SLOPE_GAIN]:g} x {state[SLOPE]:.6f}",
        )
        meanings = (
            "gain x error beyond the deadband",
            "gain x sum of errors over time, held by what bounds the output",
            "gain x derivative time x filtered change of the power",
        )
        yield from map(Formula, "PID", terms, numbers, meanings)
        yield _sum(control, "P + I + D", fsum(terms), "the three terms together")
    else:
        words = ", ".join(f"{name} {value:g}" for name, value in sorted(state.items()))
        words = words or f"law {control.law}"
        yield Formula("output", control.output_hs06, "as recorded", words)


def _average(control: GroupControl) -> Formula:
    state = control.state
    before, weight = state[AVERAGE_BEFORE], state[WEIGHT_BEFORE]
    if not weight:
        return Formula("average", state[AVERAGE], "as recorded", "begins with the first error")
    error = number(given_hs06(control))
    numbers = f"{number(before)} x {weight:.4f} + {error} x {1 - weight:.4f}"
    return Formula("average", state[AVERAGE], numbers, "average before x weight + error x rest")


def _sum(control: GroupControl, numbers: str, sum_hs06: float, words: str) -> Formula:
    """Output as the sum of a law's terms, with what bounded it."""
    if abs(sum_hs06 - control.output_hs06) >= ROUNDING_HS06:
        bounds = ", ".join(control.acted) or "bounded"
        numbers += f" = {number(sum_hs06)}, and then: {bounds}"
    return Formula("output", control.output_hs06, numbers, words)


def _otherwise(explained: Explained, group: str) -> Otherwise:
    case, decision = explained.case, explained.decision
    were, are = counts(targets_of(explained.record), group), counts(decision.plan.targets, group)
    about = all(map(alike, were, are))
    trials = explained.trials()
    flips: tuple[Flip, ...] = ()
    if (about or explained.overruled) and group in case.config.pledge_hs06:
        flips = (
            *trials.flips(limit_knobs(case, decision), role(group, nodes=True)),
            *trials.flips(group_knobs(case, decision, group), role(group)),
        )
    outcome = role(group)(decision)
    return Otherwise(explained, outcome, were == are, about, flips, trials.tried_all)
