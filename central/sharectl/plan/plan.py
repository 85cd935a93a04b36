"""From errors to targets: groups to help and to hold back, and nodes (seed 004, ideas 2 to 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp, fsum, inf
from typing import Optional

from sharectl.control.steering import SEED, SteeringConfig, steer
from sharectl.model import GroupControl, LimitNote, Plan, PlanLimits, Snapshot, Standing, Target
from sharectl.plan.blocks import (
    NO_BLOCKS,
    BlockLook,
    BlockMemory,
    IdleCores,
    idle_cores,
)
from sharectl.plan.free_blocks import look_at_blocks
from sharectl.plan.limits import (
    deadband_hs06,
    dwelling,
    limited,
    rooms_for_targets,
    standing_after,
    with_jobs,
)
from sharectl.plan.nodes import ALL_NODES, Controlled, left_out, never_steered
from sharectl.plan.records import NodeRecord, node_records
from sharectl.plan.settings import OBEY_SECONDS, GiveUp
from sharectl.plan.strategies import Situation, Wanted, fulfilled, many_pairs, one_pair
from sharectl.plan.waits import NOTHING_KNOWN, NOTHING_SEEN, NodeCores, RunTimes, age_bin, nodes_of
from sharectl.shares.demand import multicore_pending
from sharectl.shares.groups import controls_with_subgroups, in_order

OBSERVED = "observe"
"""Reason of the plan that withdraws targets once the configuration says `mode: observe`."""
FOREIGN = "foreign"
"""Reason for no plan while another installation publishes."""

REASONS = {
    "targets": "a group over its share gives way to one under it",
    "no-group-over": "no group is over its share by more than the deadband",
    "no-group-under": "no group under its share has waiting jobs that a target could help",
    "no-node": "the group over its share holds no block of cores on a controlled node",
    "no-fit": "no controlled node could give any waiting job its cores and memory",
    "closed": "the nodes that could give cores are closed to the waiting jobs",
    "error-below-node": "the smaller error or output is not worth one node's block of cores",
    "not-worth": "cores would idle longer than the moved power is worth",
    "given-up": "no job came to free blocks of cores: one is tried now and then",
    "no-room": "the limits leave no room for a target",
    "withdrawn": "withdrawn: the pool did not answer completely, or had no pledges",
    "disabled": "withdrawn: sharectl is disabled",
    OBSERVED: "withdrawn: mode: observe",
    FOREIGN: "not published: a valid plan of another sharectl stands where this one publishes",
}
"""Why a plan has targets, or has none."""

NODE_REASONS = {
    "target": "the errors call for its target",
    "kept": "its target goes on, and moving it would gain too little",
    "dwell": "its target is younger than control.dwell_seconds",
    "limit": "a limit keeps it from what the errors call for",
    "given-up": "no job came to its free cores: it is left alone for a time",
    "probing": "jobs must first take blocks of cores that are open or tried",
    "released": "its target did its work, or its group needs it no more",
    "not-needed": "other nodes are enough, or give their cores sooner",
    "no-fit": "no waiting job would find its cores and memory there",
    "multicore-only": "it takes only multicore jobs (t1_MulticoreOnly), and single-core jobs wait",
    "no-block": "no group over its share holds cores there that a waiting job could use",
    "no-call": "the errors call for no target",
    "uncontrolled": "it is not under control (nodes.controlled)",
    "reserved": "it is reserved (nodes.reserved)",
    "no-snippet": "the execute point's snippet is not in force there",
    "switched-off": "sharectl is switched off there (SHARECTL_ENABLED, or the file `disabled`)",
    "no-partitionable-slot": "it has no partitionable slot",
    "stale": "job_ctl has not run there lately: START ignores targets",
    "out-of-range": "it has more than 100,000 cores, and gets no target: correct NUM_CPUS there",
    "several-slots": "its partitionable slots would each compare their own cores with the cap",
    "draining": "it is being drained",
    "closed": "its START, or the jobs' Requirements, keep out all jobs that wait for help",
    "absent": "the collector does not know it any more",
    "not-obeying": "it has not acted on its target in time",
    "refused": "it refuses what is published",
}
"""Why a node has the target that it has, or has none."""


KEPT_BLOCKS_RATIO = 0.1
"""Part of its setpoint by which a group may be over it while grace keeps blocks for its jobs.

A block that single-core jobs break up costs idle cores when its group comes back, so groups about
their share keep theirs. A group that is far over takes the blocks that others leave: with 0.8 `cms`
of `infn-t1` passes its share by a quarter where `atlas` turns to single-core jobs.
"""

FORESEEN_SECONDS = 2700.0
"""Time within which power that groups will give up counts already: about as long as a block takes.

A group whose jobs of a size wait no more loses the power of those that run, job by job. Blocks that
begin when the error is there come an hour late. Half and twice the time make the shortfall larger.
"""


@dataclass(frozen=True)
class State:
    """State from one cycle to the next."""

    sequence: int = 0
    """Number of the last plan that was published."""
    nodes: int = 0
    """Nodes of the last complete snapshot."""
    schedds: int = 0
    standing: tuple[Standing, ...] = ()
    """Targets of the last plan, by node."""
    standing_until: int = 0
    """Unix seconds at which that plan runs out."""
    observed: bool = False
    """True if that plan was not published, because of ``mode: observe``."""
    withdrawn: bool = False
    """True if every publisher has taken a plan without targets since sharectl was disabled."""
    uncertain_nodes: int = 0
    """Nodes that a publication was to change that began and may not have ended."""
    unaudited: Optional[tuple[Standing, ...]] = None
    """Targets in the audit, if it has not recorded the last plan; else None."""
    controllers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Group -> its controller's state."""
    unheeding: Mapping[str, int] = field(default_factory=dict)
    """Node that has not acted on its target in time -> Unix seconds at which that was seen."""
    blocks: BlockMemory = NO_BLOCKS
    foreign_sequence: int = 0
    """Sequence of another installation's plan that was left in its place; 0 if there was none."""

    @property
    def placed(self) -> tuple[Standing, ...]:
        """Targets that were published last."""
        return () if self.observed else self.standing

    def standing_at(self, now: int) -> tuple[Standing, ...]:
        """Targets that nodes may act on at Unix time ``now``."""
        return self.placed if now < self.standing_until else ()


@dataclass(frozen=True)
class PlanConfig:
    """Settings of plans."""

    pledge_hs06: Mapping[str, float]
    """Group without subgroups, which targets may name -> pledge, HS06."""
    limits: PlanLimits
    validity_seconds: int
    """Time for which nodes act on a plan that is not renewed."""
    controlled: Controlled = ALL_NODES
    steering: SteeringConfig = SEED
    own_hs06: Mapping[str, float] = field(default_factory=dict)
    """Group with subgroups -> power of its pledge that these leave to its own jobs, HS06."""
    strategy: str = "many"
    """One of `STRATEGIES`."""
    obey_seconds: int = OBEY_SECONDS
    """With `many` a node that ignores its target for longer loses it."""
    give_up: Optional[GiveUp] = None
    """When blocks of cores that no job takes are given back; None for never."""
    observes: bool = False
    """True if plans are not published, and count as if they were: ``mode: observe``."""

    @property
    def shared_hs06(self) -> dict[str, float]:
        """Group of any level -> pledge that is its alone, HS06; each before those within it.

        Errors are made of these.
        """
        own = {**self.pledge_hs06, **self.own_hs06}
        return {name: own[name] for name in in_order(tuple(self.pledge_hs06)) if name in own}


@dataclass(frozen=True)
class Decision:
    """Decision of one cycle, with its reasons."""

    plan: Plan
    state: State
    """State to keep once the plan is published."""
    groups: tuple[GroupControl, ...]
    """Outcome of each group's controller, in the order of the pledges."""
    idle: IdleCores
    """Idle cores that targets and grace kept from jobs when the pool was looked at."""
    before: State = field(repr=False)
    pool: Mapping[str, NodeCores] = field(repr=False)
    """Every node of the snapshot."""
    situation: Situation = field(repr=False)
    wanted: Wanted = field(repr=False)
    ruled_out: Mapping[str, str] = field(repr=False)
    """Node that no strategy gives a target -> one of `NODE_REASONS`."""

    @cached_property
    def nodes(self) -> tuple[NodeRecord, ...]:
        """Every node of the snapshot, and absent ones that had a target; by name.

        They are made when somebody wants them, which the twin does not.
        """
        targets = self.plan.targets
        reasons = {**_node_reasons(self.situation, self.wanted, targets), **self.ruled_out}
        return node_records(self.pool, targets, reasons, self.wanted.waits)


def decide(
    config: PlanConfig,
    state: State,
    snapshot: Snapshot,
    now: int,
    run_times: RunTimes = NOTHING_KNOWN,
) -> Decision:
    """Decision at Unix time ``now`` on a complete snapshot with rows of `as_kept`."""
    before = state
    # No node has a target that was only planned: none disobeys it, or keeps cores free for it.
    acting = state.standing_at(now)
    if config.observes:
        state = replace(state, observed=False, uncertain_nodes=0)
    pledges = config.shared_hs06
    deadband = deadband_hs06(config.limits, snapshot.nodes)
    soon = foreseen_hs06(pledges, snapshot, run_times)
    controls = steer(pledges, deadband, config.steering, state.controllers, snapshot, now, soon)
    groups = controls_with_subgroups(controls, config.own_hs06)
    nodes = nodes_of(snapshot)
    standing = with_jobs(state.standing_at(now), nodes)
    # The seed's method steers every node that it is told to.
    is_pair = config.strategy == "pair"
    ruled_out, unheeding = never_steered(nodes, config.controlled), dict[str, int]()
    if not is_pair:
        ruled_out, unheeding = left_out(
            ruled_out, snapshot, acting, state.unheeding, now, config.obey_seconds
        )
    look = BlockLook()
    if config.give_up is not None:
        blocks = state.blocks if acting or not state.standing else replace(state.blocks, open=())
        look = look_at_blocks(blocks, acting, snapshot, nodes, now, config.give_up, run_times)
    free = {name: here for name, here in nodes.items() if name not in ruled_out}
    may_stay = _may_stay(config, standing, free, look)
    situation = Situation(
        groups=groups,
        snapshot=snapshot,
        nodes=free,
        standing=may_stay,
        young={target.node for target in dwelling(may_stay, config.limits, now)},
        room=min(rooms_for_targets(config.limits, len(nodes)).values(), default=inf),
        run_times=run_times,
        block_cores=config.limits.multicore_cores,
        look=look,
    )
    wanted = one_pair(situation) if is_pair else many_pairs(situation)
    targets, notes = limited(
        standing, may_stay, wanted.targets, config.limits, now, len(nodes), state.uncertain_nodes
    )
    # Nodes that stay without a target because no job came to their cores.
    given_up = look.given_up_nodes - {target.node for target in targets}
    ruled_out.update(dict.fromkeys(given_up & free.keys(), "given-up"))
    ruled_out.update((s.target.node, "absent") for s in standing if s.target.node not in nodes)
    probing = sum(reason == "probing" for reason in wanted.reasons.values())
    notes += (LimitNote("probing", probing),) if probing else ()
    if given_up or look.left_alone_kinds:
        notes += (LimitNote("given-up", max(1, len(given_up))),)
    held_back, helped = wanted.pair or (None, None)
    reason = "no-room" if wanted.targets and not targets else wanted.reason
    plan = replace(
        withdrawal(config, state, now, reason)[0],
        targets=targets,
        held_back=held_back,
        helped=helped,
        limits=notes,
        multicore_pending=multicore_pending(
            snapshot, _far_over(groups), look.failing_kinds | situation.closed_kinds
        ),
    )
    unfinished = [s for s in standing if s.target.node not in nodes or not fulfilled(s, nodes)]
    after = replace(
        published(state, plan, now),
        standing=with_jobs(standing_after(unfinished, plan.targets, now), nodes),
        controllers={control.group: control.state for control in groups if control.state},
        unheeding=unheeding,
        blocks=look.memory if config.give_up is not None else state.blocks,
        observed=config.observes,
    )
    idle = idle_cores(nodes.values(), acting)
    return Decision(plan, after, groups, idle, before, nodes, situation, wanted, ruled_out)


def _may_stay(
    config: PlanConfig,
    standing: Iterable[Standing],
    free: Mapping[str, NodeCores],
    look: BlockLook,
) -> list[Standing]:
    """Targets of groups with a share, on nodes that may have one and whose block may stay."""
    return [
        stood
        for stood in standing
        if config.pledge_hs06.keys() >= {stood.target.held_back, stood.target.helped}
        and stood.target.node in free
        and stood.target not in look.given_back
        and free[stood.target.node].node.admits(stood.target.kind)
    ]


def foreseen_hs06(
    pledge_hs06: Mapping[str, float], snapshot: Snapshot, run_times: RunTimes
) -> dict[str, float]:
    """Group -> change of its power that is foreseen, HS06; groups without one are left out.

    Groups whose single-core jobs wait take what others give up, in proportion to their pledges.
    """
    kinds = {row.kind for row in snapshot.pending if row.jobs > 0 and row.placeable}
    waiting = {group for group, _ in kinds} & pledge_hs06.keys()
    lost_hs06: defaultdict[str, list[float]] = defaultdict(list)
    for _, group, cores, hs06_per_core, seconds, jobs, _ in snapshot.running:
        if group in waiting and (group, cores) not in kinds:
            mean_seconds = run_times.get(group, NOTHING_SEEN).by_bin[age_bin(seconds)]
            ends_ratio = 1 - exp(-FORESEEN_SECONDS / mean_seconds)
            lost_hs06[group].append(jobs * cores * hs06_per_core * ends_ratio)
    change_hs06 = {group: -fsum(lost) for group, lost in lost_hs06.items()}
    given_hs06 = -fsum(change_hs06.values())
    takers = {group: hs06 for group, hs06 in pledge_hs06.items() if (group, 1) in kinds}
    whole = fsum(takers.values())
    if given_hs06 and whole:
        for group, hs06 in takers.items():
            change_hs06[group] = change_hs06.get(group, 0.0) + given_hs06 * hs06 / whole
    return change_hs06


def _far_over(groups: Iterable[GroupControl]) -> set[str]:
    """Groups so far over their setpoint that no cores are kept for their multicore jobs."""
    return {
        control.group
        for control in groups
        for error_hs06 in [control.control_error_hs06]
        for setpoint_hs06 in [control.error.usage.power_hs06 - error_hs06]
        if error_hs06 > max(0.0, KEPT_BLOCKS_RATIO * setpoint_hs06)
    }


def _node_reasons(
    situation: Situation, wanted: Wanted, targets: Iterable[Target]
) -> dict[str, str]:
    """Node that may have targets -> why it has its target, or none."""
    stands = {target.node: target for target in targets}
    called = {target.node: target for target in wanted.targets}
    reasons = dict.fromkeys(situation.nodes, "not-needed" if called else "no-call")
    reasons.update(dict.fromkeys(stands, "target"))
    by_strategy = wanted.node_reasons(situation)
    reasons.update((name, by_strategy[name]) for name in reasons.keys() & by_strategy.keys())
    for name, reason in reasons.items():
        if stands.get(name) != called.get(name):
            reasons[name] = "dwell" if name in situation.young and name in stands else "limit"
        elif reason == "not-needed" and called and not stands:
            reasons[name] = "limit"
    return reasons


def withdrawal(
    config: PlanConfig, state: State, now: int, reason: str = "withdrawn"
) -> tuple[Plan, State]:
    """Plan without targets, whatever stands, for when none may stand: ``reason`` says why."""
    plan = Plan(
        # At least the time itself: a lost state file does not send the sequence backwards.
        sequence=max(state.sequence + 1, now),
        generated_at=now,
        valid_until=now + config.validity_seconds,
        groups=tuple(config.shared_hs06),
        targets=(),
        reason=reason,
    )
    # Targets that end because all are withdrawn tell nothing of the jobs.
    return plan, published(replace(state, blocks=replace(state.blocks, open=())), plan, now)


def published(state: State, plan: Plan, now: int) -> State:
    """State once ``plan`` is published at Unix time ``now``."""
    return replace(
        state,
        sequence=plan.sequence,
        standing=standing_after(state.standing_at(now), plan.targets, now),
        standing_until=plan.valid_until,
        withdrawn=False,
        observed=False,
        foreign_sequence=0,
    )
