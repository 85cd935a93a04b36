"""What would give a whole plan other targets: limits, nodes, jobs that wait, errors, the deadband."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Optional

from sharectl.core.limits import MAX_CHANGED_NODES, MAX_NODES, MAX_TARGET_SHARE
from sharectl.core.model import GroupControl
from sharectl.core.plan import Decision
from sharectl.core.what_if import Budget, Case, Flip, Knob, flips, needed_together
from sharectl.core.what_if_knobs import (
    FACTOR,
    LIFTED,
    MOST_GROUPS,
    SWITCHES,
    ailments,
    deadband,
    limit_knobs,
    limits_changed,
    most_under,
    nodes_changed,
    output_limit,
    pending,
    power,
)
from sharectl.core.what_if_outcomes import any_target, targets_in_all

_ALL: Mapping[str, str] = {
    "controlled": "all nodes are under control (nodes.controlled)",
    "not-reserved": "no node is reserved (nodes.reserved)",
    "not-draining": "no node is being drained",
    "obeying": "all nodes act on their targets",
}
"""Each of `SWITCHES`, of every node that it would mend."""


def cycle_flips(case: Case, decision: Decision, budget: Budget) -> tuple[Flip, ...]:
    """What would give the pool more targets than ``decision``, which ``case`` comes to, or fewer."""

    def tried(knobs: Iterator[Knob]) -> tuple[Flip, ...]:
        return flips(case, knobs, targets_in_all, budget, decision)

    # One decision each; those that do something are looked at more closely.
    lifted = tried(_limits(case, decision))
    codes = {flip.code for flip in lifted}
    exact = tried(knob for knob in _limit_steps(case, decision) if knob.code in codes)
    nodes = tried(_node_switches(_ailing(case, decision)))
    one = tried(_one_node(case, decision, {flip.code for flip in nodes}, budget))
    found = (*_merged(lifted, exact), *_merged(nodes, one), *tried(_inputs(case, decision)))
    if codes or not _may_need_more(decision, found):
        return found
    outcome = targets_in_all if decision.plan.targets else any_target
    return (*found, *needed_together(case, _together(case, decision), outcome, budget))


def _limits(case: Case, decision: Decision) -> Iterator[Knob]:
    yield from limit_knobs(case)
    yield from output_limit(case, decision)


def _limit_steps(case: Case, decision: Decision) -> Iterator[Knob]:
    """Those limits as numbers that can be raised. Of how old targets are the ledger tells too little."""
    limits, nodes = case.config.limits, float(len(case.snapshot.nodes))
    for code, most in ((MAX_NODES, nodes), (MAX_TARGET_SHARE, 1.0), (MAX_CHANGED_NODES, nodes)):
        value = getattr(limits, LIFTED[code][0])
        if value is not None and value < most:
            whole = code != MAX_TARGET_SHARE
            what = next(knob.what for knob in limit_knobs(case) if knob.code == code)
            yield Knob(code, what, float(value), most, _raised(LIFTED[code][0], whole=whole), whole)
    for knob in output_limit(case, decision):
        largest = max((abs(control.control_error_hs06) for control in decision.groups), default=0.0)
        yield replace(knob, extreme=FACTOR * max(largest, knob.value or 0.0), whole=False)


def _raised(name: str, *, whole: bool) -> Any:
    return lambda case, value: limits_changed(case, {name: int(value) if whole else value})


def _merged(wide: tuple[Flip, ...], narrow: tuple[Flip, ...]) -> Iterator[Flip]:
    """The smallest change first, and the widest where it brings something else."""
    for flip in wide:
        smaller = [each for each in narrow if each.code == flip.code]
        yield from smaller
        if all(each.outcome != flip.outcome for each in smaller):
            yield flip


def _ailing(case: Case, decision: Decision) -> dict[str, list[str]]:
    """Each of `SWITCHES` -> nodes that it would mend; without those that it would not."""
    reasons = {node.node: node.reason for node in decision.nodes}
    found: dict[str, list[str]] = {}
    for node in case.snapshot.nodes:
        for code in ailments(node, reasons.get(node.name)):
            found.setdefault(code, []).append(node.name)
    return found


def _node_switches(ailing: Mapping[str, list[str]]) -> Iterator[Knob]:
    for code, what in _ALL.items():
        if code in ailing:
            yield Knob(code, what, None, None, nodes_changed(frozenset(ailing[code]), SWITCHES[code][1]))


def _one_node(case: Case, decision: Decision, codes: set[str], budget: Budget) -> Iterator[Knob]:
    """For each code that does something for all nodes, the first node that gets a target by it."""
    ailing = _ailing(case, decision)
    for knob in _node_switches(ailing):
        if knob.code not in codes or budget.spent():
            continue
        there = {target.node for target in knob.apply(case, None).decided().plan.targets}
        for name in sorted(there.intersection(ailing[knob.code]))[:1]:
            what, values = SWITCHES[knob.code]
            yield Knob(knob.code, what.replace("the node", name), None, None, nodes_changed({name}, values))


def _inputs(case: Case, decision: Decision) -> Iterator[Knob]:
    """Jobs that wait, the deadband, and the error of the group that gives the most or is over the most."""
    targets = decision.plan.targets
    helped = list(dict.fromkeys((target.helped, target.request_cores) for target in targets))[:MOST_GROUPS]
    for group, cores in helped:
        yield pending(case, group, cores, fewer=True)
    for group, cores in helped or [
        (group, case.config.limits.multicore_cores) for group in _under(case, decision)
    ]:
        yield pending(case, group, cores)
    over = _most_over(case, decision)
    if over is not None:
        yield from deadband(case, over, widened=bool(targets))
        yield power(case, over, more=not targets)


def _under(case: Case, decision: Decision) -> list[str]:
    """Some groups that targets may help, the most under their setpoints first."""
    steered = [control.group for control in most_under(decision) if control.group in case.config.pledge_hs06]
    return steered[:MOST_GROUPS]


def _most_over(case: Case, decision: Decision) -> Optional[GroupControl]:
    """The group that gives on the most nodes, or is the furthest over its setpoint if none does."""
    gives = [target.held_back for target in decision.plan.targets]
    groups = [control for control in decision.groups if control.group in case.config.pledge_hs06]
    return max(groups, key=lambda c: (gives.count(c.group), c.control_error_hs06), default=None)


def _may_need_more(decision: Decision, found: tuple[Flip, ...]) -> bool:
    """Whether several things at once may do what none does alone: targets where there is none, or more within two limits."""
    return bool(decision.plan.limits) or (not decision.plan.targets and not found)


def _together(case: Case, decision: Decision) -> Iterator[Knob]:
    """All of it at once: every limit lifted, every node mended and, where no group is helped, jobs that wait."""
    yield from _limits(case, decision)
    if decision.plan.targets:
        return
    yield from _node_switches(_ailing(case, decision))
    for group in _under(case, decision)[:1]:
        knob = pending(case, group, case.config.limits.multicore_cores)
        yield replace(knob, what=f"{knob.extreme:.0f} {knob.what.replace(' that wait', ' wait')}", value=None)
