"""Plans for many pairs: each group over its share can give to each under it, a node to one.

Why a node cannot help the jobs that wait, and why a plan for many pairs comes to no target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Optional

from sharectl.model import GroupControl, LimitNote, Snapshot, Standing, Target
from sharectl.plan.assignment import (
    Choice,
    Option,
    Problem,
    Waiting,
    after,
    by_density,
    by_value,
    filled,
    fitting_memory,
    greedy,
    total_worth,
)
from sharectl.plan.free_blocks import NOT_LOOKED, BlockLook
from sharectl.plan.highs import GAP_RATIO, SolverError, best
from sharectl.plan.limits import PROBING, SOLVER_MISSING
from sharectl.plan.options import for_the_furthest_under, new_options, waiting_jobs
from sharectl.plan.records import ROUNDING_HS06, Wait, Wanted
from sharectl.plan.settings import Assigning, Prices
from sharectl.plan.waits import Expected, NodeCores, RemainingTimes, cores_of_nodes, wait_for_cores

FITS = "fits"
"""A group over its share holds there what a job that waits needs."""
HELD = "held"
"""It holds the cores, and not the memory."""
SMALL = "small"
"""No such job would fit if the node were empty."""
NOT_HELD = "not-held"

MULTICORE_ONLY = "multicore-only"
"""It takes multicore jobs alone, and none waits."""

NODE_CODES = {
    HELD: "no-fit", SMALL: "no-fit", NOT_HELD: "no-block", MULTICORE_ONLY: "multicore-only"
}  # fmt: skip
"""What keeps a node from helping -> one of `sharectl.plan.plan.NODE_REASONS`."""

Kinds = Mapping[tuple[str, int], Iterable[Waiting]]


def findings(
    nodes: Mapping[str, NodeCores], over: Collection[str], waiting: Kinds
) -> dict[str, str]:
    """Node -> what was found of jobs of ``waiting`` there, if the groups of ``over`` give."""
    least_mib: dict[int, int] = {}
    for (_, cores), kinds in waiting.items():
        least = min(kind.memory_mib for kind in kinds)
        least_mib[cores] = min(least_mib.get(cores, least), least)
    return {name: _finding(here, over, least_mib) for name, here in nodes.items()}


def why_none(
    by_node: Mapping[str, str],
    free: Mapping[str, NodeCores],
    budgets: Problem,
    groups: Iterable[GroupControl],
) -> str:
    """One of `sharectl.plan.plan.REASONS`.

    Parameters
    ----------
    by_node
        As `findings` of all nodes that may have targets.
    free
        Those of them whose target does not stay whatever is called for.
    budgets
        What the outputs allow.
    groups
        Their errors, which may allow more.
    """
    kinds = set(by_node.values())
    if FITS not in kinds:
        return "no-fit" if HELD in kinds or kinds == {SMALL} else "no-node"
    able = {name: here for name, here in free.items() if by_node[name] == FITS}
    if not able:
        return "no-room"
    if _pays(able, budgets.excess_hs06, budgets.deficit_hs06, budgets.waiting):
        return "not-worth"
    errors = {
        control.group: control.control_error_hs06 for control in groups if control.output_hs06
    }
    deficits = {group: -error for group, error in errors.items()}
    return (
        "output-below-node"
        if _pays(able, errors, deficits, budgets.waiting)
        else "error-below-node"
    )


def _finding(here: NodeCores, over: Collection[str], least_mib: Mapping[int, int]) -> str:
    node, finding = here.node, SMALL
    if node.multicore_only:
        least_mib = {size: least for size, least in least_mib.items() if size > 1}
        if not least_mib:
            return MULTICORE_ONLY
    for size, least in least_mib.items():
        # A list of jobs tells no node's size.
        if not 0 < node.cores < size and not 0 < node.memory_mib < least:
            finding = NOT_HELD
    for group, size, memory_mib in _blocks(here, over, least_mib):
        del group
        if memory_mib >= least_mib[size]:
            return FITS
        finding = HELD
    return finding


def _blocks(
    here: NodeCores, over: Collection[str], sizes: Iterable[int]
) -> Iterator[tuple[str, int, int]]:
    """Groups that could give a block there, its cores, and the memory that it would come with."""
    for group in here.ages:
        if group in over:
            for size in sizes:
                if size == 1:
                    if not here.node.multicore_only:
                        yield group, 1, here.memory_for(group, 1)
                elif here.held_cores[group] + here.idle_cores >= size:
                    yield group, size, here.memory_for(group, max(0, size - here.idle_cores))


def _pays(
    nodes: Mapping[str, NodeCores],
    excess: Mapping[str, float],
    deficit: Mapping[str, float],
    waiting: Kinds,
) -> bool:
    """Tells if the power to take and to give is worth a block for which a job waits."""
    over = {group for group, power_left in excess.items() if power_left > 0}
    sizes = {cores for _, cores in waiting}
    for here in nodes.values():
        power = here.node.hs06_per_core
        for group, size, memory_mib in _blocks(here, over, sizes):
            if min(size, here.held_cores[group]) * power > excess[group] + ROUNDING_HS06:
                continue
            for (helped, cores), kinds in waiting.items():
                pays = cores == size and size * power <= deficit.get(helped, 0.0) + ROUNDING_HS06
                if pays and any(kind.memory_mib <= memory_mib for kind in kinds):
                    return True
    return False


@dataclass(frozen=True)
class Situation:
    """Input of a plan."""

    groups: Sequence[GroupControl]
    snapshot: Snapshot
    nodes: Collection[str]
    """Nodes that may have targets."""
    standing: Sequence[Standing]
    """What stands on them, of configured groups."""
    young: AbstractSet[str]
    """Nodes whose target stays whatever is called for."""
    room: Optional[int]
    """Most nodes under targets; None for any number."""
    remaining: Mapping[str, RemainingTimes]
    """Group -> how long its jobs still run."""
    block_cores: int = 8
    """Most cores that a node is to give to single-core jobs by one target."""
    look: BlockLook = NOT_LOOKED
    """Blocks of cores that stand free."""


@dataclass(frozen=True)
class _Stood:
    """A target that stands, and what it is still to do."""

    target: Target
    hs06_per_core: float
    wait: Wait
    due_cores: int
    """Cores that the held-back group has above the cap."""
    started: bool
    """Whether a job that it is for has begun since."""
    memory_mib: int

    @property
    def fulfilled(self) -> bool:
        """Tells if the target has done its work."""
        return self.due_cores == 0 and self.started


def many_pairs(situation: Situation, assigning: Assigning) -> Wanted:
    """Targets that the controllers' outputs call for, the most useful first."""
    excess = {each.group: each.output_hs06 for each in situation.groups if each.output_hs06 > 0}
    deficit = {each.group: -each.output_hs06 for each in situation.groups if each.output_hs06 < 0}
    waiting = waiting_jobs(situation.snapshot.pending, deficit)
    reason = "no-group-under" if excess else "no-group-over"
    look = situation.look
    if waiting and excess and look.left_alone_kinds.issuperset(waiting):
        reason = "given-up"
    waiting = {kind: jobs for kind, jobs in waiting.items() if kind not in look.left_alone_kinds}
    if not (waiting and excess) and not situation.standing:
        return Wanted(reason)
    holding = {*excess, *(stood.target.held_back for stood in situation.standing)}
    nodes = cores_of_nodes(situation.snapshot, set(situation.nodes), holding)
    expected = Expected(situation.remaining)
    stood = _stood(situation, nodes, expected)
    standing_waits = {each.target.node: _cost(each.target, each.wait) for each in stood}
    if not waiting:
        return Wanted(reason, reasons=_released(situation.standing), standing_waits=standing_waits)
    prices = for_the_furthest_under(assigning.prices, deficit, waiting)
    assigning = replace(assigning, prices=prices)
    bounded = _bounded(waiting, look, stood)
    budgets = Problem((), excess, deficit, bounded, situation.room, look.left_alone)
    fixed = [
        choice
        for each in stood
        if each.target.node in situation.young
        for choice in _going_on(each, budgets, assigning)
    ]
    budgets = replace(after(budgets, fixed), room=_room_left(situation))
    free = {name: here for name, here in nodes.items() if name not in situation.young}
    going_on = [
        choice
        for each in stood
        if each.target.node in free
        and (each.target.request_cores > 1 or not nodes[each.target.node].node.multicore_only)
        for choice in _going_on(each, budgets, assigning)
    ]
    kept, budgets = _affordable(going_on, budgets)
    fresh = new_options(free, budgets, expected, assigning.prices, situation.block_cores)
    taken = {option.place for option in kept}
    fresh = [option for option in fresh if option.place not in taken]
    problem = replace(budgets, options=[*kept, *fresh])
    choices, notes = _chosen(problem, kept, assigning)
    by_node = findings(nodes, excess, waiting)
    if not (fixed or choices) and excess:
        reason = why_none(by_node, free, Problem((), excess, deficit, waiting), situation.groups)
        reason = "given-up" if reason == "not-worth" and look.left_alone else reason
    wanted = _wanted(situation, (fixed, choices, notes), stood, by_node, reason)
    unbounded = after(
        Problem((), excess, deficit, waiting, left_alone=look.left_alone), fixed
    ).waiting
    later = _later(problem, choices, unbounded) if bounded != waiting else []
    return replace(
        wanted,
        standing_waits=standing_waits,
        notes=(*wanted.notes, *((LimitNote(PROBING, len(later)),) if later else ())),
        reasons={**wanted.reasons, **dict.fromkeys(later, PROBING)},
    )


def _bounded(
    waiting: Mapping[tuple[str, int], Sequence[Waiting]], look: BlockLook, stood: Iterable[_Stood]
) -> dict[tuple[str, int], Sequence[Waiting]]:
    """Jobs for the new targets that may be tried beside those that stand, least memory first."""
    unfinished = Counter[tuple[str, int]]()
    for target_stood in stood:
        blocks = max(1, target_stood.due_cores) if target_stood.target.request_cores == 1 else 1
        unfinished[target_stood.target.helped, target_stood.target.request_cores] += (
            0 if target_stood.fulfilled else blocks
        )
    bounded: dict[tuple[str, int], Sequence[Waiting]] = {}
    for kind, rows in waiting.items():
        new = look.most_new(kind)
        most = sum(row.jobs for row in rows) if new is None else new + unfinished[kind]
        bounded[kind] = []
        for row in rows:
            if jobs := min(row.jobs, most):
                bounded[kind] = [*bounded[kind], row._replace(jobs=jobs)]
            most -= jobs
    return bounded


def _later(
    problem: Problem,
    choices: Sequence[Choice],
    waiting: Mapping[tuple[str, int], Sequence[Waiting]],
) -> list[str]:
    """Nodes that would have targets too if every job of ``waiting`` counted."""
    beyond = filled(replace(problem, waiting=waiting), choices)[len(choices) :]
    return [choice.option.node for choice in beyond]


def _stood(
    situation: Situation, nodes: Mapping[str, NodeCores], expected: Expected
) -> list[_Stood]:
    """Targets that stand, with the work that they still have to do."""
    youngest: dict[tuple[str, str], int] = {}
    let_in = {
        (stood.target.node, stood.target.helped): stood.target for stood in situation.standing
    }
    for job in situation.snapshot.running:
        key = (job.node, job.group)
        # A slot may have more cores than its job requests.
        if key in let_in and job.cores >= let_in[key].request_cores:
            youngest[key] = min(youngest.get(key, job.seconds), job.seconds)
    result = []
    for stood in situation.standing:
        target, here = stood.target, nodes[stood.target.node]
        due = max(0, here.held_cores.get(target.held_back, 0) - target.cap_cores)
        idle = here.idle_cores
        leaving = expected.leaving(here, target.held_back)
        if target.request_cores == 1:
            wait = wait_for_cores(leaving, due, 0)
        else:
            needed = min(due, max(0, target.request_cores - idle))
            wait = wait_for_cores(leaving, needed, min(idle, target.request_cores))
        began = youngest.get((target.node, target.helped))
        if target.node in situation.look.wait_seconds:
            seconds = situation.look.wait_seconds[target.node]
            wait = Wait(seconds, seconds * target.request_cores)
        result.append(
            _Stood(
                target,
                here.node.hs06_per_core,
                wait,
                due,
                began is not None and situation.snapshot.taken_at - began >= stood.since,
                here.memory_for(target.held_back, due),
            )
        )
    return sorted(result, key=lambda each: each.target.node)


def _cost(target: Target, wait: Wait) -> Wait:
    """Cost of a target; cores for single-core jobs do not wait for each other."""
    return replace(wait, idle_core_seconds=0.0) if target.request_cores == 1 else wait


def _going_on(stood: _Stood, budgets: Problem, assigning: Assigning) -> list[Choice]:
    """The standing target as a choice; none if it is fulfilled, or nobody waits for it."""
    target, prices = stood.target, assigning.prices
    if stood.fulfilled:
        return []
    option = (
        _single_cores_going_on(stood, budgets, prices)
        if target.request_cores == 1
        else _block_going_on(stood, prices)
    )
    memory_mib = fitting_memory(budgets, target.helped, option)
    if memory_mib < 0 or option.value <= 0:
        return []
    return [
        Choice(
            option._replace(bonus=prices.keep_gain_ratio * option.value), target.helped, memory_mib
        )
    ]


def _block_going_on(stood: _Stood, prices: Prices) -> Option:
    """Option of a standing target of a multicore job."""
    target = stood.target
    return Option(
        node=target.node,
        held_back=target.held_back,
        cap_cores=target.cap_cores,
        request_cores=target.request_cores,
        takes_hs06=stood.due_cores * stood.hs06_per_core,
        gives_hs06=target.request_cores * stood.hs06_per_core,
        value=prices.value(
            target.request_cores,
            stood.hs06_per_core,
            stood.wait.seconds,
            stood.wait.idle_core_seconds,
        ),
        wait_seconds=stood.wait.seconds,
        idle_core_seconds=stood.wait.idle_core_seconds,
        memory_mib=stood.memory_mib,
        helped=target.helped,
    )


def _single_cores_going_on(stood: _Stood, budgets: Problem, prices: Prices) -> Option:
    """Option of a standing target of single-core jobs: cores not free yet, as far as jobs wait."""
    target, power = stood.target, stood.hs06_per_core
    open_cores = max(1, stood.due_cores)
    memory_mib = stood.memory_mib // open_cores
    waiting = budgets.waiting.get((target.helped, 1), ())
    jobs = max((kind.jobs for kind in waiting if kind.memory_mib <= memory_mib), default=0)
    cores = max(1, min(open_cores, jobs))
    value = prices.single_core_value(
        open_cores, power, stood.wait.seconds, stood.wait.idle_core_seconds
    )
    return Option(
        node=target.node,
        held_back=target.held_back,
        cap_cores=target.cap_cores,
        request_cores=1,
        takes_hs06=min(cores, stood.due_cores) * power,
        gives_hs06=cores * power,
        value=value * cores / open_cores,
        wait_seconds=stood.wait.seconds,
        memory_mib=memory_mib,
        helped=target.helped,
        jobs=cores,
    )


def _affordable(going_on: Sequence[Choice], budgets: Problem) -> tuple[list[Option], Problem]:
    """Targets that may go on, and the budgets with room for them.

    While cores wait for each other less power is in use, and the errors fall: the last target that
    a group's error still pays for in part goes on, or cores would be freed in vain.
    """
    excess, deficit = dict(budgets.excess_hs06), dict(budgets.deficit_hs06)
    kept: list[Option] = []
    for choice in sorted(going_on, key=lambda choice: by_density(choice.option)):
        option = choice.option
        over, under = excess.get(option.held_back, 0.0), deficit.get(choice.helped, 0.0)
        if under > ROUNDING_HS06 and (over > ROUNDING_HS06 or option.takes_hs06 <= ROUNDING_HS06):
            excess[option.held_back] = over - option.takes_hs06
            deficit[choice.helped] = under - option.gives_hs06
            kept.append(option)
    return kept, replace(
        budgets,
        excess_hs06=_with_room(budgets.excess_hs06, excess),
        deficit_hs06=_with_room(budgets.deficit_hs06, deficit),
    )


def _with_room(budget: Mapping[str, float], after_all: Mapping[str, float]) -> dict[str, float]:
    return {group: budget.get(group, 0.0) + max(0.0, -after_all[group]) for group in after_all}


def _room_left(situation: Situation) -> Optional[int]:
    return None if situation.room is None else max(0, situation.room - len(situation.young))


def _chosen(
    problem: Problem, kept: Sequence[Option], assigning: Assigning
) -> tuple[list[Choice], tuple[LimitNote, ...]]:
    """The choices, the most useful first, and what kept them from being the best.

    What stands goes on unless another choice, bonuses counted, is better by more than the solver
    may be off.
    """
    notes: tuple[LimitNote, ...] = ()
    candidates = [greedy(problem)]
    if assigning.solver != "greedy" and problem.options:
        try:
            solved = best(problem, assigning.solver_seconds, exactly=assigning.solver == "highs")
            candidates.append(
                filled(problem, [choice for choice in solved if _allowed(problem, choice)])
            )
        except SolverError as error:
            # `auto` takes HiGHS where it is installed; `sharectl check config` tells where it is
            # not.
            silent = error.code == SOLVER_MISSING and assigning.solver == "auto"
            notes = () if silent else (LimitNote(error.code, max(1, len(candidates[0]))),)
    choices = max(candidates, key=total_worth)
    if kept:
        going_on = filled(problem, (), first=kept)
        if total_worth(choices) <= total_worth(going_on) * (1 + 1.5 * GAP_RATIO):
            choices = going_on
    ordered = sorted(choices, key=lambda choice: by_value(choice.option))
    # What there is no room for is called for all the same: the limits leave it out, and say so.
    beyond = (
        filled(replace(problem, room=None), ordered)[len(ordered) :]
        if problem.room is not None
        else []
    )
    return [*ordered, *beyond], notes


def _allowed(problem: Problem, choice: Choice) -> bool:
    """Tells if a choice is not left alone: to the solver all nodes are alike for a group."""
    option = choice.option
    return (choice.helped, option.request_cores, option.node) not in problem.left_alone


def _wanted(
    situation: Situation,
    chosen: tuple[Sequence[Choice], Sequence[Choice], tuple[LimitNote, ...]],
    stood: Sequence[_Stood],
    by_node: Mapping[str, str],
    why_none: str,
) -> Wanted:
    fixed, choices, notes = chosen
    targets = tuple(map(_target, (*fixed, *choices)))
    spare = "not-needed" if targets else "no-call"
    reasons = {name: NODE_CODES.get(finding, spare) for name, finding in by_node.items()}
    reasons.update(_released(situation.standing))
    going_on = {each.target for each in stood}
    reasons.update((target.node, "kept" if target in going_on else "target") for target in targets)
    reasons.update((choice.option.node, "dwell") for choice in fixed)
    waits = {
        option.node: Wait(option.wait_seconds, option.idle_core_seconds)
        for option in (choice.option for choice in (*fixed, *choices))
    }
    pairs = {(target.held_back, target.helped) for target in targets}
    pair = pairs.pop() if len(pairs) == 1 else None
    return Wanted("targets" if targets else why_none, targets, pair, notes, waits, reasons)


def _released(standing: Sequence[Standing]) -> dict[str, str]:
    return {stood.target.node: "released" for stood in standing}


def _target(choice: Choice) -> Target:
    option = choice.option
    return Target(
        option.node, option.held_back, option.cap_cores, choice.helped, option.request_cores
    )
