"""``sharectl explain node``."""

from __future__ import annotations

import argparse
import sys
import time
from difflib import get_close_matches
from typing import Optional

from sharectl.cli import options
from sharectl.cli.explain_source import add_source, explained_of
from sharectl.cli.wiring import ledger_of, state_to_read
from sharectl.config.model import Config
from sharectl.errors import AbsentError
from sharectl.explain.again import Explained
from sharectl.explain.node import Since, explain_node
from sharectl.plan.nodes import NodeWords
from sharectl.plan.records import NodeRecord
from sharectl.report import as_json, explain
from sharectl.report.tables import listed
from sharectl.words import counted, shown

_SINCE_SECONDS = 3 * 86_400
"""So far back the ledger is looked through for the begin of a target."""
_NAMED = 3
"""Nodes named where none is like the one that was asked for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject."""
    parser.add_argument(
        "name", metavar="NAME", help="a node, by its short or full host name; case does not count"
    )
    add_source(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what a node holds, its target and why, what the node says, and what would change it."""
    config = options.config_of(arguments)
    explained = explained_of(arguments, config)
    node = _node(explained, arguments.name)
    found = explain_node(
        explained, node, _since(explained, node, config), _words(arguments, node.node, config)
    )
    if arguments.json:
        print(as_json.dumps("explain_node", explain.node_as_data(explained, found)))
    else:
        explain.print_node(explained, found, sys.stdout, everything=arguments.all)
    return 0


def _node(explained: Explained, name: str) -> NodeRecord:
    nodes = {node.node.lower(): node for node in explained.record.nodes}
    wanted = name.lower()
    found = nodes.get(wanted) or nodes.get(wanted.split(".")[0])
    if found is None:
        near = get_close_matches(wanted, list(nodes), 3)
        some = f"; nodes there are {listed(list(nodes), _NAMED)}" if nodes else ""
        meant = f"; did you mean {' or '.join(near)}?" if near else some
        raise AbsentError(f"no node {shown(name)!r} among {counted(len(nodes), 'node')}{meant}")
    return found


def _since(explained: Explained, node: NodeRecord, config: Config) -> Optional[Since]:
    """Since when the node's target is as it is: by the state of the last cycle, or by the ledger."""
    if node.target is None:
        return None
    taken_at = explained.record.taken_at
    for stood in state_to_read(config, int(time.time())).standing:
        if stood.target == node.target and stood.since <= taken_at:
            return Since(stood.since, exact=True)
    ledger = ledger_of(config)
    if explained.record.number == 0 or not ledger.is_readable():
        return Since(taken_at, exact=True)
    moments = ledger.node_history(node.node, taken_at - _SINCE_SECONDS, taken_at + 1)
    since = taken_at
    for moment in reversed(moments):
        if moment.node.target != node.target:
            return Since(since, exact=True)
        since = moment.taken_at
    return Since(since, exact=False)


def _words(arguments: argparse.Namespace, name: str, config: Config) -> Optional[NodeWords]:
    """What the node says now; None where the explanation is of another time."""
    if arguments.jobs is not None or arguments.cycle is not None or arguments.at is not None:
        return None
    from sharectl.condor.nodes import ask

    return ask(
        config.pool.collector,
        name,
        int(time.time()),
        config.nodes.job_ctl_stale_seconds,
        config.pool.collector_deadline_seconds,
    )
