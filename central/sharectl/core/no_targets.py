"""Why a node cannot help the jobs that wait, and why a plan for many pairs comes to no target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from sharectl.core.assignment import Problem, Waiting
from sharectl.core.model import GroupControl
from sharectl.core.node_cores import NodeCores
from sharectl.core.wanted import ROUNDING_HS06

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
"""What keeps a node from helping -> one of `sharectl.core.plan.NODE_REASONS`."""

Kinds = Mapping[tuple[str, int], Iterable[Waiting]]


def findings(nodes: Mapping[str, NodeCores], over: Collection[str], waiting: Kinds) -> dict[str, str]:
    """Node -> what was found of jobs of ``waiting`` there, if the groups of ``over`` give."""
    least_mib: dict[int, int] = {}
    for (_, cores), kinds in waiting.items():
        least = min(kind.memory_mib for kind in kinds)
        least_mib[cores] = min(least_mib.get(cores, least), least)
    return {name: _finding(here, over, least_mib) for name, here in nodes.items()}


def why_none(
    found: Mapping[str, str],
    free: Mapping[str, NodeCores],
    budgets: Problem,
    groups: Iterable[GroupControl],
) -> str:
    """One of `sharectl.core.plan.REASONS`.

    Parameters
    ----------
    found
        As `findings` of all nodes that may have targets.
    free
        Those of them whose target does not stay whatever is called for.
    budgets
        What the outputs allow.
    groups
        Their errors, which may allow more.
    """
    kinds = set(found.values())
    if FITS not in kinds:
        return "no-fit" if HELD in kinds or kinds == {SMALL} else "no-node"
    able = {name: here for name, here in free.items() if found[name] == FITS}
    if not able:
        return "no-room"
    if _pays(able, budgets.excess_hs06, budgets.deficit_hs06, budgets.waiting):
        return "not-worth"
    errors = {each.group: each.control_error_hs06 for each in groups if each.output_hs06}
    given = {group: -error for group, error in errors.items()}
    return "output-below-node" if _pays(able, errors, given, budgets.waiting) else "error-below-node"


def _finding(here: NodeCores, over: Collection[str], least_mib: Mapping[int, int]) -> str:
    node, found = here.node, SMALL
    if node.multicore_only:
        least_mib = {size: least for size, least in least_mib.items() if size > 1}
        if not least_mib:
            return MULTICORE_ONLY
    for size, least in least_mib.items():
        # A list of jobs tells no node's size.
        if not 0 < node.cores < size and not 0 < node.memory_mib < least:
            found = NOT_HELD
    for group, size, memory_mib in _blocks(here, over, least_mib):
        del group
        if memory_mib >= least_mib[size]:
            return FITS
        found = HELD
    return found


def _blocks(here: NodeCores, over: Collection[str], sizes: Iterable[int]) -> Iterator[tuple[str, int, int]]:
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
    nodes: Mapping[str, NodeCores], excess: Mapping[str, float], deficit: Mapping[str, float], waiting: Kinds
) -> bool:
    """Whether power to take and power to give are worth one of the blocks for which a job waits."""
    over = {group for group, left in excess.items() if left > 0}
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
