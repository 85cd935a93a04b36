"""Records of a cycle and its nodes, for the ledger, `explain` and `report`."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import groupby
from math import floor, log10
from operator import itemgetter
from typing import NamedTuple, Optional

from sharectl.model import (
    ClosedTo,
    GroupControl,
    JobWaits,
    Kind,
    LimitNote,
    Node,
    PendingJobs,
    Plan,
    RunningJobs,
    Snapshot,
    Source,
    Standing,
    Target,
)
from sharectl.plan.blocks import NO_BLOCKS, BlockMemory
from sharectl.plan.nodes import DEAF, OUT_OF_RANGE
from sharectl.plan.waits import EDGES_SECONDS, NO_WAIT, BinRow, NodeCores, Wait, age_bin
from sharectl.shares.groups import is_within


class HeldJobs(NamedTuple):
    """Jobs of one group, size and bin of age on one node, as of `as_kept`."""

    group: str
    cores: int
    jobs: int
    seconds: int
    """Mean time that they have run, rounded to two digits."""
    memory_mib: int = 0
    """Mean of the memory that each holds; 0 if unknown."""


def by_size(held: Iterable[HeldJobs]) -> list[HeldJobs]:
    """Jobs of one node, one row for each group and size."""
    alike: defaultdict[Kind, list[HeldJobs]] = defaultdict(list)
    for jobs in held:
        alike[jobs.group, jobs.cores].append(jobs)
    rows = []
    for kind, same in sorted(alike.items()):
        number = sum(jobs.jobs for jobs in same)
        telling = sum(jobs.jobs for jobs in same if jobs.memory_mib)
        seconds = sum(jobs.jobs * jobs.seconds for jobs in same) // max(1, number)
        mib = sum(jobs.jobs * jobs.memory_mib for jobs in same) // max(1, telling)
        rows.append(HeldJobs(*kind, number, rounded(seconds), mib))
    return rows


class TargetNodes(NamedTuple):
    """Number of nodes on which a target holds back or helps a group, or one within it."""

    held_back: int
    helped: int


class GroupReason(NamedTuple):
    """Outcome of a cycle for one group."""

    code: str
    """One of `GROUP_REASONS`."""
    closed_nodes: int
    """Nodes whose target names neither the group nor one within it: none of its jobs starts."""


@dataclass(frozen=True)
class NodeRecord:
    """Jobs, target and reason of one node."""

    node: str
    cores: int
    hs06_per_core: float
    controlled: bool
    held: tuple[HeldJobs, ...] = ()
    target: Optional[Target] = None
    """Target after the cycle."""
    reason: Optional[str] = None
    """One of `sharectl.plan.plan.NODE_REASONS`."""
    wait_seconds: float = 0.0
    """Expected time until the target's cores are free; the ledger keeps two digits."""
    idle_core_seconds: float = 0.0
    """Cores expected to stand idle meanwhile, times seconds; the ledger keeps two digits."""
    memory_mib: int = 0
    reserved: bool = False
    draining: bool = False
    multicore_only: bool = False
    """True if its START takes no single-core job (t1_MulticoreOnly)."""
    hot: bool = False
    """True if its START takes no job (t1_overheat)."""
    closed: tuple[ClosedTo, ...] = ()
    """Waiting jobs that it refuses for a reason that is neither a resource nor sharectl's."""
    obeyed_sequence: Optional[int] = None
    """As of `sharectl.model.Node`."""

    @property
    def idle_cores(self) -> int:
        """Cores that no job holds."""
        return max(0, self.cores - sum(held.jobs * held.cores for held in self.held))


@dataclass(frozen=True)
class Basis:
    """Everything beside nodes and configuration that a decision was made from."""

    standing: tuple[Standing, ...] = ()
    """This and the next: as of `sharectl.plan.plan.State`, before the cycle."""
    standing_until: int = 0
    observed: bool = False
    uncertain_nodes: int = 0
    controllers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unheeding: Mapping[str, int] = field(default_factory=dict)
    blocks: BlockMemory = NO_BLOCKS
    run_times: Mapping[str, tuple[BinRow, ...]] = field(default_factory=dict)
    """Group -> its life table, as known then."""


OF_STATE = tuple(item.name for item in fields(Basis) if item.name != "run_times")
"""Fields of `sharectl.plan.plan.State` that a `Basis` has."""


@dataclass(frozen=True)
class CycleRecord:
    """One cycle."""

    taken_at: int
    seconds: float
    """Duration."""
    complete: bool
    sources: tuple[Source, ...] = ()
    groups: tuple[GroupControl, ...] = ()
    """Empty if it was not complete."""
    pending: tuple[PendingJobs, ...] = ()
    """Jobs of ``groups``, of none within these, as of `sharectl.shares.demand.pending_alike`."""
    waits: tuple[JobWaits, ...] = ()
    """Waiting times of jobs of ``groups``, by group and cores, where known."""
    cores_by_size: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Group -> cores of a job -> cores that its jobs of that size hold."""
    nodes: tuple[NodeRecord, ...] = ()
    basis: Optional[Basis] = None
    """None where nodes are not known; kept for as long as these."""
    sequence: Optional[int] = None
    """Of the plan that was published; None if none was."""
    strategy: str = "pair"
    setpoint: str = "in_use"
    """One of `sharectl.control.setpoints.SETPOINTS`."""
    reason: Optional[str] = None
    """Of the plan, one of `sharectl.plan.plan.REASONS`."""
    limits: tuple[LimitNote, ...] = ()
    published: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    configuration: str = ""
    """First 12 digits of the SHA-256 of all settings that decide."""
    number: int = 0
    """Number in the ledger; 0 if it has not been kept yet."""
    present_hs06: Optional[float] = None
    """Power that the groups could have, as of `sharectl.shares.errors`; None if unknown."""
    shortfall_hs06: Optional[float] = None
    """Power that is due to groups and that they do not use; None if unknown."""
    idle_cores: int = 0
    """Cores of all nodes that no job holds."""
    idle_target_cores: Optional[int] = None
    """Idle cores that targets kept from jobs; None if unknown."""
    idle_grace_cores: Optional[int] = None
    """Idle cores that grace kept from single-core jobs without a target; None if unknown."""
    target_nodes: Mapping[str, TargetNodes] = field(default_factory=dict)
    """Group -> nodes with a target for it after the cycle, where known; none of one that observed.
    """
    group_reasons: Mapping[str, GroupReason] = field(default_factory=dict)
    """Group -> why it is helped, held back or neither."""
    blocks: BlockMemory = NO_BLOCKS
    """Blocks of cores that stood free at its look, and those that no job took."""
    observed: bool = False
    """True if it only planned (``mode: observe``): its targets are those that would stand."""

    @property
    def steered_nodes(self) -> int:
        """Number of nodes under a target that was published."""
        return 0 if self.observed else sum(node.target is not None for node in self.nodes)


_RECORDED = {item.name for item in fields(NodeRecord)}
OF_NODE = tuple(item.name for item in fields(Node) if item.name in _RECORDED)
"""Fields of `sharectl.model.Node` that records keep."""


def as_kept(snapshot: Snapshot, standing: Iterable[Standing]) -> Snapshot:
    """Snapshot whose rows of jobs are those that records keep: decisions are made on these.

    Jobs alike in node, group, cores, power and bin of age are one row. Jobs of a group that a
    target helps there keep their starts, which tell if a block was taken.
    """
    helped = {(stood.target.node, stood.target.helped) for stood in standing}
    rows = []
    # Node by node: sums of all nodes at once would take as much memory as the snapshot.
    for _, running in groupby(sorted(snapshot.running, key=itemgetter(0)), itemgetter(0)):
        alike: dict[tuple[str, str, int, float, int, bool, int], list[int]] = {}
        for node, group, cores, power, seconds, jobs, memory_mib in running:
            start = seconds if (node, group) in helped else -1
            # `age_bin`, a hundred thousand times.
            age = bisect_right(EDGES_SECONDS, seconds, 1) - 1
            kind = (node, group, cores, power, age, memory_mib > 0, start)
            sums = alike.setdefault(kind, [0, 0, 0])
            sums[0] += jobs
            sums[1] += jobs * seconds
            sums[2] += jobs * memory_mib
        for (node, group, cores, power, age, _, start), (jobs, seconds, mib) in alike.items():
            mean = kept_age(seconds // max(1, jobs), age) if start < 0 else start
            rows.append(RunningJobs(node, group, cores, power, mean, jobs, -(-mib // max(1, jobs))))
    return replace(snapshot, running=tuple(rows))


@lru_cache(maxsize=65_536)
def kept_age(seconds: int, number: int) -> int:
    """Age to two digits, or the begin of the bin of that number if that is another bin's."""
    mean = rounded(seconds)
    return mean if age_bin(mean) == number else EDGES_SECONDS[number]


def node_records(
    nodes: Mapping[str, NodeCores],
    targets: Iterable[Target],
    reasons: Mapping[str, str],
    waits: Mapping[Target, Wait],
) -> tuple[NodeRecord, ...]:
    """A record for every node of the snapshot and every node with a target or a reason, by name."""
    stands = {target.node: target for target in targets}
    records = []
    for name in sorted({*nodes, *stands, *reasons}):
        here = nodes.get(name) or NodeCores(Node(name, name, 0, 0.0, controlled=False))
        target = stands.get(name)
        wait = waits.get(target, NO_WAIT) if target else NO_WAIT
        held = sorted(
            HeldJobs(group, cores, jobs, seconds, memory_mib)
            for _, group, cores, _, seconds, jobs, memory_mib in here.running
        )
        record = NodeRecord(
            node=name,
            held=tuple(held),
            target=target,
            reason=reasons.get(name),
            wait_seconds=wait.seconds,
            idle_core_seconds=wait.idle_core_seconds,
            **{field: getattr(here.node, field) for field in OF_NODE},
        )
        records.append(record)
    return tuple(records)


@lru_cache(maxsize=65_536)
def rounded(number: int) -> int:
    """``number`` to two digits: the same is kept of what is nearly the same."""
    return int(round(number, 1 - floor(log10(number)))) if number >= 1 else 0


GROUP_REASONS: Mapping[str, str] = {
    "helped": "targets let its jobs in where another group is held back",
    "held-back": "targets hold it back to a cap",
    "helped-and-held-back": "some targets help it and others hold it back, or groups within it",
    "no-plan": "targets were withdrawn, or no plan is published",
    "no-output": "its controller asks for nothing: it is at its share, or within the deadband",
    "no-demand": "under its share, without waiting jobs",
    "not-placeable": "under its share, and no node could run its waiting jobs",
    "no-giver": "under its share, and no group is over its share",
    "no-taker": "over its share, and no group under its share has jobs that a target could help",
    "no-cores": "over its share, without cores on nodes that may have targets",
    "no-fit": "its waiting jobs fit on no node that may have a target",
    "closed": "under its share, and all nodes that may have targets are closed to its waiting jobs",
    "given-up": "its jobs did not come to free cores: one block is tried now and then",
    "probing": "its jobs must first take blocks of cores that are open or tried",
    "too-small": "its error, or the other group's, is not worth a target's cores",
    "not-worth": "cores would idle longer than the moved power is worth",
    "limited": "a limit leaves no room for its targets",
    "not-furthest": "control.strategy is pair, and another group is further off",
    "others-first": "targets for other groups are worth more, or use up the power",
}
"""Why a group is helped, held back or neither."""

_BY_PLAN = {
    "withdrawn": "no-plan",
    "disabled": "no-plan",
    "foreign": "no-plan",
    "no-fit": "no-fit",
    "no-node": "no-fit",
    "closed": "no-fit",
    "error-below-node": "too-small",
    "not-worth": "not-worth",
    "no-room": "limited",
}
"""Reason of a plan without targets -> reason of every group that it could have been for."""

_ROOM = frozenset({"max-nodes", "max-target-share", "max-changed-nodes"})
_LEFT_OUT = frozenset(
    {"uncontrolled", "reserved", "several-slots", "draining", "absent", "not-obeying", "refused"}
).union(DEAF, {OUT_OF_RANGE})
"""Reasons of nodes that may have no target, whoever waits."""


def group_reasons(
    groups: Iterable[GroupControl],
    plan: Optional[Plan],
    strategy: str,
    nodes: Collection[NodeRecord],
    pending: Iterable[PendingJobs],
) -> dict[str, GroupReason]:
    """Group -> its reason after a cycle; ``plan`` is None while sharectl is disabled."""
    targets = [node.target for node in nodes if node.target is not None]
    able = [node for node in nodes if node.reason not in _LEFT_OUT]
    held = {jobs.group for node in able if node.reason != "closed" for jobs in node.held}
    closed = Counter(
        (jobs.group, cores) for node in able for jobs in node.closed for cores in jobs.sizes
    )
    node_reasons = {node.reason for node in nodes}
    plan_reason, limits = (plan.reason, plan.limits) if plan else ("disabled", ())
    waiting = [jobs for jobs in pending if jobs.jobs > 0]
    reasons = {}
    for control in groups:
        group = control.group
        under, over = control.output_hs06 < 0, control.output_hs06 > 0
        helping = [target for target in targets if is_within(target.helped, group)]
        holding = [target for target in targets if is_within(target.held_back, group)]
        own = [jobs for jobs in waiting if is_within(jobs.group, group)]
        kinds = {jobs.kind for jobs in own if jobs.placeable}
        applies = (
            ("helped-and-held-back", helping and holding),
            ("helped", helping),
            ("held-back", holding),
            ("no-plan", _BY_PLAN.get(plan_reason) == "no-plan"),
            ("no-output", not (under or over)),
            ("no-demand", under and not own),
            ("not-placeable", under and not kinds),
            ("closed", under and able and all(closed[kind] == len(able) for kind in kinds)),
            ("no-giver", under and plan_reason == "no-group-over"),
            ("no-taker", over and plan_reason in ("no-group-under", "given-up", "closed")),
            ("no-cores", over and not any(is_within(name, group) for name in held)),
            ("given-up", under and "given-up" in (plan_reason, *node_reasons)),
            ("probing", under and "probing" in node_reasons),
            ("no-taker", over and _BY_PLAN.get(plan_reason) == "no-fit"),
            (_BY_PLAN.get(plan_reason, ""), plan_reason in _BY_PLAN),
            ("not-furthest", strategy == "pair"),
            ("limited", any(note.code in _ROOM for note in limits)),
            ("others-first", True),
        )
        reasons[group] = GroupReason(
            next(code for code, does in applies if does),
            len(targets) - len({target.node for target in (*helping, *holding)}),
        )
    return reasons
