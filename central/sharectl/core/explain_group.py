"""Why a group gives, receives or does neither."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import Optional

from sharectl.core.cycle_record import CycleRecord, NodeRecord
from sharectl.core.explaining import Explained, alike, targets_of
from sharectl.core.formulas import Formula, formulas
from sharectl.core.model import GroupControl, Target
from sharectl.core.plan_diff import power_moved_hs06
from sharectl.core.what_if import Budget, Flip, budget_for, flips
from sharectl.core.what_if_knobs import group_knobs, limit_knobs, output_limit
from sharectl.core.what_if_outcomes import extent, role


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
    """Empty where `sharectl.core.explaining.Explained.tells_otherwise` is false."""
    tried_all: bool
    """Whether the pool was small enough to try all that could change it."""


def explain_group(explained: Explained, group: str) -> GroupExplanation:
    """Explanation of a group that the record has."""
    record = explained.record
    control = next(control for control in record.groups if control.group == group)
    between = exchanges(record)
    budget = Budget(budget_for(len(record.nodes)))
    were, are = (_counts(targets, group) for targets in (targets_of(record), explained.decision.plan.targets))
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
    return tuple(sorted(found, key=lambda e: (-e.lost_hs06, e.held_back, e.helped, e.request_cores)))


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
