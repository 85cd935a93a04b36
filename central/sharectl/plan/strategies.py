"""Targets that the controllers' outputs call for, by both strategies.

``pair`` is the original method: the group furthest over its share gives to the one furthest under.
With ``many`` each group over its share can give to each under it, a node to one pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from math import ceil, fsum, inf
from typing import Optional

from sharectl.model import GroupControl, Kind, Snapshot, Standing, Target
from sharectl.plan import candidates
from sharectl.plan.blocks import BlockLook
from sharectl.plan.choices import (
    DENSITY,
    ROUNDING_HS06,
    VALUE,
    Budgets,
    Choice,
    Option,
    OptionSet,
    Queue,
    best,
    filled,
    fitting_memory,
    least_hs06,
    most_alike,
)
from sharectl.plan.rounds import put_off
from sharectl.plan.waits import NodeCores, RunTimes, Wait, leaving_for, wait_for_cores

KEEP_GAIN_RATIO = 0.25
"""A target stays unless another one is worth more by this part.

0 lowers the shortfall of mixed sizes by 0.3 points, and 0.3 points more cores idle; otherwise 0 and
a half are within the spread (docs/measurements.md).
"""


@dataclass(frozen=True)
class Situation:
    """Input of a strategy."""

    groups: Sequence[GroupControl]
    snapshot: Snapshot
    nodes: Mapping[str, NodeCores]
    """Nodes that may have targets."""
    standing: Sequence[Standing]
    """Targets that stand on them, of configured groups; by node."""
    young: AbstractSet[str]
    """Nodes whose target stays whatever is called for."""
    room: float
    """Most nodes under targets."""
    run_times: RunTimes
    block_cores: int
    """Most cores that a node is to give to single-core jobs by one target."""
    look: BlockLook
    """Blocks of cores that stand free."""

    @cached_property
    def excess_hs06(self) -> dict[str, float]:
        """Group -> power to take from it."""
        return {row.group: row.output_hs06 for row in self.groups if row.output_hs06 > 0}

    @cached_property
    def deficit_hs06(self) -> dict[str, float]:
        """Group -> power to give to it."""
        outputs = {row.group: -row.output_hs06 for row in self.groups if row.output_hs06 < 0}
        return {**self.unfinished_hs06, **outputs}

    @cached_property
    def unfinished_hs06(self) -> dict[str, float]:
        """Group within the deadband -> power that it lacks, if a target for a block of it stands.

        Cores that stand free for the block lower the power in use, and the error with it.
        """
        helped = {old.target.helped for old in self.standing if old.target.request_cores > 1}
        return {
            row.group: -row.control_error_hs06
            for row in self.groups
            if row.group in helped and "deadband" in row.acted and row.control_error_hs06 < 0
        }

    @cached_property
    def demand(self) -> dict[Kind, Queue]:
        """Jobs that wait, of the groups to help."""
        return candidates.waiting_jobs(self.snapshot.pending, self.deficit_hs06)

    @property
    def waiting(self) -> dict[Kind, Queue]:
        """Part of the demand for which targets may be made."""
        alone = self.look.left_alone_kinds
        return {kind: jobs for kind, jobs in self.demand.items() if kind not in alone}

    @cached_property
    def fits(self) -> dict[str, str]:
        """Node -> the best that waiting jobs would find there, such as `FITS`."""
        waiting = self.waiting
        lacking = dict.fromkeys((group for group, _ in waiting), inf)
        sizes_at = candidates.sizes_on(waiting, lacking)
        every = candidates.sizes_of(waiting, lacking)
        fits = {}
        for name, here in self.nodes.items():
            sizes = sizes_at(here.node)
            fit = _fit(here, self.excess_hs06.keys(), sizes or every)
            tells = sizes or fit == "multicore-only"
            fits[name] = fit if tells else CLOSED if fit == FITS else SHUT
        return fits

    @cached_property
    def closed_kinds(self) -> frozenset[Kind]:
        """Kinds of jobs to which every node is closed."""
        closed = [here.node.closed_kinds for here in self.nodes.values() if here.node.closed]
        everywhere = bool(closed) and len(closed) == len(self.nodes)
        return frozenset.intersection(*closed) if everywhere else frozenset()

    def closed_places(self, kinds: AbstractSet[Kind]) -> frozenset[tuple[str, int, str]]:
        """Groups and sizes of ``kinds``, and nodes that are closed to them."""
        return frozenset(
            (*kind, name)
            for name, here in self.nodes.items()
            if here.node.closed
            for kind in here.node.closed_kinds & kinds
        )


FITS, HELD, SMALL = "fits", "held", "small"
"""A group over its share holds there what a waiting job needs; its cores, and not the memory; no
waiting job would fit if the node were empty."""
CLOSED, SHUT = "closed", "shut"
"""Of a node that is closed to all waiting jobs: it would fit, or it would not fit either."""


@dataclass(frozen=True)
class Wanted:
    """Targets that the controllers' outputs call for, before limits act."""

    reason: str
    """One of `sharectl.plan.plan.REASONS`."""
    targets: tuple[Target, ...] = ()
    """At most one a node, the most useful first."""
    pair: Optional[tuple[str, str]] = None
    """Groups held back and helped, if there is one such pair."""
    waits: Mapping[Target, Wait] = field(default_factory=dict)
    """Costs of targets that are called for or stand, where the strategy estimates them."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Node that was chosen or ruled out -> one of `sharectl.plan.plan.NODE_REASONS`."""
    looks: bool = False
    """True if all other nodes have a reason by `Situation.fits`."""

    def node_reasons(self, situation: Situation) -> dict[str, str]:
        """Node -> one of `sharectl.plan.plan.NODE_REASONS`, where the strategy has one."""
        codes = {FITS: "not-needed" if self.targets else "no-call"}
        codes |= {HELD: "no-fit", SMALL: "no-fit", SHUT: "closed"}
        fits = situation.fits if self.looks else {}
        return {**{name: codes.get(fit, fit) for name, fit in fits.items()}, **self.reasons}


def one_pair(situation: Situation) -> Wanted:
    """Targets of the original method, beside those on young nodes, which stay anyway."""
    block, look, nodes = situation.block_cores, situation.look, situation.nodes
    givers = [control for control in situation.groups if control.output_hs06 > 0]
    if not givers:
        return Wanted("no-group-over")
    over = min(givers, key=lambda control: (-control.output_hs06, control.group))
    helpable: dict[Kind, GroupControl] = {}
    for control in situation.groups:
        sizes = [size for size in control.error.usage.demand_by_cores if size <= block]
        if control.output_hs06 < 0 and sizes:
            helpable[control.group, max(sizes)] = control
    tried = helpable.keys() - look.left_alone_kinds
    kinds = tried - situation.closed_kinds
    if not kinds:
        reason = "closed" if tried else "given-up" if helpable else "no-group-under"
        return Wanted(reason, reasons=dict.fromkeys(nodes if tried else (), "closed"))
    kind = min(kinds, key=lambda kind: (helpable[kind].output_hs06, kind))
    under, request = helpable[kind], kind[1]
    pair = (over.group, under.group)
    held = {name: here.held_cores[over.group] for name, here in nodes.items()}
    alone = {node for *other, node in look.left_alone if tuple(other) == kind}
    closed = {name for *_, name in situation.closed_places({kind})}
    shut = dict.fromkeys(closed, "closed")
    able = sorted(
        (name for name, cores in held.items() if cores >= block and name not in alone | closed),
        key=lambda name: (-held[name], name),
    )
    if not able:
        none = "closed" if any(held[name] >= block for name in closed) else "no-node"
        return Wanted("given-up" if alone else none, pair=pair, reasons=shut)
    targets = [stood.target for stood in situation.standing]
    kept = [target for target in targets if target.node in situation.young]
    affordable = _affordable_nodes(able, over, under, request, situation, kept)
    stands = {target.node for target in targets if target.kind == kind}
    fresh = [node for node in affordable if node not in stands]
    most = look.most_new.get(kind)
    later = [] if most is None else fresh[ceil(most / (block // request)) :]
    chosen = {t.node for t in kept if (t.held_back, t.helped) == pair} | {*affordable} - {*later}
    if not chosen:
        if set(able) <= situation.young:
            return Wanted("no-room", pair=pair, reasons=shut)
        return Wanted("error-below-node", pair=pair, reasons=shut)
    return Wanted(
        "targets",
        tuple(
            Target(node, over.group, held[node] - block, under.group, request)
            for node in able
            if node in chosen
        ),
        pair,
        reasons={**shut, **dict.fromkeys(later, "probing")},
    )


def _affordable_nodes(
    able: Iterable[str],
    over: GroupControl,
    under: GroupControl,
    request: int,
    situation: Situation,
    kept: Sequence[Target],
) -> list[str]:
    """First nodes that pending jobs can use, removing together at most the smaller error.

    Power that the targets of ``kept`` are still to move is taken off first.
    """
    block = situation.block_cores
    nodes = situation.nodes
    power = {name: here.node.hs06_per_core for name, here in nodes.items()}
    due = {t: nodes[t.node].cores_above(t.held_back, t.cap_cores) for t in kept}
    taken_hs06 = fsum(power[t.node] * due[t] for t in kept if t.held_back == over.group)
    given_hs06 = fsum(power[t.node] * due[t] for t in kept if t.helped == under.group)
    awaited = sum(due[t] > 0 for t in kept if t.kind == (under.group, request))
    usable = ceil(under.error.usage.demand_by_cores[request] / (block // request)) - awaited
    budget_hs06 = min(over.output_hs06 - taken_hs06, -under.output_hs06 - given_hs06)
    occupied = {target.node for target in kept}
    chosen: list[str] = []
    for node in [name for name in able if name not in occupied][: max(0, usable)]:
        budget_hs06 -= block * power[node]
        if budget_hs06 < -ROUNDING_HS06:
            break
        chosen.append(node)
    return chosen


def many_pairs(situation: Situation) -> Wanted:
    """Targets that the controllers' outputs call for, the most useful first."""
    excess, deficit = situation.excess_hs06, situation.deficit_hs06
    waiting, look, nodes = situation.waiting, situation.look, situation.nodes
    ratio = candidates.single_core_ratio(deficit, waiting.keys() - situation.closed_kinds)
    standing = {old.target: _standing_option(old, situation, ratio) for old in situation.standing}
    waits = {target: option.wait for target, option in standing.items()}
    reasons = {target.node: "released" for target in standing}
    if not waiting or not (excess or standing):
        nobody = "no-group-under" if excess else "no-group-over"
        all_left_alone = excess and situation.demand and not waiting
        return Wanted("given-up" if all_left_alone else nobody, waits=waits, reasons=reasons)
    working = [standing[old.target] for old in situation.standing if not fulfilled(old, nodes)]
    apart = look.left_alone | situation.closed_places(waiting.keys())
    budgets = Budgets(excess, deficit, waiting, situation.room, apart)
    bounded = replace(budgets, waiting=_bounded(waiting, look, working))
    free = {name: here for name, here in nodes.items() if name not in situation.young}
    fixed = _going_on((old for old in working if old.node not in free), bounded)
    room = max(0, situation.room - len(situation.young))
    movable = (
        old
        for old in working
        if old.node in free and not (old.request_cores == 1 and free[old.node].node.multicore_only)
    )
    after_fixed = replace(bounded.after(fixed), room=room)
    kept, remaining = _affordable(_going_on(movable, after_fixed), after_fixed)
    unfinished = situation.unfinished_hs06.keys()
    going_on, remaining = _within_deadband(kept, remaining, unfinished)
    fixed += going_on
    kept = [row for row in kept if row.helped not in unfinished]
    for choice in going_on:
        del free[choice.option.node]
    taken = {option.place for option in kept}
    fresh = candidates.new_options(
        free, remaining, situation.run_times, ratio, situation.block_cores
    )
    offer = OptionSet((*kept, *(option for option in fresh if option.place not in taken)))
    choices = best(offer, remaining, kept)
    choices.sort(key=lambda choice: choice.option.rank(VALUE))
    # What there is no room for is called for all the same: the limits leave it out, and say so.
    choices = filled(offer, replace(remaining, room=inf), choices)
    later: list[str] = []
    if bounded.waiting != waiting:
        unbounded = replace(remaining, waiting=budgets.after(fixed).waiting)
        with_later = filled(offer, unbounded, choices)
        later = [choice.option.node for choice in with_later[len(choices) :]]
    every = (*fixed, *choices)
    stands = {option.place for option in (*kept, *(choice.option for choice in fixed))}
    rest, between = budgets.after(every), look.between_seconds
    costly = put_off(every, stands, rest, nodes, situation.run_times, between)
    choices = [choice for choice in choices if choice.option.node not in costly]
    called = {choice.target: choice.option.wait for choice in (*fixed, *choices)}
    reason = "targets" if called else "no-group-over"
    if excess and not called:
        reason = _why_none(situation, free, budgets)
        reason = "given-up" if reason == "not-worth" and look.left_alone else reason
    pairs = {(target.held_back, target.helped) for target in called}
    reasons.update((t.node, "kept" if t in standing else "target") for t in called)
    reasons.update((t.node, "dwell") for t in called if t.node in situation.young)
    reasons.update((node, "probing") for node in later)
    return Wanted(
        reason,
        tuple(called),
        pairs.pop() if len(pairs) == 1 else None,
        {**waits, **called},
        reasons,
        looks=True,
    )


def _standing_option(stood: Standing, situation: Situation, single_ratio: float) -> Option:
    """Target that stands, as an option."""
    target, here = stood.target, situation.nodes[stood.target.node]
    seconds = situation.look.wait_seconds.get(target.node)
    wait = None if seconds is None else Wait(seconds, seconds * target.request_cores)
    place = (target.held_back, target.cap_cores, target.request_cores)
    jobs = here.leaving_by_group(situation.run_times)
    leaving = leaving_for(jobs, target.request_cores, target.held_back, {target.helped})
    wait_for = partial(wait_for_cores, leaving)
    option = candidates.option_of(here, place, wait_for, single_ratio, wait=wait)
    return option._replace(helped=target.helped)


def fulfilled(stood: Standing, nodes: Mapping[str, NodeCores]) -> bool:
    """True if the group has one block more on the node than when a target for one began.

    Single-core jobs have what a target brings them when no core is due or idle.
    """
    target, here = stood.target, nodes[stood.target.node]
    if target.request_cores > 1:
        return stood.jobs is not None and here.jobs(target.kind) > stood.jobs
    return here.idle_cores == 0 and here.held_cores[target.held_back] <= target.cap_cores


def _going_on(working: Iterable[Option], budgets: Budgets) -> list[Choice]:
    """Standing targets as choices, without those that nobody waits for."""
    choices = []
    for old in working:
        helped, option = old.helped or "", old
        jobs = budgets.waiting.get((helped, old.request_cores), {})
        if old.request_cores == 1:
            # For cores that are not free yet, as far as jobs wait.
            option = old.for_jobs(max(1, min(old.jobs, most_alike(jobs, old))))
        memory_mib = fitting_memory(jobs, option)
        if memory_mib is not None and option.value > 0:
            bonus = KEEP_GAIN_RATIO * option.value
            option = option._replace(cap_cores=old.cap_cores, bonus=bonus)
            choices.append(Choice(option, helped, memory_mib))
    return choices


def _within_deadband(
    kept: Iterable[Option], budgets: Budgets, groups: Collection[str]
) -> tuple[list[Choice], Budgets]:
    """Targets of ``groups`` that go on within the deadband, and the budgets that they leave.

    None begins there, not even in the place of another.
    """
    going_on = filled(OptionSet(option for option in kept if option.helped in groups), budgets)
    rest = budgets.after(going_on)
    rest.deficit_hs06.update(dict.fromkeys(groups, 0.0))
    return going_on, rest


def _bounded(
    waiting: Mapping[Kind, Queue], look: BlockLook, working: Iterable[Option]
) -> dict[Kind, Queue]:
    """Jobs for the new targets that may be tried beside those that stand, least memory first."""
    unfinished = Counter[tuple[Optional[str], int]]()
    for option in working:
        unfinished[option.helped, option.request_cores] += option.jobs
    bounded: dict[Kind, Queue] = {}
    for kind, jobs in waiting.items():
        most = look.most_new.get(kind, sum(jobs.values())) + unfinished[kind]
        before = accumulate(jobs.values(), initial=0)
        bounded[kind] = {
            memory: min(count, most - less)
            for (memory, count), less in zip(jobs.items(), before)
            if min(count, most - less) > 0
        }
    return bounded


def _affordable(going_on: Iterable[Choice], budgets: Budgets) -> tuple[list[Option], Budgets]:
    """Targets that may go on, and the budgets with room for them.

    While cores wait for each other less power is in use, and the errors fall: a target goes on as
    long as its group lacks power, or cores would be freed in vain.
    """
    rest = budgets.after(())
    excess, deficit = rest.excess_hs06, rest.deficit_hs06
    # Budgets need not pay for this part of the last block of a group, whichever is the last.
    unpaid_excess, unpaid_deficit = dict[str, float](), dict[str, float]()
    kept: list[Option] = []

    def smallest_first(choice: Choice) -> tuple[float, tuple[object, ...]]:
        # Else a large one would leave nothing for those beside which it was chosen.
        return choice.option.gives_hs06, choice.option.rank(DENSITY)

    for choice in sorted(going_on, key=smallest_first):
        option, helped, _ = choice
        if deficit.get(helped, 0.0) > ROUNDING_HS06:
            rest.use(choice)
            kept.append(option)
            for unpaid, group, hs06 in (
                (unpaid_excess, option.held_back, option.takes_hs06),
                (unpaid_deficit, helped, option.gives_hs06),
            ):
                part_hs06 = hs06 - least_hs06(hs06, option.request_cores)
                unpaid[group] = min(unpaid.get(group, part_hs06), part_hs06)
    raised = [
        {
            group: own.get(group, 0.0) + max(0.0, -hs06 - unpaid.get(group, 0.0))
            for group, hs06 in lower.items()
        }
        for own, lower, unpaid in (
            (budgets.excess_hs06, excess, unpaid_excess),
            (budgets.deficit_hs06, deficit, unpaid_deficit),
        )
    ]
    return kept, replace(budgets, excess_hs06=raised[0], deficit_hs06=raised[1])


def _fit(here: NodeCores, over: AbstractSet[str], sizes: Mapping[int, candidates.Size]) -> str:
    """Best that jobs which wait would find on the node, if the groups of ``over`` give."""
    node, fit = here.node, SMALL
    if node.multicore_only and set(sizes) == {1}:
        return "multicore-only"
    for size, jobs in sizes.items():
        # A list of jobs tells no node's size.
        small = 0 < node.cores < size or 0 < node.memory_mib < jobs.least_mib
        if not small and not (size == 1 and node.multicore_only):
            fit = "no-block"
    for group in here.held_cores.keys() & over:
        for size, cores in candidates.freed_cores(here, group, sizes, inf, 1).items():
            if here.memory_for(group, cores) >= sizes[size].least_mib:
                return FITS
            fit = HELD
    return fit


def _why_none(situation: Situation, free: Mapping[str, NodeCores], budgets: Budgets) -> str:
    """One of `sharectl.plan.plan.REASONS`; ``free``: nodes whose target need not stay."""
    fits = situation.fits
    kinds = set(fits.values())
    if FITS not in kinds and CLOSED in kinds:
        return "closed"
    if FITS not in kinds:
        return "no-fit" if HELD in kinds or kinds == {SMALL} else "no-node"
    able = [here for name, here in free.items() if fits[name] == FITS]
    if not able:
        return "no-room"
    return "not-worth" if _pays(able, budgets) else "error-below-node"


def _pays(nodes: Collection[NodeCores], budgets: Budgets) -> bool:
    """True if the power to take and to give is worth a block for which a job waits."""
    return any(
        here.memory_for(group, cores) >= min(jobs)
        for kind, jobs in budgets.waiting.items()
        for sizes in [candidates.sizes_of({kind: jobs}, budgets.deficit_hs06)]
        for here in nodes
        if here.node.admits(kind)
        for group, hs06 in budgets.excess_hs06.items()
        for cores in candidates.freed_cores(here, group, sizes, hs06, 1).values()
    )
