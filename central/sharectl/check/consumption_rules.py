"""Checks of knobs around consumption policies, by what is written and not by trial.

The daemons' behaviour was read in the source of 25.14 and 23.9.6, and seen where a pool test says
so.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Optional

from sharectl.check.consumption_subject import (
    ATTRIBUTE_LISTS,
    CACHING,
    GPUS,
    LEFTOVERS,
    MACROS,
    NUM_CLAIMS,
    POLICY,
    READERS,
    RECYCLING,
    SCHEDD_USES_WEIGHT,
    SCHEDD_WEIGHT,
    THREADS,
    WEIGHT,
    CheckedNode,
    ConsumptionSubject,
    PolicyTrial,
    Setting,
    SlotType,
    boolean_texts,
    plain,
    requests_of,
    typed,
)
from sharectl.check.findings import Finding, Level, one_line, some
from sharectl.check.trials import startd_publishes
from sharectl.condor.configuration import ConfigSource, Definition, expand
from sharectl.condor.expressions import (
    MY,
    TARGET,
    UNSCOPED,
    Reference,
    references,
)
from sharectl.consumption.policy import amount_of, by_name, part_of
from sharectl.consumption.policy import is_htcondors as is_standard

_BOOLEAN_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "enabled"), "True"),
    **dict.fromkeys(("false", "f", "no", "n", "off", "disabled", "none"), "False"),
}
_AGAIN = "ends as soon as it reads that, again and again"
_FAMILY = re.compile(r"con?su?mp?|slots?_?types?_|slot_?wei|num_?claim|claim_?part", re.IGNORECASE)
"""Beginning of a knob of consumption policies, however it is misspelt."""
_CONSUMPTION = "CONSUMPTION_"
_OF_TYPES = (POLICY, WEIGHT, NUM_CLAIMS, "PARTITIONABLE", "NAME_PREFIX", "BACKFILL", "HIDDEN")
_BY_HAND = re.compile(r"Consumption(?!_)(\w+)", re.IGNORECASE)
"""Attribute of a slot that is its policy for an asset."""
_ENDS = (
    "the startd of 23.9.6 ends as it starts, again and again, and that of 25.14.1 makes a broken "
    "slot or none"
)
_MEMORIES, _DISKS = ("128", "1000", "2048", "4096"), ("1000", "1048576")
_SMALL_JOBS = tuple(
    {"RequestCpus": "1", "RequestMemory": memory, "RequestDisk": disk}
    for memory, disk in itertools.product(_MEMORIES, _DISKS)
)


# ---- Knobs


def _names(knobs: Iterable[str]) -> str:
    return some(list(dict.fromkeys(knobs)), 6, ", ")


def invalid_boolean(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Boolean knobs with another text: daemons end, or take it for False (param_boolean)."""
    for node in subject.nodes:
        configuration = node.configuration
        for name, text in boolean_texts(configuration).items():
            if node.booleans.get(text) is not None:
                continue
            daemon, _, knob = name.upper().rpartition(".")
            readers = ("STARTD",) if typed(name) else READERS[knob]
            readers = (daemon,) if daemon in readers else readers
            is_known = configuration.is_whole or configuration.assignments("DAEMON_LIST")
            runs = [reader for reader in readers if node.runs(reader) or not is_known]
            shown = one_line(text, 60)
            meant = difflib.get_close_matches(shown.lower(), _BOOLEAN_WORDS, 1)
            yield Finding(
                configuration.place(name),
                f"{name} = {shown} is an invalid boolean: "
                + _misread(node, name, " or ".join(runs or readers).lower())
                + ("" if runs else " (DAEMON_LIST has no such daemon)"),
                f"write {name} = {_BOOLEAN_WORDS[meant[0]] if meant else 'True, or False'}",
                Level.ERROR if runs else Level.ADVICE,
            )


def _misread(node: CheckedNode, name: str, readers: str) -> str:
    _, knob = typed(name) or (None, "BACKFILL")
    if knob.upper() == "BACKFILL":
        return f"the {readers} {_AGAIN}"
    if knob.upper() == POLICY:
        general = "True" if node.boolean(POLICY) else "False"
        return f"the startd ignores it silently, and takes {POLICY} = {general}"
    return "the startd takes it for False silently"


def unknown_knob(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Knobs that nothing reads, and that look like one of consumption policies."""
    for node in subject.nodes:
        configuration = node.configuration
        used = {name for part in configuration.definitions for name in part.references}
        used |= {word.lower() for knob in ATTRIBUTE_LISTS for word in configuration.words(knob)}
        stems = tuple(name[:-1] for name in used if name.endswith("*"))
        names = {
            part.name: part
            for part in configuration.definitions
            if part.name and configuration.is_judged(part)
        }
        odd = {
            name: fault
            for name in names
            if name.lower() not in used and not name.lower().startswith(stems or "\0")
            if (fault := _unknown(node, name)) is not None
        }
        real = expand(ConfigSource(), list(odd), subject.htcondor) if odd else {}
        for name, fault in odd.items():
            if name not in real:
                yield Finding(names[name].place, *fault)


def _unknown(node: CheckedNode, name: str) -> Optional[tuple[str, str]]:
    """Fault and remedy; None if it is a knob, or nothing of consumption policies."""
    number, rest = typed(name) or (None, name.rpartition(".")[2])
    assets = dict.fromkeys(
        (*node.assets, GPUS, *node.configuration.words("MACHINE_RESOURCE_NAMES"))
    )
    knobs = [*_OF_TYPES, *(f"{_CONSUMPTION}{asset}".upper() for asset in assets)]
    if number is None:
        knobs = [POLICY, WEIGHT, NUM_CLAIMS, LEFTOVERS, *READERS, *knobs[len(_OF_TYPES) :]]
    written = rest.upper()
    is_numbered = re.match(r"MACHINE_RESOURCE_|NUM_SLOTS_TYPE_\d", name, re.IGNORECASE)
    if not rest or written in (*knobs, *MACROS) or is_numbered:
        return None
    start = _CONSUMPTION if written.startswith(_CONSUMPTION) else ""
    least = 0.66 if start else 0.75 if _FAMILY.match(written) else 0.88
    ratios = {
        knob: difflib.SequenceMatcher(None, knob[len(start) :], written[len(start) :]).ratio()
        for knob in knobs
        if knob.startswith(start)
    }
    best = max(ratios, key=lambda knob: ratios[knob])
    if ratios[best] >= least:
        meant = name[: len(name) - len(rest)] + best
        return f"HTCondor has no knob {name}, so nothing reads it", f"write {meant}"
    fault = f"{name}: the node has no such asset (it has {', '.join(node.assets)})"
    remedy = f"declare it, MACHINE_RESOURCE_{rest[len(start) :]} = AMOUNT, or take the line out"
    return (fault, remedy) if start else None


def no_policy(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Configurations without any consumption policy."""
    nodes = [
        node
        for node in subject.nodes
        if not node.is_access_point
        and (node.configuration.is_whole or not node.configuration.assignments(LEFTOVERS))
    ]
    has_some = any(
        slot.wants_policy
        or slot.is_misread
        or not all(policy.is_default for policy in slot.policies.values())
        for node in subject.nodes
        for slot in node.slot_types
    )
    if has_some or not nodes or any(map(_in_vain, nodes)) or any(policy_by_hand(subject)):
        return
    fault = "no slot has a consumption policy: the negotiator matches one job a cycle on each"
    remedy = (
        "write CONSUMPTION_POLICY = True, or SLOT_TYPE_<N>_CONSUMPTION_POLICY = True for a type"
    )
    yield Finding(", ".join(node.configuration.name for node in nodes), fault, remedy)


def policy_by_hand(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Consumption… as attributes of slots in STARTD_ATTRS, as before HTCondor 8.1.2."""
    for node in subject.nodes:
        names = {name: m[1] for name in node.attributes if (m := _BY_HAND.fullmatch(name))}
        if not names:
            continue
        is_on = _wants_policy(node)
        knobs = [] if is_on else ["CONSUMPTION_POLICY = True"]
        for name, asset in names.items():
            knobs.append(f"CONSUMPTION_{asset.upper()} = {one_line(node.attributes[name])}")
        effect = "the slot has one claim id, so it is matched once a cycle"
        if is_on:
            effect = "CONSUMPTION_POLICY = True puts HTCondor's own policies in their place"
        yield Finding(
            node.configuration.place(next(iter(names))),
            f"{_names(names)}: the form of 2012, attributes of the slot: {effect}",
            f"write {', '.join(knobs)}, and take the attributes out",
        )


# ---- Slot types


def slot_types(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies for slots that cannot have one, or that do not exist; one finding for each type."""
    for node in subject.nodes:
        for number, definitions in _in_vain(node).items():
            names = _names(part.name for part in definitions)
            fault = f"{names}: the node has no slot of type {number}"
            remedy = f"write NUM_SLOTS_TYPE_{number} = 1, or use the number of a type that it has"
            level = Level.ERROR if _is_sure(node, number) else Level.ADVICE
            yield Finding(definitions[0].place, fault, remedy, level)
        for slot in node.slot_types:
            scope = f"SLOT_TYPE_{slot.number}_" if slot.number else ""
            own = [
                policy
                for policy in slot.policies.values()
                if not policy.is_default and (typed(policy.macro) or not _wants_policy(node))
            ]
            if slot.is_misread:
                continue
            if slot.wants_policy and not slot.partitionable:
                fault = f"{slot.name}: not partitionable, so HTCondor ignores the policy"
                remedy = f"write {scope}PARTITIONABLE = True, or {slot.policy.macro} = False for it"
                level = Level.ERROR if typed(slot.policy.macro) else Level.ADVICE
                yield Finding(slot.policy.place, fault, remedy, level)
            elif own and not slot.wants_policy:
                names = _names(policy.macro for policy in own)
                fault = f"{names}: no effect, because {slot.policy.macro} is not True"
                remedy = f"write {scope}CONSUMPTION_POLICY = True, or take that out"
                yield Finding(own[0].place, fault, remedy)


def _is_sure(node: CheckedNode, number: int) -> bool:
    """True if no other file can have slots of that type."""
    configuration = node.configuration
    return configuration.is_whole or bool(configuration.assignments(f"NUM_SLOTS_TYPE_{number}"))


def _wants_policy(node: CheckedNode) -> bool:
    return any(slot.wants_policy for slot in node.slot_types)


def _in_vain(node: CheckedNode) -> dict[int, list[Definition]]:
    """Slot type that the node does not have → knobs of policies for it."""
    knobs: dict[int, list[Definition]] = {}
    for definition in node.configuration.definitions:
        number, knob = typed(definition.name) or (-1, "")
        if number in node.unused_types and knob.upper().startswith((_CONSUMPTION, NUM_CLAIMS)):
            knobs.setdefault(number, []).append(definition)
    return knobs


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
                if is_there or not amount_of(slot.shares, name, 0):
                    continue
                near = difflib.get_close_matches(name.lower(), [*names, "cpus", "memory"], 1)
                fault = f"{knob}: {name} = {text}, and the machine has no {name}: {_ENDS}"
                remedy = near[0] if near else f"MACHINE_RESOURCE_{name} = AMOUNT, to declare it"
                yield Finding(node.configuration.place(knob), fault, f"write {remedy}")
        for asset in node.assets:
            yield from _sum_of_parts(node, asset)


def _sum_of_parts(node: CheckedNode, asset: str) -> Iterator[Finding]:
    total = node.total(asset)
    parts = [
        (slot, slot.count * part)
        for slot in node.slot_types
        # Of an unknown total, only parts can be added up.
        if (total is not None or part_of(slot.shares, asset) is not None)
        and (part := amount_of(slot.shares, asset, 100.0 if total is None else total))
        and not node.boolean(f"SLOT_TYPE_{slot.number}_BACKFILL")
    ]
    whole = 100.0 if total is None else total
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
    for chosen in _settings(subject):
        if chosen.text in subject.readable:
            continue
        text = one_line(chosen.text)
        fault, remedy = f"{chosen.macro} is empty", "take the line out, and HTCondor has a default"
        if text:
            fault = f"HTCondor cannot read {chosen.macro} = {text}"
            remedy = "look for a missing bracket, quote or operator"
        yield Finding(
            chosen.place,
            f"{fault}: the startd ends as soon as it starts, again and again",
            f"{remedy}; the policies and weight of these slots are not tried before",
        )


def wrong_scope(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Names that a policy or a weight asks of the wrong side, or of no side."""
    for node, slot in subject.slots:
        for chosen in (*slot.policies.values(), slot.weight):
            for reference in references(subject.readable.get(chosen.text, "")):
                is_weight = chosen is slot.weight
                fault = _out_of_scope(node, slot, reference, is_weight=is_weight)
                if fault is not None:
                    # HTCondor finds the job's attribute all the same, and a slot's weight costs
                    # no job its start.
                    is_advice = reference.scope == UNSCOPED or is_weight
                    level = Level.ADVICE if is_advice else Level.ERROR
                    yield Finding(chosen.place, f"{chosen.macro}: {fault[0]}", fault[1], level)


def _out_of_scope(
    node: CheckedNode, slot: SlotType, reference: Reference, *, is_weight: bool
) -> Optional[tuple[str, str]]:
    """Fault and remedy of a name; None if it is in scope."""
    name, scope = reference.name, reference.scope
    requests = {f"request{asset}".lower(): f"Request{asset}" for asset in slot.policies}
    is_request = name.lower().startswith("request")
    own = {f"{prefix}{asset}" for prefix in ("", "Total", "TotalSlot") for asset in slot.policies}
    own_names = {own_name.lower() for own_name in (*own, *node.attributes)}
    if is_weight and (scope == TARGET or (scope == UNSCOPED and is_request)):
        fault = f"{name} is the job's: a weight without a job is undefined, and the negotiator "
        remedy = "make the weight of the slot's Cpus, Memory, Disk and custom resources only"
        return f"{fault}takes its own SLOT_WEIGHT", remedy
    if scope == MY and is_request:
        fault = f"MY.{name} asks the slot for what the job requests: undefined"
        return fault, f"write TARGET.{name}"
    if scope == TARGET and name.lower() in {asset.lower() for asset in slot.policies}:
        fault = f"TARGET.{name} asks the job for what the slot has"
        return fault, f"write MY.{name}, or TARGET.Request{name}"
    if is_request and name.lower() not in requests:
        near = difflib.get_close_matches(name.lower(), requests, 1) or requests
        fault = f"no asset of this slot is requested by {name}: undefined for most jobs, which "
        remedy = " or ".join(f"TARGET.{requests[request]}" for request in near)
        return f"{fault}match nothing", f"write {remedy}"
    if scope != UNSCOPED or is_request or startd_publishes(name) or name.lower() in own_names:
        return None
    fault = f"{name} is not scoped: where the slot has none, HTCondor takes it from the job"
    return fault, f"write MY.{name} for the slot's, TARGET.{name} for the job's"


def _settings(subject: ConsumptionSubject) -> dict[Setting, None]:
    """Policies and weights of slots with a policy, each once."""
    return dict.fromkeys(
        chosen for _, slot in subject.slots for chosen in (*slot.policies.values(), slot.weight)
    )


# ---- Leftovers and other knobs


def leftovers(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Leftovers beside a policy: access points start jobs there that no quota was asked for.

    Since 23.7.2 the startd asks only the access point (request_claim in command.cpp).
    """
    for node in subject.nodes:
        configuration = node.configuration
        is_set = bool(configuration.assignments(LEFTOVERS))
        is_error = node.runs("SCHEDD") or (is_set and _wants_policy(node))
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


_COMBINATIONS: Mapping[str, tuple[bool, str]] = {
    # Knob: value that does not go with consumption policies, consequence.
    "NEGOTIATOR_USE_SLOT_WEIGHTS": (
        False,
        "quotas count slots, and matches still cost SLOT_WEIGHT: quotas in two units",
    ),
    "NEGOTIATOR_DEPTH_FIRST": (
        True,
        "after a match the negotiator skips the jobs that the slot still has room for",
    ),
    "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS": (
        True,
        "access points that have it too claim slots whole, which the startd refuses in each cycle",
    ),
    RECYCLING: (
        False,
        "access points start jobs on leftovers whatever their concurrency limits say",
    ),
}


def combinations(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Knobs that do not go with consumption policies."""
    for node in subject.nodes if subject.slots else ():
        configuration = node.configuration
        for knob, (value, consequence) in _COMBINATIONS.items():
            applies = node.boolean(knob) is value
            if applies and (knob != RECYCLING or node.boolean(LEFTOVERS)):
                fault = f"{knob} = {value}: {consequence}"
                yield Finding(configuration.place(knob), fault, f"write {knob} = {not value}")
        threads = configuration.text(THREADS).strip()
        if threads.isdecimal() and int(threads) > 1 and _takes_less(subject, node):
            fault = f"{THREADS} = {threads}: Requirements see what a job requests, and the policy "
            fault += "takes less: jobs that fit stay idle"
            remedy = f"write {THREADS} = 1, or let the policy take what is requested at least"
            yield Finding(configuration.place(THREADS), fault, remedy)
        ranks = ("NEGOTIATOR_PRE_JOB_RANK", "NEGOTIATOR_POST_JOB_RANK")
        written = [knob for knob in ranks if configuration.assignments(knob)]
        if written and node.boolean(CACHING):
            fault = f"{CACHING} = True: slots are ranked once for a list of equal jobs: a rank by "
            fault += "free cores fills slots in the opposite order"
            remedy = f"write {CACHING} = False if the order matters; negotiation takes longer then"
            yield Finding(configuration.place(written[0]), fault, remedy, Level.ADVICE)


def _takes_less(subject: ConsumptionSubject, node: CheckedNode) -> bool:
    return any(
        amount < float(job.get(f"Request{asset}", "0"))
        for trial in subject.trials
        if trial.node is node
        for job, taken in trial.accepted
        for asset, amount in taken.items()
    )


# ---- Access points, and several nodes


def weightless_jobs(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights by which an idle job counts as nothing.

    Without SCHEDD_SLOT_WEIGHT, a schedd takes SLOT_WEIGHT of an ad with the job's requests as
    Cpus, Memory and Disk (guessJobSlotWeight in schedd.cpp), and adds the whole part for each job
    to WeightedIdleJobs, the negotiator's demand of a group.
    """
    for node in subject.nodes:
        chosen = _schedds_weight(node)
        if chosen is None:
            continue
        of_job = chosen.macro.upper().endswith(SCHEDD_WEIGHT)
        text = {"cpus": "RequestCpus", "memory": "RequestMemory"}.get(chosen.text.lower())
        as_slots = [{name[len("Request") :]: n for name, n in job.items()} for job in _SMALL_JOBS]
        ads = _SMALL_JOBS if of_job or text else as_slots
        (rows,) = subject.htcondor.evaluate([text or chosen.text], ads)
        weights = [row[0] for row in rows or ()]
        light = [
            (job, weight)
            for job, weight in zip(_SMALL_JOBS, weights)
            if isinstance(weight, (int, float)) and weight < 1
        ]
        remedy = f"write {SCHEDD_WEIGHT} = RequestCpus, or another number that is 1 at least"
        if not of_job:
            remedy = f"write STARTD.{WEIGHT}, which no schedd reads, or {SCHEDD_WEIGHT} beside it"
        for job, weight in light[:1]:
            fault = f"{chosen.macro} on access points: an idle job with {requests_of(job)} weighs "
            fault += f"{plain(weight)}, and counts as the whole part of that: where there are "
            fault += "group quotas, the negotiator matches no such job"
            is_error = of_job or node.runs("SCHEDD")
            yield Finding(chosen.place, fault, remedy, Level.ERROR if is_error else Level.ADVICE)


def _schedds_weight(node: CheckedNode) -> Optional[Setting]:
    """Knob by which a schedd weighs jobs; None if no schedd reads any here."""
    configuration = node.configuration
    is_known = configuration.is_whole or configuration.assignments("DAEMON_LIST")
    if node.boolean(SCHEDD_USES_WEIGHT) is False or (is_known and not node.runs("SCHEDD")):
        return None
    for name in (f"SCHEDD.{SCHEDD_WEIGHT}", SCHEDD_WEIGHT, f"SCHEDD.{WEIGHT}", WEIGHT):
        text, written = configuration.text(name).strip(), configuration.assignments(name)
        if written and name == WEIGHT and configuration.assignments(f"STARTD.{WEIGHT}"):
            # The library reads STARTD's: only as it is written, it is the schedd's.
            text = "" if "$" in written[-1].text else written[-1].text
        if text and written:
            is_for_slots = name == WEIGHT and not node.runs("SCHEDD")
            return None if is_for_slots else Setting(name, text, configuration.place(name))
    return None


def unlike_nodes(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights by which a job costs more on one node than on another: quotas in two units.

    Types of one number are meant alike; the first node of each number is the measure.
    """
    has_quotas = any(node.configuration.text("GROUP_NAMES") for node in subject.nodes)
    first: dict[int, PolicyTrial] = {}
    for trial in subject.trials:
        measure = first.setdefault(trial.slot.number, trial)
        costs = [_cost_on_large_slot(priced) for priced in (trial, measure)]
        if None in costs or math.isclose(costs[0] or 0, costs[1] or 0, rel_tol=1e-6):
            continue
        here, there = (
            f"{plain(cost)} on {priced.node.configuration.name}"
            for priced, cost in zip((trial, measure), costs)
        )
        yield Finding(
            trial.slot.weight.place,
            f"a job of 8 cores and 16 GiB costs {here}, and {there}: quotas are in two units",
            "write the same SLOT_WEIGHT on all nodes, or weights in the same unit",
            Level.ERROR if has_quotas else Level.ADVICE,
        )


def _cost_on_large_slot(trial: PolicyTrial) -> Optional[float]:
    free = {**dict.fromkeys(trial.whole, 8.0), "Cpus": 64.0, "Memory": 262144.0, "Disk": 2.0**30}
    job = {"RequestCpus": "8", "RequestMemory": "16384", "RequestDisk": "102400"}
    return trial.cost(free, job)
