"""Why a group is helped, held back or neither, and on how many nodes targets keep its jobs out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Optional

from sharectl.model import GroupControl, LimitNote, PendingJobs, Plan, Target
from sharectl.plan.limits import MAX_CHANGED_NODES, MAX_NODES, MAX_TARGET_SHARE
from sharectl.plan.records import GroupReason, NodeRecord, TargetNodes
from sharectl.shares.groups import levels_above

HELPED, HELD_BACK, BOTH = "helped", "held-back", "helped-and-held-back"

GROUP_REASONS: Mapping[str, str] = {
    HELPED: "targets let its jobs in where another group is held back",
    HELD_BACK: "targets hold it back to a cap",
    BOTH: "some targets help it and others hold it back, or groups within it",
    "no-plan": "targets were withdrawn, or sharectl is disabled",
    "no-output": "its controller asks for nothing: it is at its share, or off by no more than the deadband",
    "no-demand": "it is under its share, and no job of it waits",
    "not-placeable": "it is under its share, and no node could run the jobs of it that wait",
    "no-giver": "it is under its share, and no group is over its share",
    "no-taker": "it is over its share, and no group under its share has jobs that a target could help",
    "no-cores": "it is over its share, and holds no cores on nodes that may have targets",
    "no-fit": "no node that may have targets could give its pending jobs their cores and memory",
    "given-up": "its jobs did not come to cores that were kept free for them: nodes are left alone for a time",
    "probing": "jobs are to take some of the cores that are kept free before there are more",
    "too-small": "its error, or the other group's, is not worth the cores of a target",
    "not-worth": "cores would stand idle for longer than the power that is moved is worth",
    "limited": "a limit leaves no room for its targets",
    "not-furthest": "control.strategy is pair, and another group is further off",
    "others-first": "targets for other groups are worth more, or use up what there is to give",
}
"""Why a group is helped, held back or neither."""

_BY_PLAN = {
    "withdrawn": "no-plan",
    "disabled": "no-plan",
    "no-fit": "no-fit",
    "error-below-node": "too-small",
    "output-below-node": "too-small",
    "not-worth": "not-worth",
    "no-room": "limited",
}
"""Reason of a plan without targets -> reason of every group that it could have been for."""

_NOBODY_TO_HELP = frozenset({"no-group-under", "given-up"})
_ROOM = frozenset({MAX_NODES, MAX_TARGET_SHARE, MAX_CHANGED_NODES})
_LEFT_OUT = frozenset(
    {"uncontrolled", "reserved", "several-slots", "draining", "absent", "not-obeying", "refused"}
)


@dataclass(frozen=True)
class Outcome:
    """All that the reasons of groups follow from."""

    plan: Optional[Plan]
    """None if nothing was published."""
    strategy: str
    nodes: Collection[NodeRecord]
    """With the targets that stand after the cycle."""
    pending: Collection[PendingJobs]
    target_nodes: Mapping[str, TargetNodes]


def group_reasons(groups: Iterable[GroupControl], outcome: Outcome) -> dict[str, GroupReason]:
    """Group -> its reason."""
    targets = [node.target for node in outcome.nodes if node.target is not None]
    held = {
        name
        for node in outcome.nodes
        if node.reason not in _LEFT_OUT
        for jobs in node.held
        for name in (jobs.group, *levels_above(jobs.group))
    }
    return {
        control.group: GroupReason(
            _code(control, outcome, holds=control.group in held),
            sum(not _named(target, control.group) for target in targets),
            _other_sizes_closed(control.group, targets, outcome.pending),
        )
        for control in groups
    }


def _code(control: GroupControl, outcome: Outcome, *, holds: bool) -> str:
    """First reason that applies."""
    targets = outcome.target_nodes.get(control.group, TargetNodes(0, 0))
    plan_reason = outcome.plan.reason if outcome.plan else ""
    limits: Collection[LimitNote] = outcome.plan.limits if outcome.plan else ()
    under, over = control.output_hs06 < 0, control.output_hs06 > 0
    waiting = [
        jobs for jobs in outcome.pending if jobs.jobs > 0 and _is_within(jobs.group, control.group)
    ]
    reasons = {node.reason for node in outcome.nodes}
    applies = (
        (BOTH, targets.helped > 0 and targets.held_back > 0),
        (HELPED, targets.helped > 0),
        (HELD_BACK, targets.held_back > 0),
        ("no-plan", _BY_PLAN.get(plan_reason) == "no-plan"),
        ("no-output", not (under or over)),
        ("no-demand", under and not waiting),
        ("not-placeable", under and not any(jobs.placeable for jobs in waiting)),
        ("no-giver", under and plan_reason == "no-group-over"),
        ("no-taker", over and plan_reason in _NOBODY_TO_HELP),
        ("no-cores", over and not holds),
        ("given-up", under and "given-up" in (plan_reason, *reasons)),
        ("probing", under and "probing" in reasons),
        (_BY_PLAN.get(plan_reason, ""), plan_reason in _BY_PLAN),
        ("no-fit", plan_reason == "no-node"),
        ("not-furthest", outcome.strategy == "pair"),
        ("limited", any(note.code in _ROOM for note in limits)),
        ("others-first", True),
    )
    return next(code for code, does in applies if does)


def _named(target: Target, group: str) -> bool:
    return _is_within(target.helped, group) or _is_within(target.held_back, group)


def _is_within(name: str, group: str) -> bool:
    return group in (name, *levels_above(name))


def _other_sizes_closed(
    group: str, targets: Iterable[Target], pending: Iterable[PendingJobs]
) -> int:
    sizes = {jobs.cores for jobs in pending if jobs.jobs > 0 and _is_within(jobs.group, group)}
    helping = [target for target in targets if _is_within(target.helped, group)]
    return sum(bool(sizes - {target.request_cores}) for target in helping)
