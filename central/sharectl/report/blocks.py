"""Blocks of cores that stand free and those that are left alone, for ``sharectl status``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sharectl.plan.free_blocks import ALL_NODES, IN_A_ROW, BlockMemory, GiveUp
from sharectl.times import shown, span


def blocks_data(
    memory: BlockMemory, idle_cores: Mapping[str, int], give_up: GiveUp, now: int
) -> dict[str, Any]:
    """Blocks as data.

    Parameters
    ----------
    memory
        As the last cycle left it.
    idle_cores
        Node -> cores that stand idle there now, where that is known: a block may have been taken
        since that cycle.
    """
    taken = {(row.group, row.cores): row for row in memory.taken}
    failures = {
        (row.group, row.cores): row.failures for row in memory.back_offs if row.node == ALL_NODES
    }
    return {
        "free": [
            {
                "node": block.node,
                "group": block.group,
                "cores": block.cores,
                "free_since": block.free_since,
                "free_seconds": max(0, now - block.free_since),
                "give_up_seconds": give_up.patience_seconds(
                    taken.get(block.kind), failures.get(block.kind, 0)
                ),
            }
            for block in memory.open
            if block.free_since is not None
            and idle_cores.get(block.node, block.cores) >= block.cores
        ],
        "left_alone": [
            {
                "node": row.node or None,
                "group": row.group,
                "cores": row.cores,
                "failures": row.failures,
                "until": row.until,
            }
            for row in memory.back_offs
            if now < row.until
        ],
        "failing": [
            {"group": row.group, "cores": row.cores, "failures": row.failures, "until": row.until}
            for row in memory.back_offs
            if row.node == ALL_NODES and row.failures >= IN_A_ROW
        ],
    }


def block_rows(blocks: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Label and text of each row."""
    yield from (("kept free", free_words(block)) for block in blocks["free"])
    for row in blocks["left_alone"]:
        where = row["node"] or "all nodes"
        yield (
            "left alone",
            (
                f"{where}: no {row['cores']}-core job of {row['group']} came; until "
                f"{shown(row['until'])}"
            ),
        )


def block_problems(blocks: Mapping[str, Any]) -> Iterator[str]:
    """Blocks that nobody takes, a line each."""
    for block in blocks["free"]:
        if block["free_seconds"] >= block["give_up_seconds"]:
            yield f"{free_words(block)}; the next `sharectl cycle` gives them back"
    for row in blocks["failing"]:
        yield (
            f"{row['group']}: its {row['cores']}-core jobs wait, and no job took the cores that "
            "were kept free for them; "
            f"at most one block is tried from {shown(row['until'])} on: is the group at its "
            "quota or at a limit, are its "
            "users held off? `condor_q -better-analyze` of such a job"
        )


def free_words(block: Mapping[str, Any]) -> str:
    """One block that stands free."""
    return (
        f"{block['node']}: {block['cores']} cores kept free for {block['group']} for "
        f"{span(block['free_seconds'])}, "
        "no job came"
    )
