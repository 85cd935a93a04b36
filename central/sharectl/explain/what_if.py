"""Changes that would change a decision: levers at their extremes, each tried through `decide`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Optional

from sharectl.model import Snapshot, Target
from sharectl.plan.limits import deadband_hs06
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.waits import RunTimes
from sharectl.words import counted

NEITHER = "neither gives nor receives"

LIFTED: Mapping[str, tuple[str, Optional[int]]] = {
    "deadband": ("deadband_hs06", 0),
    "dwell": ("dwell_seconds", 0),
    "max-nodes": ("max_nodes", None),
    "max-target-share": ("max_target_ratio", None),
    "max-changed-nodes": ("max_changed_nodes", None),
}
"""Code of a limit of the plan -> its field of `PlanLimits`, the value that lifts it."""


@dataclass(frozen=True)
class Case:
    """Everything that a decision is made from."""

    config: PlanConfig
    state: State
    snapshot: Snapshot
    now: int
    run_times: RunTimes = field(default_factory=dict)
    exit_code: int = 0
    """Of a verb that decides on it; 0 if own files could be read."""

    def decided(self) -> Decision:
        """Decision on this case."""
        return decide(self.config, self.state, self.snapshot, self.now, self.run_times)


Outcome = Callable[[Decision], str]
"""Outcome of a decision for a group, a node or the pool, in words."""


class Flip(NamedTuple):
    """A change that would change the outcome."""

    code: str
    """One of `sharectl.explain.codes.CHANGES`."""
    value: Optional[float]
    """Present value of a limit."""
    outcome: str


def flips(
    case: Case, decision: Decision, outcome: Outcome, nodes: Collection[str]
) -> tuple[Flip, ...]:
    """Changes that would change the outcome of ``decision``; ``nodes`` may come under control."""
    tried = [
        Flip(code, value, outcome(changed.decided()))
        for code, value, changed in _levers(case, nodes)
    ]
    return tuple(flip for flip in tried if flip.outcome != outcome(decision))


def _levers(case: Case, names: Collection[str]) -> Iterator[tuple[str, Optional[float], Case]]:
    """Code, present value, and the case with one thing changed as far as it can be."""
    limits, nodes = case.config.limits, case.snapshot.nodes
    present = replace(limits, deadband_hs06=deadband_hs06(limits, nodes))
    for code, (name, free) in LIFTED.items():
        value = getattr(present, name)
        if value != free:
            lifted: dict[str, Any] = {name: free}
            config = replace(case.config, limits=replace(limits, **lifted))
            yield code, value, replace(case, config=config)
    if any(node.name in names and not node.controlled for node in nodes):
        controlled = tuple(
            replace(node, controlled=node.controlled or node.name in names) for node in nodes
        )
        yield "controlled", None, replace(case, snapshot=replace(case.snapshot, nodes=controlled))


def role(group: str) -> Outcome:
    """Outcome for a group: it gives or receives, on so many nodes, or neither."""

    def outcome(decision: Decision) -> str:
        targets = decision.plan.targets
        gives = sum(target.held_back == group for target in targets)
        receives = sum(target.helped == group for target in targets)
        sides = (("gives", gives), ("receives", receives))
        return " and ".join(f"{word} on {counted(n, 'node')}" for word, n in sides if n) or NEITHER

    return outcome


def under_target(node: str) -> Outcome:
    """Outcome for a node: with or without a target."""
    return lambda decision: "no target" if target_on(decision, node) is None else "a target"


def targets_in_all(decision: Decision) -> str:
    """Outcome for the pool: number of targets."""
    targets = len(decision.plan.targets)
    return counted(targets, "target") if targets else "no target"


def target_on(decision: Decision, node: str) -> Optional[Target]:
    """Target of a node; None if it has none."""
    return next((target for target in decision.plan.targets if target.node == node), None)
