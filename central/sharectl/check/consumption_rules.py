"""Checks of consumption policies, by what is written and by trial.

The daemons' behaviour was read in the source of 25.14 and 23.9.6, and seen where a pool test says
so. Policies and weights are evaluated by HTCondor, for the same ordinary jobs each time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Optional

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
    Ad,
    CheckedNode,
    ConsumptionSubject,
    PolicyTrial,
    SlotKnob,
    SlotType,
    boolean_texts,
    knob_of,
    listed,
    number_of,
    plain,
    requests_of,
    typed,
)
from sharectl.check.findings import Finding, Level, one_line, some
from sharectl.check.trials import is_true, startd_publishes
from sharectl.condor.expressions import MY, TARGET, UNSCOPED, Reference, references
from sharectl.consumption.policy import amount_of, by_name, part_of
from sharectl.consumption.policy import is_htcondors as is_standard
from sharectl.words import near

_BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "enabled"), "True"),
    **dict.fromkeys(("false", "f", "no", "n", "off", "disabled", "none"), "False"),
}
_AGAIN = "ends as soon as it reads that, again and again"
_ENDS = (
    "the startd of 23.9.6 ends as it starts, again and again, and that of 25.14.1 makes a broken "
    "slot or none"
)
_CONSUMPTION = "CONSUMPTION_"
_OF_TYPES = (POLICY, WEIGHT, "NUM_CLAIMS", "PARTITIONABLE", "NAME_PREFIX", "BACKFILL", "HIDDEN")
_OF_ALL = (POLICY, WEIGHT, "NUM_CLAIMS", SCHEDD_WEIGHT, *READERS)
_SMALL_JOBS = tuple(
    {"RequestCpus": "1", "RequestMemory": memory, "RequestDisk": disk}
    for memory, disk in itertools.product(("128", "1000", "2048", "4096"), ("1000", "1048576"))
)


# ---- Knobs


def unknown_knob(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Knobs that nothing reads, and that look like one of consumption policies."""
    for node in subject.nodes:
        configuration = node.configuration
        used = {name for part in configuration.definitions for name in part.references}
        used |= {word.lower() for knob in ATTRIBUTE_LISTS for word in configuration.words(knob)}
        stems = ("\0", *(name[:-1] for name in used if name.endswith("*")))
        parts = {part.name: part for part in configuration.definitions if part.name}
        for name, part in parts.items():
            is_used = name.lower() in used or name.lower().startswith(stems)
            fault = None if is_used else _unknown(node, name)
            if fault and configuration.is_judged(part):
                yield Finding(part.place, *fault)


def _unknown(node: CheckedNode, name: str) -> Optional[tuple[str, str]]:
    """Fault and remedy; None if it is a knob, or nothing of consumption policies."""
    number, rest = typed(name) or (None, name.rpartition(".")[2])
    assets = (*node.assets, GPUS, *node.configuration.words("MACHINE_RESOURCE_NAMES"))
    of_assets = [f"{_CONSUMPTION}{asset}".upper() for asset in assets]
    knobs = [*(_OF_ALL if number is None else _OF_TYPES), *of_assets]
    if not rest or rest.upper() in knobs:
        return None
    if close := near(rest.upper(), knobs, likeness=0.85):
        meant = name[: len(name) - len(rest)] + close[0]
        return f"HTCondor has no knob {name}, so nothing reads it", f"write {meant}"
    if not rest.upper().startswith(_CONSUMPTION):
        return None
    fault = f"{name}: the node has no such asset (it has {', '.join(node.assets)})"
    asset = rest[len(_CONSUMPTION) :]
    return fault, f"declare it, MACHINE_RESOURCE_{asset} = AMOUNT, or take the line out"


def invalid_boolean(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Boolean knobs with another text: daemons end, or take it for False (param_boolean)."""
    for node in subject.nodes:
        for name, text in boolean_texts(node.configuration).items():
            if node.booleans.get(text) is not None:
                continue
            shown = one_line(text, 60)
            meant = near(shown.lower(), _BOOLEAN_WORDS)
            yield Finding(
                node.configuration.place(name),
                f"{name} = {shown} is an invalid boolean: {_misread(node, name)}",
                f"write {name} = {_BOOLEAN_WORDS[meant[0]] if meant else 'True, or False'}",
            )


def _misread(node: CheckedNode, name: str) -> str:
    number, knob = typed(name.upper()) or (None, name.upper().rpartition(".")[2])
    daemon = name.upper().rpartition(".")[0]
    if number is None:
        readers = (daemon,) if daemon in READERS[knob] else READERS[knob]
        return f"the {' or '.join(readers).lower()} {_AGAIN}"
    if knob == "BACKFILL":
        return f"the startd {_AGAIN}"
    if knob == POLICY:
        general = "True" if node.boolean(POLICY) else "False"
        return f"the startd ignores it silently, and takes {POLICY} = {general}"
    return "the startd takes it for False silently"


def no_policy(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Configurations without any consumption policy."""
    nodes = [
        node.configuration
        for node in subject.nodes
        if not node.is_access_point
        and (node.configuration.is_whole or not node.configuration.assignments(LEFTOVERS))
    ]
    slots = [slot for node in subject.nodes for slot in node.slot_types]
    own = (policy for slot in slots for policy in slot.policies.values() if not policy.is_default)
    if nodes and not any(own) and not any(s.wants_policy or s.is_misread for s in slots):
        fault = "no slot has a consumption policy: the negotiator matches one job a cycle on each"
        remedy = "write CONSUMPTION_POLICY = True, or SLOT_TYPE_<N>_CONSUMPTION_POLICY = True for "
        yield Finding(", ".join(node.name for node in nodes), fault, f"{remedy}a type")


# ---- Slot types


def slot_types(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies for slots that cannot have one, or that do not exist; one finding for each type."""
    for node in subject.nodes:
        for slot in node.slot_types:
            yield from _without_effect(node, slot)


def _without_effect(node: CheckedNode, slot: SlotType) -> Iterator[Finding]:
    policies = list(slot.policies.values())
    own = [knob for knob in (slot.policy, *policies) if typed(knob.macro)]
    idle = [knob for knob in own if knob is not slot.policy]
    if not node.wants_policy:
        idle = [policy for policy in policies if not policy.is_default]
    scope = f"SLOT_TYPE_{slot.number}_" if slot.number else ""
    if not slot.count and own:
        count = f"NUM_SLOTS_TYPE_{slot.number}"
        fault = f"{_names(own)}: the node has no slot of type {slot.number}"
        remedy = f"write {count} = 1, or use the number of a type that it has"
        # Another file may have slots of that type.
        is_sure = node.configuration.is_whole or node.configuration.assignments(count)
        yield Finding(own[0].place, fault, remedy, Level.ERROR if is_sure else Level.ADVICE)
    elif not slot.count or slot.is_misread:
        return
    elif slot.wants_policy and not slot.partitionable:
        fault = f"{slot.name}: not partitionable, so HTCondor ignores the policy"
        remedy = f"write {scope}PARTITIONABLE = True, or {slot.policy.macro} = False for it"
        level = Level.ERROR if typed(slot.policy.macro) else Level.ADVICE
        yield Finding(slot.policy.place, fault, remedy, level)
    elif idle and not slot.wants_policy:
        fault = f"{_names(idle)}: no effect, because {slot.policy.macro} is not True"
        remedy = f"write {scope}CONSUMPTION_POLICY = True, or take that out"
        yield Finding(idle[0].place, fault, remedy)


def _names(knobs: Iterable[SlotKnob]) -> str:
    return some(list(dict.fromkeys(knob.macro for knob in knobs)), 6, ", ")


def wants_too_much(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Slot types that want more than the machine has, or what it has not.

    "Ran out of system resources", "Unknown attribute".
    """
    for node in subject.nodes:
        names = [name.lower() for name in (*node.resources, GPUS)]
        for slot in node.slot_types:
            knob = f"SLOT_TYPE_{slot.number}"
            for name, text in by_name(slot.shares).items():
                # Parts of what is not there are nothing, and do no harm.
                is_there = is_standard(name) or name.lower() in names
                if not slot.count or is_there or not amount_of(slot.shares, name, 0):
                    continue
                meant = near(name.lower(), [*names, "cpus", "memory"])
                fault = f"{knob}: {name} = {text}, and the machine has no {name}: {_ENDS}"
                remedy = meant[0] if meant else f"MACHINE_RESOURCE_{name} = AMOUNT, to declare it"
                yield Finding(node.configuration.place(knob), fault, f"write {remedy}")
        for asset in node.assets:
            yield from _sum_of_parts(node, asset)


def _sum_of_parts(node: CheckedNode, asset: str) -> Iterator[Finding]:
    total = node.total(asset)
    whole = 100.0 if total is None else total
    parts = [
        (slot, slot.count * part)
        for slot in node.slot_types
        # Of an unknown total, only parts can be added up.
        if (total is not None or part_of(slot.shares, asset) is not None)
        and (part := amount_of(slot.shares, asset, whole))
        and not node.boolean(f"SLOT_TYPE_{slot.number}_BACKFILL")
    ]
    if sum(part for _, part in parts) <= whole * (1 + 1e-9):
        return
    unit, of = ("%", "") if total is None else ("", f" of {plain(whole)}")
    terms = " + ".join(f"{part:g}{unit}" for _, part in parts)
    yield Finding(
        node.configuration.place(f"SLOT_TYPE_{parts[-1][0].number}"),
        f"the slot types want more than the machine has, {asset} = {terms}{of}: {_ENDS}",
        "let the amounts of all slots be no more than the machine's, or write auto for one of them",
    )


# ---- Expressions


def unreadable(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Expressions on which the startd ends ("Bad consumption policy expression")."""
    for knob in dict.fromkeys(knob for _, slot in subject.slots for knob in slot.expressions):
        if knob.text in subject.readable:
            continue
        text = one_line(knob.text)
        fault, remedy = f"{knob.macro} is empty", "take the line out, and HTCondor has a default"
        if text:
            fault = f"HTCondor cannot read {knob.macro} = {text}"
            remedy = "look for a missing bracket, quote or operator"
        yield Finding(
            knob.place,
            f"{fault}: the startd ends as soon as it starts, again and again",
            f"{remedy}; the policies and weight of these slots are not tried before",
        )


def wrong_scope(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Names that a policy or a weight asks of the wrong side, or of no side."""
    for node, slot in subject.slots:
        for knob in slot.expressions:
            for reference in references(subject.readable.get(knob.text, "")):
                for fault, remedy in _out_of_scope(node, slot, reference):
                    # HTCondor finds the job's attribute all the same.
                    level = Level.ADVICE if reference.scope == UNSCOPED else Level.ERROR
                    yield Finding(knob.place, f"{knob.macro}: {fault}", remedy, level)


def _out_of_scope(
    node: CheckedNode, slot: SlotType, reference: Reference
) -> Iterator[tuple[str, str]]:
    name, lower = reference.name, reference.name.lower()
    assets = {asset.lower() for asset in slot.policies}
    own = {f"{prefix}{asset}" for prefix in ("", "total", "totalslot") for asset in assets}
    own.update(map(str.lower, node.attributes))
    is_request = lower.startswith("request")
    if reference.scope == MY and is_request:
        fault = f"MY.{name} asks the slot for what the job requests: undefined"
        yield fault, f"write TARGET.{name}"
    elif reference.scope == TARGET and lower in assets:
        fault = f"TARGET.{name} asks the job for what the slot has"
        yield fault, f"write MY.{name}, or TARGET.Request{name}"
    elif reference.scope == UNSCOPED and not (is_request or lower in own or startd_publishes(name)):
        fault = f"{name} is not scoped: where the slot has none, HTCondor takes it from the job"
        yield fault, f"write MY.{name} for the slot's, TARGET.{name} for the job's"


# ---- Leftovers and other knobs


def leftovers(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Leftovers beside a policy: access points start jobs there that no quota was asked for.

    Since 23.7.2 the startd asks only the access point (request_claim in command.cpp).
    """
    for node in subject.nodes:
        configuration = node.configuration
        is_set = bool(configuration.assignments(LEFTOVERS))
        is_error = node.runs("SCHEDD") or (is_set and node.wants_policy)
        applies = is_error if subject.slots else node.is_access_point
        if applies and node.boolean(LEFTOVERS):
            fault = f"{LEFTOVERS} is True{'' if is_set else ' by default'}: access points start "
            fault += "jobs on leftovers of slots with a policy, past quotas and concurrency limits"
            yield Finding(
                configuration.place(LEFTOVERS) if is_set else configuration.name,
                fault,
                f"write {LEFTOVERS} = False on nodes and access points; the latter's decides",
                Level.ERROR if subject.slots else Level.ADVICE,
            )


_COMBINATIONS = (
    # Knob, value that does not go with consumption policies, consequence.
    (
        "NEGOTIATOR_USE_SLOT_WEIGHTS",
        False,
        "quotas count slots, and matches still cost SLOT_WEIGHT: quotas in two units",
    ),
    (
        "NEGOTIATOR_DEPTH_FIRST",
        True,
        "after a match the negotiator skips the jobs that the slot still has room for",
    ),
    (
        "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS",
        True,
        "access points that have it too claim slots whole, which the startd refuses in each cycle",
    ),
)


def combinations(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Knobs that do not go with consumption policies."""
    for node in subject.nodes if subject.slots else ():
        configuration = node.configuration
        for knob, value, consequence in _COMBINATIONS:
            if node.boolean(knob) is value:
                fault = f"{knob} = {value}: {consequence}"
                yield Finding(configuration.place(knob), fault, f"write {knob} = {not value}")
        threads = configuration.text(THREADS).strip()
        takes_less = any(
            amount < float(job.get(f"Request{asset}", "0"))
            for trial in subject.trials
            if trial.node is node
            for job, taken in trial.accepted
            for asset, amount in taken.items()
        )
        if threads.isdecimal() and int(threads) > 1 and takes_less:
            fault = f"{THREADS} = {threads}: Requirements see what a job requests, and the policy "
            fault += "takes less: jobs that fit stay idle"
            remedy = f"write {THREADS} = 1, or let the policy take what is requested at least"
            yield Finding(configuration.place(THREADS), fault, remedy)


# ---- Charges, by trial


def numbers(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies that are undefined, an error or negative (cp_sufficient_assets)."""
    for trial in subject.trials:
        for asset, policy in trial.slot.policies.items():
            amounts = [(job, taken[asset]) for job, taken in trial.taken]
            wrong = [(job, amount) for job, amount in amounts if amount is None or amount < 0]
            if wrong:
                (job, amount), request = wrong[0], f"TARGET.Request{asset}"
                kind = "no number" if amount is None else "negative"
                whole = "every job, such as " if len(wrong) == len(trial.taken) else ""
                yield Finding(
                    policy.place,
                    f"{policy.macro} is {kind} for {whole}a job with {requests_of(job)}: the "
                    "negotiator refuses it, with a warning in its log at each look",
                    f"write {policy.macro} = max({{0, {request} ?: 0}}), or another expression "
                    "that is a number for every job",
                )


def zero(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies that take nothing at all ("Consumption for all assets … was zero")."""
    for trial in subject.trials:
        empty = [job for job, taken in trial.taken if set(taken.values()) == {0}]
        policy = trial.slot.policies["Cpus"]
        if empty:
            yield Finding(
                policy.place,
                f"{trial.slot.name}: the policy takes nothing for a job with "
                f"{requests_of(empty[0])}: the negotiator refuses it, with a warning in its log at "
                "each look",
                f"let one policy be positive always, such as {policy.macro} = "
                "quantize(TARGET.RequestCpus, {1})",
            )


def room(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Slots in which the smallest job finds no room while they are empty."""
    for trial in subject.trials:
        job, taken = min(trial.taken, key=lambda row: (len(row[0]), row[0]["RequestCpus"]))
        short = [asset for asset in taken if (taken[asset] or 0.0) > trial.whole[asset]]
        if short and not trial.accepted:
            policy = trial.slot.policies[short[0]]
            yield Finding(
                policy.place,
                f"{trial.slot.name}: no room for any job, one with {requests_of(job)} takes "
                f"{listed(taken)} of {listed(trial.whole)}",
                f"let {policy.macro} take less",
            )


def refused_claims(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies that ask the dynamic slot for more than it was given.

    The startd makes whole numbers for the dynamic slot, and asks the policy again on that slot
    ("Slot Requirements not satisfied").
    """
    for trial in subject.trials:
        refused: dict[str, tuple[Ad, str, Optional[float]]] = {}
        # Fractions first: they are what the startd cuts.
        rows = sorted(trial.accepted, key=lambda row: all(map(float.is_integer, row[1].values())))
        for job, taken in rows:
            ad = trial.dynamic_slot_ad(taken)
            for asset, (wanted,) in zip(taken, trial.evaluated(ad, [job])):
                if wanted is None or wanted > float(ad[asset]):
                    refused.setdefault(asset, (job, ad[asset], wanted))
        for asset, (job, amount, wanted) in refused.items():
            policy, request = trial.slot.policies[asset], f"TARGET.Request{asset}"
            if wanted is None:
                fault = f"{policy.macro} is no number for a job with {requests_of(job)}: the "
                fault += "slot's Requirements ask for it, and the negotiator matches no such job"
                remedy = f"write {request} ?: 0 for {request}, or another expression that is a "
                remedy += "number for every job"
            else:
                fault = f"{policy.macro}: a job with {requests_of(job)} gets a dynamic slot with "
                fault += f"{asset} = {amount}, and there the policy asks for {plain(wanted)}: the "
                fault += "startd refuses the claim, and the job is matched again in every cycle"
                remedy = "make it depend on what the job requests, and not on what is left in the "
                remedy += "slot"
                if not wanted.is_integer():
                    remedy = f"write ceiling({one_line(policy.text)})"
            yield Finding(policy.place, fault, remedy)


def cores(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies that take less than the core that the startd gives each claim (create_dslot)."""
    for trial in subject.trials:
        policy, most = trial.slot.policies["Cpus"], trial.whole["Cpus"]
        for job in [job for job, states in trial.fillings if len(states) - 1 > most][:1]:
            yield Finding(
                policy.place,
                f"the policy lets more than {plain(most)} jobs with {requests_of(job)} into a slot "
                "of as many cores, and the startd gives each of them one core: it refuses the "
                "others, which are matched again in every cycle",
                f"let {policy.macro} be 1 at least, or let another asset run out sooner",
            )


def start(subject: ConsumptionSubject) -> Iterator[Finding]:
    """STARTs that differ for what a job requests and for what the policy makes of it.

    The negotiator asks about the latter (cp_override_requested in matchmakingAlgorithm), the
    startd about the former before it makes a dynamic slot, and about the latter on that slot.
    """
    for trial in subject.trials:
        knob = knob_of(trial.node.configuration, trial.slot.number, "START", "")
        jobs = [job for job, _ in trial.accepted]
        made = [
            {name: plain(taken[name[len("Request") :]]) for name in job}
            for job, taken in trial.accepted
        ]
        ad = trial.slot_ad(trial.whole)
        (rows,) = subject.htcondor.evaluate([knob.text], [ad], [*jobs, *made])
        values = [is_true(value) for value in rows[0]] if rows else []
        pairs = zip(jobs, values, values[len(jobs) :])
        for job in [job for job, first, then in pairs if first != then][:1]:
            yield Finding(
                knob.place,
                f"{knob.macro} differs for what a job with {requests_of(job)} requests and for "
                "what the policy makes of it: the negotiator asks about the latter, the startd "
                "about both, so such jobs are matched in vain, or never",
                "let it ask for TARGET.Request… only in ways that quantizing does not change",
            )


# ---- Weights, by trial


def weight_is_number(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights that are no number in some state of the slot ("Failed to evaluate SlotWeight")."""
    for trial in subject.trials:
        weight, assets = trial.slot.weight, tuple(trial.whole)
        gone = [(), *((a,) for a in assets), *itertools.combinations(assets, 2), assets]
        ads = [trial.slot_ad({**trial.whole, **dict.fromkeys(state, 0.0)}) for state in gone]
        values = trial.weights(ads)
        wrong = [(state, value) for state, value in zip(gone, values) if number_of(value) is None]
        if wrong and not wrong[0][0]:
            yield Finding(
                weight.place,
                f"{weight.macro} is {values[0]} on an empty slot: the negotiator takes its own "
                "SLOT_WEIGHT instead",
                "write a number made of Cpus, Memory, Disk and the slot's custom resources",
                Level.ADVICE,
            )
        elif wrong:
            state, value = wrong[0]
            yield Finding(
                weight.place,
                f"{weight.macro} is {value} where {' = '.join((*state, '0'))}: the negotiator "
                "ends there (Failed to evaluate SlotWeight), is started again, and ends again",
                "divide by nothing that can be 0",
            )


def weight_follows(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights by which a match costs nothing, or something else from the next cycle on."""
    for trial in subject.trials:
        weight = trial.slot.weight
        for fault in itertools.islice(_unlike_charges(trial), 1):
            yield Finding(
                weight.place,
                f"{weight.macro} = {one_line(weight.text)}: {fault}",
                "make the weight the number of claims that still fit (sharectl consumption "
                "render writes it)",
                Level.ADVICE,
            )


def _unlike_charges(trial: PolicyTrial) -> Iterator[str]:
    fillings = [(job, states, trial.costs(states)) for job, states in trial.fillings]
    for job, states, costs in fillings:
        for state, cost in zip(states, costs):
            if cost is not None and cost <= 0:
                yield (
                    f"where the slot has {listed(state)}, a job with {requests_of(job)} costs "
                    f"{plain(cost)}: no quota or share holds such jobs back"
                )
    for job, states, costs in fillings:
        taken = {asset: states[0][asset] - states[1][asset] for asset in states[0]}
        # Accountant::CheckMatches.
        (later,) = trial.weights([trial.dynamic_slot_ad(taken)])
        again = 1.0 if number_of(later) is None else float(later)
        if costs[0] is not None and not math.isclose(again, costs[0], rel_tol=1e-3):
            yield (
                f"a job with {requests_of(job)} costs {plain(costs[0])} when it is matched, and "
                "from the next cycle on the accountant counts the weight of its dynamic slot, "
                f"{plain(again)}"
            )


# ---- Access points, and several nodes


def weightless_jobs(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights by which an idle job counts as nothing.

    Without SCHEDD_SLOT_WEIGHT, a schedd takes SLOT_WEIGHT of an ad with the job's requests as
    Cpus, Memory and Disk (guessJobSlotWeight in schedd.cpp), and adds the whole part for each job
    to WeightedIdleJobs, the negotiator's demand of a group.
    """
    ads = [{**job, **{name[len("Request") :]: n for name, n in job.items()}} for job in _SMALL_JOBS]
    for node in subject.nodes:
        knob = _schedds_weight(node)
        if knob is None:
            continue
        (rows,) = subject.htcondor.evaluate([knob.text], ads)
        weights = [number_of(row[0]) for row in rows or ()]
        light = [(job, w) for job, w in zip(_SMALL_JOBS, weights) if w is not None and w < 1]
        for job, weight in light[:1]:
            fault = f"{knob.macro} on access points: an idle job with {requests_of(job)} weighs "
            fault += f"{plain(weight)}, and counts as the whole part of that: where there are "
            fault += "group quotas, the negotiator matches no such job"
            remedy = f"STARTD.{WEIGHT}, which no schedd reads, or {SCHEDD_WEIGHT} beside it"
            if knob.macro == SCHEDD_WEIGHT:
                remedy = f"{SCHEDD_WEIGHT} = RequestCpus, or another number that is 1 at least"
            yield Finding(knob.place, fault, f"write {remedy}")


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


def unlike_nodes(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights by which a job costs more on one node than on another: quotas in two units.

    Types of one number are meant alike; the first node of each number is the measure.
    """
    has_quotas = any(node.configuration.text("GROUP_NAMES") for node in subject.nodes)
    first: dict[int, PolicyTrial] = {}
    for trial in subject.trials:
        measure = first.setdefault(trial.slot.number, trial)
        cost, usual = trial.cost_on_large_slot, measure.cost_on_large_slot
        if cost is None or usual is None or math.isclose(cost, usual, rel_tol=1e-6):
            continue
        yield Finding(
            trial.slot.weight.place,
            f"a job of 8 cores and 16 GiB costs {plain(cost)} on {trial.node.configuration.name}, "
            f"and {plain(usual)} on {measure.node.configuration.name}: quotas are in two units",
            "write the same SLOT_WEIGHT on all nodes, or weights in the same unit",
            Level.ERROR if has_quotas else Level.ADVICE,
        )
