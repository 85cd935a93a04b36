"""Targets that each node could have, and the worth of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache, partial
from math import ceil, fsum, inf
from typing import Callable, NamedTuple, Optional

from sharectl.model import Kind, Node, PendingJobs
from sharectl.plan.choices import (
    HORIZON_SECONDS,
    ROUNDING_HS06,
    Budgets,
    Option,
    OptionPlace,
    Queue,
    least_hs06,
)
from sharectl.plan.waits import (
    Leaving,
    NodeCores,
    RunTimes,
    Wait,
    leaving_for,
    wait_for_cores,
)
from sharectl.shares.demand import pending_alike

MANY = 5_000
"""Up to so many possible targets all are looked at closely."""

SPARE_NODES = 24
"""Of more, the quickest by group and size: so many more than its error pays for."""

NODE_OPTIONS = 4
"""Of these, options kept on each node by worth at a glance."""

KEPT_NODES = 16
"""Options of each group and size that are kept in any case, for groups of long jobs."""

SINGLE_CORE_RATIO = 0.5
"""Part of their value at which cores for single-core jobs count."""

WaitFor = Callable[[int, int], Wait]
"""Cores that are needed, and idle ones with them -> the wait, as `wait_for_cores`."""


def waiting_jobs(pending: Iterable[PendingJobs], groups: Collection[str]) -> dict[Kind, Queue]:
    """Demand of ``groups``; memory within a power of two counts as the most of it."""
    waiting: defaultdict[Kind, Queue] = defaultdict(dict)
    for row in pending_alike(pending, groups):
        if row.placeable:
            waiting[row.kind][row.memory_mib] = row.jobs
    return dict(waiting)


LEAST_MEMORY_RATIO, MOST_MEMORY_RATIO = 0.25, 2.0
"""Factors of a target's value for the memory that its jobs take, or set free. Never 0: groups whose
jobs need much memory are due their share too."""


def single_core_ratio(deficit_hs06: Mapping[str, float], waiting: Iterable[Kind]) -> float:
    """Part of their value at which cores for single-core jobs count.

    All of it brings the group furthest under to the front if it has such jobs alone.
    """
    single = max((deficit_hs06[group] for group, cores in waiting if cores == 1), default=0.0)
    multicore = max((deficit_hs06[group] for group, cores in waiting if cores > 1), default=0.0)
    return 1.0 if single > multicore else SINGLE_CORE_RATIO


def block_hs06_seconds(cores: int, hs06_per_core: float, wait: Wait) -> float:
    """Value of a block that is ready after a wait, less its idle cores."""
    moved = cores * max(0.0, HORIZON_SECONDS - wait.seconds)
    return hs06_per_core * (moved - wait.idle_core_seconds)


def option_of(
    here: NodeCores,
    place: tuple[str, int, int],
    wait_for: WaitFor,
    single_ratio: float,
    *,
    memory_mib: Optional[int] = None,
    least_mib: int = 0,
    wait: Optional[Wait] = None,
) -> Option:
    """Option of a target that stands or could: held-back group, its cap, cores that jobs request.

    ``memory_mib`` is by default what is there once all cores above the cap are free; ``least_mib``
    what a job that waits requests, 0 if unknown.
    """
    group, cap, size = place
    power, idle = here.node.hs06_per_core, here.idle_cores
    due = here.cores_above(group, cap)
    if memory_mib is None:
        memory_mib = here.memory_for(group, due)
    jobs, cores = 1, size
    if size > 1:
        # The node keeps cores for the block, whichever group's job gives them up.
        wait = wait or wait_for(max(0, size - idle) if due else 0, min(idle, size))
        value = block_hs06_seconds(size, power, wait)
    else:
        jobs = cores = max(1, due)
        wait = wait or wait_for(due, 0)
        # Cores for single-core jobs do not wait for each other: each is used once it is free.
        worked = cores * (HORIZON_SECONDS - wait.seconds) + wait.idle_core_seconds
        value = single_ratio * power * worked
        wait = Wait(wait.seconds, 0.0)
    if least_mib:
        stranded = here.stranded_cores(group, due, least_mib * jobs)
        value *= min(MOST_MEMORY_RATIO, max(LEAST_MEMORY_RATIO, 1 - stranded / cores))
    return Option(
        here.node.name,
        *place,
        takes_hs06=due * power,
        gives_hs06=cores * power,
        value=value,
        wait=wait,
        memory_mib=memory_mib // jobs,
        jobs=jobs,
    )


class Size(NamedTuple):
    """Jobs of one size that wait."""

    deficit_hs06: float
    """Largest of their groups."""
    jobs: int
    """Most that are alike."""
    least_mib: int
    """Least memory that they request."""


def sizes_of(waiting: Mapping[Kind, Queue], deficit_hs06: Mapping[str, float]) -> dict[int, Size]:
    """Cores that jobs request -> the jobs."""
    sizes: dict[int, Size] = {}
    for (group, cores), jobs in waiting.items():
        lacks_hs06 = deficit_hs06.get(group, 0.0)
        other = sizes.get(cores, Size(lacks_hs06, 0, min(jobs)))
        sizes[cores] = Size(
            max(other.deficit_hs06, lacks_hs06),
            max(other.jobs, *jobs.values()),
            min(other.least_mib, *jobs),
        )
    return sizes


def sizes_on(
    waiting: Mapping[Kind, Queue], deficit_hs06: Mapping[str, float]
) -> Callable[[Node], Mapping[int, Size]]:
    """Function of a node: as `sizes_of`, without jobs to which it is closed."""

    @cache
    def without(closed: AbstractSet[Kind]) -> Mapping[int, Size]:
        admitted = {kind: jobs for kind, jobs in waiting.items() if kind not in closed}
        return sizes_of(admitted, deficit_hs06)

    return lambda node: without(node.closed_kinds)


def freed_cores(
    here: NodeCores, group: str, sizes: Mapping[int, Size], excess_hs06: float, block_cores: int
) -> dict[int, int]:
    """Size of a target that the errors pay for -> cores that the group would have to give back.

    A held-back group gives what the job requests, or all that it holds there if idle cores make up
    for the rest. For single-core jobs it gives up to ``block_cores``.
    """
    held, idle, power = here.held_cores[group], here.idle_cores, here.node.hs06_per_core
    gives_hs06, freed = excess_hs06 + ROUNDING_HS06, {}
    if held == 0:
        return {}
    for size, jobs in sizes.items():
        lacks_hs06 = jobs.deficit_hs06 + ROUNDING_HS06
        if size > 1:
            pays = least_hs06(size * power, size) <= lacks_hs06
            pays = pays and least_hs06(min(size, held) * power, size) <= gives_hs06
            if pays and size <= held + idle:
                freed[size] = max(0, size - idle)
        elif not here.node.multicore_only:
            cores = int(min(block_cores, jobs.jobs, held, gives_hs06 / power, lacks_hs06 / power))
            if cores > 0:
                freed[1] = cores
    return freed


def new_options(
    nodes: Mapping[str, NodeCores],
    budgets: Budgets,
    run_times: RunTimes,
    single_ratio: float,
    block_cores: int,
) -> list[Option]:
    """Targets that ``nodes`` could have within ``budgets``, by node, group and size."""
    sizes_at = sizes_on(budgets.waiting, budgets.deficit_hs06)
    freed = {
        (name, group, size): cores
        for name, here in nodes.items()
        for group in here.held_cores.keys() & budgets.excess_hs06.keys()
        for size, cores in freed_cores(
            here, group, sizes_at(here.node), budgets.excess_hs06[group], block_cores
        ).items()
    }

    renewing: defaultdict[int, set[str]] = defaultdict(set)
    for group, size in budgets.waiting:
        renewing[size].add(group)

    # Jobs of several sizes often wait for the same cores. Places of a node follow each other.
    @lru_cache(maxsize=1)
    def by_group(name: str) -> dict[str, list[Leaving]]:
        return nodes[name].leaving_by_group(run_times)

    def leaving(name: str, group: str, size: int) -> Sequence[Leaving]:
        return leaving_for(by_group(name), size, group, renewing[size])

    @lru_cache(maxsize=64)
    def wait_of(name: str, group: str, size: int, needed_cores: int, idle_cores: int) -> Wait:
        return wait_for_cores(leaving(name, group, size), needed_cores, idle_cores)

    places: Iterable[OptionPlace] = freed
    if len(freed) > MANY:
        seconds = {
            place: cores / pace if (pace := _pace(leaving(*place))) else inf
            for place, cores in freed.items()
        }
        places = _worth_a_look(seconds, nodes, budgets.excess_hs06, block_cores)
    options = []
    for place in sorted(places):
        (name, group, size), cores = place, freed[place]
        here, jobs = nodes[name], cores if size == 1 else 1
        memory_mib, least_mib = here.memory_for(group, cores), sizes_at(here.node)[size].least_mib
        if memory_mib // jobs < least_mib:
            continue
        cap = max(0, here.held_cores[group] - (cores if size == 1 else size))
        wait = partial(wait_of, name, group if size == 1 else "", size)
        option = option_of(
            here,
            (group, cap, size),
            wait,
            single_ratio,
            memory_mib=memory_mib,
            least_mib=least_mib,
        )
        if option.value > 0:
            options.append(option)
    return options


def _pace(leaving: Iterable[Leaving]) -> float:
    """Cores that come free in a second at first."""
    return fsum([cores * jobs / seconds for cores, jobs, seconds in leaving])


def _worth_a_look(
    glances: Mapping[OptionPlace, float],
    nodes: Mapping[str, NodeCores],
    excess_hs06: Mapping[str, float],
    block_cores: int,
) -> Iterable[OptionPlace]:
    """Places to look at closely: the quickest of each group and size, the best of a node.

    Each has about the time until its cores come free.
    """
    power = {name: here.node.hs06_per_core for name, here in nodes.items()}
    by_kind: defaultdict[Kind, list[tuple[float, str]]] = defaultdict(list)
    for (name, group, request), seconds in glances.items():
        by_kind[group, request].append((seconds, name))
    places: set[OptionPlace] = set()
    on_node: defaultdict[str, list[tuple[float, str, int]]] = defaultdict(list)
    for (group, request), rows in by_kind.items():
        size = block_cores if request == 1 else request
        block_hs06 = size * fsum(power[name] for _, name in rows) / len(rows)
        quickest = sorted(rows)[: ceil(excess_hs06[group] / block_hs06) + SPARE_NODES]
        places.update((name, group, request) for _, name in quickest[:KEPT_NODES])
        for seconds, name in quickest:
            # Half of the cores stand idle on average while the rest are waited for.
            value = block_hs06_seconds(size, power[name], Wait(seconds, seconds * size / 2))
            on_node[name].append((-value, group, request))
    for name, valued in on_node.items():
        places.update((name, group, size) for _, group, size in sorted(valued)[:NODE_OPTIONS])
    return places
