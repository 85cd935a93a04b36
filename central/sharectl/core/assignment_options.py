"""Which targets each node could have, and what each is worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, fsum
from typing import NamedTuple

from sharectl.core.assignment import Option, Problem, Waiting
from sharectl.core.block_wait import wait_for_cores
from sharectl.core.model import PendingJobs
from sharectl.core.node_cores import Expected, NodeCores
from sharectl.core.wanted import ROUNDING_HS06

MANY = 5_000
"""Up to so many possible targets all are looked at closely."""

SPARE_RATIO, SPARE_NODES = 2.0, 24
"""Of more, those of each group and size that are best at a glance: this many times what its error pays for, and some."""


NODE_OPTIONS = 2
"""Of these, so many on each node that are worth most, and so many that are worth most for each core."""


class _Glance(NamedTuple):
    """A possible target, seen quickly."""

    seconds: float
    """About how long the cores take."""
    node: str
    group: str
    size: int
    hs06_per_core: float


@dataclass(frozen=True)
class Prices:
    """What a target is worth."""

    horizon_seconds: float = 86_400.0
    """How long power that is moved counts."""
    idle_price: float = 1.0
    """HS06-seconds moved that one HS06-second of idle cores is worth."""
    keep_gain_ratio: float = 0.25
    """By how much more another target must be worth than one that stands."""

    def value(
        self, request_cores: int, hs06_per_core: float, wait_seconds: float, idle_core_seconds: float
    ) -> float:
        """HS06-seconds of a block that is ready after so long, and for which so much stands idle."""
        moved = request_cores * max(0.0, self.horizon_seconds - wait_seconds)
        return hs06_per_core * (moved - self.idle_price * idle_core_seconds)


def waiting_jobs(
    pending: Iterable[PendingJobs], groups: Iterable[str]
) -> dict[tuple[str, int], list[Waiting]]:
    """Multicore jobs of ``groups`` that wait, by group and cores, least memory first.

    Memory within a power of two counts as the most of it, so that there are few kinds.
    """
    rows: defaultdict[tuple[str, int], defaultdict[int, list[PendingJobs]]] = defaultdict(
        lambda: defaultdict(list)
    )
    wanted = set(groups)
    for row in pending:
        if row.group in wanted and row.cores > 1 and row.jobs > 0:
            rows[row.group, row.cores][row.memory_mib.bit_length()].append(row)
    return {
        key: [
            Waiting(max(row.memory_mib for row in alike), sum(row.jobs for row in alike))
            for _, alike in sorted(kinds.items())
        ]
        for key, kinds in sorted(rows.items())
    }


def new_options(
    nodes: Mapping[str, NodeCores], budgets: Problem, expected: Expected, prices: Prices
) -> tuple[list[Option], set[str]]:
    """Targets that ``nodes`` could have within ``budgets``, by node, group and size; and the nodes that hold a block.

    A held-back group gives what the job requests, or all that it holds there if idle cores make up for the rest.
    """
    most_hs06: dict[int, float] = {}
    least_mib: dict[int, int] = {}
    excess_hs06 = {group: left for group, left in budgets.excess_hs06.items() if left > 0}
    for (group, cores), kinds in budgets.waiting.items():
        most_hs06[cores] = max(most_hs06.get(cores, 0.0), budgets.deficit_hs06.get(group, 0.0))
        least_mib[cores] = min(least_mib.get(cores, kinds[0].memory_mib), kinds[0].memory_mib)
    able: set[str] = set()
    glances: list[_Glance] = []
    for name, here in nodes.items():
        idle, power = here.idle_cores, here.node.hs06_per_core
        for group in here.ages:
            left_hs06 = excess_hs06.get(group, 0.0)
            if left_hs06 <= 0:
                continue
            held = here.held_cores[group]
            pace = expected.cores_a_second(here, group)
            for size, deficit in most_hs06.items():
                if held + idle < size:
                    continue
                able.add(name)
                takes = min(size, held) * power
                if takes <= left_hs06 + ROUNDING_HS06 and size * power <= deficit + ROUNDING_HS06:
                    glances.append(_Glance(max(0, size - idle) / pace, name, group, size, power))
    options = []
    for glance in sorted(_worth_a_look(glances, excess_hs06, prices), key=lambda glance: glance[1:4]):
        option = _option(nodes[glance.node], glance.group, glance.size, expected, prices)
        if option.value > 0 and option.memory_mib >= least_mib[glance.size]:
            options.append(option)
    return options, able


def _worth_a_look(
    glances: Sequence[_Glance], excess_hs06: Mapping[str, float], prices: Prices
) -> Sequence[_Glance]:
    """What to look at closely: all; or of each group and size the quickest, and of these on each node some few."""
    if len(glances) <= MANY:
        return glances
    kinds: defaultdict[tuple[str, int], list[_Glance]] = defaultdict(list)
    for glance in glances:
        kinds[glance.group, glance.size].append(glance)
    on_node: defaultdict[str, list[tuple[float, _Glance]]] = defaultdict(list)
    for (group, size), rows in kinds.items():
        power = fsum(sorted(glance.hs06_per_core for glance in rows)) / len(rows)
        most = int(SPARE_RATIO * ceil(excess_hs06[group] / (size * power))) + SPARE_NODES
        for glance in sorted(rows)[:most]:
            # Half of the cores stand idle on average while the rest are waited for.
            idle_core_seconds = glance.seconds * size / 2
            value = prices.value(size, glance.hs06_per_core, glance.seconds, idle_core_seconds)
            on_node[glance.node].append((value, glance))
    found: set[_Glance] = set()
    for valued in on_node.values():
        valued.sort(key=lambda row: (-row[0], row[1]))
        found.update(glance for _, glance in valued[:NODE_OPTIONS])
        valued.sort(key=lambda row: (-row[0] / row[1].size, row[1]))
        found.update(glance for _, glance in valued[:NODE_OPTIONS])
    return list(found)


def _option(here: NodeCores, group: str, size: int, expected: Expected, prices: Prices) -> Option:
    held, idle, power = here.held_cores[group], here.idle_cores, here.node.hs06_per_core
    needed = max(0, size - idle)
    wait = wait_for_cores(expected.leaving(here, group), needed, idle)
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
