"""Checks of consumption policies, by what is written and by trial.

The daemons' behaviour was read in the source of 25.14 and 23.9.6, and seen where a pool test says
so. Policies and weights are evaluated by HTCondor, for the same ordinary jobs each time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Optional

from sharectl.check.consumption_subject import (
    ATTRIBUTE_LISTS,
    GPUS,
    LEFTOVERS,
    POLICY,
    READERS,
    SCHEDD_USES_WEIGHT,
    SCHEDD_WEIGHT,
    THREADS,
    WEIGHT,
    CheckedNode,
    ConsumptionSubject,
    SlotKnob,
    SlotType,
    number_of,
    typed,
)
from sharectl.check.findings import Checks, Finding, Level, one_line, plain, some
from sharectl.check.slot_ad import startd_publishes
from sharectl.condor.ads import is_true
from sharectl.condor.expressions import MY, TARGET, UNSCOPED, Reference, references
from sharectl.consumption.policy import amount_of, asset_of, by_name
from sharectl.words import near

CHECKS = Checks("consumption.txt")
finding = CHECKS.finding

_NODES, _SLOTS, _TRIED = map(attrgetter, ("nodes", "slot_types", "tried"))
_BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "enabled"), "True"),
    **dict.fromkeys(("false", "f", "no", "n", "off", "disabled", "none"), "False"),
}
_CONSUMPTION = "CONSUMPTION_"
_OF_TYPES = (POLICY, WEIGHT, "NUM_CLAIMS", "PARTITIONABLE", "NAME_PREFIX", "BACKFILL", "HIDDEN")
_OF_ALL = (POLICY, WEIGHT, "NUM_CLAIMS", SCHEDD_WEIGHT, *READERS)
_SMALL_JOBS = tuple(
    {"RequestCpus": "1", "RequestMemory": memory, "RequestDisk": disk}
    for memory, disk in itertools.product(("128", "1000", "2048", "4096"), ("1000", "1048576"))
)


# ---- Knobs


@CHECKS.rule(_NODES)
def unknown_knob(node: CheckedNode) -> Iterator[Finding]:
    """Knobs that nothing reads, and that look like one of consumption policies."""
    configuration = node.configuration
    used = {name for part in configuration.definitions for name in part.references}
    used |= {word.lower() for knob in ATTRIBUTE_LISTS for word in configuration.words(knob)}
    stems = ("\0", *(name[:-1] for name in used if name.endswith("*")))
    for name, part in {part.name: part for part in configuration.definitions}.items():
        is_used = not name or name.lower() in used or name.lower().startswith(stems)
        if not is_used and configuration.is_judged(part):
            yield from _unknown(node, name, part.place)


def _unknown(node: CheckedNode, name: str, place: str) -> Iterator[Finding]:
    number, rest = typed(name) or (None, name.rpartition(".")[2])
    assets = (*node.assets, GPUS, *node.configuration.words("MACHINE_RESOURCE_NAMES"))
    of_assets = [f"{_CONSUMPTION}{asset}".upper() for asset in assets]
    knobs = [*(_OF_ALL if number is None else _OF_TYPES), *of_assets]
    close = near(rest.upper(), knobs, likeness=0.85)
    if not rest or rest.upper() in knobs:
        return
    if close:
        meant = name[: len(name) - len(rest)] + close[0]
        yield finding("unknown knob", place, name=name, meant=meant)
    elif rest.upper().startswith(_CONSUMPTION):
        asset = rest[len(_CONSUMPTION) :]
        yield finding("unknown asset", place, name=name, node=node, asset=asset)


@CHECKS.rule(_NODES)
def invalid_boolean(node: CheckedNode) -> Iterator[Finding]:
    """Boolean knobs with another text: daemons end, or take it for False (param_boolean)."""
    for name, text in node.boolean_texts.items():
        if node.booleans.get(text) is not None:
            continue
        daemon, _, last = name.upper().rpartition(".")
        number, knob = typed(name.upper()) or (None, last)
        if number is None or knob == "BACKFILL":
            readers = READERS.get(knob, ("STARTD",))
            ending = daemon if daemon in readers else " or ".join(readers)
            effect = f"the {ending.lower()} ends as soon as it reads that, again and again"
        elif knob == POLICY:
            general = bool(node.boolean(POLICY))
            effect = f"the startd ignores it silently, and takes {POLICY} = {general}"
        else:
            effect = "the startd takes it for False silently"
        shown = one_line(text, 60)
        close = near(shown.lower(), _BOOLEAN_WORDS)
        meant = _BOOLEAN_WORDS[close[0]] if close else "True, or False"
        place = node.configuration.place(name)
        yield finding("invalid boolean", place, name=name, text=shown, effect=effect, meant=meant)


@CHECKS.rule()
def no_policy(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Configurations without any consumption policy."""
    nodes = [
        node.configuration.name
        for node in subject.nodes
        if not node.is_access_point
        and (node.configuration.is_whole or not node.configuration.assignments(LEFTOVERS))
    ]
    slots = subject.slot_types
    own = (policy for slot in slots for policy in slot.policies.values() if not policy.is_default)
    if nodes and not any(own) and not any(s.wants_policy or s.is_misread for s in slots):
        yield finding("no policy", ", ".join(nodes))


# ---- Slot types


@CHECKS.rule(_SLOTS)
def without_effect(slot: SlotType) -> Iterator[Finding]:
    """Policies for slots that cannot have one, or that do not exist; one finding for each type."""
    policies, configuration = list(slot.policies.values()), slot.node.configuration
    own = [knob for knob in (slot.policy, *policies) if typed(knob.macro)]
    idle = [knob for knob in own if knob is not slot.policy]
    if not slot.node.wants_policy:
        idle = [policy for policy in policies if not policy.is_default]
    if not slot.count and own:
        count, place = f"NUM_SLOTS_TYPE_{slot.number}", own[0].place
        # Another file may have slots of that type.
        is_sure = configuration.is_whole or configuration.assignments(count)
        level = Level.ERROR if is_sure else Level.ADVICE
        names = {"knobs": _names(own), "count": count}
        yield finding("no such slot", place, level=level, slot=slot, **names)
    elif not slot.count or slot.is_misread:
        return
    elif slot.wants_policy and not slot.partitionable:
        level = Level.ERROR if typed(slot.policy.macro) else Level.ADVICE
        yield finding("not partitionable", slot.policy.place, level=level, slot=slot)
    elif idle and not slot.wants_policy:
        yield finding("policy is off", idle[0].place, knobs=_names(idle), slot=slot)


def _names(knobs: Iterable[SlotKnob]) -> str:
    return some(list(dict.fromkeys(knob.macro for knob in knobs)), 6, ", ")


@CHECKS.rule(_SLOTS)
def machine_lacks_it(slot: SlotType) -> Iterator[Finding]:
    """Slot types that want what the machine has not ("Unknown attribute")."""
    names = [name.lower() for name in (*slot.node.resources, GPUS)]
    knob = f"SLOT_TYPE_{slot.number}"
    for name, text in by_name(slot.shares).items():
        # Parts of what is not there are nothing, and do no harm.
        is_there = asset_of(name) is not None or name.lower() in names
        if slot.count and not is_there and amount_of(slot.shares, name, 0):
            close = near(name.lower(), [*names, "cpus", "memory"])
            meant = close[0] if close else f"MACHINE_RESOURCE_{name} = AMOUNT, to declare it"
            place = slot.node.configuration.place(knob)
            yield finding("machine lacks it", place, knob=knob, name=name, text=text, meant=meant)


@CHECKS.rule(_NODES)
def wants_too_much(node: CheckedNode) -> Iterator[Finding]:
    """Slot types that want more than the machine has ("Ran out of system resources")."""
    for asset in node.assets:
        total = node.total(asset)
        whole = 100.0 if total is None else total
        parts = [
            (slot, slot.count * part)
            for slot in node.slot_types
            # Of an unknown total, only parts can be added up.
            if (total is not None or not amount_of(slot.shares, asset, 0.0))
            and (part := amount_of(slot.shares, asset, whole))
            and not node.boolean(f"SLOT_TYPE_{slot.number}_BACKFILL")
        ]
        if sum(part for _, part in parts) > whole * (1 + 1e-9):
            unit, of = ("%", "") if total is None else ("", f" of {plain(whole)}")
            terms = " + ".join(f"{part:g}{unit}" for _, part in parts)
            place = node.configuration.place(f"SLOT_TYPE_{parts[-1][0].number}")
            yield finding("wants too much", place, asset=asset, terms=f"{terms}{of}")


# ---- Expressions


@CHECKS.rule()
def unreadable(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Expressions on which the startd ends ("Bad consumption policy expression")."""
    for knob in (knob for slot in subject.slots for knob in slot.expressions):
        if knob.text not in subject.readable:
            yield finding("unreadable" if knob.text.strip() else "empty", knob.place, knob=knob)


@CHECKS.rule()
def wrong_scope(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Names that a policy or a weight asks of the wrong side, or of no side."""
    for slot in subject.slots:
        for knob in slot.expressions:
            for reference in references(subject.readable.get(knob.text, "")):
                if kind := _out_of_scope(slot, reference):
                    # HTCondor finds the job's attribute all the same.
                    level = Level.ADVICE if kind == "unscoped" else Level.ERROR
                    yield finding(kind, knob.place, level=level, knob=knob, name=reference.name)


def _out_of_scope(slot: SlotType, reference: Reference) -> str:
    lower, assets = reference.name.lower(), {asset.lower() for asset in slot.policies}
    own = {f"{prefix}{asset}" for prefix in ("", "total", "totalslot") for asset in assets}
    own.update(map(str.lower, slot.node.attributes))
    is_request = lower.startswith("request")
    is_known = is_request or lower in own or startd_publishes(reference.name)
    faults = {
        "request of the slot": reference.scope == MY and is_request,
        "asset of the job": reference.scope == TARGET and lower in assets,
        "unscoped": reference.scope == UNSCOPED and not is_known,
    }
    return next((kind for kind, applies in faults.items() if applies), "")


# ---- Leftovers and other knobs


@CHECKS.rule()
def leftovers(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Leftovers beside a policy: access points start jobs there that no quota was asked for.

    Since 23.7.2 the startd asks only the access point (request_claim in command.cpp).
    """
    level = Level.ERROR if subject.slots else Level.ADVICE
    for node in subject.nodes:
        configuration = node.configuration
        is_set = bool(configuration.assignments(LEFTOVERS))
        is_error = node.runs("SCHEDD") or (is_set and node.wants_policy)
        applies = is_error if subject.slots else node.is_access_point
        if applies and node.boolean(LEFTOVERS):
            place = configuration.place(LEFTOVERS) if is_set else configuration.name
            by_default = "" if is_set else " by default"
            yield finding("leftovers", place, level=level, by_default=by_default)


@CHECKS.rule()
def combinations(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Knobs that do not go with consumption policies."""
    values = {
        "NEGOTIATOR_USE_SLOT_WEIGHTS": False,
        "NEGOTIATOR_DEPTH_FIRST": True,
        "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS": True,
    }
    for node in subject.nodes if subject.slots else ():
        for knob, value in values.items():
            if node.boolean(knob) is value:
                yield finding(knob, node.configuration.place(knob))


@CHECKS.rule(_TRIED)
def threads(slot: SlotType) -> Iterator[Finding]:
    """Threads of the negotiator beside a policy that takes less than jobs request."""
    number = slot.node.configuration.text(THREADS).strip()
    takes_less = any(
        amount < float(job.get(f"Request{asset}", "0"))
        for job, taken in slot.accepted
        for asset, amount in taken.items()
    )
    if number.isdecimal() and int(number) > 1 and takes_less:
        yield finding("threads", slot.node.configuration.place(THREADS), number=number)


# ---- Charges, by trial


@CHECKS.rule(_TRIED)
def no_number(slot: SlotType) -> Iterator[Finding]:
    """Policies that are undefined, an error or negative (cp_sufficient_assets)."""
    for asset, policy in slot.policies.items():
        amounts = [(job, taken[asset]) for job, taken in slot.taken]
        wrong = [(job, amount) for job, amount in amounts if amount is None or amount < 0]
        every = "every job, such as " if len(wrong) == len(amounts) else ""
        for job, amount in wrong[:1]:
            names: dict[str, Any] = {"policy": policy, "asset": asset, "job": job, "every": every}
            kind = "no number" if amount is None else "negative"
            yield finding("no number", policy.place, kind=kind, **names)


@CHECKS.rule(_TRIED)
def takes_nothing(slot: SlotType) -> Iterator[Finding]:
    """Policies that take nothing at all ("Consumption for all assets … was zero")."""
    policy = slot.policies["Cpus"]
    for job in [job for job, taken in slot.taken if set(taken.values()) == {0}][:1]:
        yield finding("takes nothing", policy.place, policy=policy, slot=slot, job=job)


@CHECKS.rule(_TRIED)
def no_room(slot: SlotType) -> Iterator[Finding]:
    """Slots in which the smallest job finds no room while they are empty."""
    job, taken = min(slot.taken, key=lambda row: (len(row[0]), row[0]["RequestCpus"]))
    short = [asset for asset in taken if (taken[asset] or 0.0) > slot.whole[asset]]
    if short and not slot.accepted:
        policy = slot.policies[short[0]]
        yield finding("no room", policy.place, policy=policy, slot=slot, job=job, taken=taken)


@CHECKS.rule(_TRIED)
def refused_claims(slot: SlotType) -> Iterator[Finding]:
    """Policies that ask the dynamic slot for more than it was given.

    The startd makes whole numbers for the dynamic slot, and asks the policy again on that slot
    ("Slot Requirements not satisfied").
    """
    seen = set()
    # Fractions first: they are what the startd cuts.
    rows = sorted(slot.accepted, key=lambda row: all(map(float.is_integer, row[1].values())))
    for job, taken in rows:
        ad = slot.dynamic_slot_ad(taken)
        for asset, wanted in slot.charges(ad, [job])[0].items():
            policy = slot.policies[asset]
            names: dict[str, Any] = {"policy": policy, "asset": asset, "job": job}
            if asset in seen or (wanted is not None and wanted <= float(ad[asset])):
                continue
            seen.add(asset)
            if wanted is None:
                yield finding("not a number there", policy.place, **names)
                continue
            kind = "refused claim" if wanted.is_integer() else "fraction"
            yield finding(kind, policy.place, amount=ad[asset], wanted=wanted, **names)


@CHECKS.rule(_TRIED)
def too_few_cores(slot: SlotType) -> Iterator[Finding]:
    """Policies that take less than the core that the startd gives each claim (create_dslot)."""
    policy, cores = slot.policies["Cpus"], slot.whole["Cpus"]
    for job, taken in slot.smallest[:1]:
        if min(slot.whole[asset] // amount for asset, amount in taken.items() if amount) > cores:
            yield finding("too few cores", policy.place, policy=policy, cores=cores, job=job)


@CHECKS.rule(_TRIED)
def unlike_start(slot: SlotType) -> Iterator[Finding]:
    """STARTs that differ for what a job requests and for what the policy makes of it.

    The negotiator asks about the latter (cp_override_requested in matchmakingAlgorithm), the
    startd about the former before it makes a dynamic slot, and about the latter on that slot.
    """
    knob, jobs = slot.knob("START"), [job for job, _ in slot.accepted]
    made = [
        {name: plain(taken[name[len("Request") :]]) for name in job} for job, taken in slot.accepted
    ]
    ad = slot.slot_ad(slot.whole)
    (rows,) = slot.node.htcondor.evaluate([knob.text], [ad], [*jobs, *made])
    values = [is_true(value) for value in rows[0]] if rows else []
    pairs = zip(jobs, values, values[len(jobs) :])
    for job in [job for job, first, then in pairs if first != then][:1]:
        yield finding("unlike START", knob.place, knob=knob, job=job)


# ---- Weights, by trial


@CHECKS.rule(_TRIED)
def no_weight(slot: SlotType) -> Iterator[Finding]:
    """Weights that are no number in some state of the slot ("Failed to evaluate SlotWeight")."""
    weight, assets = slot.weight, tuple(slot.whole)
    gone = [(), *((a,) for a in assets), *itertools.combinations(assets, 2), assets]
    ads = [slot.slot_ad({**slot.whole, **dict.fromkeys(state, 0.0)}) for state in gone]
    values = zip(gone, slot.weights(ads))
    for state, value in [row for row in values if number_of(row[1]) is None][:1]:
        kind, level = ("divides by zero", Level.ERROR) if state else ("no weight", Level.ADVICE)
        where = " = ".join((*state, "0"))
        yield finding(kind, weight.place, level=level, weight=weight, value=value, state=where)


@CHECKS.rule(_TRIED)
def weight_does_not_follow(slot: SlotType) -> Iterator[Finding]:
    """Weights by which a match costs nothing, or something else from the next cycle on."""
    for job, taken in slot.smallest:
        cost = slot.cost(slot.whole, taken)
        # Accountant::CheckMatches.
        (weight,) = slot.weights([slot.dynamic_slot_ad(taken)])
        later = 1.0 if number_of(weight) is None else float(weight)
        if cost is None or (cost > 0 and math.isclose(later, cost, rel_tol=1e-3)):
            continue
        kind, knob = "free of charge" if cost <= 0 else "another charge", slot.weight
        names: dict[str, Any] = {"slot": slot, "weight": knob, "cost": cost, "later": later}
        yield finding(kind, knob.place, level=Level.ADVICE, job=job, **names)
        break


# ---- Access points


@CHECKS.rule(_NODES)
def weightless_jobs(node: CheckedNode) -> Iterator[Finding]:
    """Weights by which an idle job counts as nothing.

    Without SCHEDD_SLOT_WEIGHT, a schedd takes SLOT_WEIGHT of an ad with the job's requests as
    Cpus, Memory and Disk (guessJobSlotWeight in schedd.cpp), and adds the whole part for each job
    to WeightedIdleJobs, the negotiator's demand of a group.
    """
    knob = _schedds_weight(node)
    if knob is None:
        return
    kind = "weightless by its own" if knob.macro == SCHEDD_WEIGHT else "weightless"
    ads = [{**job, **{name[len("Request") :]: n for name, n in job.items()}} for job in _SMALL_JOBS]
    (rows,) = node.htcondor.evaluate([knob.text], ads)
    weights = [number_of(row[0]) for row in rows or ()]
    light = [(job, w) for job, w in zip(_SMALL_JOBS, weights) if w is not None and w < 1]
    for job, weight in light[:1]:
        yield finding(kind, knob.place, knob=knob, job=job, weight=weight)


def _schedds_weight(node: CheckedNode) -> Optional[SlotKnob]:
    """Knob by which a schedd weighs jobs; None if no schedd reads any here."""
    text, written = node.configuration.text, node.configuration.assignments
    is_complete = node.configuration.is_whole or written("DAEMON_LIST")
    has_schedd, place = node.runs("SCHEDD"), node.configuration.place
    if node.boolean(SCHEDD_USES_WEIGHT) is False or (is_complete and not has_schedd):
        return None
    if written(SCHEDD_WEIGHT):
        return SlotKnob(SCHEDD_WEIGHT, text(SCHEDD_WEIGHT).strip(), place(SCHEDD_WEIGHT))
    weight = text(WEIGHT).strip()
    if written(WEIGHT) and written(f"STARTD.{WEIGHT}"):
        # The library reads STARTD's: only as it is written, it is the schedd's.
        weight = written(WEIGHT)[-1].text
    is_schedds = has_schedd and written(WEIGHT) and weight and "$" not in weight
    return SlotKnob(WEIGHT, weight, place(WEIGHT)) if is_schedds else None
