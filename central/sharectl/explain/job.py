"""What stands between a job and the nodes, slot by slot, and what that comes to for the pool.

The codes of ``explain job``: a closed set, each with its sentence.

Why a job is where it is: what its access point says, what the nodes make of it, and what its group
has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from sharectl.model import GroupError
from sharectl.shares.quotas import Group

COULD_NOW, NOT_NOW, COULD_NEVER = "could-now", "not-now", "could-never"
HELD, RUNNING, COMPLETED, REMOVED = "held", "running", "completed", "removed"
NO_SLOT, UNKNOWN, NOT_EVALUATED = "no-slot", "unknown", "not-evaluated"

VERDICTS: Mapping[str, str] = {
    COULD_NOW: "it could run now: the negotiator has not come to it, or gives the place to others (priority, quota)",
    NOT_NOW: "it cannot run now, and could on an empty node",
    COULD_NEVER: "no node would take it, were it empty, without target and grace",
    HELD: "it is held, and nothing starts it until it is released",
    RUNNING: "it runs",
    COMPLETED: "it has ended",
    REMOVED: "it was removed",
    NO_SLOT: "it needs no slot: jobs of its universe run on the access point or elsewhere",
    UNKNOWN: "no access point knows it, neither in its queue nor in its history",
    NOT_EVALUATED: "HTCondor's library could not evaluate the expressions of the job and the nodes in time",
}
"""Code -> what is the matter with the job."""

CPUS, MEMORY, DISK, GPUS, RESOURCE = "cpus", "memory", "disk", "gpus", "resource"
RESOURCES = (CPUS, MEMORY, DISK, GPUS)

OBSTACLES: Mapping[str, str] = {
    "target": "sharectl's target: the node keeps its cores for other jobs",
    "grace": "sharectl's grace: freed cores wait for multicore jobs",
    "overheat": "sharectl's clause on heat: the node says that it is too hot",
    "sharectl": "another clause of sharectl's",
    "site-start": "the site's START",
    "slot-requirements": "the slot's Requirements besides START",
    "job-requirements": "the job's own requirements",
    "bad-request": "a request of the job that has no value there",
    CPUS: "too few free cores",
    MEMORY: "too little free memory",
    DISK: "too little free disk",
    GPUS: "too few free GPUs",
    RESOURCE: "too little of a custom resource",
    "draining": "the node is being drained",
    "claimed": "the slot is claimed by another job",
}
"""Code -> what stands in the way on a node."""

OURS = frozenset(("target", "grace", "overheat", "sharectl"))
"""Obstacles that sharectl makes."""

SHORT = frozenset((*RESOURCES, RESOURCE))
"""Obstacles that are a matter of amounts."""

TOO_LARGE = "a smaller request: none of these nodes is that large"
SMALLER = "a smaller request"
NO_USE = "none: were this gone, what `never` lists would still keep it out"
"""Remedy of what is in the way of a job that not even empty nodes would take."""

REMEDIES: Mapping[str, str] = {
    "target": "the target's end; on single nodes `touch /etc/sharectl/disabled`; fewer targets by control.max_nodes; for the "
    "whole pool `sharectl disable`",
    "grace": "the end of the grace; jobs of more than one core are let in",
    "overheat": "a node that publishes t1_overheat = False",
    "sharectl": "see START on the node",
    "site-start": "the site's configuration of START, or a job that meets it",
    "slot-requirements": "the node's configuration",
    "job-requirements": "the job's requirements: condor_qedit, or another submission",
    "bad-request": "a request that is a number",
    CPUS: "jobs that end there, or a smaller request",
    MEMORY: "jobs that end there, or a smaller request",
    DISK: "jobs that end there, or a smaller request",
    GPUS: "jobs that end there, or a smaller request",
    RESOURCE: "jobs that end there, or a smaller request",
    "draining": "the end of the draining: condor_drain -cancel",
    "claimed": "the end of the job that holds it",
}
"""Code of an obstacle -> what would take it away."""

TARGET_KINDS: Mapping[str, str] = {
    "cap": "its group is held back, and has as many cores there as its cap allows",
    "size": "its group is helped there by jobs of another size",
    "others": "the node is for jobs of the helped group",
}
"""Why a target keeps a job out."""


def code_of_resource(name: str) -> str:
    """Code of an obstacle that is a resource, such as ``Memory``, of which there is too little."""
    return name.lower() if name.lower() in RESOURCES else RESOURCE


@dataclass(frozen=True)
class Obstacle:
    """One thing that keeps a job out of a slot."""

    code: str
    """One of `sharectl.explain.job.OBSTACLES`."""
    clause: str
    """The expression that is not true, or the request that is too large."""


@dataclass(frozen=True)
class TargetSeen:
    """The target that a slot acts on, and why it keeps the job out."""

    kind: str
    """One of `sharectl.explain.job.TARGET_KINDS`."""
    held_back: str
    cap_cores: int
    helped: str
    request_cores: int
    until: int
    """Unix seconds at which it ends if no cycle renews it; 0 if the slot does not say."""


@dataclass(frozen=True)
class Shortage:
    """A request, and what there is."""

    resource: str
    """As the slots call it, such as ``Memory``."""
    requested: float
    free: float
    """In this slot now."""
    most: float
    """The same, if nothing ran there."""


@dataclass(frozen=True)
class SlotFinding:
    """What one partitionable or static slot makes of the job, and the job of it."""

    node: str
    """Host name."""
    slot: str
    job_accepts: bool
    """Whether the job's Requirements are true there."""
    slot_accepts: bool
    """Whether the slot's are."""
    obstacles: tuple[Obstacle, ...] = ()
    """Empty if both accept, and it is free."""
    empty_obstacles: tuple[Obstacle, ...] = ()
    """What would be left if nothing ran there, without target and grace; empty if it would fit."""
    target: Optional[TargetSeen] = None
    """If that keeps it out."""
    grace_until: int = 0
    """Unix seconds, if grace keeps it out and the slot says so."""
    shortages: tuple[Shortage, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the job could run there now."""
        return not self.obstacles

    @property
    def fits_empty(self) -> bool:
        """Whether it could if nothing ran there."""
        return self.fits or not self.empty_obstacles


@dataclass(frozen=True)
class ObstacleCount:
    """On how many nodes one obstacle stands in the way."""

    code: str
    clause: str
    nodes: int
    alone: int
    """Those of them where nothing else does."""
    example: str
    """One of them."""
    ours: bool


@dataclass(frozen=True)
class TargetCount:
    """Targets that keep the job out."""

    target: TargetSeen
    """``until`` is the latest."""
    nodes: int


@dataclass(frozen=True)
class ShortageCount:
    """What of a resource there is for a request."""

    resource: str
    requested: float
    nodes: int
    """Nodes with too little of it free."""
    most_free: float
    """Most that one of those has."""
    most: float
    """Most that one of those would have if nothing ran there."""


@dataclass(frozen=True)
class Verdict:
    """What all slots make of the job."""

    code: str
    """could-now, not-now or could-never of `sharectl.explain.job.VERDICTS`."""
    nodes: int
    fitting_nodes: int
    """Nodes where it could run now."""
    fitting_if_empty: int
    """Nodes where it could if nothing ran there, without target and grace."""
    obstacles: tuple[ObstacleCount, ...]
    """What stands in the way of those where it cannot, most nodes first."""
    never: tuple[ObstacleCount, ...]
    """The same for nodes where it could not even then."""
    targets: tuple[TargetCount, ...]
    grace_until: tuple[int, int]
    """The first and the last end of grace, Unix seconds; zeros if there is none, or no node says when."""
    shortages: tuple[ShortageCount, ...]
    slots: int
    """Partitionable and static slots."""
    slots_refused_by_job: int
    """As condor_q -better-analyze counts them: slots that the job's Requirements reject,"""
    slots_refusing_job: int
    """of the others, those that reject the job,"""
    slots_matching: int
    """and the rest."""


def verdict(findings: Iterable[SlotFinding]) -> Verdict:
    """What the slots' findings come to.

    A node counts by the one of its slots that is nearest to taking the job.
    """
    findings = tuple(findings)
    nodes = _nearest(findings)
    kept_out = [node for node in nodes if not node.fits]
    never = [node for node in nodes if not node.fits_empty]
    fitting = len(nodes) - len(kept_out)
    ends = sorted(node.grace_until for node in kept_out if node.grace_until)
    refused = [found for found in findings if not found.job_accepts]
    refusing = [found for found in findings if found.job_accepts and not found.slot_accepts]
    return Verdict(
        code=COULD_NOW if fitting else NOT_NOW if len(never) < len(nodes) else COULD_NEVER,
        nodes=len(nodes),
        fitting_nodes=fitting,
        fitting_if_empty=len(nodes) - len(never),
        obstacles=_counted({node.node: node.obstacles for node in kept_out}),
        never=_counted({node.node: node.empty_obstacles for node in never}),
        targets=_targets(kept_out),
        grace_until=(ends[0], ends[-1]) if ends else (0, 0),
        shortages=_shortages(kept_out),
        slots=len(findings),
        slots_refused_by_job=len(refused),
        slots_refusing_job=len(refusing),
        slots_matching=len(findings) - len(refused) - len(refusing),
    )


def _nearest(findings: Sequence[SlotFinding]) -> list[SlotFinding]:
    """One slot of each node: that where least stands in the way."""
    nearest: dict[str, SlotFinding] = {}
    for found in findings:
        known = nearest.get(found.node)
        if known is None or _distance(found) < _distance(known):
            nearest[found.node] = found
    return list(nearest.values())


def _distance(found: SlotFinding) -> tuple[int, bool, int]:
    return len(found.obstacles), not found.fits_empty, len(found.empty_obstacles)


def _counted(by_node: Mapping[str, Sequence[Obstacle]]) -> tuple[ObstacleCount, ...]:
    nodes: dict[Obstacle, list[str]] = {}
    alone: dict[Obstacle, int] = {}
    for node, obstacles in by_node.items():
        different = dict.fromkeys(obstacles)
        for obstacle in different:
            nodes.setdefault(obstacle, []).append(node)
            alone[obstacle] = alone.get(obstacle, 0) + (len(different) == 1)
    counts = [
        ObstacleCount(
            *(obstacle.code, obstacle.clause, len(names), alone[obstacle], min(names)),
            ours=obstacle.code in OURS,
        )
        for obstacle, names in nodes.items()
    ]
    return tuple(
        sorted(counts, key=lambda count: (-count.nodes, -count.alone, count.code, count.clause))
    )


def _targets(kept_out: Iterable[SlotFinding]) -> tuple[TargetCount, ...]:
    alike: dict[tuple[str, str, int, str, int], list[int]] = {}
    for target in (node.target for node in kept_out if node.target is not None):
        key = (target.kind, target.held_back, target.cap_cores, target.helped, target.request_cores)
        alike.setdefault(key, []).append(target.until)
    counts = [TargetCount(TargetSeen(*key, max(ends)), len(ends)) for key, ends in alike.items()]
    return tuple(
        sorted(
            counts, key=lambda count: (-count.nodes, count.target.helped, count.target.cap_cores)
        )
    )


def _shortages(kept_out: Iterable[SlotFinding]) -> tuple[ShortageCount, ...]:
    by_resource: dict[str, list[Shortage]] = {}
    for node in kept_out:
        for shortage in node.shortages:
            by_resource.setdefault(shortage.resource, []).append(shortage)
    return tuple(
        ShortageCount(
            resource,
            max(shortage.requested for shortage in found),
            len(found),
            max(shortage.free for shortage in found),
            max(shortage.most for shortage in found),
        )
        for resource, found in sorted(by_resource.items())
    )


_OF_STATUS: Mapping[int, str] = {
    2: RUNNING,
    3: REMOVED,
    4: COMPLETED,
    5: HELD,
    6: RUNNING,  # it transfers output
    7: RUNNING,  # it is suspended
}
"""JobStatus -> code."""

_WITHOUT_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid, local."""


@dataclass(frozen=True)
class Headroom:
    """What a job's group may use, and uses."""

    group: str
    """Configured group, or ``other``."""
    error: Optional[GroupError] = None
    """None of ``other``, and where the pool did not answer in full."""
    quotas: tuple[Group, ...] = ()
    """HTCondor's accounting groups that the job counts for, the outermost first."""
    problem: Optional[str] = None
    """Why the error is not known."""


def state_of(status: int, universe: int) -> Optional[str]:
    """Code of `job_reasons.VERDICTS` by what the schedd says; None of a job that waits for a slot."""
    code = _OF_STATUS.get(status)
    return NO_SLOT if code is None and universe in _WITHOUT_SLOT else code


def verdict_code(state: Optional[str], verdict: Optional[Verdict]) -> str:
    """Code of the whole: the job's state, if it does not wait, or what the slots make of it."""
    if state is not None:
        return state
    return NOT_EVALUATED if verdict is None else verdict.code


def quotas_of(accounting_group: Optional[str], groups: Iterable[Group]) -> tuple[Group, ...]:
    """Those of HTCondor's accounting groups that a job of ``accounting_group`` counts for, the outermost first."""
    name = (accounting_group or "").lower()
    above = [
        group
        for group in groups
        if name == group.name.lower() or name.startswith(f"{group.name.lower()}.")
    ]
    return tuple(sorted(above, key=lambda group: len(group.name)))
