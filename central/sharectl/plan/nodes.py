"""Nodes under control, the codes that nodes publish, and nodes that get no target, with reasons."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from math import floor
from typing import Optional, Union

from sharectl.model import Snapshot, Standing
from sharectl.plan.waits import NodeCores
from sharectl.settings import setting
from sharectl.words import counted

NOT_PUBLISHED, NEVER_RAN = "not-published", "never-ran"
"""Of a node that publishes no code; the second has the snippet that should run job_ctl."""

STALE = "stale"
"""Of a node whose code is older than what START goes by; also why it gets no target then."""

NO_SNIPPET, SWITCHED_OFF = "no-snippet", "switched-off"
NO_PARTITIONABLE_SLOT = "no-partitionable-slot"
DEAF = (NO_SNIPPET, SWITCHED_OFF, NO_PARTITIONABLE_SLOT, STALE)
"""Reasons of `sharectl.plan.plan.NODE_REASONS` for which no target would act on a node."""

OUT_OF_RANGE = "out-of-range"
"""Reason of a node with more than `MOST_CORES`."""

UNKNOWN_CODE = "unknown-code"
"""Of a node whose code is none of these."""

QUIET = ("ok", "no-line")
"""Codes when all is well."""

NO_FILE, NO_AD, EXPIRED = "no-file", "no-ad", "expired"
"""Codes when all is well too, unless there is something for the node."""

_INSTALL = "reinstall all of startd_cron"
_WHO = "find its other writer; `sharectl cycle`"

REMEDIES: Mapping[str, str] = {
    NOT_PUBLISHED: "never ran job_ctl: install config.d/60-sharectl-execute-point.conf there, and "
    "condor_reconfig",
    NEVER_RAN: "job_ctl published nothing yet: see /usr/libexec/sharectl and StartLog there",
    STALE: "job_ctl ran too long ago for START to go by it: see StartLog there",
    UNKNOWN_CODE: "a code of another version: install one version on all machines",
    # job_ctl.py
    "internal-error": "a fault of job_ctl: please report its lines in StartLog",
    "bad-arguments": "a wrong option: StartLog there names it; correct SHARECTL_SOURCE or "
    "SHARECTL_SOURCE_OPTIONS",
    "timeout": "the startd, a source or a file system hangs: StartLog there names it",
    "no-startd": "the startd does not answer: try `condor_status -direct NODE` as its user",
    "startd-garbled": f"condor_status prints something else: is it HTCondor's? {_INSTALL}",
    "backwards": "took a newer plan before: an old copy, or two centres publish; `sharectl cycle`",
    "disagree": "its sources differ: let one sharectl publish; `sharectl cycle`",
    "no-state": "cannot write its state: see the folder of --state (LOG)",
    "target-garbled": f"target.py does not run, or does not fit: {_INSTALL}",
    # target.py
    NO_FILE: "sees no published file: compare SHARECTL_SOURCE with publish:, and its mounts",
    EXPIRED: "reads an expired copy of a valid plan, or its clock is ahead",
    "unreadable": "cannot read the file: give its user (condor) the right",
    "unsafe": "no regular file, or writable for all: chmod o-w, or name a file in SHARECTL_SOURCE",
    "too-big": "larger than 1 MiB: not sharectl's, or use collector:",
    "truncated": f"the end is missing: copy by rename, make room; {_WHO}",
    "malformed": f"no targets, or of another version: {_WHO}",
    "unknown-group": "has a group that --groups there lacks: add it, or leave --groups out",
    "duplicate-node": f"two lines for one node: {_WHO}",
    "future": "made in the future, or valid for more than a day: compare both clocks",
    "other-pool": "for another pool: compare pool.name with its --pool, SHARECTL_SOURCE with "
    "publish:",
    "unsigned": "has no signature: set signing_key_file, then `sharectl cycle`",
    "bad-signature": "signed by another key, or altered: compare its --key-file with "
    "signing_key_file",
    "no-key": "cannot read its --key-file: install the key for its user (condor)",
    "unsafe-key": "others have rights on its --key-file: chown, chmod 0640",
    "bad-key": "its --key-file is not one or two lines KEYID HEX: install the key again",
    "source-garbled": f"a source's program does not run, or does not fit: {_INSTALL}",
    # target_https.py
    "no-host": "cannot resolve the server: correct DNS, or the URL in SHARECTL_SOURCE",
    "no-connection": "cannot reach the web server: is it up, and is a firewall between?",
    "http-status": "the web server answers neither 200 nor 304: compare SHARECTL_SOURCE with "
    "publish:",
    "http-garbled": "the answer is not HTTP, or incomplete: look at the server, or a proxy",
    "tls-failed": "no TLS version that both accept: look at the server's",
    "bad-certificate": "its certificate is invalid, or of another name: renew it, or correct "
    "--ca-file",
    "redirected": "the server redirects: write the new address in SHARECTL_SOURCE",
    "bad-ca-file": "its --ca-file has no certificates, or cannot be read: install it again",
    # target_collector.py
    NO_AD: "its collector has no target for it: compare that one with pool.collector",
    "no-collector": "the collector does not answer: try `condor_status -any` there as the startd's "
    "user",
    "collector-garbled": f"condor_status prints something else: is it HTCondor's? {_INSTALL}",
    "bad-ad": "an invalid ad of its target: install one version on both sides; `sharectl cycle`",
    "forged": "only others advertise its target: compare its --identity with `sharectl status`, "
    "restrict who may advertise (docs/transports.md)",
}
"""Code of a problem -> what to do."""


def sharectls_own(code: str) -> str:
    """``code``, or `UNKNOWN_CODE` for text in an ad that no program of sharectl writes."""
    return code if code in REMEDIES or code in QUIET else UNKNOWN_CODE


def problems(refusing: Mapping[str, int], slots: int) -> list[str]:
    """A line for each code that keeps targets from nodes: number of slots, and what to do."""
    return [
        f"{count} of {slots} partitionable slots under control: {code}: {REMEDIES[code]}"
        for code, count in refusing.items()
    ]


NO_VERSION = "unknown"
"""Version of a node whose job_ctl publishes none, or nonsense."""

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}")


def version_of(text: Optional[str]) -> str:
    """Version that a node publishes, or `NO_VERSION`."""
    return text if text and _VERSION.fullmatch(text) else NO_VERSION


def version_problems(
    versions: Mapping[str, int], examples: Mapping[str, str], central: str
) -> list[str]:
    """A line for each version of nodes that does not fit ``central``, with one of its nodes.

    Versions fit if they have the same first part, and below 1.0 the same second one.
    """
    lines, here = [], _series(central)
    for version, count in versions.items():
        newer = _series(version) > here
        remedy = "install that version here" if newer else f"install {central} there"
        if _series(version) != here:
            lines.append(
                f"{counted(count, 'partitionable slot')}, such as {examples[version]}: sharectl "
                f"{version} is too {'new' if newer else 'old'} for {central} here: {remedy}"
            )
    return lines


def _series(version: str) -> tuple[int, ...]:
    """Parts of a version that both halves must share."""
    parts = tuple(map(int, version.split("."))) if version != NO_VERSION else (-1,)
    return parts[:1] if parts[0] else parts[:2]


SWITCHES = {
    "file": "the file that SHARECTL_DISABLED_FILE names there (/etc/sharectl/disabled) exists; "
    "remove it",
    "knob": "SHARECTL_ENABLED is False there; set it to True, and condor_reconfig",
}
"""Switch that turns sharectl off on one node -> how to have it on again."""


@dataclass(frozen=True)
class NodeWords:
    """State of its target as the node itself says, now."""

    obeyed_sequence: Optional[int] = None
    """As `sharectl.model.Node.obeyed_sequence`."""
    refusal: Optional[str] = None
    problem: Optional[str] = None
    """Why it is not known."""
    switched_off: tuple[str, ...] = ()
    """`SWITCHES` of the node that are off: START is the site's own then, whatever its target."""
    opens_at: Optional[int] = None
    """Unix seconds from which its clauses on time are true; None if they are now, or unknown."""


HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
"""Name of a node: a host name, short or full."""


@dataclass(frozen=True)
class ControlledHosts:
    """The nodes whose name matches one of the patterns."""

    patterns: tuple[str, ...]
    """Shell patterns (``*``, ``?``, ``[…]``), without case, of the short or the full host name."""


@dataclass(frozen=True)
class ControlledShare:
    """A share of the nodes that can act, the same ones as long as they are there."""

    ratio: float
    """0 to 1."""


@dataclass(frozen=True)
class ControlledConstraint:
    """The nodes whose machine ad meets a ClassAd expression."""

    expression: str


Controlled = Union[ControlledHosts, ControlledShare, ControlledConstraint]

ALL_NODES = ControlledHosts(("*",))


@dataclass(frozen=True)
class NodesConfig:
    """Execute points to steer."""

    controlled: Controlled = setting(ALL_NODES, kind="nodes")
    """Nodes that may get targets: host patterns (`*`, `?`, `[0-9]`; short or full name, case
    ignored), a share such as `"50%"`, or a ClassAd constraint. Nodes without the execute point's
    snippet get no target: a share is of those that have it, rounded down, one node at least
    (lowest SHA-256 of names; `"0%"` only measures). A single name is a host, in parentheses an
    attribute: `(HAS_GPU)`."""
    reserved: Optional[Controlled] = setting(None, kind="nodes")
    """Nodes that never get targets, in the same forms."""
    job_ctl_stale_seconds: int = 2340
    """Age of the last `job_ctl` run (node's clock) that `status` calls stale where nodes publish no
    `t1_JobCtlStaleSeconds`: three 13-minute periods."""

    @property
    def only_measures(self) -> bool:
        """True if no node is to be under control."""
        return isinstance(self.controlled, ControlledShare) and self.controlled.ratio == 0


def controlled_machines(
    controlled: Controlled,
    machines: Iterable[str],
    meeting_constraint: Collection[str] = (),
    able: Optional[Collection[str]] = None,
) -> frozenset[str]:
    """Full host names of nodes under control; the collector tells those meeting a constraint.

    A share is of the machines ``able`` to act on targets, None: of all. It is
    ``floor(ratio * number of machines)`` of them, at least one above 0, the lowest by SHA-256 of
    the lower-case name: the choice hangs on the names alone, and hardly on other nodes.
    """
    machines = frozenset(machines)
    if isinstance(controlled, ControlledConstraint):
        return machines & frozenset(meeting_constraint)
    if isinstance(controlled, ControlledHosts):
        names = {name: (name.lower(), name.lower().partition(".")[0]) for name in machines}
        patterns = [pattern.lower() for pattern in controlled.patterns]
        return frozenset(
            name
            for name in machines
            if any(fnmatchcase(own, pattern) for pattern in patterns for own in names[name])
        )
    from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL, which few configurations need

    machines = machines if able is None else machines & frozenset(able)
    ranked = sorted(machines, key=lambda name: (sha256(name.lower().encode()).digest(), name))
    least = 1 if controlled.ratio > 0 else 0
    return frozenset(ranked[: max(least, nodes_in_share(controlled.ratio, len(ranked)))])


def names_nodes(controlled: Controlled) -> bool:
    """True if the operator names the nodes, or an expression: neither all nodes nor a share."""
    return controlled != ALL_NODES and not isinstance(controlled, ControlledShare)


def nodes_in_share(ratio: float, nodes: int) -> int:
    """How many of so many nodes a share is, rounded down."""
    # The decimal number that was written: 0.29 * 100 is 28.999… in binary.
    return floor(Fraction(repr(float(ratio))) * nodes)


MOST_CORES = 100_000
"""Nodes refuse a document in which a cap or a request has more."""

RETRY_TIMES = 4
"""A node that has not obeyed is tried again after so many times what it had to obey."""


def never_steered(
    nodes: Mapping[str, NodeCores], controlled: Controlled = ALL_NODES
) -> dict[str, str]:
    """Node that no strategy steers -> one of `sharectl.plan.plan.NODE_REASONS`."""
    named = names_nodes(controlled)
    return {
        node.name: reason
        for here in nodes.values()
        for node in [here.node]
        for reason, is_so in (
            (OUT_OF_RANGE, max(node.cores, here.used_cores) > MOST_CORES),
            (STALE, node.deaf == STALE),
            ("several-slots", node.several_slots),
            ("reserved", node.reserved),
            ("uncontrolled", not node.controlled),
            (node.deaf, node.deaf != STALE and (node.controlled or not named)),
        )
        if is_so and reason is not None
    }


def left_out(
    never: Mapping[str, str],
    snapshot: Snapshot,
    standing: Iterable[Standing],
    before: Mapping[str, int],
    now: int,
    obey_seconds: int,
) -> tuple[dict[str, str], dict[str, int]]:
    """Node -> one of `NODE_REASONS`; and node -> Unix seconds at which it did not obey.

    ``never`` are those of `never_steered`. A node does not obey if it has had its target for longer
    than ``obey_seconds`` and acts on none, or on an older one; one that says nothing counts so only
    where others speak. One that refuses what is published gets nothing new, and keeps what it acts
    on: a web server that is down for a minute must not undo the work of hours.
    """
    stood = {row.target.node: row for row in standing}
    speaking = any(node.obeyed_sequence is not None for node in snapshot.nodes)
    reasons = dict(never)
    unheeding: dict[str, int] = {}
    for node in snapshot.nodes:
        name, since, obeys = node.name, before.get(node.name), False
        if name in stood:
            begin = stood[name].since
            # A plan's sequence is at least the second in which it was made.
            obeys = now - begin <= obey_seconds or (node.obeyed_sequence or -1) >= begin
        if node.draining:
            reasons.setdefault(name, "draining")
        if node.refusal is not None and not obeys:
            reasons.setdefault(name, "refused")
        if name not in reasons and name in stood:
            since = now if speaking and not obeys else None
        elif name not in reasons and since is not None:
            since = since if now - since < RETRY_TIMES * obey_seconds else None
        if since is not None:
            unheeding[name] = since
            reasons.setdefault(name, "not-obeying")
    return reasons, unheeding
