"""Changes that would change a decision: a table of levers, each tried through `decide`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import copysign
from typing import Any, NamedTuple, Optional

from sharectl.model import GroupControl, Node, Snapshot, Target
from sharectl.plan.limits import deadband_hs06
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.waits import RunTimes
from sharectl.words import counted

PRECISION = 0.005
"""Part of a range to which a change is found that is no whole number."""
FACTOR = 4.0
"""Ratio of the widest deadband that is tried to the largest error, output or deadband."""
NEITHER = "neither gives nor receives"

LIFTED: Mapping[str, tuple[str, str, Optional[int]]] = {
    "dwell": ("dwell_seconds", "control.dwell_seconds", 0),
    "max-nodes": ("max_nodes", "control.max_nodes", None),
    "max-target-share": ("max_target_ratio", "control.max_target_share", None),
    "max-changed-nodes": ("max_changed_nodes", "control.max_changed_nodes", None),
}
"""Code of a limit of the plan -> its field of `PlanLimits`, its key, the value that lifts it."""


@dataclass(frozen=True)
class Case:
    """Everything that a decision is made from."""

    config: PlanConfig
    state: State
    snapshot: Snapshot
    now: int
    run_times: RunTimes = field(default_factory=dict)

    def decided(self) -> Decision:
        """Decision on this case."""
        return decide(self.config, self.state, self.snapshot, self.now, self.run_times)


Outcome = Callable[[Decision], str]
"""Outcome of a decision for a group, a node or the pool, in words."""


class Lever(NamedTuple):
    """One thing that could be otherwise."""

    code: str
    """One of `sharectl.explain.codes.CHANGES`."""
    name: str
    """Such as ``control.max_nodes``."""
    value: Optional[float]
    """Present value; None for a condition, which is met or not."""
    extreme: Optional[float]
    """Farthest value; None for a limit that is lifted."""
    apply: Callable[[Case, Any], Case]
    """Case with another value, a number or None."""
    whole: bool = False
    """True if only whole numbers make sense."""


class Flip(NamedTuple):
    """A change that would change the outcome."""

    code: str
    name: str
    value: Optional[float]
    becomes: Optional[float]
    """Smallest change that was found to do; None without a value."""
    outcome: str


@dataclass
class Trials:
    """A decision, and others that are made with something changed, as many as time allows."""

    case: Case
    decision: Decision
    """Decision on ``case``."""
    remaining: int
    """Decisions that may still be made; below 0 when one more was wanted."""

    def flips(self, levers: Iterable[Lever], outcome: Outcome) -> tuple[Flip, ...]:
        """Smallest change of each of ``levers`` that changes the outcome.

        All are tried at their extremes first, so that a small number of decisions looks at each.
        """
        extremes = [(lever, self.at(lever, lever.extreme)) for lever in levers]
        flips: dict[tuple[str, str], Flip] = {}
        for lever, extreme in extremes:
            if outcome(extreme) != outcome(self.decision):
                flip = self._smallest(lever, extreme, outcome)
                # A limit may be lifted without more of an outcome than by raising it.
                flips.setdefault((flip.name, flip.outcome), flip)
        return tuple(flips.values())

    def at(self, lever: Lever, value: Optional[float]) -> Decision:
        """Decision with another value of a lever."""
        self.remaining -= 1
        if self.remaining < 0:
            return self.decision
        whole = lever.whole and value is not None
        return lever.apply(self.case, int(value or 0) if whole else value).decided()

    def _smallest(self, lever: Lever, extreme: Decision, outcome: Outcome) -> Flip:
        """Smallest change of a lever that changes the outcome at its extreme."""
        if lever.value is None or lever.extreme is None:
            return Flip(*lever[:4], outcome(extreme))
        same, other, there = lever.value, lever.extreme, extreme
        size = 1.0 if lever.whole else abs(other - same) * PRECISION
        # The next value often does: look there before halving.
        middle = same + copysign(size, other - same)
        while abs(other - same) > size * (1 + PRECISION) and self.remaining > 0:
            decision = self.at(lever, middle)
            if outcome(decision) == outcome(self.decision):
                same = middle
            else:
                other, there = middle, decision
            middle = (same + other) / 2
            middle = float(round(middle)) if lever.whole else middle
        return Flip(lever.code, lever.name, lever.value, other, outcome(there))


def role(group: str, *, nodes: bool = False) -> Outcome:
    """Outcome for a group: it gives, receives, or neither; with the number of ``nodes``."""

    def outcome(decision: Decision) -> str:
        sides = zip(("gives", "receives"), counts(decision.plan.targets, group))
        words = (f"{word} on {counted(n, 'node')}" if nodes else word for word, n in sides if n)
        return " and ".join(words) or NEITHER

    return outcome


def counts(targets: Collection[Target], group: str) -> tuple[int, int]:
    """Numbers of nodes on which a group gives and receives."""
    gives = sum(target.held_back == group for target in targets)
    return gives, sum(target.helped == group for target in targets)


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


def control_of(groups: Iterable[GroupControl], group: str) -> GroupControl:
    """Controller's outcome of a group."""
    return next(control for control in groups if control.group == group)


def group_levers(trials: Trials, group: str) -> Iterator[Lever]:
    """Deadband that decides if a group gives or receives."""
    control = control_of(trials.decision.groups, group)
    return _deadband(trials.case, control, widened=role(group)(trials.decision) != NEITHER)


def node_levers(trials: Trials, node: Node) -> Iterator[Lever]:
    """Changes that may give a node a target, or take it away."""
    case, target = trials.case, target_on(trials.decision, node.name)
    givers = {jobs.group for jobs in case.snapshot.running if jobs.node == node.name}
    if target is not None:
        givers = {target.held_back}
    elif not node.controlled:
        yield _controlled({node.name}, "the node is")
    yield from limit_levers(trials)
    for control in trials.decision.groups:
        if control.group in givers:
            yield from _deadband(case, control, widened=target is not None)


def cycle_levers(trials: Trials) -> Iterator[Lever]:
    """Changes that may give the pool more targets, or fewer."""
    case, decision = trials.case, trials.decision
    yield from limit_levers(trials, stepwise=True)
    names = {node.name for node in case.snapshot.nodes if not node.controlled}
    if names:
        yield _controlled(names, "all nodes are")
    gives = Counter(target.held_back for target in decision.plan.targets)
    steered = [c for c in decision.groups if c.group in case.config.pledge_hs06]
    over = sorted(steered, key=lambda c: (-gives[c.group], -c.control_error_hs06))
    for control in over[:1]:
        yield from _deadband(case, control, widened=bool(decision.plan.targets))


def limit_levers(trials: Trials, *, stepwise: bool = False) -> Iterator[Lever]:
    """Each limit that is configured, lifted; if ``stepwise``, raised as far as needed too."""
    for code, (name, key, free) in LIFTED.items():
        value = getattr(trials.case.config.limits, name)
        if value == free:
            continue
        lifted = Lever(code, key, float(value), None, partial(_limited, name, free))
        # The ledger does not say how old targets were: dwell is only lifted.
        if stepwise and code != "dwell":
            whole = code in ("max-nodes", "max-changed-nodes")
            extreme = float(len(trials.case.snapshot.nodes)) if whole else 1.0
            if value < extreme:
                yield lifted._replace(extreme=extreme, whole=whole)
        yield lifted


def _deadband(case: Case, control: GroupControl, *, widened: bool) -> Iterator[Lever]:
    """Another deadband; it can only be narrowed where it is above 0."""
    now_hs06 = deadband_hs06(case.config.limits, case.snapshot.nodes)
    if widened or now_hs06 > 0:
        sizes = (abs(control.control_error_hs06), abs(control.output_hs06), now_hs06, 1.0)
        extreme = FACTOR * max(sizes) if widened else 0.0
        apply = partial(_limited, "deadband_hs06", None)
        yield Lever("deadband", "control.deadband_hs06", now_hs06, extreme, apply)


def _limited(name: str, free: Optional[int], case: Case, value: Any) -> Case:
    """Case with another limit of the plan; None lifts it."""
    change: dict[str, Any] = {name: free if value is None else value}
    limits = replace(case.config.limits, **change)
    return replace(case, config=replace(case.config, limits=limits))


def _controlled(names: Collection[str], subject: str) -> Lever:
    def apply(case: Case, _: None) -> Case:
        nodes = tuple(
            replace(node, controlled=node.controlled or node.name in names)
            for node in case.snapshot.nodes
        )
        return replace(case, snapshot=replace(case.snapshot, nodes=nodes))

    words = f"{subject} under control (nodes.controlled)"
    return Lever("controlled", words, None, None, apply)
