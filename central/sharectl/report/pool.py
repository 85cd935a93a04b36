"""The pool for people: a snapshot's tables, waiting times, free blocks, the switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from sharectl.model import Disabled
from sharectl.plan.free_blocks import ALL_NODES, BackOff, BlockMemory, expected_wait_seconds
from sharectl.plan.settings import IN_A_ROW, GiveUp
from sharectl.report.tables import print_table
from sharectl.shares.pledges import SOURCE_NAME
from sharectl.times import shown, span


def snapshot_tables(content: dict[str, Any], to: TextIO) -> None:
    """Print the tables of a snapshot, from the content of `as_json.snapshot`.

    Without any node there are no tables of groups, because unknown is not zero.
    """
    if content["nodes"]:
        _print_figures(content, to)
    if content["waits"]:
        waits_table("waiting times", content["waits"], to)
    print_table(
        "sources",
        ("source", "seconds", "problem"),
        [(s["name"], round(s["seconds"], 3), s["problem"] or "-") for s in content["sources"]],
        to,
    )


def _print_figures(content: dict[str, Any], to: TextIO) -> None:
    keys = ("single_cores", "multi_cores", "pending_single_jobs", "pending_multi_jobs")
    print_table(
        "groups",
        ("group", "HS06", "cores 1-core", "multicore", "pending 1-core", "multicore"),
        [
            (group, round(used["power_hs06"]), *(used[key] for key in keys))
            for group, used in content["groups"].items()
        ],
        to,
    )
    if content["others"]:
        print_table(
            "in other: the largest, by the first part of AccountingGroup",
            ("AccountingGroup begins", "cores", "pending jobs"),
            [(row["name"] or "-", row["cores"], row["pending_jobs"]) for row in content["others"]],
            to,
        )
    if content["unplaceable"]:
        names = ("group", "cores", "jobs", "reason")
        print_table(
            "pending jobs that no node could run if it were empty: they are no demand",
            (*names, "sharectl explain job"),
            [[jobs[key] or "-" for key in (*names, "example")] for jobs in content["unplaceable"]],
            to,
        )
    columns = ("node", "cores", "MiB", "HS06/core", "controlled", "says", "held by group")
    print_table("nodes", columns, map(_node_row, content["nodes"]), to)


def _node_row(node: Mapping[str, Any]) -> tuple[object, ...]:
    says = ["draining"] if node["draining"] else []
    says += [node["refusal"]] if node["refusal"] else []
    says += [f"acts on plan {node['obeyed_sequence']}"] if node["obeyed_sequence"] else []
    held = sorted(node["cores_by_group"].items())
    return (
        node["name"],
        node["cores"],
        node["memory_mib"] or "-",
        round(node["hs06_per_core"], 2),
        "reserved" if node["reserved"] else "yes" if node["controlled"] else "no",
        ", ".join(says) or "-",
        " ".join(f"{group}:{cores}" for group, cores in held),
    )


def waits_table(title: str, waits: Sequence[Mapping[str, Any]], to: TextIO) -> None:
    """Print waiting times, the longest of pending jobs first."""
    times = ("longest", "median", "looked at")
    print_table(
        title,
        ("group", "cores", *times, f"started: {times[0]}", *times[1:]),
        [(row["group"], row["cores"], *wait_cells(row)) for row in longest_first(waits)],
        to,
    )


def longest_first(waits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Waiting times by the longest of pending jobs; unknown ones last."""
    return sorted(waits, key=lambda row: -(row["pending"] or {}).get("longest_seconds", -1))


def wait_cells(row: Mapping[str, Any], unknown: str = "?") -> list[str]:
    """Longest, median and jobs looked at, of pending jobs and of those that have started."""
    cells = []
    for times in (row["pending"], row["started"]):
        if times is None:
            cells += [unknown, unknown, "-"]
            continue
        least, sample = (">= ", " (sample)") if times["sampled"] else ("", "")
        cells.append(f"{least}{span(times['longest_seconds'])}")
        cells += [span(times["median_seconds"]), f"{times['jobs']}{sample}"]
    return cells


def blocks_data(
    memory: BlockMemory, idle_cores: Mapping[str, int], give_up: GiveUp, now: int
) -> dict[str, Any]:
    """Blocks of cores that stand free, nodes and sizes that are left alone, and failing sizes.

    Parameters
    ----------
    memory
        As the last cycle left it.
    idle_cores
        Node -> idle cores now, where known: a block may have been taken since that cycle.
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
                    expected_wait_seconds(taken.get(block.kind)), failures.get(block.kind, 0)
                ),
            }
            for block in memory.open
            if block.free_since is not None
            and idle_cores.get(block.node, block.cores) >= block.cores
        ],
        "left_alone": [_back_off(row) for row in memory.back_offs if now < row.until],
        "failing": [
            _back_off(row)
            for row in memory.back_offs
            if row.node == ALL_NODES and row.failures >= IN_A_ROW
        ],
    }


def _back_off(row: BackOff) -> dict[str, Any]:
    keys = ("group", "cores", "failures", "until")
    return {"node": row.node or None, **{key: getattr(row, key) for key in keys}}


def block_rows(blocks: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Label and text of each row."""
    yield from (("kept free", free_words(block)) for block in blocks["free"])
    for row in blocks["left_alone"]:
        nobody = f"no {row['cores']}-core job of {row['group']} came"
        where = row["node"] or "all nodes"
        yield "left alone", f"{where}: {nobody}; until {shown(row['until'])}"


def block_problems(blocks: Mapping[str, Any]) -> Iterator[str]:
    """A line for each block that no job takes."""
    for block in blocks["free"]:
        if block["free_seconds"] >= block["give_up_seconds"]:
            yield f"{free_words(block)}; the next `sharectl cycle` gives them back"
    for row in blocks["failing"]:
        yield (
            f"{row['group']}: its {row['cores']}-core jobs wait, and no job took the cores that "
            "were kept free for them; "
            f"at most one block is tried from {shown(row['until'])} on: is the group at its "
            "quota or at a limit, are its users held off? `condor_q -better-analyze` of such a job"
        )


def free_words(block: Mapping[str, Any]) -> str:
    """One block that stands free."""
    return (
        f"{block['node']}: {block['cores']} cores kept free for {block['group']} for "
        f"{span(block['free_seconds'])}, no job came"
    )


def disabled_words(switch: Disabled) -> str:
    """Such as ``since 2026-07-01 08:00:00 UTC by ann@cm until enabled: cooling``."""
    until = "enabled" if switch.until is None else shown(switch.until)
    return f"since {shown(switch.since)} by {switch.who} until {until}: {switch.reason}"


def unanswered_words(sources: Sequence[str]) -> str:
    """Sources without an answer, because of which a cycle decided nothing."""
    silent = ", ".join(name for name in sources if name != SOURCE_NAME).replace('"', "'")
    pool = f"the pool did not answer completely ({silent})" if silent else ""
    pledges = "no pledges" if SOURCE_NAME in sources else ""
    return ", ".join(filter(None, (pledges, pool))) or "the pool did not answer completely"
