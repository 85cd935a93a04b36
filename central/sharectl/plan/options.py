"""Targets that each node could have, and the worth of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, fsum

from sharectl.model import PendingJobs
from sharectl.plan.assignment import Option, Problem, Waiting
from sharectl.plan.records import ROUNDING_HS06
from sharectl.plan.settings import Prices
from sharectl.plan.waits import Expected, Leaving, NodeCores, wait_for_cores

MANY = 5_000
"""Up to so many possible targets all are looked at closely."""

SPARE_RATIO, SPARE_NODES = 2.0, 24
"""Of more, the best at a glance by group and size: so many times what its error pays for."""


NODE_OPTIONS = 2
"""Options kept on each node by worth, and as many by worth for each core."""


KEPT_NODES = 16
"""Options of each group and size that are kept in any case, for groups of long jobs."""

Glances = Mapping[tuple[str, int], Sequence[tuple[float, str]]]
"""Group and size -> about how long its cores take to come free, and on which node."""


def waiting_jobs(
    pending: Iterable[PendingJobs], groups: Iterable[str]
) -> dict[tuple[str, int], list[Waiting]]:
    """Demand of ``groups`` by group and cores, least memory first.

    Memory within a power of two counts as the most of it, so that there are few kinds.
    """
    rows: defaultdict[tuple[str, int], defaultdict[int, list[PendingJobs]]] = defaultdict(
        lambda: defaultdict(list)
    )
    wanted = set(groups)
    for row in pending:
        if row.group in wanted and row.jobs > 0 and row.placeable:
            rows[row.group, row.cores][row.memory_mib.bit_length()].append(row)
    return {
        key: [
            Waiting(max(row.memory_mib for row in alike), sum(row.jobs for row in alike))
            for _, alike in sorted(kinds.items())
        ]
        for key, kinds in sorted(rows.items())
    }


def for_the_furthest_under(
    prices: Prices,
    deficit_hs06: Mapping[str, float],
    waiting: Mapping[tuple[str, int], Sequence[Waiting]],
) -> Prices:
    """Prices at which the group furthest under comes first with single-core jobs alone."""
    lacking = {group: deficit_hs06.get(group, 0.0) for group, _ in waiting}
    multicore = max((lacking[group] for group, cores in waiting if cores > 1), default=0.0)
    return replace(prices, single_core_ratio=1.0) if max(lacking.values()) > multicore else prices


def new_options(
    nodes: Mapping[str, NodeCores],
    budgets: Problem,
    expected: Expected,
    prices: Prices,
    block_cores: int,
) -> list[Option]:
    """Targets that ``nodes`` could have within ``budgets``, by node, group and size.

    A held-back group gives what the job requests, or all that it holds there if idle cores make up
    for the rest. For single-core jobs it gives up to ``block_cores``.
    """
    single = _SingleCores(budgets, block_cores)
    most_hs06: dict[int, float] = {}
    least_mib: dict[int, int] = {}
    excess_hs06 = {group: hs06 for group, hs06 in budgets.excess_hs06.items() if hs06 > 0}
    for (group, cores), kinds in budgets.waiting.items():
        most_hs06[cores] = max(most_hs06.get(cores, 0.0), budgets.deficit_hs06.get(group, 0.0))
        least_mib[cores] = min(least_mib.get(cores, kinds[0].memory_mib), kinds[0].memory_mib)
    glances: defaultdict[tuple[str, int], list[tuple[float, str]]] = defaultdict(list)
    for name, here in nodes.items():
        idle, power = here.idle_cores, here.node.hs06_per_core
        sizes = [size for size, most in most_hs06.items() if size * power <= most + ROUNDING_HS06]
        sizes = [size for size in sizes if size > 1 or not here.node.multicore_only]
        for group in here.ages:
            left_hs06 = excess_hs06.get(group, 0.0)
            if left_hs06 <= 0:
                continue
            held = here.held_cores[group]
            pace = expected.cores_a_second(here, group)
            for size in sizes:
                fits = size <= held + idle and min(size, held) * power <= left_hs06 + ROUNDING_HS06
                needed = single.cores(here, group) if size == 1 else max(0, size - idle)
                if fits:
                    glances[group, size].append((needed / pace, name))
    options = []
    looked_at: tuple[str, str] = ("", "")
    for name, group, size in sorted(
        _worth_a_look(glances, nodes, excess_hs06, prices, block_cores)
    ):
        if (name, group) != looked_at:
            looked_at, leaving = (name, group), expected.leaving(nodes[name], group)
        cores = single.cores(nodes[name], group) if size == 1 else size
        make = _single_core_option if size == 1 else _option
        option = make(nodes[name], group, cores, leaving, prices)
        if option.value > 0 and option.memory_mib >= least_mib[size]:
            options.append(option)
    return options


class _SingleCores:
    """Cores that a node could give to single-core jobs at most."""

    def __init__(self, budgets: Problem, block_cores: int) -> None:
        self._excess_hs06 = budgets.excess_hs06
        waiting = {group: kinds for (group, cores), kinds in budgets.waiting.items() if cores == 1}
        self._deficit_hs06 = max(
            (budgets.deficit_hs06.get(group, 0.0) for group in waiting), default=0.0
        )
        jobs = max((kind.jobs for kinds in waiting.values() for kind in kinds), default=0)
        self._most = min(block_cores, jobs)

    def cores(self, here: NodeCores, group: str) -> int:
        """Cores of a group on a node that the errors pay for and that pending jobs can use."""
        error_hs06 = min(self._excess_hs06.get(group, 0.0), self._deficit_hs06)
        payable = int((error_hs06 + ROUNDING_HS06) // here.node.hs06_per_core)
        return min(self._most, here.held_cores[group], payable)


def _worth_a_look(
    glances: Glances,
    nodes: Mapping[str, NodeCores],
    excess_hs06: Mapping[str, float],
    prices: Prices,
    block_cores: int,
) -> set[tuple[str, str, int]]:
    """Node, group and size to look at closely: all, or the quickest of each group and size."""
    if sum(map(len, glances.values())) <= MANY:
        return {(name, group, size) for (group, size), rows in glances.items() for _, name in rows}
    places: set[tuple[str, str, int]] = set()
    on_node: defaultdict[tuple[str, bool], list[tuple[float, str, int]]] = defaultdict(list)
    for (group, request), rows in glances.items():
        size = block_cores if request == 1 else request
        power = fsum(nodes[name].node.hs06_per_core for _, name in rows) / len(rows)
        most = int(SPARE_RATIO * ceil(excess_hs06[group] / (size * power))) + SPARE_NODES
        quickest = sorted(rows)[:most]
        places.update((name, group, request) for _, name in quickest[:KEPT_NODES])
        for seconds, name in quickest:
            # Half of the cores stand idle on average while the rest are waited for.
            value = prices.value(size, nodes[name].node.hs06_per_core, seconds, seconds * size / 2)
            # Single-core jobs take no place from multicore ones here: they count less, not these.
            on_node[name, request == 1].append((-value, group, request))
    for (name, single), valued in on_node.items():
        if single:
            places.add((name, *min(valued)[1:]))
            continue
        by_value = sorted(valued)[:NODE_OPTIONS]
        by_density = sorted(valued, key=lambda row: (row[0] / row[2], row))[:NODE_OPTIONS]
        places.update((name, group, size) for _, group, size in (*by_value, *by_density))
    return places


def _single_core_option(
    here: NodeCores, group: str, cores: int, leaving: Sequence[Leaving], prices: Prices
) -> Option:
    held, power = here.held_cores[group], here.node.hs06_per_core
    wait = wait_for_cores(leaving, cores, 0)
    return Option(
        node=here.node.name,
        held_back=group,
        cap_cores=held - cores,
        request_cores=1,
        takes_hs06=cores * power,
        gives_hs06=cores * power,
        value=prices.single_core_value(cores, power, wait.seconds, wait.idle_core_seconds),
        wait_seconds=wait.seconds,
        memory_mib=here.memory_for(group, cores) // cores,
        jobs=cores,
    )


def _option(
    here: NodeCores, group: str, size: int, leaving: Sequence[Leaving], prices: Prices
) -> Option:
    held, idle, power = here.held_cores[group], here.idle_cores, here.node.hs06_per_core
    needed = max(0, size - idle)
    wait = wait_for_cores(leaving, needed, idle)
    return Option(
        node=here.node.name,
        held_back=group,
        cap_cores=max(0, held - size),
        request_cores=size,
        takes_hs06=min(size, held) * power,
        gives_hs06=size * power,
        value=prices.value(size, power, wait.seconds, wait.idle_core_seconds),
        wait_seconds=wait.seconds,
        idle_core_seconds=wait.idle_core_seconds,
        memory_mib=here.memory_for(group, needed),
    )
