"""``sharectl snapshot`` and ``nodes``: the live pool, as a cycle would see it now.

Parts of a cycle that a look does not need are not imported: a look at many jobs takes little more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from sharectl.cli import options
from sharectl.cycle.doubts import power_doubts
from sharectl.errors import AbsentError, PoolUnavailableError
from sharectl.report import as_json
from sharectl.words import did_you_mean, printable

if TYPE_CHECKING:
    from sharectl.model import Standing
    from sharectl.snapshot.pool import NodeRow

_NODES_EPILOG = """\
control: yes, no, or reserved. version: that of the node jobs, - where the execute point's snippet
is missing, ? where it has published none yet. target: held-back group > helped group, the cap in
cores, the cores of a request; since: when it was published, ? if it is withdrawn or from another
sharectl. job_ctl: the code of its last run. why not: the reason for which a plan has no target for
the node (`sharectl explain codes`), - if it can get one."""


def _snapshot(arguments: argparse.Namespace) -> int:
    """Print jobs of each group, the nodes, and how every daemon answered."""
    config = options.config_of(arguments)
    snapshot = options.pool_of(config).snapshot(int(time.time()))
    content = as_json.snapshot(snapshot, config.tree.names)

    def tables(to: TextIO) -> None:
        from sharectl.report.pool import snapshot_tables

        snapshot_tables(content, to)

    options.show(arguments, "snapshot", content, tables)
    options.say(f"{source.name}: {source.problem}" for source in snapshot.problems)
    over = (snapshot.over_budget,) if snapshot.over_budget is not None else ()
    options.say_warnings((*power_doubts(snapshot), *over))
    return 0 if snapshot.complete else PoolUnavailableError.exit_code


# ---- nodes


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    name = "this one alone: the short or full name of its host; case does not count"
    parser.add_argument("name", metavar="NAME", nargs="?", help=name)


def _nodes(arguments: argparse.Namespace) -> int:
    """Print a row for each node, or for one."""
    from sharectl.cli.wiring import state_to_read
    from sharectl.condor.daemons import ask_collector
    from sharectl.report.pool import nodes_table
    from sharectl.snapshot.pool import list_nodes

    config, now = options.config_of(arguments), int(time.time())
    look = partial(list_nodes, access=options.pool_of(config), now=now)
    rows = ask_collector(config.pool.collector, config.pool.collector_deadline_seconds, look)
    if arguments.name is not None:
        rows = named(rows, arguments.name)
    state, code = state_to_read(config, now)
    content = nodes_content(rows, state.standing, now)
    options.show(arguments, "nodes", content, partial(nodes_table, content["nodes"]))
    return code


def named(rows: list[NodeRow], name: str) -> list[NodeRow]:
    """Row of the node with that short or full name; AbsentError without one."""
    matches = [row for row in rows if name.lower() in (row.node.lower(), row.machine)]
    if not matches:
        remedy = did_you_mean(name, [row.node for row in rows], "`sharectl nodes` lists all")
        raise AbsentError(f"the collector knows no node '{printable(name)}'; {remedy}")
    return matches


def nodes_content(
    rows: Iterable[NodeRow], standing: Iterable[Standing], now: int
) -> dict[str, Any]:
    """Content of ``nodes --json``; ``standing`` are the targets that were published, with times."""
    from sharectl.plan.nodes import REMEDIES
    from sharectl.plan.plan import NODE_REASONS

    since = {stood.target: stood.since for stood in standing}
    nodes = [
        {
            **row._asdict(),
            "target": asdict(row.target) if row.target else None,
            "since": since.get(row.target) if row.target else None,
            "says": NODE_REASONS.get(row.reason or "") or REMEDIES.get(row.reason or ""),
        }
        for row in rows
    ]
    return {"now": now, "nodes": nodes}


VERBS = {
    "snapshot": options.Verb(_snapshot),
    "nodes": options.Verb(_nodes, _add_nodes, epilog=_NODES_EPILOG),
}
