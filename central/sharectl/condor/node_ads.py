"""Nodes by their slots' ads in the collector: targets, grace, refusals, and who is in control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Optional

from sharectl.condor.ad_rows import row_of
from sharectl.condor.ads import evaluated, expression, is_true, sequence, text, value_of, whole
from sharectl.condor.clock import OF_SLOTS, opens_at
from sharectl.condor.daemons import PARTITIONABLE, ask_collector, query, slots
from sharectl.condor.expressions import with_clock
from sharectl.errors import PoolUnavailableError
from sharectl.plan import nodes

_NAMES = """
    Machine MyCurrentTime t1_JobCtlReason t1_JobCtlTime t1_JobCtlStaleSeconds t1_Disabled t1_Enabled
    t1_TargetActive t1_TargetGroups t1_Targetcores t1_TargetUntil PartitionableSlot Cpus
    Childt1_HeldBackCores ChildCpus TotalSlotCpus t1_CurrentJobs
    MC_GRACE t1_GraceActive t1_McGraceTime SlotID t1_McRoomValue t1_McRoomTime
    t1_WatchedTime t1_MulticorePending t1_MulticorePendingUntil t1_MulticoreOnly t1_SharectlVersion
    t1_overheat
"""
PROJECTION = tuple(_NAMES.split())
"""All attributes that t1_TargetActive, MC_GRACE and t1_GraceActive are made of: an expression that
lacks one has another value here than on the node."""
CLOCKS_DIFFER_SECONDS = 60
"""t1_clocks_differ_seconds of the snippet: START ignores times that are further ahead."""
MOST_STALE_SECONDS = 604_800
"""A week: figures of a node that are older than that are ignored."""
_UNPUBLISHED = (nodes.NO_FILE, nodes.NO_AD, nodes.EXPIRED)
"""Codes also of nodes for which nothing was published: no refusal by itself."""
INSTALLED = (
    f"{PARTITIONABLE} && (t1_Enabled =?= true "
    "|| (t1_Enabled =?= undefined && t1_JobCtlReason =!= undefined))"
)
"""Constraint of slots with the execute point's snippet, not switched off by SHARECTL_ENABLED. It
holds while job_ctl is late or the node drains: a share of the nodes stays the same ones then."""
BYPASSED = (
    f'{PARTITIONABLE} && Draining =!= true && State =!= "Drained" '
    '&& regexp("MY[.]t1_TargetAdmits", unparse(Start)) =?= false'
)
"""Constraint of slots whose START has no clause of sharectl's; of a draining one it is another."""

# ---- one slot


@dataclass(frozen=True)
class SlotFacts:
    """A slot at one moment."""

    machine: str
    """Host name, lower case; empty if it is no host name."""
    code: Optional[str]
    """Code of job_ctl, or `sharectl.plan.nodes.STALE`; None of a slot that publishes none."""
    ran_at: int
    """Last run of job_ctl, Unix seconds; 0 if unknown."""
    has_snippet: bool
    """True if the slot has attributes of the execute point's snippet, even without its jobs."""
    is_partitionable: bool
    has_target: bool
    """True if START acts on a target."""
    sequence: Optional[int]
    """Plan that the slot acts on; 0 without a target, None if it does not publish one."""
    switched_off: tuple[str, ...]
    """Switches of `sharectl.plan.nodes.SWITCHES` that are off."""
    in_grace: bool
    """True if START keeps single-core jobs out of the slot for the sake of multicore jobs."""
    is_hot: bool
    """True if START let no job in for heat when the ad was made, which may be minutes ago."""
    is_draining: bool
    multicore_only: bool
    free_cores: int
    version: Optional[str]
    """Version of sharectl on the node; None if job_ctl does not run there."""

    @property
    def short_name(self) -> str:
        """Host name without its domain."""
        return self.machine.partition(".")[0]


def facts_of(ad: Any, now: int, stale_seconds: int) -> SlotFacts:
    """Facts of a slot at Unix time ``now``; ``stale_seconds`` is for nodes that do not say."""
    code, acts = code_of(ad, stale_seconds), has_target(ad, now)
    acted_on = whole(evaluated(ad, "t1_TargetSequence"), 0) or None
    off = {"file": flag(ad, "t1_Disabled") is True, "knob": flag(ad, "t1_Enabled") is False}
    grace = "t1_GraceActive" if ad.get("t1_GraceActive") is not None else "MC_GRACE"
    return SlotFacts(
        machine=machine_of(ad),
        code=code,
        ran_at=whole(evaluated(ad, "t1_JobCtlTime"), 0),
        has_snippet="t1_Enabled" in ad or "t1_JobCtlStaleSeconds" in ad,
        is_partitionable=flag(ad, "PartitionableSlot") is True,
        has_target=acts,
        sequence=None if code is None else acted_on if acts else 0,
        switched_off=tuple(switch for switch, is_off in off.items() if is_off),
        in_grace=not any(off.values()) and flag(ad, grace) is True,
        is_hot=_is_hot(ad),
        is_draining=is_draining(ad),
        multicore_only=flag(ad, "t1_MulticoreOnly") is True,
        free_cores=whole(evaluated(ad, "Cpus"), 0),
        version=None if code is None else text(evaluated(ad, "t1_SharectlVersion")) or "",
    )


def flag(ad: Any, name: str) -> Optional[bool]:
    """Boolean of an attribute; None if it is missing, undefined, an error or something else."""
    value = evaluated(ad, name)
    return bool(value) if type(value) in (bool, int) and value in (0, 1) else None


def machine_of(ad: Any) -> str:
    """Host name, lower case; empty without one, and a target could not reach that slot."""
    machine = text(evaluated(ad, "Machine")) or ""
    return machine.lower() if nodes.HOST_NAME.fullmatch(machine) else ""


def has_target(ad: Any, now: int) -> bool:
    """True if START acts on a target."""
    if ad.get("t1_TargetActive") is not None:
        return flag(ad, "t1_TargetActive") is True
    cores = sequence(evaluated(ad, "t1_Targetcores"))
    until = whole(evaluated(ad, "t1_TargetUntil"), 0)
    return len(cores) > 1 and whole(cores[1], 0) > 0 and until > now


def is_draining(ad: Any) -> bool:
    """True if the startd is being drained (23.9 and 25), or the slot is drained already."""
    return flag(ad, "Draining") is True or text(evaluated(ad, "State")) == "Drained"


def code_of(ad: Any, stale_seconds: int) -> Optional[str]:
    """Code of job_ctl; `nodes.STALE` if its last run is too old for START, by the node's clock."""
    code = text(evaluated(ad, "t1_JobCtlReason"))
    if code is None:
        return None
    sent, ran_at = (whole(evaluated(ad, name), 0) for name in ("MyCurrentTime", "t1_JobCtlTime"))
    stale = whole(evaluated(ad, "t1_JobCtlStaleSeconds"), stale_seconds, 1, MOST_STALE_SECONDS)
    return nodes.sharectls_own(code) if 0 < sent < ran_at + stale else nodes.STALE


def _is_hot(ad: Any) -> bool:
    written = ad.get("t1_overheat")
    if isinstance(written, str):
        return False
    return is_true(value_of(expression(with_clock(str(written), "MY.MyCurrentTime")), ad))


# ---- one node


def obedience_of(facts: Iterable[SlotFacts]) -> tuple[Optional[int], Optional[str]]:
    """Newest plan that a slot of a node acts on, and the first refusal; None where unknown."""
    every = list(facts)
    newest = max((slot.sequence for slot in every if slot.sequence is not None), default=None)
    codes = (slot.code for slot in every if slot.code not in (None, *nodes.QUIET, *_UNPUBLISHED))
    return newest, next(codes, None)


def deaf_code(facts: Iterable[SlotFacts]) -> Optional[str]:
    """Reason of `sharectl.plan.nodes.DEAF` why no target acts on a node with these slots."""
    able = [slot for slot in facts if slot.is_partitionable]
    has_code = any(slot.code for slot in able)
    if not able:
        return nodes.NO_PARTITIONABLE_SLOT
    if not has_code and not any(slot.has_snippet for slot in able):
        return nodes.NO_SNIPPET
    if any(slot.switched_off for slot in able):
        return nodes.SWITCHED_OFF
    return nodes.STALE if not has_code or obedience_of(able)[1] == nodes.STALE else None


def ask(
    collector: Optional[str], name: str, now: int, stale_seconds: int, deadline_seconds: float
) -> nodes.NodeWords:
    """State of the node of that short or full host name at Unix time ``now``; never raises."""
    if not nodes.HOST_NAME.fullmatch(name):
        return nodes.NodeWords(problem="it has no host name")

    def look(pool: Any) -> nodes.NodeWords:
        names = (*PROJECTION, "t1_TargetSequence", "Requirements", *OF_SLOTS)
        ads = query(pool, "Slot", constraint_of(name), names)
        times = [opens_at(row_of(ad), now) for ad in ads]
        opens = None if None in times else min(filter(None, times), default=None)
        return replace(words_of(ads, now, stale_seconds), opens_at=opens)

    try:
        return ask_collector(collector, deadline_seconds, look)
    except PoolUnavailableError as error:
        return nodes.NodeWords(problem=str(error))


def constraint_of(name: str) -> str:
    """Constraint on ads of the partitionable slots of a node; ``name`` may be short or full."""
    machine = name.lower()
    begins = f'substr(toLower(Machine), 0, {len(machine) + 1}) == "{machine}."'
    return f'{PARTITIONABLE} && (toLower(Machine) == "{machine}" || {begins})'


def words_of(ads: list[Any], now: int, stale_seconds: int) -> nodes.NodeWords:
    """State of a node by its slots: any refusal, any switch, the newest plan obeyed."""
    if not ads:
        return nodes.NodeWords(problem="the collector knows no partitionable slot of it")
    facts = [facts_of(ad, now, stale_seconds) for ad in ads]
    off = dict.fromkeys(switch for slot in facts for switch in slot.switched_off)
    return nodes.NodeWords(*obedience_of(facts), switched_off=tuple(off))


# ---- nodes under control

Met = Mapping[str, frozenset[str]]
"""ClassAd constraint -> host names, lower case, of the nodes that meet it."""


class InControl(NamedTuple):
    """Nodes of a pool, by host name."""

    controlled: Collection[str]
    reserved: Collection[str]
    bypassed: Collection[str]
    """Nodes whose START has no clause of sharectl's."""
    expected: Collection[str]
    """Controlled nodes that should act on targets: of all nodes, and while observing, those with
    the snippet."""
    rehearsed: bool
    """True if a plan is made as if all nodes had the snippet, because none has it yet."""


def met_by(collector: Any, config: nodes.NodesConfig) -> Met:
    """Nodes that meet each constraint that `in_control` wants."""
    by = (config.controlled, config.reserved)
    written = [choice.expression for choice in by if isinstance(choice, nodes.ControlledConstraint)]
    return {
        constraint: frozenset(map(machine_of, slots(collector, constraint, ["Machine"])))
        for constraint in (INSTALLED, BYPASSED, *written)
    }


def in_control(
    config: nodes.NodesConfig, machines: Collection[str], met: Met, *, observes: bool
) -> InControl:
    """Nodes under control among ``machines``; constraints that ``met`` lacks are not known."""
    installed = met.get(INSTALLED)
    # Without any snippet a plan that only observes is made as if all nodes had it.
    rehearsed = observes and installed is not None and installed.isdisjoint(machines)

    def chosen(by: nodes.Controlled, able: Any) -> frozenset[str]:
        return nodes.controlled_machines(
            by, machines, met.get(getattr(by, "expression", ""), ()), able
        )

    named = nodes.names_nodes(config.controlled)
    controlled = chosen(config.controlled, None if rehearsed else installed)
    return InControl(
        controlled,
        chosen(config.reserved, None) if config.reserved is not None else frozenset(),
        met.get(BYPASSED, ()),
        controlled if installed is None or (named and not observes) else controlled & installed,
        rehearsed,
    )


# ---- status of all nodes


class Awaited(NamedTuple):
    """Targets that nodes can find where they look."""

    valid: bool = False
    """True if anything is published that is valid."""
    file_since: Optional[int] = None
    """Age of a file with targets, as Unix seconds; None if there is none."""
    ads_since: Mapping[str, int] = {}
    """Node that has a target in a collector -> since when, Unix seconds."""


def look_at_nodes(
    collector: Any, now: int, awaited: Awaited, config: nodes.NodesConfig, *, observes: bool
) -> dict[str, Any]:
    """Status of all partitionable slots that a collector of the bindings knows; see `counts_of`."""
    ads = query(collector, "Slot", PARTITIONABLE, PROJECTION)
    facts, control = judged(collector, ads, now, config, observes=observes)
    return counts_of(facts, awaited, control.expected)


def judged(
    collector: Any, ads: Iterable[Any], now: int, config: nodes.NodesConfig, *, observes: bool
) -> tuple[list[SlotFacts], InControl]:
    """Facts of slots, and which of their nodes are under control."""
    facts = [facts_of(ad, now, config.job_ctl_stale_seconds) for ad in ads]
    machines = {slot.machine for slot in facts}
    return facts, in_control(config, machines, met_by(collector, config), observes=observes)


def counts_of(
    facts: Sequence[SlotFacts], awaited: Awaited, expected: Collection[str]
) -> dict[str, Any]:
    """Slots counted by what they do, as ``status --json``.

    Reasons are codes of `sharectl.plan.nodes`; ``refusing`` are those that keep targets from nodes
    that should find some. These and the versions are of the host names ``expected`` to act.
    """
    acting = [slot for slot in facts if slot.machine in expected]
    versions = [
        (nodes.version_of(slot.version), slot.machine)
        for slot in acting
        if slot.version is not None
    ]
    grace = [slot for slot in facts if slot.in_grace]
    refusing = [reason_of(slot) for slot in acting if keeps_away(slot, awaited)]
    return {
        "slots": len(facts),
        "controlled": len(acting),
        "with_target": sum(slot.has_target for slot in facts),
        "in_grace": len(grace),
        "disabled": sum("file" in slot.switched_off for slot in facts),
        "disabled_by_knob": sum("knob" in slot.switched_off for slot in facts),
        "multicore_only": sum(slot.multicore_only for slot in facts),
        "hot": sorted({slot.short_name for slot in facts if slot.is_hot}),
        "reasons": dict(Counter(map(reason_of, facts)).most_common()),
        "refusing": dict(Counter(refusing).most_common()),
        "versions": dict(Counter(version for version, _ in versions).most_common()),
        "node_of_version": dict(reversed(versions)),
        "idle_grace_cores": sum(slot.free_cores for slot in grace),
    }


def reason_of(slot: SlotFacts) -> str:
    """Code of a slot; one of `sharectl.plan.nodes` where job_ctl publishes none."""
    return slot.code or (nodes.NEVER_RAN if slot.has_snippet else nodes.NOT_PUBLISHED)


def keeps_away(slot: SlotFacts, awaited: Awaited) -> bool:
    """True if the code of a slot keeps a target away that it could find."""
    if slot.code is None:
        return True
    since = awaited.ads_since.get(slot.machine, awaited.ads_since.get(slot.short_name, slot.ran_at))
    unless_awaited = {
        nodes.EXPIRED: awaited.valid,
        nodes.NO_FILE: awaited.file_since is not None and slot.ran_at > awaited.file_since,
        nodes.NO_AD: slot.ran_at > since,
    }
    return unless_awaited.get(slot.code, slot.code not in nodes.QUIET)
