"""Changes that would change a decision: a table of levers, each tried through `decide`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import copysign
from operator import attrgetter
from typing import Any, NamedTuple, Optional, TypeVar

from sharectl.cycle.record import UNWILLING
from sharectl.model import GroupControl, Kind, Node, PendingJobs, RunningJobs, Snapshot, Target
from sharectl.plan.limits import deadband_hs06
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.waits import RunTimes
from sharectl.words import counted

_Record = TypeVar("_Record")

PRECISION = 0.005
"""Part of a range to which a change is found that is no whole number."""
MORE_JOBS = 1000
"""Number of additional waiting jobs that are tried."""
MOST_GROUPS = 3
"""Other groups whose waiting jobs are tried."""
FACTOR = 4.0
"""Power and deadband are tried up to so many times the present value."""
NEARLY_NOTHING = 1e-9
NEITHER = "neither gives nor receives"

LIFTED: Mapping[str, tuple[str, str, Optional[int]]] = {
    "dwell": ("config.limits.dwell_seconds", "control.dwell_seconds", 0),
    "max-nodes": ("config.limits.max_nodes", "control.max_nodes", None),
    "max-target-share": ("config.limits.max_target_ratio", "control.max_target_share", None),
    "max-changed-nodes": ("config.limits.max_changed_nodes", "control.max_changed_nodes", None),
}
"""Code of a limit of the plan -> its field of a `Case`, its key, the value that lifts it."""

SWITCHES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "controlled": ("under control (nodes.controlled)", {"controlled": True}),
    "not-reserved": ("not reserved (nodes.reserved)", {"reserved": False}),
    "not-draining": ("not being drained", {"draining": False}),
    "open": ("open to the waiting jobs", {"closed": ()}),
    "obeying": ("acting on targets", {"refusal": None, "deaf": None, "obeyed_sequence": 2**62}),
}
"""Code -> condition of nodes, fields of `Node` that meet it."""

_LEFT_OUT_FIRST = frozenset({"uncontrolled", "reserved", "several-slots", "draining"})
"""Reasons that go before the node's own."""


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
    """Such as ``8-core jobs of cms that wait``."""
    value: Optional[float]
    """Present value; None for a condition, which is met or not."""
    extreme: Optional[float]
    """Farthest value; None for a limit that is lifted."""
    apply: Callable[[Case, Any], Case]
    """Case with another value, a number or None."""
    whole: bool = True
    """True if only whole numbers make sense."""
    shown: Optional[Callable[[Decision], float]] = None
    """Value to show for a decision instead of the one that was set."""


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
        flips: list[Flip] = []
        for lever, extreme in extremes:
            if outcome(extreme) != outcome(self.decision):
                flip = self._smallest(lever, extreme, outcome)
                # A limit may be lifted without more of an outcome than by raising it.
                if (flip.name, flip.outcome) not in ((f.name, f.outcome) for f in flips[-1:]):
                    flips.append(flip)
        return tuple(flips)

    def at(self, lever: Lever, value: Optional[float]) -> Decision:
        """Decision with another value of a lever."""
        is_number = lever.whole and value is not None
        case = lever.apply(self.case, int(value or 0) if is_number else value)
        self.remaining -= 1
        return self.decision if self.remaining < 0 else case.decided()

    def _smallest(self, lever: Lever, extreme: Decision, outcome: Outcome) -> Flip:
        """Smallest change of a lever that changes the outcome at its extreme."""
        if lever.value is None or lever.extreme is None:
            return Flip(lever.code, lever.name, lever.value, lever.extreme, outcome(extreme))
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
        value, becomes = lever.value, other
        if lever.shown is not None:
            value, becomes = lever.shown(self.decision), lever.shown(there)
        return Flip(lever.code, lever.name, value, becomes, outcome(there))


# ---- outcomes


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


# ---- levers of a group, a node and a cycle


def group_levers(trials: Trials, group: str) -> Iterator[Lever]:
    """Changes that may decide if a group gives or receives."""
    case, decision = trials.case, trials.decision
    control, present = control_of(decision.groups, group), role(group)(decision)
    demand = control.error.usage.demand_by_cores
    most = sorted(demand, key=lambda cores: (-demand[cores], cores))[:MOST_GROUPS]
    kinds = [(group, c) for c in dict.fromkeys((case.config.limits.multicore_cores, *most))]
    receives = counts(decision.plan.targets, group)[1] > 0
    if receives:
        kinds = [kind for kind in kinds if _waiting(case.snapshot, kind)]
    elif control.control_error_hs06 >= 0:
        kinds = _under(trials) if present == NEITHER else []
    yield from (pending(case, kind, fewer=receives) for kind in kinds)
    for only, more in (("gives", True), ("receives", False)):
        if present != only:
            yield _power(control, more=more)
    yield from _deadband(case, control, widened=present != NEITHER)


def node_levers(trials: Trials, node: Node) -> Iterator[Lever]:
    """Changes that may give a node a target, or take it away."""
    case, target = trials.case, target_on(trials.decision, node.name)
    if target is not None:
        yield from limit_levers(trials)
        givers, kinds = {target.held_back}, [target.kind]
    else:
        for code in _switches_of(node, _reasons(trials.decision).get(node.name)):
            yield _switched(code, {node.name}, "the node is")
        yield from limit_levers(trials)
        givers = {jobs.group for jobs in case.snapshot.running if jobs.node == node.name}
        kinds = _under(trials)
    yield from (pending(case, kind, fewer=target is not None) for kind in kinds)
    for control in trials.decision.groups:
        if control.group in givers:
            yield _power(control, more=target is None)
            yield from _deadband(case, control, widened=target is not None)


def cycle_levers(trials: Trials) -> Iterator[Lever]:
    """Changes that may give the pool more targets, or fewer."""
    yield from limit_levers(trials, stepwise=True)
    reasons = _reasons(trials.decision)
    for code in SWITCHES:
        names = {
            node.name
            for node in trials.case.snapshot.nodes
            if code in _switches_of(node, reasons.get(node.name))
        }
        if names:
            yield _switched(code, names, "all nodes are")
    yield from _pool_inputs(trials)


def limit_levers(trials: Trials, *, stepwise: bool = False) -> Iterator[Lever]:
    """Each limit that is configured, lifted; if ``stepwise``, raised as far as needed too."""
    for code, (path, key, free) in LIFTED.items():
        value = attrgetter(path)(trials.case)
        if value == free:
            continue
        # The ledger does not say how old targets were: dwell is only lifted.
        most = {"dwell": value, "max-target-share": 1.0}
        extreme = most.get(code, float(len(trials.case.snapshot.nodes)))
        whole = code in ("max-nodes", "max-changed-nodes")
        raised = Lever(code, key, float(value), extreme, partial(_lifted, path, free), whole)
        if stepwise and value < extreme:
            yield raised
        yield raised._replace(extreme=None)


def _pool_inputs(trials: Trials) -> Iterator[Lever]:
    """Waiting jobs, and deadband and error of the group that gives most or is over most."""
    case, targets = trials.case, trials.decision.plan.targets
    kinds = list(dict.fromkeys(target.kind for target in targets))[:MOST_GROUPS]
    yield from (pending(case, kind, fewer=True) for kind in kinds)
    yield from (pending(case, kind) for kind in kinds or _under(trials))
    gives = [target.held_back for target in targets]
    over = sorted(_steered(trials), key=lambda c: (-gives.count(c.group), -c.control_error_hs06))
    for control in over[:1]:
        yield from _deadband(case, control, widened=bool(targets))
        yield _power(control, more=not targets)


def _under(trials: Trials) -> list[Kind]:
    """Groups that are the most under their setpoints, and the size of multicore jobs."""
    errors = ((control.control_error_hs06, control.group) for control in _steered(trials))
    under = sorted(error for error in errors if error[0] < 0)[:MOST_GROUPS]
    return [(group, trials.case.config.limits.multicore_cores) for _, group in under]


def _steered(trials: Trials) -> list[GroupControl]:
    pledged = trials.case.config.pledge_hs06
    return [control for control in trials.decision.groups if control.group in pledged]


def control_of(groups: Iterable[GroupControl], group: str) -> GroupControl:
    """Controller's outcome of a group."""
    return next(control for control in groups if control.group == group)


def _reasons(decision: Decision) -> dict[str, Optional[str]]:
    return {record.node: record.reason for record in decision.nodes}


# ---- one lever each


def pending(case: Case, kind: Kind, *, fewer: bool = False) -> Lever:
    """More waiting jobs of a group and size, or fewer; those that need least memory first."""
    count = float(sum(jobs.jobs for jobs in _waiting(case.snapshot, kind)))
    group, cores = kind
    name, extreme = f"{cores}-core jobs of {group} that wait", 0.0 if fewer else count + MORE_JOBS
    return Lever("pending", name, count, extreme, partial(_with_pending, kind))


def _waiting(snapshot: Snapshot, kind: Kind) -> list[PendingJobs]:
    """Waiting jobs of a group and size that some node could run, least memory first."""
    jobs = (jobs for jobs in snapshot.pending if jobs.kind == kind and jobs.jobs > 0)
    return sorted((j for j in jobs if j.placeable), key=attrgetter("memory_mib"))


def _with_pending(kind: Kind, case: Case, count: float) -> Case:
    """Case with ``count`` jobs waiting; others come and go where least memory is needed."""
    waiting = _waiting(case.snapshot, kind)
    pending = [jobs for jobs in case.snapshot.pending if jobs not in waiting]
    more = int(count) - sum(jobs.jobs for jobs in waiting)
    for jobs in waiting or [PendingJobs(*kind, 0)]:
        number = max(0, jobs.jobs + more)
        more -= number - jobs.jobs
        pending += [replace(jobs, jobs=number)] if number else []
    return _with(case, "snapshot.pending", tuple(pending))


def _power(control: GroupControl, *, more: bool) -> Lever:
    """More power used by a group, or less, and so another error."""
    group, used_hs06 = control.group, control.error.usage.power_hs06
    most_hs06 = FACTOR * max(used_hs06, control.setpoint_hs06, 1.0)
    return Lever(
        "error",
        f"error of {group}, HS06",
        used_hs06,
        most_hs06 if more else NEARLY_NOTHING,
        partial(_with_power, group, used_hs06),
        whole=False,
        shown=lambda decision: control_of(decision.groups, group).control_error_hs06,
    )


def _with_power(group: str, used_hs06: float, case: Case, hs06: float) -> Case:
    running = case.snapshot.running
    if used_hs06 <= 0:
        # Nowhere, so that it fills no node.
        running = (*running, RunningJobs("", group, 1, hs06, 0))
    else:
        ratio = hs06 / used_hs06
        running = tuple(
            jobs._replace(hs06_per_core=jobs.hs06_per_core * ratio) if jobs.group == group else jobs
            for jobs in running
        )
    return _with(case, "snapshot.running", running)


def _deadband(case: Case, control: GroupControl, *, widened: bool) -> Iterator[Lever]:
    """Another deadband; it can only be narrowed where it is above 0."""
    now_hs06 = deadband_hs06(case.config.limits, case.snapshot.nodes)
    if widened or now_hs06 > 0:
        sizes = (abs(control.control_error_hs06), abs(control.output_hs06), now_hs06, 1.0)
        extreme = FACTOR * max(sizes) if widened else 0.0
        apply = partial(_lifted, "config.limits.deadband_hs06", None)
        yield Lever("deadband", "control.deadband_hs06", now_hs06, extreme, apply, whole=False)


def _switches_of(node: Node, reason: Optional[str]) -> list[str]:
    """Codes of `SWITCHES` that would change a node, which has no target for ``reason``."""
    changes = {
        "controlled": not node.controlled,
        "not-reserved": node.reserved,
        "not-draining": node.draining,
        "open": bool(node.closed),
        "obeying": reason in UNWILLING
        or (reason in _LEFT_OUT_FIRST and (node.refusal or node.deaf) is not None),
    }
    return [code for code in SWITCHES if changes[code]]


def _switched(code: str, names: Collection[str], subject: str) -> Lever:
    words, values = SWITCHES[code]

    def apply(case: Case, _: None) -> Case:
        nodes = tuple(
            replace(node, **values) if node.name in names else node for node in case.snapshot.nodes
        )
        if code == "obeying":
            unheeding = {node: at for node, at in case.state.unheeding.items() if node not in names}
            case = _with(case, "state.unheeding", unheeding)
        return _with(case, "snapshot.nodes", nodes)

    return Lever(code, f"{subject} {words}", None, None, apply)


def _lifted(path: str, free: Optional[int], case: Case, value: Optional[float]) -> Case:
    return _with(case, path, free if value is None else value)


def _with(record: _Record, path: str, value: Any) -> _Record:
    """Record with another value of a field, or of a field of its field."""
    name, _, inner = path.partition(".")
    value = _with(getattr(record, name), inner, value) if inner else value
    changed: _Record = replace(record, **{name: value})  # type: ignore[type-var]
    return changed
