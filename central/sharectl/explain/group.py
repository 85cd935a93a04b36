"""How a group's figures came about: each formula with its numbers, as the cycle had them.

Why a group gives, receives or does neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Callable, Optional

from sharectl.control.laws import (
    AVERAGE,
    ERROR,
    GAIN,
    HALF_LIFE,
    INTEGRAL,
    NO_CLAIMANT,
    NO_DEMAND,
    SLOPE,
    SLOPE_GAIN,
)
from sharectl.control.steering import STEPPED_AT
from sharectl.explain.again import Explained, alike, targets_of
from sharectl.explain.what_if import (
    Budget,
    Flip,
    budget_for,
    extent,
    flips,
    group_knobs,
    limit_knobs,
    output_limit,
    role,
)
from sharectl.model import GroupControl, Target
from sharectl.plan.diff import power_moved_hs06
from sharectl.plan.records import CycleRecord, NodeRecord
from sharectl.shares.groups import BY_SUBGROUPS, first_level_of

ROUNDING_HS06 = 0.05
"""Two numbers that differ by less are shown alike."""


@dataclass(frozen=True)
class Formula:
    """One equation."""

    name: str
    """What is on its left, such as ``DHS``."""
    value: float
    numbers: str
    """Its right side with the numbers, such as ``62615.0 - 71400.0 x 0.7006``."""
    words: str
    """The same in words."""


def formulas(
    record: CycleRecord, group: str, before: Optional[GroupControl]
) -> tuple[Formula, ...]:
    """DHS, the setpoint, the error and the law of ``group`` in a complete cycle that has it.

    Parameters
    ----------
    before
        The group in the complete cycle before; None if that is not known.
    """
    control = next(control for control in record.groups if control.group == group)
    lines = [_dhs(control), _setpoint(record, control)]
    lines.append(
        Formula(
            "error",
            control.control_error_hs06,
            f"{number(control.error.usage.power_hs06)} - {number(control.setpoint_hs06)}",
            f"power - setpoint{'; the law is given 0' if is_withheld(control) else ''}",
        )
    )
    if BY_SUBGROUPS in control.acted:
        words = "the groups within it have controllers"
        return (*lines, Formula("output", control.output_hs06, "none of its own", words))
    return (*lines, *_LAWS.get(control.law, _unknown)(control, before))


def is_withheld(control: GroupControl) -> bool:
    """Whether the group's law was given no error although there is one: nobody is to collect it later."""
    return bool({NO_DEMAND, NO_CLAIMANT}.intersection(control.acted))


def given_hs06(control: GroupControl) -> float:
    """Error that the group's law was given, HS06."""
    return 0.0 if is_withheld(control) else control.control_error_hs06


def number(value: float, digits: int = 1) -> str:
    """``value`` with a fixed number of digits, and never ``-0.0``."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text


def _dhs(control: GroupControl) -> Formula:
    error = control.error
    return Formula(
        "DHS",
        error.error_hs06,
        f"{number(error.usage.power_hs06)} - {number(error.pledge_hs06)} x {_ratio(control):.6g}",
        "power - pledge x (all power used / all pledges)",
    )


def _ratio(control: GroupControl) -> float:
    """All power used over all pledges, as the group's own error tells it."""
    error = control.error
    if not error.pledge_hs06:
        return 0.0
    return (error.usage.power_hs06 - error.error_hs06) / error.pledge_hs06


def _over_pledges(power_hs06: float, groups: Sequence[GroupControl]) -> float:
    pledges = fsum(control.error.pledge_hs06 for control in first_level_of(groups))
    return power_hs06 / pledges if pledges else 0.0


def _setpoint(record: CycleRecord, control: GroupControl) -> Formula:
    present = fsum(node.cores * node.hs06_per_core for node in record.nodes)
    shared: Mapping[str, tuple[Optional[float], str]] = {
        "in_use": (_ratio(control), "pledge x (all power used / all pledges)"),
        "present": (
            _over_pledges(present, record.groups) if present else None,
            "pledge x (power of all nodes / all pledges)",
        ),
        "pledge": (1.0, "the pledge itself"),
    }
    ratio, words = shared.get(record.setpoint, (None, record.setpoint))
    if ratio is None:
        return Formula("setpoint", control.setpoint_hs06, "as recorded", words)
    nominal = control.error.pledge_hs06 * ratio
    moved = control.setpoint_hs06 - nominal
    numbers = f"{number(control.error.pledge_hs06)} x {ratio:.6g}"
    if abs(moved) >= ROUNDING_HS06:
        numbers += f" {'+' if moved > 0 else '-'} {number(abs(moved))}"
        words += f" {'+' if moved > 0 else '-'} what is lent, borrowed or carried over"
    return Formula("setpoint", control.setpoint_hs06, numbers, words)


def _bounded(control: GroupControl, said_hs06: float) -> str:
    """What became of the law's own number on its way to the output; empty if nothing."""
    if abs(said_hs06 - control.output_hs06) < ROUNDING_HS06:
        return ""
    return f" = {number(said_hs06)}, and then: {', '.join(control.acted) or 'bounded'}"


def _latest(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    del before
    said = control.control_error_hs06
    return (
        Formula(
            "output",
            control.output_hs06,
            f"error{_bounded(control, said)}",
            "the latest error alone",
        ),
    )


def _ewma(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    average = control.state.get(AVERAGE)
    if average is None:
        return _unknown(control, before)
    output = Formula(
        "output",
        control.output_hs06,
        f"average{_bounded(control, average)}",
        "the average of the errors",
    )
    old = before.state.get(AVERAGE) if before is not None and before.law == control.law else None
    if old is None:
        words = "begins with the first error" if before is not None else "as recorded"
        return (Formula("average", average, "as recorded", words), output)
    error = given_hs06(control)
    kept = _kept(control, before)
    if kept is None or abs(old * kept + error * (1 - kept) - average) > ROUNDING_HS06:
        return (
            Formula("average", average, "as recorded", "the ledger does not tell the weights"),
            output,
        )
    numbers = f"{number(old)} x {kept:.4f} + {number(error)} x {1 - kept:.4f}"
    words = f"average before x weight + error x rest{_seconds(control, before)}"
    return (Formula("average", average, numbers, words), output)


def _kept(control: GroupControl, before: Optional[GroupControl]) -> Optional[float]:
    """Weight of the average before, by the time between and the half-life of then; None if that is not known."""
    half_life, now = control.state.get(HALF_LIFE, 0.0), control.state.get(STEPPED_AT)
    then = before.state.get(STEPPED_AT) if before is not None else None
    if now is None or then is None or half_life <= 0:
        return None
    return float(2.0 ** (-max(0.0, now - then) / half_life))


def _pid(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    del before
    state = control.state
    if not {GAIN, ERROR, INTEGRAL, SLOPE, SLOPE_GAIN} <= set(state):
        return _unknown(control, None)
    proportional = state[GAIN] * state[ERROR]
    derivative = state[SLOPE_GAIN] * state[SLOPE]
    said = proportional + state[INTEGRAL] + derivative
    return (
        Formula(
            "P",
            proportional,
            f"{state[GAIN]:g} x {number(state[ERROR])}",
            "gain x error beyond the deadband",
        ),
        Formula(
            "I",
            state[INTEGRAL],
            "as recorded",
            "gain x sum of errors over time, held by what bounds the output",
        ),
        Formula(
            "D",
            derivative,
            f"{state[SLOPE_GAIN]:g} x {state[SLOPE]:.6f}",
            "gain x derivative time x filtered change of the power",
        ),
        Formula(
            "output",
            control.output_hs06,
            f"P + I + D{_bounded(control, said)}",
            "the three terms together",
        ),
    )


def _unknown(control: GroupControl, before: Optional[GroupControl]) -> tuple[Formula, ...]:
    del before
    kept = ", ".join(f"{name} {value:g}" for name, value in sorted(control.state.items()))
    return (Formula("output", control.output_hs06, "as recorded", kept or f"law {control.law}"),)


def _seconds(control: GroupControl, before: Optional[GroupControl]) -> str:
    now = control.state.get(STEPPED_AT)
    then = before.state.get(STEPPED_AT) if before is not None else None
    return f", {now - then:.0f} s later" if now is not None and then is not None else ""


_Law = Callable[[GroupControl, Optional[GroupControl]], tuple[Formula, ...]]
_LAWS: Mapping[str, _Law] = {"latest": _latest, "ewma": _ewma, "pid": _pid}
"""Name of a law -> how its output came about."""


@dataclass(frozen=True)
class Exchange:
    """What one group gives to another one, by jobs of one size."""

    held_back: str
    helped: str
    request_cores: int
    nodes: tuple[str, ...]
    lost_hs06: float
    """Power that the held-back group is still to lose by it."""
    gained_hs06: float
    """Power that the helped one gains in whole jobs."""


@dataclass(frozen=True)
class GroupExplanation:
    """All that led to what one group does in one cycle."""

    control: GroupControl
    formulas: tuple[Formula, ...]
    gives: tuple[Exchange, ...]
    """What it gives, or groups within it."""
    receives: tuple[Exchange, ...]
    role: str
    """What deciding now comes to: gives, receives or neither."""
    same: bool
    """Whether it gives and receives on as many nodes then as was recorded."""
    alike: bool
    """Whether it does so on about as many."""
    flips: tuple[Flip, ...]
    """Empty where `sharectl.explain.again.Explained.tells_otherwise` is false."""
    tried_all: bool
    """Whether the pool was small enough to try all that could change it."""


def explain_group(explained: Explained, group: str) -> GroupExplanation:
    """Explanation of a group that the record has."""
    record = explained.record
    control = next(control for control in record.groups if control.group == group)
    between = exchanges(record)
    budget = Budget(budget_for(len(record.nodes)))
    were, are = (
        _counts(targets, group) for targets in (targets_of(record), explained.decision.plan.targets)
    )
    about = all(map(alike, were, are))
    return GroupExplanation(
        control=control,
        formulas=formulas(record, group, control_before(explained.before, group)),
        gives=tuple(exchange for exchange in between if _is_within(exchange.held_back, group)),
        receives=tuple(exchange for exchange in between if _is_within(exchange.helped, group)),
        role=role(group)(explained.decision),
        same=were == are,
        alike=about,
        flips=_flips(explained, group, budget) if explained.tells_otherwise(same=about) else (),
        tried_all=budget.enough,
    )


def exchanges(record: CycleRecord) -> tuple[Exchange, ...]:
    """Who gives to whom by which size, the most power first."""
    by_purpose: defaultdict[tuple[str, str, int], list[NodeRecord]] = defaultdict(list)
    for node in record.nodes:
        if node.target is not None:
            purpose = (node.target.held_back, node.target.helped, node.target.request_cores)
            by_purpose[purpose].append(node)
    found = [_exchange(purpose, nodes) for purpose, nodes in by_purpose.items()]
    return tuple(
        sorted(found, key=lambda e: (-e.lost_hs06, e.held_back, e.helped, e.request_cores))
    )


def control_before(before: Optional[CycleRecord], group: str) -> Optional[GroupControl]:
    """The group in the cycle before; None if that is not known."""
    groups = before.groups if before is not None else ()
    return next((control for control in groups if control.group == group), None)


def _counts(targets: Iterable[Target], group: str) -> tuple[int, int]:
    """On how many nodes it gives, and on how many it receives."""
    sides = [(target.held_back == group, target.helped == group) for target in targets]
    return sum(gives for gives, _ in sides), sum(receives for _, receives in sides)


def _is_within(name: str, group: str) -> bool:
    return name == group or name.startswith(f"{group}.")


def _exchange(purpose: tuple[str, str, int], nodes: list[NodeRecord]) -> Exchange:
    moved = [power_moved_hs06(node.target, node) for node in nodes if node.target is not None]
    return Exchange(
        *purpose,
        nodes=tuple(node.node for node in nodes),
        lost_hs06=fsum(lost for lost, _ in moved),
        gained_hs06=fsum(gained for _, gained in moved),
    )


def _flips(explained: Explained, group: str, budget: Budget) -> tuple[Flip, ...]:
    case, decision = explained.case, explained.decision
    if group not in case.config.pledge_hs06:
        return ()
    # Limits first: each takes one decision.
    return (
        *flips(case, (*limit_knobs(case), *output_limit(case, decision)), extent(group), budget),
        *flips(case, group_knobs(case, decision, group), role(group), budget),
    )
