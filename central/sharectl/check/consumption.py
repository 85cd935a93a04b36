"""Checks of consumption policies in an HTCondor configuration, by what is written and by trial.

The daemons' behaviour was read in the source of 25.14 and 23.9.6, and seen where a pool test says
so. Policies and weights are evaluated by HTCondor, for the same ordinary jobs each time.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.check.consumption_subject import (
    ATTRIBUTE_LISTS,
    BOOLEAN,
    BOOLEANS,
    GPUS,
    LEFTOVERS,
    MACROS,
    POLICY,
    SCHEDD_USES_WEIGHT,
    SCHEDD_WEIGHT,
    WEIGHT,
    CheckedNode,
    SlotKnob,
    SlotType,
    number_of,
    typed,
)
from sharectl.check.findings import Checks, Finding, Level, plain, refusal, some, unread_knobs
from sharectl.check.slot_ad import startd_publishes
from sharectl.condor.configuration import (
    MAX_BYTES,
    Configuration,
    read,
    read_text,
    source_of,
    unread,
)
from sharectl.condor.expressions import UNSCOPED, references
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.consumption.cost import Refusal
from sharectl.files.files import content_of
from sharectl.files.packed import text_errors
from sharectl.words import near

CHECKS = Checks("consumption.txt")
finding = CHECKS.finding

_CONSUMPTION = "CONSUMPTION_"
_OF_TYPES = (POLICY, WEIGHT, "NUM_CLAIMS", "PARTITIONABLE", "NAME_PREFIX", "BACKFILL", "HIDDEN")
_OF_ALL = (POLICY, WEIGHT, "NUM_CLAIMS", SCHEDD_WEIGHT, *BOOLEANS)
_SMALL_JOBS = tuple(
    {"RequestCpus": "1", "RequestMemory": memory, "RequestDisk": disk}
    for memory, disk in itertools.product(("128", "1000", "2048", "4096"), ("1000", "1048576"))
)


# ---- Knobs


@CHECKS.rule()
def unknown_knob(node: CheckedNode) -> Iterator[Finding]:
    """Knobs that nothing reads, and that look like one of consumption policies."""
    configuration = node.configuration
    used = {name for part in configuration.definitions for name in part.references}
    used |= set(map(str.lower, configuration.words(*ATTRIBUTE_LISTS)))
    stems = ("\0", *(name[:-1] for name in used if name.endswith("*")))
    for name, part in {part.name: part for part in configuration.definitions}.items():
        is_used = not name or name.lower() in used or name.lower().startswith(stems)
        if not is_used and configuration.is_judged(part) and (remedy := _remedy(node, name)):
            yield finding("unknown knob", part.place, name=name, remedy=remedy)


def _remedy(node: CheckedNode, name: str) -> str:
    """Text to write for a knob that HTCondor does not have; empty for any other."""
    number, knob = typed(name) or (None, name.rpartition(".")[2])
    assets = (*node.whole, GPUS, *node.configuration.words("MACHINE_RESOURCE_NAMES"))
    of_assets = [f"{_CONSUMPTION}{asset}".upper() for asset in assets]
    knobs = [*(_OF_ALL if number is None else _OF_TYPES), *of_assets]
    if not knob or knob.upper() in knobs:
        return ""
    if close := near(knob.upper(), knobs, likeness=0.85):
        return f"write {name[: len(name) - len(knob)]}{close[0]}"
    asset = knob[len(_CONSUMPTION) :]
    declare = f"declare the asset, MACHINE_RESOURCE_{asset} = AMOUNT, or take the line out"
    return declare if knob.upper().startswith(_CONSUMPTION) else ""


@CHECKS.rule()
def invalid_boolean(node: CheckedNode) -> Iterator[Finding]:
    """Boolean knobs with another text: daemons end, or take it for False (param_boolean)."""
    configuration = node.configuration
    idle = {knob.part.name for knob in unread(configuration)}
    names = {part.name.upper(): part.name for part in configuration.definitions}
    for name in filter(BOOLEAN.fullmatch, names.values()):
        text = configuration.text(name)
        if text.strip() and name not in idle and node.truth(text) is None:
            yield finding("invalid boolean", configuration.place(name), name=name, text=text)


@CHECKS.rule()
def without_daemon(node: CheckedNode) -> Iterator[Finding]:
    """Knobs that no daemon of this machine reads."""
    ours = re.compile(rf".*(?:{_CONSUMPTION}\w+|NUM_CLAIMS)", re.IGNORECASE)
    yield from unread_knobs(finding, node.configuration, ours.fullmatch)


@CHECKS.rule("slots")
def invalid_claims(slot: SlotType) -> Iterator[Finding]:
    """Numbers of claims that the startd cannot give (Resource::Resource)."""
    knob = slot.knob("NUM_CLAIMS")
    number = slot.node.number_of(knob.text) if knob.text else 1
    if number is None or number < 1:
        yield finding("invalid claims", knob.place, knob=knob)


@CHECKS.rule()
def no_policy(node: CheckedNode) -> Iterator[Finding]:
    """Configurations of slots without any consumption policy."""
    configuration = node.configuration
    is_about = any(_CONSUMPTION in part.name.upper() for part in configuration.definitions)
    is_part = not is_about and not configuration.is_whole and configuration.assignments(LEFTOVERS)
    is_meant = any(slot.wants_policy for slot in node.slot_types)
    if not (node.is_access_point or is_part or is_meant):
        yield finding("no policy", configuration.name)


@CHECKS.rule("slot_types")
def without_effect(slot: SlotType) -> Iterator[Finding]:
    """Policies for slots that cannot have one, or that do not exist; one finding for each type."""
    configuration, policy = slot.node.configuration, [slot.policy] if slot.wants_policy else []
    knobs = [knob for knob in (*policy, *slot.policies.values()) if typed(knob.macro)]
    if slot.count and policy:
        knobs = [] if slot.partitionable else policy
    # Another file may have slots of that type.
    counted = configuration.assignments(f"NUM_SLOTS_TYPE_{slot.number}")
    level = Level.ERROR if slot.count or configuration.is_whole or counted else Level.ADVICE
    if knobs:
        names = some(list(dict.fromkeys(knob.macro for knob in knobs)), 6, ", ")
        yield finding("without effect", knobs[0].place, level, knobs=names, slot=slot)


# ---- Expressions


@CHECKS.rule("slots")
def unreadable(slot: SlotType) -> Iterator[Finding]:
    """Expressions on which the startd ends ("Bad consumption policy expression")."""
    for knob in slot.expressions:
        if knob.text not in slot.node.readable:
            yield finding("unreadable", knob.place, knob=knob)


@CHECKS.rule("slots")
def unscoped(slot: SlotType) -> Iterator[Finding]:
    """Names of a policy or a weight that a job could give a value."""
    prefixes = ("", "total", "totalslot", "request")
    own = {f"{prefix}{asset.lower()}" for prefix in prefixes for asset in slot.policies}
    own.update(map(str.lower, slot.node.attributes))
    for knob in slot.expressions:
        for scope, name in references(slot.node.readable.get(knob.text, "")):
            if scope == UNSCOPED and name.lower() not in own and not startd_publishes(name):
                yield finding("unscoped", knob.place, knob=knob, name=name)


# ---- Leftovers and other knobs


@CHECKS.rule()
def leftovers(node: CheckedNode) -> Iterator[Finding]:
    """Leftovers beside a policy: access points start jobs there that no quota was asked for.

    Since 23.7.2 the startd asks only the access point (request_claim in command.cpp).
    """
    configuration, has_schedd = node.configuration, node.runs("SCHEDD")
    is_set = any(map(configuration.assignments, (f"SCHEDD.{LEFTOVERS}", LEFTOVERS)))
    applies = has_schedd or is_set if node.slots else node.is_access_point
    if applies and node.boolean(LEFTOVERS, "SCHEDD"):
        level = Level.ERROR if node.slots else Level.ADVICE
        place = configuration.place(LEFTOVERS) if is_set else configuration.name
        yield finding("leftovers", place, level)


@CHECKS.rule()
def combinations(node: CheckedNode) -> Iterator[Finding]:
    """Knobs that do not go with consumption policies."""
    values = (
        ("NEGOTIATOR", "NEGOTIATOR_USE_SLOT_WEIGHTS", False),
        ("NEGOTIATOR", "NEGOTIATOR_DEPTH_FIRST", True),
        ("STARTD", "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS", True),
    )
    for daemon, knob, value in values if node.slots else ():
        if node.runs(daemon, unless_listed=True) and node.boolean(knob, daemon) is value:
            yield finding(knob, node.configuration.place(knob))


# ---- Charges, by trial


_REFUSALS = {
    Refusal.NOT_A_NUMBER: ("no number", "no number"),
    Refusal.NEGATIVE: ("no number", "negative"),
    Refusal.ALL_ZERO: ("takes nothing", "zero"),
}
"""Reason of the negotiator against ordinary jobs on an empty slot → finding, and its kind."""


@CHECKS.rule("tried")
def refused_jobs(slot: SlotType) -> Iterator[Finding]:
    """Amounts for which the negotiator refuses a match (cp_sufficient_assets)."""
    seen = set[str]()
    for job, taken in slot.taken:
        for why, about in slot.refusals(taken):
            asset = about or "Cpus"
            if why in _REFUSALS and asset not in seen:
                seen.add(asset)
                policy, (name, kind) = slot.policies[asset], _REFUSALS[why]
                words = {"policy": policy, "asset": asset, "slot": slot, "kind": kind}
                yield finding(name, policy.place, job=job, **words)


@CHECKS.rule("tried")
def refused_claims(slot: SlotType) -> Iterator[Finding]:
    """Policies that ask the dynamic slot for more than it was given.

    The startd makes whole numbers for the dynamic slot, and asks the policy again on that slot
    ("Slot Requirements not satisfied").
    """
    seen = set()
    for job, taken in slot.accepted:
        ad = slot.dynamic_slot_ad(taken)
        for asset, wanted in slot.charges(ad, [job])[0].items():
            if asset not in seen and (wanted is None or wanted > float(ad[asset])):
                seen.add(asset)
                policy = slot.policies[asset]
                words = {"asset": asset, "amount": ad[asset], "wanted": plain(wanted)}
                yield finding("refused claim", policy.place, policy=policy, job=job, **words)


@CHECKS.rule("tried")
def too_few_cores(slot: SlotType) -> Iterator[Finding]:
    """Policies that take less than the core that the startd gives each claim (create_dslot)."""
    policy, whole = slot.policies["Cpus"], slot.node.whole
    for job, taken in slot.smallest[:1]:
        claims = min(whole[asset] // amount for asset, amount in taken.items() if amount)
        if claims > whole["Cpus"]:
            words = {"policy": policy, "cores": whole["Cpus"], "claims": claims}
            yield finding("too few cores", policy.place, job=job, **words)


# ---- Weights, by trial


@CHECKS.rule("tried")
def no_weight(slot: SlotType) -> Iterator[Finding]:
    """Weights that are no number in some state of the slot ("Failed to evaluate SlotWeight")."""
    weight, whole = slot.weight, slot.node.whole
    gone = [(), *((a,) for a in whole), *itertools.combinations(whole, 2), tuple(whole)]
    ads = [slot.slot_ad({**whole, **dict.fromkeys(state, 0.0)}) for state in gone]
    values = zip(gone, slot.weights(ads))
    for state, value in [row for row in values if number_of(row[1]) is None][:1]:
        kind, where = "divides by zero" if state else "no weight", " = ".join((*state, "0"))
        yield finding(kind, weight.place, weight=weight, value=value, state=where)


@CHECKS.rule("tried")
def weight_does_not_follow(slot: SlotType) -> Iterator[Finding]:
    """Weights by which a match costs nothing, or something else from the next cycle on."""
    for job, taken in slot.smallest:
        cost = slot.cost(taken)
        # Accountant::CheckMatches.
        (weight,) = slot.weights([slot.dynamic_slot_ad(taken)])
        later = 1.0 if number_of(weight) is None else float(weight)
        if cost is not None and (cost <= 0 or not math.isclose(later, cost, rel_tol=1e-3)):
            words = {"weight": slot.weight, "cost": cost, "later": later}
            yield finding("another charge", slot.weight.place, job=job, **words)
            break


# ---- Access points


@CHECKS.rule()
def weightless_jobs(node: CheckedNode) -> Iterator[Finding]:
    """Weights by which an idle job counts as nothing.

    Without SCHEDD_SLOT_WEIGHT, a schedd takes SLOT_WEIGHT of an ad with the job's requests as
    Cpus, Memory and Disk (guessJobSlotWeight in schedd.cpp), and adds the whole part for each job
    to WeightedIdleJobs, the negotiator's demand of a group.
    """
    ads = [{**job, **{name[len("Request") :]: n for name, n in job.items()}} for job in _SMALL_JOBS]
    for knob in _schedds_weight(node):
        (rows,) = node.htcondor.evaluate([knob.text], ads)
        weights = [(job, number_of(row[0])) for job, row in zip(_SMALL_JOBS, rows or ())]
        for job, weight in [row for row in weights if row[1] is not None and row[1] < 1][:1]:
            yield finding("weightless", knob.place, knob=knob, job=job, weight=weight)


def _schedds_weight(node: CheckedNode) -> Iterator[SlotKnob]:
    """Knob by which a schedd weighs jobs, if a schedd reads one here."""
    text, written = node.configuration.text, node.configuration.assignments
    is_complete = node.configuration.is_whole or written("DAEMON_LIST")
    has_schedd, own = node.runs("SCHEDD"), written(SCHEDD_WEIGHT)
    if node.boolean(SCHEDD_USES_WEIGHT, "SCHEDD") is False or (is_complete and not has_schedd):
        return
    if own:
        yield SlotKnob(SCHEDD_WEIGHT, text(SCHEDD_WEIGHT).strip(), own[-1].place)
    elif has_schedd and (own := tuple(p for p in written(WEIGHT) if p.name.upper() == WEIGHT)):
        # The library reads STARTD's: only as it is written, it is the schedd's.
        weight = own[-1].text if written(f"STARTD.{WEIGHT}") else text(WEIGHT).strip()
        if weight and "$" not in weight:
            yield SlotKnob(WEIGHT, weight, own[-1].place)


# ---- Configurations


def check(path: Optional[Path]) -> tuple[list[Finding], tuple[SlotType, ...]]:
    """Findings about the consumption policies of a configuration, and its slots with a policy.

    ``path`` is a folder, a file, a dump or ``-``; None is this machine's configuration. InputError
    if it cannot be read.
    """
    name = str(path or "this machine")
    if path is None or path.is_dir():
        return _checked(name, read, source_of(path))
    with text_errors(name):
        text = content_of(path, MAX_BYTES + 1).decode("utf-8", "replace")
    return _checked(name, read_text, name, text)


def check_text(name: str, text: str) -> list[Finding]:
    """Findings about the policies of a snippet that is in no file; ``name`` is for places."""
    return _checked(name, read_text, name, text)[0]


def _checked(
    name: str, reads: Callable[..., Configuration], *source: Any
) -> tuple[list[Finding], tuple[SlotType, ...]]:
    with CondorProcess() as process:
        try:
            node = CheckedNode(reads(*source, MACROS, process), process)
            return CHECKS.findings(node), node.slots
        except UnreadableConfigurationError as error:
            return [refusal(error, name)], ()
