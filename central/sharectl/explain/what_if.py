"""Changes that would change a decision, flips by making it again with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import copysign
from typing import Any, NamedTuple, Optional

from sharectl.control.laws import OUTPUT_LIMIT, Control
from sharectl.model import GroupControl, Node, PendingJobs, RunningJobs, Snapshot, Target
from sharectl.plan.limits import DWELL, MAX_CHANGED_NODES, MAX_NODES, MAX_TARGET_SHARE
from sharectl.plan.plan import NOTHING_KNOWN, Decision, Known, PlanConfig, State, decide
from sharectl.words import counted

PRECISION = 0.005
"""Part of a range to which a change is flips that is no whole number."""
MORE_JOBS = 1000
"""As many more waiting jobs are tried."""
MOST_GROUPS = 3
"""Other groups whose waiting jobs are tried."""
FACTOR = 4.0
"""Power and deadband are tried up to so many times the present value."""
NEARLY_NOTHING = 1e-9


@dataclass(frozen=True)
class Case:
    """Everything that a decision is made from."""

    config: PlanConfig
    state: State
    snapshot: Snapshot
    now: int
    known: Known = NOTHING_KNOWN

    def decided(self) -> Decision:
        """Decision on this case."""
        return decide(self.config, self.state, self.snapshot, self.now, self.known)


Apply = Callable[[Case, Any], Case]
"""Case with another value, a number or None."""
Outcome = Callable[[Decision], str]
"""Outcome of a decision for a group, a node or the pool, in words."""


@dataclass(frozen=True)
class Knob:
    """One thing that could be otherwise."""

    code: str
    """One of `sharectl.explain.codes.CHANGES`."""
    name: str
    """Such as ``8-core jobs of cms that wait``."""
    value: Optional[float]
    """Present value; None for a condition, which is met or not."""
    extreme: Optional[float]
    """Farthest value; None for a limit that is lifted."""
    apply: Apply
    whole: bool = True
    """True if only whole numbers make sense."""
    shown: Optional[Callable[[Decision], float]] = None
    """Value to show for a decision instead of the one that was set."""
    narrower: Optional[Callable[[Decision], Optional[Knob]]] = None
    """Smaller change to try too, from the decision at the extreme."""


@dataclass(frozen=True)
class Flip:
    """A change that would change the outcome."""

    code: str
    name: str
    value: Optional[float]
    becomes: Optional[float]
    """Smallest change that was flips to do; None without a value."""
    outcome: str


@dataclass
class Trials:
    """Decisions made again, as many as time allows."""

    case: Case
    decision: Decision
    """Decision on ``case``."""
    remaining: int
    """Decisions that may still be made; below 0 when one more was wanted."""

    @property
    def tried_all(self) -> bool:
        """True if every change could be tried."""
        return self.remaining >= 0

    def flips(self, knobs: Iterable[Knob], outcome: Outcome) -> tuple[Flip, ...]:
        """Smallest change of each of ``knobs`` that changes the outcome.

        All are tried at their extremes first, so that a small number of decisions looks at each.
        """
        present = outcome(self.decision)
        extremes = [(knob, self._at(knob, knob.extreme)) for knob in knobs]
        flips: list[Flip] = []
        for knob, extreme in extremes:
            if outcome(extreme) == present:
                continue
            wide = self._smallest(knob, extreme, outcome)
            narrower = knob.narrower(extreme) if knob.narrower is not None else None
            near = self._at(narrower, narrower.extreme) if narrower else self.decision
            if narrower is None or outcome(near) == present:
                flips.append(wide)
                continue
            small = self._smallest(narrower, near, outcome)
            flips += [small] if small.outcome == wide.outcome else [small, wide]
        return tuple(flips)

    def together(self, knobs: Iterable[Knob], outcome: Outcome) -> tuple[Flip, ...]:
        """Change of the outcome by several of ``knobs`` together, without those not needed."""

        def at(chosen: Iterable[Knob]) -> str:
            changed = self.case
            for knob in chosen:
                changed = knob.apply(changed, knob.extreme)
            return outcome(self._decided(changed))

        needed = list(knobs)
        wanted = at(needed)
        if wanted == outcome(self.decision):
            return ()
        for knob in tuple(needed):
            rest = [other for other in needed if other is not knob]
            if at(rest) == wanted:
                needed = rest
        names = (knob.name if knob.value is None else f"{knob.name} is lifted" for knob in needed)
        return (Flip(needed[0].code, " and ".join(names), None, None, wanted),)

    def _decided(self, case: Case) -> Decision:
        self.remaining -= 1
        return self.decision if self.remaining < 0 else case.decided()

    def _at(self, knob: Knob, value: Optional[float]) -> Decision:
        whole = knob.whole and value is not None
        return self._decided(knob.apply(self.case, int(value or 0) if whole else value))

    def _smallest(self, knob: Knob, extreme: Decision, outcome: Outcome) -> Flip:
        """Smallest change of a knob that changes the outcome at its extreme."""
        if knob.value is None or knob.extreme is None:
            return Flip(knob.code, knob.name, knob.value, knob.extreme, outcome(extreme))
        present = outcome(self.decision)
        same, other, there = knob.value, knob.extreme, extreme
        size = 1.0 if knob.whole else abs(other - same) * PRECISION
        # The next value often does: look there before halving.
        middle = same + copysign(size, other - same)
        while abs(other - same) > size * (1 + PRECISION) and self.remaining > 0:
            decision = self._at(knob, middle)
            if outcome(decision) == present:
                same = middle
            else:
                other, there = middle, decision
            middle = (same + other) / 2
            middle = float(round(middle)) if knob.whole else middle
        value, becomes = knob.value, other
        if knob.shown is not None:
            value, becomes = knob.shown(self.decision), knob.shown(there)
        return Flip(knob.code, knob.name, value, becomes, outcome(there))


def role(group: str, *, nodes: bool = False) -> Outcome:
    """Outcome for a group: whether it gives or receives, and on how many ``nodes``."""

    def outcome(decision: Decision) -> str:
        sides = zip(("gives", "receives"), counts(decision.plan.targets, group))
        words = [
            f"{word} on {counted(count, 'node')}" if nodes else word
            for word, count in sides
            if count
        ]
        return " and ".join(words) or "neither"

    return outcome


def counts(targets: Collection[Target], group: str) -> tuple[int, int]:
    """Numbers of nodes on which a group gives and receives."""
    gives = sum(target.held_back == group for target in targets)
    return gives, sum(target.helped == group for target in targets)


def under_target(node: str) -> Outcome:
    """Outcome for a node: whether it has a target."""
    return lambda decision: "a target" if target_on(decision, node) is not None else "no target"


def targets_in_all(decision: Decision) -> str:
    """Outcome for the pool: how many nodes have targets."""
    targets = len(decision.plan.targets)
    return counted(targets, "target") if targets else "no target"


def any_target(decision: Decision) -> str:
    """Outcome for the pool: whether any node has a target."""
    return "some targets" if decision.plan.targets else "no target"


def target_on(decision: Decision, node: str) -> Optional[Target]:
    """Target of a node; None if it has none."""
    return next((target for target in decision.plan.targets if target.node == node), None)


LIFTED: Mapping[str, tuple[str, str, Any]] = {
    DWELL: ("dwell_seconds", "dwell_seconds", 0),
    MAX_NODES: ("max_nodes", "max_nodes", None),
    MAX_TARGET_SHARE: ("max_target_ratio", "max_target_share", None),
    MAX_CHANGED_NODES: ("max_changed_nodes", "max_changed_nodes", None),
}
"""Code of a limit -> field of `PlanLimits`, key in ``control``, value that lifts it."""


class Switch(NamedTuple):
    """A change that lets nodes have targets."""

    single: str
    """Words for one node."""
    every: str
    """Words for all nodes."""
    values: Mapping[str, Any]
    """Fields of `Node`."""


SWITCHES: Mapping[str, Switch] = {
    "controlled": Switch(
        "{} is under control (nodes.controlled)",
        "all nodes are under control (nodes.controlled)",
        {"controlled": True},
    ),
    "not-reserved": Switch(
        "{} is not reserved (nodes.reserved)",
        "no node is reserved (nodes.reserved)",
        {"reserved": False},
    ),
    "not-draining": Switch(
        "{} is not being drained", "no node is being drained", {"draining": False}
    ),
    "obeying": Switch(
        "{} acts on its targets",
        "all nodes act on their targets",
        {"refusal": None, "obeyed_sequence": 2**62},
    ),
}

UNWILLING = frozenset({"refused", "not-obeying"})
"""Reasons of `sharectl.plan.plan.NODE_REASONS` that come from the node itself."""
_LEFT_OUT_FIRST = frozenset({"uncontrolled", "reserved", "several-slots", "draining"})
"""Reasons that go before the node's own."""


def group_knobs(case: Case, decision: Decision, group: str) -> Iterator[Knob]:
    """Changes that may decide whether a group gives or receives."""
    control = _control(decision, group)
    present = role(group)(decision)
    if "receives" in present:
        for cores in _sizes(case, control):
            if _waiting(case.snapshot, group, cores):
                yield pending(case, group, cores, fewer=True)
    elif control.control_error_hs06 < 0:
        yield from (pending(case, group, cores) for cores in _sizes(case, control))
    elif present == "neither":
        yield from _more_jobs(case, decision)
    if present != "gives":
        yield power(control, more=True)
    if present != "receives":
        yield power(control, more=False)
    yield from deadband(case, control, widened=present != "neither")


def node_knobs(case: Case, decision: Decision, node: Node) -> Iterator[Knob]:
    """Changes that may give a node a target, or take it away."""
    target = target_on(decision, node.name)
    if target is not None:
        giver = _control(decision, target.held_back)
        yield pending(case, target.helped, target.request_cores, fewer=True)
        yield power(giver, more=False)
        yield from limit_knobs(case, decision)
        yield from deadband(case, giver, widened=True)
        return
    yield from node_conditions(case, decision, node)
    yield from _more_jobs(case, decision)
    held = {jobs.group for jobs in case.snapshot.running if jobs.node == node.name}
    for control in decision.groups:
        if control.group in held:
            yield power(control, more=True)
            yield from deadband(case, control, widened=False)


def node_conditions(case: Case, decision: Decision, node: Node) -> Iterator[Knob]:
    """Everything that keeps a node from targets: its own state and the limits."""
    for code in _switches_of(node, _reasons(decision).get(node.name)):
        yield _switched(code, {node.name}, SWITCHES[code].single.format("the node"))
    yield from limit_knobs(case, decision)


def cycle_flips(trials: Trials) -> tuple[Flip, ...]:
    """Changes that would give the pool more targets, or fewer."""
    case, decision = trials.case, trials.decision
    limits = list(limit_knobs(case, decision, stepwise=True))
    switches = list(_pool_switches(case, decision))
    knobs = (*limits, *switches, *_pool_inputs(case, decision))
    flips = trials.flips(knobs, targets_in_all)
    if {flip.code for flip in flips} & {knob.code for knob in limits}:
        return flips
    # Several things at once may do what none does alone.
    if decision.plan.targets:
        more = trials.together(limits, targets_in_all) if decision.plan.limits else ()
    elif flips and not decision.plan.limits:
        more = ()
    else:
        jobs = (
            replace(knob, name=f"{knob.extreme:.0f} {knob.name}".replace(" that", ""), value=None)
            for knob in _more_jobs(case, decision, most=1)
        )
        more = trials.together((*limits, *switches, *jobs), any_target)
    return (*flips, *more)


def limit_knobs(case: Case, decision: Decision, *, stepwise: bool = False) -> Iterator[Knob]:
    """Each limit that is configured, lifted; if ``stepwise``, raised as far as needed too."""
    nodes = float(len(case.snapshot.nodes))
    for code, (field, key, free) in LIFTED.items():
        value = getattr(case.config.limits, field)
        if value == free:
            continue
        lifted = Knob(code, f"control.{key}", float(value), None, _limit(field, free))
        is_share = code == MAX_TARGET_SHARE
        most = 1.0 if is_share else nodes
        # The ledger does not say how old targets were: dwell is only lifted.
        if stepwise and code != DWELL and value < most:
            yield _with_narrower(lifted, replace(lifted, extreme=most, whole=not is_share))
        else:
            yield lifted
    steering = case.config.steering
    outputs_hs06 = [
        steering.by_group.get(control.group, steering.control).pid.max_output_hs06
        for control in decision.groups
        if OUTPUT_LIMIT in control.acted
    ]
    least = min((hs06 for hs06 in outputs_hs06 if hs06 is not None), default=None)
    if least is not None:
        key = "control.pid.max_output_hs06"
        lifted = Knob("output-limit", key, least, None, _outputs_up_to, whole=False)
        errors = (abs(control.control_error_hs06) for control in decision.groups)
        raised = replace(lifted, extreme=FACTOR * max(least, *errors))
        yield _with_narrower(lifted, raised) if stepwise else lifted


def _with_narrower(knob: Knob, narrower: Knob) -> Knob:
    return replace(knob, narrower=lambda _: narrower)


def _limit(field: str, free: Any) -> Apply:
    return lambda case, value: _with_limits(case, field, free if value is None else value)


def _outputs_up_to(case: Case, most_hs06: Optional[float]) -> Case:
    """Case with every limit of outputs at least ``most_hs06``; None for no limit."""

    def raised(control: Control) -> Control:
        own = control.pid.max_output_hs06
        most = max(own, most_hs06) if own is not None and most_hs06 is not None else None
        return replace(control, pid=replace(control.pid, max_output_hs06=most))

    before = case.config.steering
    by_group = {group: raised(control) for group, control in before.by_group.items()}
    steering = replace(before, control=raised(before.control), by_group=by_group)
    return replace(case, config=replace(case.config, steering=steering))


def _pool_switches(case: Case, decision: Decision) -> Iterator[Knob]:
    """Each switch for all nodes that it would change; narrower, for one that gets a target."""
    reasons = _reasons(decision)
    names: dict[str, set[str]] = {}
    for node in case.snapshot.nodes:
        for code in _switches_of(node, reasons.get(node.name)):
            names.setdefault(code, set()).add(node.name)
    for code in filter(names.__contains__, SWITCHES):
        knob = _switched(code, names[code], SWITCHES[code].every)
        yield replace(knob, narrower=_first_of(code, names[code]))


def _first_of(code: str, names: set[str]) -> Callable[[Decision], Optional[Knob]]:
    def narrower(decision: Decision) -> Optional[Knob]:
        targets = sorted(names.intersection(target.node for target in decision.plan.targets))
        words = SWITCHES[code].single
        return _switched(code, {targets[0]}, words.format(targets[0])) if targets else None

    return narrower


def _switched(code: str, names: Collection[str], words: str) -> Knob:
    values = SWITCHES[code].values

    def apply(case: Case, _: None) -> Case:
        nodes = tuple(
            replace(node, **values) if node.name in names else node for node in case.snapshot.nodes
        )
        unheeding = {node: at for node, at in case.state.unheeding.items() if node not in names}
        state = replace(case.state, unheeding=unheeding) if code == "obeying" else case.state
        return replace(case, state=state, snapshot=replace(case.snapshot, nodes=nodes))

    return Knob(code, words, None, None, apply)


def _reasons(decision: Decision) -> dict[str, Optional[str]]:
    return {record.node: record.reason for record in decision.nodes}


def _switches_of(node: Node, reason: Optional[str]) -> list[str]:
    """Codes of `SWITCHES` that would change a node, which has no target for ``reason``."""
    changes = {
        "controlled": not node.controlled,
        "not-reserved": node.reserved,
        "not-draining": node.draining,
        "obeying": reason in UNWILLING or (reason in _LEFT_OUT_FIRST and node.refusal is not None),
    }
    return [code for code in SWITCHES if changes[code]]


def _pool_inputs(case: Case, decision: Decision) -> Iterator[Knob]:
    """Waiting jobs, and deadband and error of the group that gives most or is over most."""
    targets = decision.plan.targets
    kinds = list(dict.fromkeys((target.helped, target.request_cores) for target in targets))
    for fewer in (True, False):
        for group, cores in kinds[:MOST_GROUPS]:
            yield pending(case, group, cores, fewer=fewer)
    if not targets:
        yield from _more_jobs(case, decision)
    gives = [target.held_back for target in targets]
    over = max(
        _steered(case, decision.groups),
        key=lambda control: (gives.count(control.group), control.control_error_hs06),
        default=None,
    )
    if over is not None:
        yield from deadband(case, over, widened=bool(targets))
        yield power(over, more=not targets)


def _more_jobs(case: Case, decision: Decision, most: int = MOST_GROUPS) -> Iterator[Knob]:
    """More multicore jobs of the groups that are the most under their setpoints."""
    under = [c for c in _steered(case, decision.groups) if c.control_error_hs06 < 0]
    for control in sorted(under, key=lambda c: (c.control_error_hs06, c.group))[:most]:
        yield pending(case, control.group, case.config.limits.multicore_cores)


def _steered(case: Case, groups: Iterable[GroupControl]) -> list[GroupControl]:
    """Groups that targets may name."""
    return [control for control in groups if control.group in case.config.pledge_hs06]


def pending(case: Case, group: str, cores: int, *, fewer: bool = False) -> Knob:
    """More waiting jobs of a group and size, or fewer; those that need least memory first."""
    waiting = _waiting(case.snapshot, group, cores)
    sizes_mib = sorted({jobs.memory_mib for jobs in waiting})
    order = ""
    if len(sizes_mib) > 1:
        memory = f"{sizes_mib[0]} MiB" if sizes_mib[0] else "unknown memory"
        order = " (taken away: least memory first)" if fewer else f" (added: {memory} each)"
    count = float(sum(jobs.jobs for jobs in waiting))
    return Knob(
        "pending",
        f"{cores}-core jobs of {group} that wait{order}",
        count,
        0.0 if fewer else count + MORE_JOBS,
        lambda case, jobs: replace(
            case, snapshot=_with_pending(case.snapshot, group, cores, int(jobs))
        ),
    )


def power(control: GroupControl, *, more: bool) -> Knob:
    """More power used by a group, or less, and so another error."""
    group, used_hs06 = control.group, control.error.usage.power_hs06
    return Knob(
        "error",
        f"error of {group}, HS06",
        used_hs06,
        FACTOR * max(used_hs06, control.setpoint_hs06, 1.0) if more else NEARLY_NOTHING,
        lambda case, hs06: replace(
            case, snapshot=_with_power(case.snapshot, group, used_hs06, hs06)
        ),
        whole=False,
        shown=lambda decision: _control(decision, group).control_error_hs06,
    )


def deadband(case: Case, control: GroupControl, *, widened: bool) -> Iterator[Knob]:
    """Another deadband; it can only be narrowed where it is above 0."""
    now_hs06 = case.config.limits.deadband_hs06
    if widened or now_hs06 > 0:
        sizes = (abs(control.control_error_hs06), abs(control.output_hs06), now_hs06, 1.0)
        yield Knob(
            "deadband",
            "control.deadband_hs06",
            now_hs06,
            FACTOR * max(sizes) if widened else 0.0,
            lambda case, hs06: _with_limits(case, "deadband_hs06", hs06),
            whole=False,
        )


def _control(decision: Decision, group: str) -> GroupControl:
    return next(control for control in decision.groups if control.group == group)


def _sizes(case: Case, control: GroupControl) -> list[int]:
    """Size that is helped first, then sizes of the group's jobs, most jobs first."""
    demand = control.error.usage.demand_by_cores
    most = sorted(demand, key=lambda cores: (-demand[cores], cores))[:MOST_GROUPS]
    return list(dict.fromkeys((case.config.limits.multicore_cores, *most)))


def _waiting(snapshot: Snapshot, group: str, cores: int) -> list[PendingJobs]:
    """Waiting jobs of a group and size that some node could run, least memory first."""
    jobs = [
        jobs
        for jobs in snapshot.pending
        if (jobs.group, jobs.cores) == (group, cores) and jobs.jobs > 0 and jobs.placeable
    ]
    return sorted(jobs, key=lambda jobs: jobs.memory_mib)


def _with_pending(snapshot: Snapshot, group: str, cores: int, count: int) -> Snapshot:
    """Snapshot with ``count`` jobs waiting; others come and go where least memory is needed."""
    waiting = _waiting(snapshot, group, cores)
    rest = [jobs for jobs in snapshot.pending if jobs not in waiting]
    more = count - sum(jobs.jobs for jobs in waiting)
    if more > 0:
        first, *others = waiting or [PendingJobs(group, cores, 0)]
        waiting = [replace(first, jobs=first.jobs + more), *others]
    for index, jobs in enumerate(waiting if more < 0 else ()):
        gone = min(jobs.jobs, -more)
        more += gone
        waiting[index] = replace(jobs, jobs=jobs.jobs - gone)
    return replace(snapshot, pending=(*rest, *(jobs for jobs in waiting if jobs.jobs)))


def _with_power(snapshot: Snapshot, group: str, used_hs06: float, hs06: float) -> Snapshot:
    if used_hs06 <= 0:
        # Nowhere, so that it fills no node.
        return replace(snapshot, running=(*snapshot.running, RunningJobs("", group, 1, hs06, 0)))
    ratio = hs06 / used_hs06
    running = tuple(
        replace(jobs, hs06_per_core=jobs.hs06_per_core * ratio) if jobs.group == group else jobs
        for jobs in snapshot.running
    )
    return replace(snapshot, running=running)


def _with_limits(case: Case, field: str, value: Any) -> Case:
    limits = replace(case.config.limits, **{field: value})
    return replace(case, config=replace(case.config, limits=limits))
