"""What could be otherwise for a group or a node: jobs that wait, errors, deadband, limits, the node itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Optional

from sharectl.core.control import Control
from sharectl.core.control_law import OUTPUT_LIMIT
from sharectl.core.limits import DWELL, MAX_CHANGED_NODES, MAX_NODES, MAX_TARGET_SHARE
from sharectl.core.model import GroupControl, Node, PendingJobs, RunningJobs, Snapshot
from sharectl.core.plan import Decision
from sharectl.core.what_if import Case, Knob
from sharectl.core.what_if_outcomes import role, target_on

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
"""Of `sharectl.core.plan.NODE_REASONS`: for what the node itself said."""

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
            yield Knob(code, f"control.{KEYS.get(name, name)}", float(value), None, _limit_lifted(name, free))


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
        and (most_hs06 := steering.by_group.get(control.group, steering.control).pid.max_output_hs06)
        is not None
    ]
    if limited:
        yield Knob("output-limit", "control.pid.max_output_hs06", min(limited), None, _outputs_up_to)


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
        alike = " (taken away: least memory first)" if fewer else f" (added: {_mib(min(sizes_mib))} each)"
    return Knob(
        "pending",
        f"{cores}-core jobs of {group} that wait{alike}",
        float(waiting),
        0.0 if fewer else float(waiting + MORE_JOBS),
        lambda of, jobs: replace(of, snapshot=_with_pending(of.snapshot, group, cores, int(jobs or 0))),
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
        lambda of, hs06: replace(of, snapshot=_with_power(of.snapshot, group, used, hs06 or NEARLY_NOTHING)),
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
        if (waiting.group, waiting.cores) == (group, cores) and waiting.jobs > 0 and waiting.placeable
    ]
    return sorted(found, key=lambda waiting: waiting.memory_mib)


def _with_pending(snapshot: Snapshot, group: str, cores: int, jobs: int) -> Snapshot:
    """``jobs`` waiting: others come and go at the end where least memory is needed, since those fit first."""
    those = _those(snapshot, group, cores)
    rest = tuple(waiting for waiting in snapshot.pending if waiting not in those)
    change = jobs - sum(waiting.jobs for waiting in those)
    if change > 0:
        first = those[0] if those else PendingJobs(group, cores, 0)
        return replace(snapshot, pending=(*rest, replace(first, jobs=first.jobs + change), *those[1:]))
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
        nodes = tuple(replace(node, **values) if node.name in names else node for node in case.snapshot.nodes)
        unheeding = {node: at for node, at in case.state.unheeding.items() if node not in names}
        state = replace(case.state, unheeding=unheeding) if "refusal" in values else case.state
        return replace(case, state=state, snapshot=replace(case.snapshot, nodes=nodes))

    return apply
