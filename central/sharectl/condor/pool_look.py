"""Look at a pool for `sharectl check pool`: slots, daemons, clocks, and knobs of daemons.

One query has all slots; daemons are asked one by one, of the execute points only some.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor import node_ads
from sharectl.condor.ads import evaluated, text, whole
from sharectl.condor.configuration import words_of
from sharectl.condor.daemons import (
    LOCATION,
    PARTITIONABLE,
    Location,
    bindings,
    knobs_of_daemon,
    location_of,
    query,
    schedd,
    why_silent,
)
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.expressions import split
from sharectl.model import PoolConfig
from sharectl.plan.nodes import NOT_PUBLISHED, NodesConfig
from sharectl.words import shown

Version = tuple[int, ...]
"""Three numbers, such as 24.0.18; empty if it is unknown."""

TESTED: Version = (23, 0, 28)
"""Oldest version that pool tests ran on."""
NEEDED: Version = (23, 0)
"""With an older one `60-sharectl-execute-point.conf` changes nothing."""
_VERSION = re.compile(r"\D*(\d{1,4})\.(\d{1,4})\.(\d{1,4})\b")


def dotted(version: Version) -> str:
    """Version for people, such as ``24.0.18``."""
    return ".".join(map(str, version))


def version_of(written: str) -> Version:
    """Version in a text such as ``$CondorVersion: 25.14.1 …``; empty if it has no version."""
    match = _VERSION.match(written)
    return tuple(map(int, match.groups())) if match else ()


MOST_ASKED = 8
"""Execute points that are asked for their knobs."""
_MOST_NAMES = 50
"""Job transforms and submit requirements of an access point that are read."""
GROUP_LISTS = ("JOB_TRANSFORM_NAMES", "SUBMIT_REQUIREMENT_NAMES", "IMMUTABLE_JOB_ATTRS")
"""Knobs of an access point that say who may choose a job's group."""
LEFTOVERS = "CLAIM_PARTITIONABLE_LEFTOVERS"
"""Knob of an access point that may start jobs past quotas on slots with a consumption policy."""
_POLICY = "ConsumptionCpus"
ROUTED_BY = "routed_by"
"""Key, among the knobs of an access point, of the job router that all its jobs came through."""
_DEFRAG_KNOBS = ("DEFRAG_REQUIREMENTS", "DEFRAG_DRAINING_START_EXPR")
_KINDS = ("Collector", "Negotiator", "Schedd", "Defrag")


class DaemonLook(NamedTuple):
    """A daemon as the collector has it."""

    location: Location
    version: Version
    ahead_seconds: Optional[int]
    """Its clock less the collector's when its ad arrived; None if the ad does not say."""

    @property
    def name(self) -> str:
        """Name for people."""
        return shown(self.location.get("Name", "without a name"))


class SlotLook(NamedTuple):
    """A partitionable slot as the collector has it."""

    machine: str
    """Host name, lower case, or what stands there instead, printable."""
    daemon: DaemonLook
    code: str
    """Code of `sharectl.plan.nodes`."""
    refuses: bool
    """True if the code keeps a target away."""
    missing: tuple[str, ...]
    """Clauses of sharectl's that START has not."""
    undefined: tuple[str, ...]
    """Clauses that the slot does not publish."""
    is_draining: bool
    has_policy: bool
    """True with a consumption policy."""

    @property
    def has_snippet(self) -> bool:
        """True for slots of nodes that have the execute point's snippet."""
        return self.code != NOT_PUBLISHED


class PoolLook(NamedTuple):
    """Answer of a collector."""

    slots: tuple[SlotLook, ...]
    daemons: Mapping[str, tuple[DaemonLook, ...]]
    """Kind of htcondor2.AdType -> daemons."""
    ahead_seconds: int
    """Least difference of the collector's clock from this machine's; 0 if it is small."""
    control: node_ads.InControl


def look_at_pool(
    collector: Any,
    now: int,
    awaited: node_ads.Awaited,
    config: NodesConfig,
    *,
    observes: bool,
    clauses: Sequence[str],
) -> dict[str, Any]:
    """Counts of `counts_of`, and ``look``, a `PoolLook`; START has to name the ``clauses``."""
    # The collector adds whatever Start asks for: the clauses make the answer no longer.
    own = (*clauses, *LOCATION, "Start", "LastHeardFrom", "State", "Draining", _POLICY)
    ads = query(collector, "Slot", PARTITIONABLE, (*node_ads.PROJECTION, *own))
    skewed = ahead_seconds(collector)
    times = (*LOCATION, "MyCurrentTime", "LastHeardFrom")
    daemons = {
        kind: tuple(map(_daemon_of, query(collector, kind, projection=times))) for kind in _KINDS
    }
    facts, control = node_ads.judged(collector, ads, now, config, observes=observes)
    slots = tuple(
        SlotLook(
            machine=slot.machine or shown(text(evaluated(ad, "Machine")) or "without a name"),
            daemon=_daemon_of(ad),
            code=node_ads.reason_of(slot),
            refuses=slot.machine in control.expected and node_ads.keeps_away(slot, awaited),
            missing=missing_clauses(str(ad.get("Start", "")), tuple(clauses)),
            undefined=tuple(name for name in clauses if name not in ad),
            is_draining=slot.is_draining,
            has_policy=_POLICY in ad,
        )
        for ad, slot in zip(ads, facts)
    )
    look = PoolLook(slots, daemons, skewed, control)
    return {**node_ads.counts_of(facts, awaited, control.expected), "look": look}


def _daemon_of(ad: Any) -> DaemonLook:
    location = location_of(ad)
    sent, heard = (whole(evaluated(ad, name), 0) for name in ("MyCurrentTime", "LastHeardFrom"))
    version = version_of(location.get("CondorVersion", ""))
    return DaemonLook(location, version, sent - heard if sent and heard else None)


@lru_cache(maxsize=1024)
def missing_clauses(start: str, clauses: tuple[str, ...]) -> tuple[str, ...]:
    """Clauses that can be false while START, as HTCondor prints it, is true."""
    texts = "\n".join(split(start))
    wanted = r"(?im)^MY\.{}\s*(=!=|isnt)\s*false$"
    return tuple(name for name in clauses if not re.search(wanted.format(name), texts))


def ahead_seconds(collector: Any) -> int:
    """Seconds by which a collector's clock is ahead of this machine's, at least; 0 if few."""
    # Its ad of itself is minutes old, so that the collector compares its clock by a constraint.
    least = node_ads.CLOCKS_DIFFER_SECONDS
    for sign in (1, -1):
        differs = f"{sign} * (time() - {int(time.time())}) > {least}"
        if query(collector, "Collector", differs, ["Name"]):
            return sign * least
    return 0


# ---- daemons, asked themselves


def ask_daemons(
    look: PoolLook, startds: Iterable[DaemonLook], startd_knobs: Sequence[str], pool: PoolConfig
) -> dict[str, Answer]:
    """Knobs of daemons by kind and name, such as ``schedd ap-1.example.org``; name → text."""
    bindings()
    intervals = partial(knobs, names=("NEGOTIATOR_INTERVAL",))
    rows: list[tuple[str, Iterable[DaemonLook], Callable[[Location], Any]]] = [
        ("schedd", look.daemons["Schedd"], _of_access_point),
        ("negotiator", look.daemons["Negotiator"], intervals),
        ("defrag", look.daemons["Defrag"], partial(knobs, names=_DEFRAG_KNOBS)),
        ("startd", startds, partial(knobs, names=startd_knobs)),
    ]
    questions = {}
    for kind, daemons, ask in rows:
        is_schedd = kind == "schedd"
        seconds = pool.schedd_deadline_seconds if is_schedd else pool.collector_deadline_seconds
        for daemon in daemons:
            why = partial(why_silent, daemon.location.get("MyAddress", ""), kind.upper())
            question = Question(partial(ask, daemon.location), seconds, why)
            questions[f"{kind} {daemon.name}"] = question
    return ask_all(questions)


def knobs(location: Location, names: Iterable[str]) -> dict[str, str]:
    """Knobs of a running daemon that are set: name, lower case -> text."""
    return knobs_of_daemon(location, {name.lower() for name in names}.__contains__)


def _of_access_point(location: Location) -> dict[str, str]:
    """Lists of `GROUP_LISTS`, the rules that they name, `LEFTOVERS` and `ROUTED_BY`."""
    routed, others = (
        schedd(location).query(constraint, projection=["RoutedBy"], limit=1)
        for constraint in ("RoutedBy isnt undefined", "RoutedBy is undefined")
    )
    router = text(evaluated(routed[0], "RoutedBy")) if routed and not others else None
    lists = knobs(location, GROUP_LISTS)
    rules = [
        f"{kind}_{name}"
        for kind in ("JOB_TRANSFORM", "SUBMIT_REQUIREMENT")
        for name in words_of(lists.get(f"{kind}_NAMES".lower(), ""))[:_MOST_NAMES]
    ]
    routed_by = {ROUTED_BY: shown(router)} if router else {}
    return {**lists, **knobs(location, [*rules, LEFTOVERS]), **routed_by}
