"""Nodes by their ads in the collector: the target that each acts on, grace, and why it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Optional

from sharectl.condor.ad_rows import row_of
from sharectl.condor.ads import evaluated, expression, is_true, sequence, text, value_of, whole
from sharectl.condor.clock import OF_SLOTS, opens_at
from sharectl.condor.daemons import PARTITIONABLE, ask_collector, query
from sharectl.condor.expressions import with_clock
from sharectl.condor.nodes_in_control import in_control, machine_of, met_by
from sharectl.errors import PoolUnavailableError
from sharectl.plan import nodes
from sharectl.plan.nodes import HOST_NAME, NodesConfig, NodeWords

_NAMES = """
    Machine MyCurrentTime t1_JobCtlReason t1_JobCtlTime t1_JobCtlStaleSeconds t1_Disabled t1_Enabled
    t1_TargetActive t1_TargetGroups t1_Targetcores t1_TargetUntil PartitionableSlot Cpus
    Childt1_HeldBackCores ChildCpus TotalSlotCpus t1_CurrentJobs
    MC_GRACE t1_GraceActive t1_McGraceTime SlotID t1_McRoomValue t1_McRoomTime
    t1_WatchedTime t1_MulticorePending t1_MulticorePendingUntil t1_MulticoreOnly t1_SharectlVersion
    t1_overheat
"""
PROJECTION = tuple(_NAMES.split())
"""Attributes that t1_TargetActive, MC_GRACE and t1_GraceActive are made of, and what jobs report.

With one missing, expressions that name it have another value here than on the node.
"""

CLOCKS_DIFFER_SECONDS = 60
"""t1_clocks_differ_seconds of the snippet: START ignores times that are further ahead."""
MOST_STALE_SECONDS = 604_800
"""A week: a node that goes by older figures than that is believed no longer."""

_NOTHING_PUBLISHED = (nodes.NO_FILE, nodes.NO_AD, nodes.EXPIRED)
"""Codes also of nodes for which nothing was published: no refusal by itself."""

_OF_THE_SNIPPET = ("t1_Enabled", "t1_JobCtlStaleSeconds")
"""Attributes that slots have by the snippet alone, whether or not its programs run."""


def flag(ad: Any, name: str) -> Optional[bool]:
    """Boolean of an attribute; None if it is missing, undefined, an error or something else."""
    value = evaluated(ad, name)
    return bool(value) if type(value) in (bool, int) and value in (0, 1) else None


def code_of(ad: Any, stale_seconds: int) -> Optional[str]:
    """Code of job_ctl in the ad; None of a slot that publishes none.

    The age of the last run is that of START: by the ad's own time, which is the node's clock. How
    often ads are sent, and how well clocks agree, do not count. ``stale_seconds`` is for nodes
    without t1_JobCtlStaleSeconds.
    """
    code = text(evaluated(ad, "t1_JobCtlReason"))
    if code is None:
        return None
    sent, ran_at = (whole(evaluated(ad, name), 0) for name in ("MyCurrentTime", "t1_JobCtlTime"))
    stale = whole(evaluated(ad, "t1_JobCtlStaleSeconds"), stale_seconds, 1, MOST_STALE_SECONDS)
    is_fresh = 0 < sent < ran_at + stale
    return nodes.sharectls_own(code) if is_fresh else nodes.STALE


def has_target(ad: Any, now: int) -> bool:
    """Tells if START acts on a target."""
    if ad.get("t1_TargetActive") is not None:
        return flag(ad, "t1_TargetActive") is True
    cores = sequence(evaluated(ad, "t1_Targetcores"))
    until = whole(evaluated(ad, "t1_TargetUntil"), 0)
    return len(cores) > 1 and whole(cores[1], 0) > 0 and until > now


def switched_off(ad: Any) -> tuple[str, ...]:
    """Switches of `sharectl.plan.nodes.SWITCHES` that are off, by the slot's ad."""
    file = ("file",) if flag(ad, "t1_Disabled") else ()
    return (*file, "knob") if flag(ad, "t1_Enabled") is False else file


def in_grace(ad: Any) -> bool:
    """Tells if START keeps single-core jobs out of the slot for the sake of multicore jobs."""
    name = "t1_GraceActive" if ad.get("t1_GraceActive") is not None else "MC_GRACE"
    return not switched_off(ad) and flag(ad, name) is True


def is_hot(ad: Any) -> bool:
    """Tells if START let no job in for heat when the ad was made, which may be minutes ago."""
    written = ad.get("t1_overheat")
    if written is None or isinstance(written, (bool, int, str)):
        return flag(ad, "t1_overheat") is True
    return is_true(value_of(expression(with_clock(str(written), "MY.MyCurrentTime")), ad))


def obedience_of(ad: Any, now: int, stale_seconds: int) -> tuple[Optional[int], Optional[str]]:
    """Sequence of the plan that the slot acts on, and why it has refused what was published.

    The sequence is 0 if the slot acts on no target, None if it publishes nothing, or acts on a
    target without one. The reason is a code of `sharectl.plan.nodes`; None where nothing was
    refused.
    """
    code = code_of(ad, stale_seconds)
    if code is None:
        return None, None
    refusal = None if code in nodes.QUIET or code in _NOTHING_PUBLISHED else code
    if not has_target(ad, now):
        return 0, refusal
    return whole(evaluated(ad, "t1_TargetSequence"), 0) or None, refusal


def deaf_code(ads: Sequence[Any], refusal: Optional[str]) -> Optional[str]:
    """Why no target acts on a node with these slots, one of `sharectl.plan.nodes.DEAF`, or None.

    ``refusal`` is that of `obedience_of_all`: whether the last run of job_ctl is too old is asked
    once.
    """
    own = [ad for ad in ads if flag(ad, "PartitionableSlot")]
    if not own:
        return nodes.NO_PARTITIONABLE_SLOT
    codes = [text(evaluated(ad, "t1_JobCtlReason")) for ad in own]
    if not any(codes) and not any(map(_has_snippet, own)):
        return nodes.NO_SNIPPET
    if any(map(switched_off, own)):
        return nodes.SWITCHED_OFF
    return nodes.STALE if refusal == nodes.STALE or not any(codes) else None


def _has_snippet(ad: Any) -> bool:
    return any(name in ad for name in _OF_THE_SNIPPET)


def obedience_of_all(
    ads: Sequence[Any], now: int, stale_seconds: int
) -> tuple[Optional[int], Optional[str]]:
    """Newest plan that a slot of a node acts on, and the first refusal, as of `obedience_of`."""
    obeyed, refusals = zip(*(obedience_of(ad, now, stale_seconds) for ad in ads))
    newest = max((sequence for sequence in obeyed if sequence is not None), default=None)
    return newest, next(filter(None, refusals), None)


def is_draining(ad: Any) -> bool:
    """Tells if the startd is being drained (23.9 and 25), or the slot is drained already."""
    return flag(ad, "Draining") is True or text(evaluated(ad, "State")) == "Drained"


# ---- one node


def ask(
    collector: Optional[str], name: str, now: int, stale_seconds: int, deadline_seconds: float
) -> NodeWords:
    """State of the node of that short or full host name at Unix time ``now``; never raises.

    ``collector`` is an address; None for the pool of this machine's configuration.
    """
    if not HOST_NAME.fullmatch(name):
        return NodeWords(problem="it has no host name")

    def look(pool: Any) -> NodeWords:
        own = (*PROJECTION, "t1_TargetSequence", "Requirements", *OF_SLOTS)
        ads = query(pool, "Slot", constraint_of(name), own)
        times = [opens_at(row_of(ad), now) for ad in ads]
        opens = [at for at in times if at is not None]
        at = min(opens) if opens and len(opens) == len(times) else None
        return replace(words_of(ads, now, stale_seconds), opens_at=at)

    try:
        return ask_collector(collector, deadline_seconds, look)
    except PoolUnavailableError as error:
        return NodeWords(problem=str(error))


def constraint_of(name: str) -> str:
    """Constraint on ads of the partitionable slots of a node; ``name`` may be short or full."""
    machine = name.lower()
    begins = f'substr(toLower(Machine), 0, {len(machine) + 1}) == "{machine}."'
    return f'{PARTITIONABLE} && (toLower(Machine) == "{machine}" || {begins})'


def words_of(ads: list[Any], now: int, stale_seconds: int) -> NodeWords:
    """State of a node by its slots: any refusal, any switch, the newest plan obeyed."""
    if not ads:
        return NodeWords(problem="the collector knows no partitionable slot of it")
    obedience = obedience_of_all(ads, now, stale_seconds)
    off = dict.fromkeys(switch for ad in ads for switch in switched_off(ad))
    return NodeWords(*obedience, switched_off=tuple(off))


# ---- all nodes


class Awaited(NamedTuple):
    """Targets that nodes can find where they look."""

    valid: bool = False
    """Whether anything is published that is valid."""
    file_since: Optional[int] = None
    """Since when a file with targets is, Unix seconds; None if there is none."""
    ads_since: Mapping[str, int] = {}
    """Node that has a target in a collector -> since when, Unix seconds."""
    free_nodes: frozenset[str] = frozenset()
    """Nodes of which the last cycle saw cores stand free under a target."""


NOTHING_AWAITED = Awaited()


def look_at_nodes(
    collector: Any, now: int, awaited: Awaited, config: NodesConfig, *, observes: bool
) -> dict[str, Any]:
    """Status of all partitionable slots that a collector of the bindings knows; see `status_of`."""
    ads = query(collector, "Slot", PARTITIONABLE, PROJECTION)
    met, machines = met_by(collector, config), {*map(machine_of, ads)}
    expected = in_control(config, machines, met, observes=observes).expected
    return status_of(ads, now, config.job_ctl_stale_seconds, awaited, expected)


def status_of(
    ads: Sequence[Any],
    now: int,
    stale_seconds: int,
    awaited: Awaited = NOTHING_AWAITED,
    expected: Optional[Collection[str]] = None,
) -> dict[str, Any]:
    """Slots with these ads, counted by what they do at Unix time ``now``, as ``status --json``.

    Reasons are codes of `sharectl.plan.nodes`; ``refusing`` are those that keep targets from nodes
    that should find some. These and the versions are of the host names ``expected`` to act, None:
    of all. ``stale_seconds`` is for nodes that do not say; see `code_of`.
    """
    codes = codes_of(ads, stale_seconds, awaited, expected)
    return counts_of(ads, codes, now, awaited, expected)


def counts_of(
    ads: Sequence[Any],
    codes: Sequence[tuple[str, bool]],
    now: int,
    awaited: Awaited,
    expected: Optional[Collection[str]] = None,
) -> dict[str, Any]:
    """Counts of `status_of` for slots whose codes are known already, see `codes_of`."""
    own = [ad for ad in ads if expected is None or _names(ad)[0] in expected]
    versions = [
        (nodes.version_of(text(evaluated(ad, "t1_SharectlVersion"))), _names(ad)[0])
        for ad in own
        if text(evaluated(ad, "t1_JobCtlReason")) is not None
    ]
    grace = [ad for ad in ads if in_grace(ad)]
    switches = [switched_off(ad) for ad in ads]
    idle_cores: Counter[str] = Counter()
    for ad in ads:
        for name in awaited.free_nodes.intersection(_names(ad)):
            idle_cores[name] += whole(evaluated(ad, "Cpus"), 0)
    return {
        "slots": len(ads),
        "controlled": len(own),
        "with_target": sum(has_target(ad, now) for ad in ads),
        "in_grace": len(grace),
        "disabled": sum("file" in off for off in switches),
        "disabled_by_knob": sum("knob" in off for off in switches),
        "multicore_only": sum(flag(ad, "t1_MulticoreOnly") is True for ad in ads),
        "hot": sorted({_names(ad)[1] for ad in ads if is_hot(ad)}),
        "reasons": dict(Counter(code for code, _ in codes).most_common()),
        "refusing": dict(Counter(code for code, refuses in codes if refuses).most_common()),
        "versions": dict(Counter(version for version, _ in versions).most_common()),
        "node_of_version": dict(reversed(versions)),
        "idle_cores": dict(idle_cores),
        "idle_grace_cores": sum(whole(evaluated(ad, "Cpus"), 0) for ad in grace),
    }


def codes_of(
    ads: Sequence[Any],
    stale_seconds: int,
    awaited: Awaited,
    expected: Optional[Collection[str]] = None,
) -> list[tuple[str, bool]]:
    """Code of each slot, and whether it keeps a target away; parameters as of `status_of`."""
    codes = [_code(ad, stale_seconds, awaited) for ad in ads]
    return [
        (code, refuses and (expected is None or _names(ad)[0] in expected))
        for ad, (code, refuses) in zip(ads, codes)
    ]


def _names(ad: Any) -> tuple[str, str]:
    """Full and short host name."""
    machine = (text(evaluated(ad, "Machine")) or "").lower()
    return machine, machine.partition(".")[0]


def _code(ad: Any, stale_seconds: int, awaited: Awaited) -> tuple[str, bool]:
    """Code of the slot, and whether it keeps a target away."""
    ran_at = whole(evaluated(ad, "t1_JobCtlTime"), 0)
    code = code_of(ad, stale_seconds)
    if code is None:
        return nodes.NEVER_RAN if _has_snippet(ad) else nodes.NOT_PUBLISHED, True
    full, short = _names(ad)
    since = awaited.ads_since.get(full, awaited.ads_since.get(short, ran_at))
    unless_awaited = {
        nodes.EXPIRED: awaited.valid,
        nodes.NO_FILE: awaited.file_since is not None and ran_at > awaited.file_since,
        nodes.NO_AD: ran_at > since,
    }
    return code, unless_awaited.get(code, code not in nodes.QUIET)
