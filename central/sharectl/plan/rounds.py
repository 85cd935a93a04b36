"""Blocks that nodes give one after another.

Of as many blocks as the errors pay for those that cost least are wanted, be they the first of a
node or its second. So a node gets no target yet if its block would cost more than the second one of
another node: where few single-core jobs run among long multicore jobs, cores stand idle for hours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from math import fsum, inf

from sharectl.model import Kind
from sharectl.plan.choices import Budgets, Choice, OptionPlace
from sharectl.plan.waits import NodeCores, RunTimes, Wait, leaving_for, wait_for_cores

IDLE_PRICE = 2.0
"""Cost of an idle core, in cores that work for the wrong group: the work of an idle one is lost to
the group that lacks it, and to the pool."""


def put_off(
    choices: Iterable[Choice],
    standing: Collection[OptionPlace],
    rest: Budgets,
    nodes: Mapping[str, NodeCores],
    run_times: RunTimes,
    between_seconds: float,
) -> set[str]:
    """Nodes of new ``choices`` of blocks that get no target yet.

    ``rest`` is what all choices leave: it may pay for other blocks, which come first. Second
    blocks begin at the next look, ``between_seconds`` later.
    """
    every = [here.node for here in nodes.values()]
    power_hs06 = fsum(node.cores * node.hs06_per_core for node in every)
    idle_price = IDLE_PRICE * power_hs06 / max(1, sum(node.cores for node in every))

    def cost_seconds(choice: Choice, wait: Wait) -> float:
        return wait.seconds + idle_price * wait.idle_core_seconds / choice.option.gives_hs06

    blocks = defaultdict[Kind, list[Choice]](list)
    for choice in choices:
        if choice.option.request_cores > 1:
            blocks[choice.helped, choice.option.request_cores].append(choice)
    nodes_later: set[str] = set()
    for kind, alike in blocks.items():
        firsts = {choice.option.node: cost_seconds(choice, choice.option.wait) for choice in alike}
        new = [choice.option.node for choice in alike if choice.option.place not in standing]
        if not new:
            continue
        # A second block does not come before the first, where one job gives the cores of both.
        seconds = sorted(
            max(
                firsts[choice.option.node],
                between_seconds + cost_seconds(choice, _second_wait(choice, nodes, run_times)),
            )
            for choice in alike
        )
        block_hs06 = fsum(choice.option.gives_hs06 for choice in alike) / len(alike)
        paid = round(max(0.0, rest.deficit_hs06.get(kind[0], 0.0)) / block_hs06)
        more = min(paid, sum(rest.waiting.get(kind, {}).values()))
        new.sort(key=lambda node: (-firsts[node], node))
        for node, second in zip(new, seconds[more:]):
            if firsts[node] <= second:
                break
            nodes_later.add(node)
    return nodes_later


def _second_wait(choice: Choice, nodes: Mapping[str, NodeCores], run_times: RunTimes) -> Wait:
    """Time from now until the node of a choice has freed two blocks; idle cores for the second."""
    option, first = choice.option, choice.option.wait
    here, size = nodes[option.node], option.request_cores
    jobs = here.leaving_by_group(run_times)
    leaving = leaving_for(jobs, size, option.held_back, {choice.helped})
    idle_cores = min(here.idle_cores, 2 * size)
    both = wait_for_cores(leaving, 2 * size - idle_cores, idle_cores)
    if both.seconds == inf:
        return both
    # The first block stands idle no more once it is there.
    idle_core_seconds = both.idle_core_seconds - first.idle_core_seconds
    idle_core_seconds -= size * (both.seconds - first.seconds)
    return Wait(both.seconds, max(0.0, idle_core_seconds))
