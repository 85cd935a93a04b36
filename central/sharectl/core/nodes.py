"""Which nodes are under control: by name, by share, or by a constraint on their ads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from hashlib import sha256
from math import floor
from typing import Union

HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
"""What a node may be called: a host name, short or full."""


@dataclass(frozen=True)
class ControlledHosts:
    """The nodes whose name matches one of the patterns."""

    patterns: tuple[str, ...]
    """Shell patterns (``*``, ``?``, ``[…]``), matched without case on the short or the full host name."""


@dataclass(frozen=True)
class ControlledShare:
    """A share of all nodes, the same ones as long as they are there."""

    ratio: float
    """0 to 1."""


@dataclass(frozen=True)
class ControlledConstraint:
    """The nodes whose machine ad meets a ClassAd expression."""

    expression: str


Controlled = Union[ControlledHosts, ControlledShare, ControlledConstraint]

ALL_NODES = ControlledHosts(("*",))


def controlled_machines(
    controlled: Controlled, machines: Iterable[str], meeting_constraint: Collection[str]
) -> frozenset[str]:
    """Those of ``machines`` that are under control.

    Parameters
    ----------
    machines
        Full host names of all nodes.
    meeting_constraint
        Those whose ad met the expression of a `ControlledConstraint`, as the collector found; not used otherwise.
    """
    if isinstance(controlled, ControlledShare):
        return selected_by_share(controlled.ratio, machines)
    if isinstance(controlled, ControlledHosts):
        return frozenset(m for m in machines if selected_by_hosts(controlled.patterns, m))
    return frozenset(machines) & frozenset(meeting_constraint)


def selected_by_hosts(patterns: Iterable[str], machine: str) -> bool:
    """Whether a pattern matches the host name ``machine`` or its first part, without case."""
    full = machine.lower()
    names = (full, full.partition(".")[0])
    return any(fnmatchcase(name, pattern.lower()) for pattern in patterns for name in names)


def selected_by_share(ratio: float, machines: Iterable[str]) -> frozenset[str]:
    """``floor(ratio * number of machines)`` of ``machines``, those with the lowest SHA-256 of the lower-case name.

    The choice hangs on the names alone: not on their order, and hardly on which other nodes come and go.
    """
    ranked = sorted(set(machines), key=lambda name: (sha256(name.lower().encode()).digest(), name))
    return frozenset(ranked[: nodes_in_share(ratio, len(ranked))])


def nodes_in_share(ratio: float, nodes: int) -> int:
    """How many of so many nodes a share is, rounded down."""
    # The decimal number that was written: 0.29 * 100 is 28.999… in binary.
    return floor(Fraction(repr(float(ratio))) * nodes)
