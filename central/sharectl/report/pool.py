"""The pool for people: tables of a snapshot and of nodes, free blocks, the switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from sharectl.model import Disabled
from sharectl.plan.blocks import ALL_NODES, BackOff, BlockMemory, expected_wait_seconds
from sharectl.plan.settings import IN_A_ROW, GiveUp
from sharectl.report.tables import NONE, UNKNOWN, cell, print_records, print_table
from sharectl.shares.pledges import SOURCE_NAME
from sharectl.times import shown, span

Row = Mapping[str, Any]

_GROUPS = """group, HS06, single_cores AS cores 1-core, multi_cores AS multicore,
    pending_single_jobs AS pending 1-core, pending_multi_jobs AS multicore"""
_OTHERS = "name AS AccountingGroup begins, cores, pending_jobs AS pending jobs"
_UNPLACEABLE = "group, cores, jobs, why, example AS sharectl explain job"
_WHY = {False: "no empty node could run them", True: "their time has not come"}


def snapshot_tables(content: Row, to: TextIO) -> None:
    """Print the tables of a snapshot, from the content of `as_json.snapshot`.

    An incomplete one has no table of groups, because unknown is not zero.
    """
    if content["complete"]:
        groups = content["groups"].items()
        rows = [{**used, "group": name, "HS06": round(used["power_hs06"])} for name, used in groups]
        print_records("groups", _GROUPS, rows, to)
    if content["others"]:
        title = "in other: the largest, by the first part of AccountingGroup"
        print_records(title, _OTHERS, content["others"], to)
    if content["unplaceable"]:
        rows = [{**row, "why": _WHY[row["later"]]} for row in content["unplaceable"]]
        print_records("pending jobs that are no demand", _UNPLACEABLE, rows, to)
    if content["nodes"]:
        columns = ("node", "cores", "controlled", "says", "held by group")
        print_table("nodes", columns, map(_node, content["nodes"]), to)
    sources = [
        (source["name"], cell(round(source["seconds"], 3)), source["problem"] or NONE)
        for source in content["sources"]
    ]
    print_table("sources", ("source", "seconds", "problem"), sources, to)


def _node(node: Row) -> tuple[object, ...]:
    says = ["draining"] if node["draining"] else []
    says += ["too hot: no job starts"] if node["hot"] else []
    says += dict.fromkeys(filter(None, (node["deaf"], node["refusal"])))
    says += [
        f"closed to {jobs['group']} of {', '.join(map(str, jobs['sizes']))} cores"
        for jobs in node["closed"]
    ]
    says += [f"acts on plan {node['obeyed_sequence']}"] if node["obeyed_sequence"] else []
    cores = node["cores_by_group"]
    held = cores and " ".join(f"{name}:{cores[name]}" for name in sorted(cores))
    return node["name"], node["cores"], _control(node), cell(", ".join(says)), cell(held)


def _control(node: Row) -> str:
    return "reserved" if node["reserved"] else "yes" if node["controlled"] else "no"


def nodes_table(rows: Sequence[Row], to: TextIO) -> None:
    """Print a row for each node, from the content of ``nodes --json``."""
    columns = ("node", "control", "version", "target", "since", "job_ctl", "why not")
    print_table("nodes", columns, [[*_node_cells(row)] for row in rows], to)


def _node_cells(row: Row) -> Iterator[object]:
    yield row["node"]
    yield _control(row)
    yield row["version"] or (UNKNOWN if row["snippet"] else NONE)
    target = row["target"]
    if target is None:
        yield from (NONE, NONE)
    else:
        pair = f"{target['held_back']}>{target['helped']}"
        yield f"{pair} cap {target['cap_cores']} for {target['request_cores']}"
        yield UNKNOWN if row["since"] is None else shown(row["since"])
    yield row["job_ctl"] or NONE
    yield f"{row['reason']}: {row['says']}" if row["reason"] else NONE


def blocks_data(memory: BlockMemory, give_up: GiveUp, now: int) -> dict[str, Any]:
    """Blocks that stood free in the last cycle, nodes and sizes left alone, failing sizes."""
    taken = {(row.group, row.cores): row for row in memory.taken}
    of_all = [row for row in memory.back_offs if row.node == ALL_NODES]
    failures = {(row.group, row.cores): row.failures for row in of_all}
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
        ],
        "left_alone": [_back_off(row) for row in memory.back_offs if now < row.until],
        "failing": [_back_off(row) for row in of_all if row.failures >= IN_A_ROW],
    }


def _back_off(row: BackOff) -> dict[str, Any]:
    keys = ("group", "cores", "failures", "until")
    return {"node": row.node or None, **{key: getattr(row, key) for key in keys}}


def block_rows(blocks: Row) -> Iterator[tuple[str, str]]:
    """Label and text of each row."""
    yield from (("kept free", _free(block)) for block in blocks["free"])
    for row in blocks["left_alone"]:
        nobody = f"no {row['cores']}-core job of {row['group']} came"
        yield "left alone", f"{row['node'] or 'all nodes'}: {nobody}; until {shown(row['until'])}"


def block_problems(blocks: Row) -> Iterator[str]:
    """A line for each block that no job takes."""
    for block in blocks["free"]:
        if block["free_seconds"] >= block["give_up_seconds"]:
            yield f"{_free(block)}; the next `sharectl cycle` gives them back"
    for row in blocks["failing"]:
        yield (
            f"{row['group']}: its {row['cores']}-core jobs wait, and no job took the cores that "
            "were kept free for them; "
            f"at most one block is tried from {shown(row['until'])} on: is the group at its "
            "quota or at a limit, are its users held off? `condor_q -better-analyze` of such a job"
        )


def _free(block: Row) -> str:
    kept = f"{block['node']}: {block['cores']} cores kept free for {block['group']}"
    return f"{kept} for {span(block['free_seconds'])}, no job came"


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
