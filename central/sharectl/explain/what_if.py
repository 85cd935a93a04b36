"""What would change a decision: found by deciding again with one thing changed, never guessed.

What of a decision a change can change: what a group does, and whether a node has a target.

What could be otherwise for a group or a node: jobs that wait, errors, deadband, limits, the node
itself.

What would give a whole plan other targets: limits, nodes, jobs that wait, errors, the deadband.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

from sharectl.control.laws import OUTPUT_LIMIT, Control
from sharectl.model import GroupControl, Node, PendingJobs, RunningJobs, Snapshot, Target
from sharectl.plan.limits import DWELL, MAX_CHANGED_NODES, MAX_NODES, MAX_TARGET_SHARE
from sharectl.plan.plan import NOTHING_KNOWN, Decision, Known, PlanConfig, State, decide

PRECISION = 0.005
"""Part of a change up to which the smallest one is looked for, where it is no whole number."""


@dataclass(frozen=True)
class Case:
    """All that a decision is made from."""

    config: PlanConfig
    state: State
    snapshot: Snapshot
    now: int
    known: Known = NOTHING_KNOWN

    def decided(self) -> Decision:
        """What is decided."""
        return decide(self.config, self.state, self.snapshot, self.now, self.known)


@dataclass(frozen=True)
class Knob:
    """One thing that could be otherwise."""

    code: str
    """One of `sharectl.explain.codes.CHANGES`."""
    what: str
    """What it is, such as ``8-core jobs of cms pending``."""
    value: Optional[float]
    """What it is now; None for what is no number."""
    extreme: Optional[float]
    """As far as it is changed; None for nothing at all, as a limit that is lifted."""
    apply: Callable[[Case, Optional[float]], Case]
    whole: bool = True
    """Whether only whole numbers make sense."""
    seen: Optional[Callable[[Decision], float]] = None
    """What to show instead of the value that was set: what it makes of a decision."""


@dataclass(frozen=True)
class Flip:
    """A change that would change the outcome."""

    code: str
    what: str
    value: Optional[float]
    becomes: Optional[float]
    """What it would have to be; the smallest change that was found to do."""
    outcome: str
    """What would come of it."""


@dataclass
class Budget:
    """How many more decisions may be made: each takes long on a large pool."""

    decisions: int

    @property
    def enough(self) -> bool:
        """Whether all could be tried."""
        return self.decisions >= 0

    def spent(self) -> bool:
        """Whether it is used up; counts one more."""
        self.decisions -= 1
        return self.decisions < 0


Outcome = Callable[[Decision], str]


def budget_for(nodes: int) -> int:
    """Decisions that a pool of so many nodes allows in some seconds."""
    return max(12, min(90, 40_000 // max(1, nodes)))


def flips(
    case: Case,
    knobs: Iterable[Knob],
    outcome: Outcome,
    budget: Budget,
    decided: Optional[Decision] = None,
) -> tuple[Flip, ...]:
    """For each of ``knobs`` that can change the outcome, the smallest change that does; as far as the budget goes.

    Parameters
    ----------
    decided
        What ``case`` comes to, where that is known already.
    """
    decided = decided or case.decided()
    found = []
    for knob in knobs:
        flip = _smallest(case, knob, outcome, outcome(decided), budget)
        if flip is not None:
            found.append(_as_seen(flip, case, knob, decided))
    return tuple(found)


def needed_together(
    case: Case, conditions: Iterable[Knob], outcome: Outcome, budget: Budget
) -> tuple[Flip, ...]:
    """For where none of ``conditions`` is enough alone: those that change the outcome together, without any that need not be."""

    def at(chosen: Iterable[Knob]) -> str:
        changed = case
        for knob in chosen:
            changed = knob.apply(changed, knob.extreme)
        return present if budget.spent() else outcome(changed.decided())

    present, needed = outcome(case.decided()), list(conditions)
    said = at(needed)
    if said == present:
        return ()
    for knob in tuple(needed):
        rest = [each for each in needed if each is not knob]
        if at(rest) == said:
            needed = rest
    what = " and ".join(
        knob.what if knob.value is None else f"{knob.what} is lifted" for knob in needed
    )
    return (Flip(needed[0].code, what, None, None, said),)


def _as_seen(flip: Flip, case: Case, knob: Knob, decided: Decision) -> Flip:
    if knob.seen is None:
        return flip
    there = knob.apply(case, flip.becomes).decided()
    return replace(flip, value=knob.seen(decided), becomes=knob.seen(there))


def _smallest(
    case: Case, knob: Knob, outcome: Outcome, present: str, budget: Budget
) -> Optional[Flip]:
    def at(value: Optional[float]) -> str:
        return present if budget.spent() else outcome(knob.apply(case, value).decided())

    far = at(knob.extreme)
    if far == present:
        return None
    if knob.value is None or knob.extreme is None:
        return Flip(knob.code, knob.what, knob.value, knob.extreme, far)
    same, other, said = knob.value, knob.extreme, far
    step = (1.0 if knob.extreme > knob.value else -1.0) * (
        1.0 if knob.whole else abs(knob.extreme - knob.value) * PRECISION
    )
    # The next step often does: look there before halving all of the way.
    near = knob.value + step
    if abs(near - knob.value) < abs(knob.extreme - knob.value):
        seen = at(near)
        if seen != present:
            return Flip(knob.code, knob.what, knob.value, near, seen)
        same = near
    while abs(other - same) > abs(step) and budget.decisions > 0:
        middle = (same + other) / 2
        middle = float(round(middle)) if knob.whole else middle
        seen = at(middle)
        same, other, said = (middle, other, said) if seen == present else (same, middle, seen)
    return Flip(knob.code, knob.what, knob.value, other, said)


def role(group: str) -> Any:
    """Outcome of a decision for ``group``: whether it gives, receives or neither."""

    def outcome(decision: Decision) -> str:
        gives = any(target.held_back == group for target in decision.plan.targets)
        receives = any(target.helped == group for target in decision.plan.targets)
        return _ROLES[gives, receives]

    return outcome


_ROLES = {
    (True, True): "gives and receives",
    (True, False): "gives",
    (False, True): "receives",
    (False, False): "neither",
}


def extent(group: str) -> Any:
    """Outcome of a decision for ``group``: on how many nodes it gives or receives."""
    return lambda decision: extent_of(decision.plan.targets, group)


def extent_of(targets: Iterable[Target], group: str) -> str:
    """On how many nodes ``group`` gives or receives by ``targets``, in words."""
    targets = tuple(targets)
    gives = sum(target.held_back == group for target in targets)
    receives = sum(target.helped == group for target in targets)
    said = [
        f"{word} on {count} node{'s' * (count != 1)}"
        for word, count in (("gives", gives), ("receives", receives))
        if count
    ]
    return " and ".join(said) or "neither"


def under_target(node: str) -> Any:
    """Outcome of a decision for ``node``: whether it has a target."""
    return lambda decision: "a target" if target_on(decision, node) is not None else "no target"


def targets_in_all(decision: Decision) -> str:
    """Outcome of a decision for the pool: how many nodes have targets."""
    targets = len(decision.plan.targets)
    return f"{targets} target{'s' * (targets != 1)}" if targets else "no target"


def any_target(decision: Decision) -> str:
    """Outcome of a decision for the pool: whether any node has a target."""
    return "some targets" if decision.plan.targets else "no target"


def target_on(decision: Decision, node: str) -> Optional[Target]:
    """Target of ``node``; None if it has none."""
    return next((target for target in decision.plan.targets if target.node == node), None)


MORE_JOBS = 1000
"""As many more waiting jobs are tried."""
MOST_GROUPS = 3
"""Other groups whose waiting jobs are tried."""
FACTOR = 4.0
"""Power and deadband are tried up to so many times what matters."""
NEARLY_NOTHING = 1e-9

LIFTED: Mapping[str, tuple[str, Any]] = {
    DWELL: ("dwell_seconds", 0),
    MAX_NODES: ("max_nodes", None),
    MAX_TARGET_SHARE: ("max_target_ratio", None),
    MAX_CHANGED_NODES: ("max_changed_nodes", None),
}
"""Code of a limit -> field of `PlanLimits`, and its value when the limit is lifted."""

UNWILLING = frozenset({"refused", "not-obeying"})
"""Of `sharectl.plan.plan.NODE_REASONS`: for what the node itself said."""

_LEFT_OUT_FIRST = frozenset({"uncontrolled", "reserved", "several-slots", "draining"})
"""Those that are told of a node that refuses, too."""

SWITCHES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "controlled": ("the node is under control (nodes.controlled)", {"controlled": True}),
    "not-reserved": ("the node is not reserved (nodes.reserved)", {"reserved": False}),
    "not-draining": ("the node is not being drained", {"draining": False}),
    "obeying": ("the node acts on its targets", {"refusal": None, "obeyed_sequence": 2**62}),
}
"""Code of what ails a node -> the change that mends it, in words and in its fields."""


def group_knobs(case: Case, decision: Decision, group: str) -> Iterator[Knob]:
    """What may change whether ``group`` gives or receives."""
    control = _control(decision, group)
    present = role(group)(decision)
    if "receives" in present:
        yield from (
            pending(case, group, size, fewer=True)
            for size in _sizes(case, control)
            if _waiting(case, group, size)
        )
    elif control.control_error_hs06 < 0:
        yield from (pending(case, group, size) for size in _sizes(case, control))
    elif present == "neither":
        for other in most_under(decision)[:MOST_GROUPS]:
            yield pending(case, other.group, case.config.limits.multicore_cores)
    if present != "gives":
        yield power(case, control, more=True)
    if present != "receives":
        yield power(case, control, more=False)
    yield from deadband(case, control, widened=present != "neither")


def node_knobs(case: Case, decision: Decision, node: Node) -> Iterator[Knob]:
    """What may give ``node`` a target, or take its target from it."""
    target = target_on(decision, node.name)
    if target is not None:
        yield pending(case, target.helped, target.request_cores, fewer=True)
        yield power(case, _control(decision, target.held_back), more=False)
        yield from limit_knobs(case)
        yield from deadband(case, _control(decision, target.held_back), widened=True)
        return
    yield from conditions(case, decision, node)
    for control in most_under(decision)[:MOST_GROUPS]:
        yield pending(case, control.group, case.config.limits.multicore_cores)
    held = {jobs.group for jobs in case.snapshot.running if jobs.node == node.name}
    for control in decision.groups:
        if control.group in held:
            yield power(case, control, more=True)
            yield from deadband(case, control, widened=False)


def limit_knobs(case: Case) -> Iterator[Knob]:
    """Each limit that is configured, lifted."""
    for code, (name, free) in LIFTED.items():
        value = getattr(case.config.limits, name)
        if value != free:
            yield Knob(
                code,
                f"control.{KEYS.get(name, name)}",
                float(value),
                None,
                _limit_lifted(name, free),
            )


def conditions(case: Case, decision: Decision, node: Node) -> Iterator[Knob]:
    """All that ails the node mended, and every limit lifted."""
    reason = next((record.reason for record in decision.nodes if record.node == node.name), None)
    for code in ailments(node, reason):
        what, values = SWITCHES[code]
        yield Knob(code, what, None, None, nodes_changed({node.name}, values))
    yield from limit_knobs(case)
    yield from output_limit(case, decision)


def ailments(node: Node, reason: Optional[str]) -> tuple[str, ...]:
    """Those of `SWITCHES` that would mend something on ``node``, which a decision left as it is for ``reason``."""
    ails = {
        "controlled": not node.controlled,
        "not-reserved": node.reserved,
        "not-draining": node.draining,
        # One that refuses, and keeps what it acts on, is not left out for it.
        "obeying": reason in UNWILLING or (reason in _LEFT_OUT_FIRST and node.refusal is not None),
    }
    return tuple(code for code in SWITCHES if ails[code])


def output_limit(case: Case, decision: Decision) -> Iterator[Knob]:
    """The limit of the controllers' outputs lifted, where one acted."""
    steering = case.config.steering
    limited = [
        most_hs06
        for control in decision.groups
        if OUTPUT_LIMIT in control.acted
        and (
            most_hs06 := steering.by_group.get(control.group, steering.control).pid.max_output_hs06
        )
        is not None
    ]
    if limited:
        yield Knob(
            "output-limit", "control.pid.max_output_hs06", min(limited), None, _outputs_up_to
        )


def _outputs_up_to(case: Case, most_hs06: Optional[float]) -> Case:
    """Every limit of outputs at least ``most_hs06``; None for no limit at all."""

    def free(control: Control) -> Control:
        own = control.pid.max_output_hs06
        raised = max(own, most_hs06) if own is not None and most_hs06 is not None else None
        return replace(control, pid=replace(control.pid, max_output_hs06=raised))

    before = case.config.steering
    by_group = {group: free(control) for group, control in before.by_group.items()}
    steering = replace(before, control=free(before.control), by_group=by_group)
    return replace(case, config=replace(case.config, steering=steering))


KEYS = {"max_target_ratio": "max_target_share"}
"""Field of `PlanLimits` -> its name in the configuration, where that is another one."""


def pending(case: Case, group: str, cores: int, *, fewer: bool = False) -> Knob:
    """More waiting jobs of one group and size, like those that need least memory; or fewer, these first, down to none."""
    waiting = _waiting(case, group, cores)
    sizes_mib = {jobs.memory_mib for jobs in _those(case.snapshot, group, cores) if jobs.jobs}
    alike = ""
    if len(sizes_mib) > 1:
        alike = (
            " (taken away: least memory first)"
            if fewer
            else f" (added: {_mib(min(sizes_mib))} each)"
        )
    return Knob(
        "pending",
        f"{cores}-core jobs of {group} that wait{alike}",
        float(waiting),
        0.0 if fewer else float(waiting + MORE_JOBS),
        lambda of, jobs: replace(
            of, snapshot=_with_pending(of.snapshot, group, cores, int(jobs or 0))
        ),
    )


def power(case: Case, control: GroupControl, *, more: bool) -> Knob:
    """More power used by one group, and so another error; or less."""
    group, used = control.group, control.error.usage.power_hs06
    most = FACTOR * max(used, control.setpoint_hs06, 1.0)
    del case
    return Knob(
        "error",
        f"error of {group}, HS06",
        used,
        most if more else NEARLY_NOTHING,
        lambda of, hs06: replace(
            of, snapshot=_with_power(of.snapshot, group, used, hs06 or NEARLY_NOTHING)
        ),
        whole=False,
        seen=lambda decision: _control(decision, group).control_error_hs06,
    )


def deadband(case: Case, control: GroupControl, *, widened: bool) -> Iterator[Knob]:
    """Another deadband, where there is one to narrow."""
    now = case.config.limits.deadband_hs06
    if widened or now > 0:
        extreme = FACTOR * max(abs(control.control_error_hs06), abs(control.output_hs06), now, 1.0)
        yield Knob(
            "deadband",
            "control.deadband_hs06",
            now,
            extreme if widened else 0.0,
            lambda of, hs06: limits_changed(of, {"deadband_hs06": hs06}),
            whole=False,
        )


def _control(decision: Decision, group: str) -> GroupControl:
    return next(control for control in decision.groups if control.group == group)


def most_under(decision: Decision) -> list[GroupControl]:
    """Groups under their setpoints, the most first."""
    under = [control for control in decision.groups if control.control_error_hs06 < 0]
    return sorted(under, key=lambda control: (control.control_error_hs06, control.group))


def _sizes(case: Case, control: GroupControl) -> list[int]:
    """The size that is helped first, then those that the group asks for, the most asked for first."""
    waiting = control.error.usage.demand_by_cores
    asked = sorted(waiting, key=lambda size: (-waiting[size], size))[:MOST_GROUPS]
    return list(dict.fromkeys((case.config.limits.multicore_cores, *asked)))


def _mib(memory_mib: int) -> str:
    return f"{memory_mib} MiB" if memory_mib else "unknown memory"


def _waiting(case: Case, group: str, cores: int) -> int:
    return sum(jobs.jobs for jobs in _those(case.snapshot, group, cores))


def _those(snapshot: Snapshot, group: str, cores: int) -> list[PendingJobs]:
    """Waiting jobs of one group and size that some node could run, least memory first."""
    found = [
        waiting
        for waiting in snapshot.pending
        if (waiting.group, waiting.cores) == (group, cores)
        and waiting.jobs > 0
        and waiting.placeable
    ]
    return sorted(found, key=lambda waiting: waiting.memory_mib)


def _with_pending(snapshot: Snapshot, group: str, cores: int, jobs: int) -> Snapshot:
    """``jobs`` waiting: others come and go at the end where least memory is needed, since those fit first."""
    those = _those(snapshot, group, cores)
    rest = tuple(waiting for waiting in snapshot.pending if waiting not in those)
    change = jobs - sum(waiting.jobs for waiting in those)
    if change > 0:
        first = those[0] if those else PendingJobs(group, cores, 0)
        return replace(
            snapshot, pending=(*rest, replace(first, jobs=first.jobs + change), *those[1:])
        )
    left = []
    for waiting in those:
        gone = min(waiting.jobs, -change)
        change += gone
        if waiting.jobs > gone:
            left.append(replace(waiting, jobs=waiting.jobs - gone))
    return replace(snapshot, pending=(*rest, *left))


def _with_power(snapshot: Snapshot, group: str, used_hs06: float, hs06: float) -> Snapshot:
    if used_hs06 <= 0:
        # Nowhere, so that it fills no node.
        return replace(snapshot, running=(*snapshot.running, RunningJobs("", group, 1, hs06, 0)))
    ratio = hs06 / used_hs06
    return replace(
        snapshot,
        running=tuple(
            replace(held, hs06_per_core=held.hs06_per_core * ratio) if held.group == group else held
            for held in snapshot.running
        ),
    )


def limits_changed(case: Case, values: Mapping[str, Any]) -> Case:
    """``case`` with other values of `PlanLimits`."""
    limits = replace(case.config.limits, **values)
    return replace(case, config=replace(case.config, limits=limits))


def _limit_lifted(name: str, free: Any) -> Any:
    return lambda case, _: limits_changed(case, {name: free})


def nodes_changed(names: Collection[str], values: Mapping[str, Any]) -> Any:
    """What gives the nodes of ``names`` other values, and forgets that they did not obey where these say so."""

    def apply(case: Case, _: Optional[float]) -> Case:
        nodes = tuple(
            replace(node, **values) if node.name in names else node for node in case.snapshot.nodes
        )
        unheeding = {node: at for node, at in case.state.unheeding.items() if node not in names}
        state = replace(case.state, unheeding=unheeding) if "refusal" in values else case.state
        return replace(case, state=state, snapshot=replace(case.snapshot, nodes=nodes))

    return apply


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
    """Those limits as numbers that can be raised.

    Of how old targets are the ledger tells too little.
    """
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
            yield Knob(
                code, what, None, None, nodes_changed(frozenset(ailing[code]), SWITCHES[code][1])
            )


def _one_node(case: Case, decision: Decision, codes: set[str], budget: Budget) -> Iterator[Knob]:
    """For each code that does something for all nodes, the first node that gets a target by it."""
    ailing = _ailing(case, decision)
    for knob in _node_switches(ailing):
        if knob.code not in codes or budget.spent():
            continue
        there = {target.node for target in knob.apply(case, None).decided().plan.targets}
        for name in sorted(there.intersection(ailing[knob.code]))[:1]:
            what, values = SWITCHES[knob.code]
            yield Knob(
                knob.code, what.replace("the node", name), None, None, nodes_changed({name}, values)
            )


def _inputs(case: Case, decision: Decision) -> Iterator[Knob]:
    """Jobs that wait, the deadband, and the error of the group that gives the most or is over the most."""
    targets = decision.plan.targets
    helped = list(dict.fromkeys((target.helped, target.request_cores) for target in targets))[
        :MOST_GROUPS
    ]
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
    steered = [
        control.group
        for control in most_under(decision)
        if control.group in case.config.pledge_hs06
    ]
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
        yield replace(
            knob, what=f"{knob.extreme:.0f} {knob.what.replace(' that wait', ' wait')}", value=None
        )
