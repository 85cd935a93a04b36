"""Which nodes get no target whatever the errors say, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Optional

from sharectl.core.model import Node, Snapshot, Standing

RETRY_TIMES = 4
"""A node that has not obeyed is tried again after so many times what it had to obey."""


def left_out(
    snapshot: Snapshot,
    standing: Iterable[Standing],
    before: Mapping[str, int],
    now: int,
    obey_seconds: int,
) -> tuple[dict[str, str], dict[str, int]]:
    """Node -> one of `sharectl.core.plan.NODE_REASONS`; and what the next cycle is to be given as ``before``.

    A node does not obey if it has had its target for longer than ``obey_seconds`` and acts on none, or on an older one.
    One that says nothing of it counts so only where others do. One that refuses what is published gets nothing new, and
    keeps what it acts on: a web server that is down for a minute must not undo the work of hours.

    Parameters
    ----------
    before
        Node -> Unix seconds at which it was found not to obey.
    """
    stood = {each.target.node: each for each in standing}
    speaking = any(node.obeyed_sequence is not None for node in snapshot.nodes)
    reasons: dict[str, str] = {}
    unheeding: dict[str, int] = {}
    for node in snapshot.nodes:
        found = _as_it_is(node)
        since = before.get(node.name)
        if found == "refused" and node.name in stood and _obeys(node, stood[node.name], now, obey_seconds):
            found = None
        if found is not None:
            reasons[node.name] = found
        elif node.name in stood and speaking and not _obeys(node, stood[node.name], now, obey_seconds):
            since = now
        elif (since is not None and now - since >= RETRY_TIMES * obey_seconds) or node.name in stood:
            since = None
        if since is not None:
            unheeding[node.name] = since
            reasons.setdefault(node.name, "not-obeying")
    return reasons, unheeding


def _as_it_is(node: Node) -> Optional[str]:
    if not node.controlled:
        return "uncontrolled"
    if node.reserved:
        return "reserved"
    if node.several_slots:
        return "several-slots"
    if node.draining:
        return "draining"
    return "refused" if node.refusal is not None else None


def _obeys(node: Node, stood: Standing, now: int, obey_seconds: int) -> bool:
    # A plan's sequence is at least the second in which it was made.
    acts = node.obeyed_sequence is not None and node.obeyed_sequence >= stood.since
    return acts or now - stood.since <= obey_seconds
