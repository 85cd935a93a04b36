"""Checks of what becomes of a match: there is a claim id for it, the startd makes a slot for it, and of the same size.

Check of knobs that are to be True or False: most texts that mean that elsewhere are no booleans to
HTCondor.

What daemons do was read in param_boolean (src/condor_utils/condor_config.cpp),
SlotType::type_param_boolean and countTypes (src/condor_startd.V6), and is the same in 23.9.6 and
25.14.1, but for SLOT_TYPE_0_PARTITIONABLE. It was seen on both of startd and schedd, but not with
HIDDEN, with type 0, and with the negotiator's knobs.

Check of slot types that want GPUs, where none may be found.

Checks of knobs: those that do not exist but look like one of the family, and combinations that
HTCondor warns of.

Each combination names where it is said or what does it in HTCondor's source, version 25.14; both
were the same in 23.9.6.

Check of leftovers: what access points claim of a slot beside what the negotiator matches.

Checks of several configurations at once: what a match costs is in the same unit on all nodes.

Checks of what access points make of a weight that is meant for slots.

Without SCHEDD_SLOT_WEIGHT, a schedd takes SLOT_WEIGHT to weigh idle jobs: of an ad that has the
job's requests as Cpus, Memory and Disk (guessJobSlotWeight in src/condor_schedd.V6/schedd.cpp). It
adds the whole part for each job to WeightedIdleJobs (count_a_job), and the negotiator takes that
for what a group wants (GroupEntry.cpp, NEGOTIATOR_USE_WEIGHTED_DEMAND).

Checks of consumption policies that need no trial: what is set, for which slots, and what it asks
for.

What the startd makes of each knob was read in src/condor_startd.V6/Resource.cpp (publish_static,
SlotType::param) and seen on HTCondor 23.9.6 and 25.14.1.

Checks of SLOT_WEIGHT, by trial: the negotiator can evaluate it in every state, and it follows from
the policy.

A match costs the weight before less the weight after (cp_deduct_assets in
src/condor_utils/consumption_policy.cpp), so the weight is to say what a slot can still do: more
than nothing while a claim fits, and nothing that no claim can use.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Callable, Optional

from sharectl.check.consumption_subject import (
    ATTRIBUTE_LISTS,
    DETECT_GPUS,
    GPUS,
    LEFTOVERS,
    MACROS,
    MAX_SLOT_TYPES,
    NEGOTIATORS,
    NUM_CLAIMS,
    POLICY,
    READERS,
    REQUESTS,
    SCHEDD_USES_WEIGHT,
    SCHEDD_WEIGHT,
    STANDARD_ASSETS,
    WEIGHT,
    Node,
    Setting,
    SlotType,
    Subject,
    setting,
    typed,
    written_booleans,
)
from sharectl.check.consumption_subject import Ad as ScheddsAd
from sharectl.check.consumption_trials import (
    DISK_KIB_PER_CORE,
    Ad,
    Amounts,
    Filled,
    after,
    amounts_said,
    bare_minimum,
    dynamic_slot_ad,
    filled_slots,
    filled_with_each,
    of_type_0,
    ordinary,
    plain,
    said,
    sizes,
    slot_ad,
    tried,
)
from sharectl.check.subject import Finding
from sharectl.condor.configuration import Configuration, Definition, Source, expand
from sharectl.condor.expressions import (
    JOB_ATTRIBUTES,
    MY,
    TARGET,
    UNSCOPED,
    Reference,
    is_htcondors,
    references,
)
from sharectl.consumption.policy import amount_of

_MEANT = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "enabled"), "True"),
    **dict.fromkeys(("false", "f", "no", "n", "off", "disabled", "none"), "False"),
}
_BOOLEANS_ALIKE = 0.6
_MOST_CHARACTERS = 60
_AGAIN = "ends as soon as it reads that, again and again"


def no_boolean(subject: Subject) -> Iterator[Finding]:
    """Texts of boolean knobs that are none: a daemon ends on some of them, and others it takes for False without a word."""
    for node in subject.nodes:
        for name, text in written_booleans(node.configuration).items():
            if node.booleans.get(text) is not None:
                continue
            readers = _readers(name)
            there = _that_may_run(node, readers)
            shown = " ".join(text.split())[:_MOST_CHARACTERS]
            yield Finding(
                "knobs",
                node.configuration.place(name),
                f"{name} = {shown} is no boolean: {_happens(node, name, there or readers)}"
                + ("" if there else f" (by DAEMON_LIST there is no {' or '.join(readers)} here)"),
                f"write {name} = {meant}"
                if (meant := _booleans_meant(shown))
                else f"write {name} = True, or False",
                advice=not there,
            )


def _readers(name: str) -> tuple[str, ...]:
    daemon, _, knob = name.upper().rpartition(".")
    if typed(name):
        return ("STARTD",)
    return (daemon,) if daemon in READERS[knob] else READERS[knob]


def _that_may_run(node: Node, daemons: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the daemons that run with that configuration; all if that is not known."""
    is_known = node.input.is_whole or node.configuration.assignments("DAEMON_LIST")
    return tuple(filter(node.runs, daemons)) if is_known else daemons


def _happens(node: Node, name: str, readers: tuple[str, ...]) -> str:
    number, knob = typed(name) or (None, "")
    if number is None:
        return f"the {' or '.join(daemon.lower() for daemon in readers)} {_AGAIN}"
    if knob.upper() == "BACKFILL":
        return f"the startd {_AGAIN}"
    if knob.upper() == POLICY:
        general = "True" if node.is_on(POLICY) else "False"
        return f"the startd passes over it without a word, as if it were {POLICY} = {general}"
    if knob.upper() == "PARTITIONABLE":
        ends = "" if number else f"; since HTCondor 25 it {_AGAIN}"
        return f"the startd takes it for False without a word, and the slots are static{ends}"
    return "the startd takes it for False without a word"


def _booleans_meant(text: str) -> str:
    """What a text is probably to say; empty if that cannot be told."""
    close = difflib.get_close_matches(text.lower(), _MEANT, 1, _BOOLEANS_ALIKE)
    return _MEANT[close[0]] if close else ""


_STARTD_GIVES = {
    "Cpus": (
        (
            "one core, which the negotiator does not deduct: when cores run out first, the startd "
            "refuses what is matched"
        ),
        (
            "1 at least, or let the slot have a core for every claim (NUM_CPUS, where jobs share "
            "cores)"
        ),
    ),
    "Memory": (
        "1 MiB: where memory is limited (CGROUP_MEMORY_LIMIT_POLICY), the job is held to that",
        "what a job may use",
    ),
}
"""Asset of which a dynamic slot has one at least → what that means, and what to write."""
_MOST_ACTIVATED = 60
"""Dynamic slots on which a policy is asked again."""


def claim_ids(subject: Subject) -> Iterator[Finding]:
    """NUM_CLAIMS that ends a cycle before the slot is full.

    The negotiator has a claim id for each match ("has no claim id"); HTCondor's own NUM_CLAIMS is
    the slot's cores, rounded up, and that is enough, since every dynamic slot has a core at least.
    """
    for of_jobs in filled_with_each(subject):
        node, slot = of_jobs[0][0].node, of_jobs[0][0].slot
        written = [
            definition.text for definition in node.configuration.assignments(slot.claims.macro)
        ]
        # What is made of macros of this machine, such as NUM_CPUS, is another number on the node.
        if not slot.claims.text or (
            not node.input.is_whole and any("$" in text for text in written)
        ):
            continue
        rows = subject.htcondor.evaluate([slot.claims.text], [{}], [{}])[0]
        number = rows[0][0] if rows is not None else None
        # On the size of slot that takes the fewest, the job of which it takes the most.
        fewest = max((min(found, key=_taken) for found in of_jobs), key=_taken)
        if not isinstance(number, (int, float)):
            yield Finding(
                "claims",
                slot.claims.place,
                f"{slot.claims.macro} = {slot.claims.text} is no number: HTCondor takes the "
                "slot's cores instead",
                "write a whole number, or take it out",
                advice=True,
            )
        elif number < len(fewest.claims):
            yield Finding(
                "claims",
                slot.claims.place,
                f"{slot.claims.macro} = {plain(number)}, and {len(fewest.claims)} jobs with "
                f"{said(fewest.job)} fit into a slot "
                f"of {amounts_said(fewest.whole)}: the others wait for further cycles (has no "
                "claim id)",
                f"write {len(fewest.claims)} or more, or take it out: HTCondor's own is the "
                "slot's cores",
                advice=True,
            )


def _taken(filled: Filled) -> int:
    return len(filled.claims)


def cores(subject: Subject) -> Iterator[Finding]:
    """Policies that count on more claims than there are cores: every dynamic slot gets one at least (create_dslot)."""
    for found in filled_slots(subject):
        if _run_out_of_cores(found):
            filled = found[0]
            knob = filled.slot.policies["Cpus"]
            yield Finding(
                "cores",
                knob.place,
                f"the policy lets {len(filled.claims)} jobs with {said(filled.job)} into a slot of "
                f"{plain(filled.whole['Cpus'])} cores, and the startd gives each of them one "
                "core at least: it refuses the "
                "others, which are matched again in every cycle",
                f"let {knob.macro} be 1 at least, or let another asset run out sooner",
            )


def given_more(subject: Subject) -> Iterator[Finding]:
    """Policies that take less of a job than the startd gives it, of jobs that request a core and more.

    Of Cpus where they never suffice, `cores` tells. Seen on both versions: 8 matches and 6 claims
    of 0 cores on 4, half as many claims as matches of half a core, and dynamic slots of 1 MiB.
    """
    out_of_cores = [
        (found[0].node, found[0].slot)
        for found in filled_slots(subject)
        if _run_out_of_cores(found)
    ]
    for node, slot in subject.sound:
        jobs = _that_request_all(slot)
        for asset, least in _STARTD_GIVES.items():
            policy = slot.policies[asset]
            less = [
                (job, match.claim.consumed[asset])
                for job, match in zip(jobs, tried(subject, node, slot, jobs))
                if match.claim is not None and not match.refused and match.claim.consumed[asset] < 1
            ]
            if less and not (asset == "Cpus" and any(slot is other for _, other in out_of_cores)):
                job, took = less[0]
                yield Finding(
                    "cores",
                    policy.place,
                    f"{policy.macro}: of a job with {said(job)} the policy takes {plain(took)}, "
                    f"and the startd gives it {least[0]}",
                    f"let {policy.macro} be {least[1]}",
                    advice=True,
                )


def takes_less_than_requested(subject: Subject, node: Node, slot: SlotType) -> bool:
    """Whether the policy takes less of some asset than an ordinary job requests of it."""
    jobs = _that_request_all(slot)
    return any(
        amount < float(job.get(f"Request{asset}", "0"))
        for job, match in zip(jobs, tried(subject, node, slot, jobs))
        if match.claim is not None and not match.refused
        for asset, amount in match.claim.consumed.items()
    )


def _run_out_of_cores(found: Sequence[Filled]) -> bool:
    return all(len(filled.claims) > filled.whole["Cpus"] for filled in found)


def activated(subject: Subject) -> Iterator[Finding]:
    """Policies that ask more of the dynamic slot than it has been given: matched in every cycle, and refused.

    The startd makes whole numbers of what it takes for the slot, and asks the policy again on that
    slot ("Slot Requirements not satisfied"). Seen with RequestMemory * 1.1 on both versions.
    """
    for node, slot in subject.sound:
        for asset, (job, given, wanted) in _refused_claims(subject, node, slot).items():
            policy = slot.policies[asset]
            if not isinstance(wanted, (int, float)):
                yield Finding(
                    "claims",
                    policy.place,
                    f"{policy.macro} is no number for a job with {said(job)}: the slot's "
                    "Requirements ask for it, so the "
                    "negotiator matches no such job",
                    f"write TARGET.Request{asset} ?: 0 for TARGET.Request{asset}, or another "
                    "expression that is a number "
                    "for every job",
                )
                continue
            yield Finding(
                "claims",
                policy.place,
                f"{policy.macro}: a job with {said(job)} gets a dynamic slot with {asset} = "
                f"{plain(given)}, and there the "
                f"policy asks for {plain(wanted)}: the startd refuses the claim, and the job is "
                "matched again in every cycle",
                (
                    f"write ceiling({_short(policy.text)})"
                    if isinstance(wanted, float)
                    else "make it depend on what the job requests, and not on what is left in the slot"
                ),
            )


def asked_twice(subject: Subject) -> Iterator[Finding]:
    """STARTs that say something else of what a job requests than of what the policy makes of it: both have to be true.

    The negotiator asks about the latter (cp_override_requested in matchmakingAlgorithm; with
    NEGOTIATOR_NUM_THREADS > 1 about the former), the startd about the former before it makes a
    dynamic slot, and about the latter on that slot. Seen on both versions: eight matches in every
    cycle, and no job runs.
    """
    for node, slot in subject.sound:
        start = setting(node.configuration, slot.number, "START", "")
        jobs = _that_request_all(slot)
        (whole, *_), _ = sizes(node, slot, subject.size)
        pairs = [
            (job, {**job, **_requested(job, match.claim.consumed)})
            for job, match in zip(jobs, tried(subject, node, slot, jobs))
            if match.claim is not None and not match.refused
        ]
        said_of = [
            (
                subject.htcondor.evaluate([start.text], [slot_ad(node, slot, whole)], list(asked))[
                    0
                ]
                or [[]]
            )[0]
            for asked in zip(*pairs)
        ]
        differ = (
            [
                job
                for (job, _), first, second in zip(pairs, *said_of)
                if _holds(first) != _holds(second)
            ]
            if pairs
            else []
        )
        if differ:
            yield Finding(
                "start",
                start.place,
                f"{start.macro} says one thing of what a job with {said(differ[0])} requests, "
                "and another of what the "
                "policy makes of it: the negotiator asks about the latter (with "
                "NEGOTIATOR_NUM_THREADS > 1 about the "
                "former) and the startd about both, so such jobs are matched in vain, or never",
                "let it ask for TARGET.Request… only in ways that quantizing does not change",
            )


def modified(subject: Subject) -> Iterator[Finding]:
    """Requests that a site's own MODIFY_REQUEST_EXPR_… makes larger on the node than the negotiator has seen them.

    create_dslot in src/condor_startd.V6/Resource.cpp applies them before the policy, and tries
    again without if the slot then has no room.
    """
    for node, slot in subject.sound:
        jobs = _that_request_all(slot)
        knobs = {
            asset: found
            for asset, found in _modifying(node, slot).items()
            if node.configuration.assignments(found[0])
        }
        changed = _changed(subject, node, slot, jobs, knobs)
        pairs = list(
            zip(jobs, tried(subject, node, slot, jobs), tried(subject, node, slot, changed))
        )
        for asset, (knob, text) in knobs.items():
            larger = [
                (job, had, has)
                for job, first, then in pairs
                if (had := first.consumed.get(asset)) is not None
                and (has := then.consumed.get(asset)) is not None
                and has > had >= 0
            ]
            if larger:
                job, had, has = larger[0]
                yield Finding(
                    "modified",
                    node.configuration.place(knob),
                    f"{knob} = {_short(text)} is coarser than {slot.policies[asset].macro}: of "
                    f"a job with {said(job)} the "
                    f"negotiator deducts {asset} = {plain(had)}, and the node takes "
                    f"{plain(has)}, so it may be full before the "
                    "negotiator knows",
                    f"write {_typed(slot)}{REQUESTS[asset]} = Request{asset}, or a policy that "
                    "is as coarse",
                    advice=True,
                )


def _that_request_all(slot: SlotType) -> list[dict[str, str]]:
    """Ordinary jobs that request something of cpus, memory and disk each, as condor_submit writes them."""
    return [
        job
        for job in ordinary(tuple(slot.policies), ())
        if all(job.get(f"Request{asset}", "0") != "0" for asset in STANDARD_ASSETS)
    ]


def _requested(job: Ad, consumed: Mapping[str, float]) -> dict[str, str]:
    """Requests as the negotiator replaces them; what the job does not request stays away."""
    return {
        name: plain(amount)
        for asset, amount in consumed.items()
        if (name := f"Request{asset}") in job
    }


def _holds(value: Any) -> bool:
    return value not in ("undefined", "error") and bool(value)


def _refused_claims(
    subject: Subject, node: Node, slot: SlotType
) -> dict[str, tuple[Ad, float, Any]]:
    """Asset → a job, what its dynamic slot has, and what the policy asks for there."""
    jobs = ordinary(tuple(slot.policies), ())
    (whole, *_), _ = sizes(node, slot, subject.size)
    taken = {
        tuple(match.claim.consumed.items()): job
        for job, match in zip(jobs, tried(subject, node, slot, jobs))
        if match.claim is not None and not match.refused
    }
    failed: dict[str, tuple[Ad, float, Any]] = {}
    # Those that are no whole numbers first: they are what is cut.
    by_fraction = sorted(
        taken, key=lambda consumed: all(amount == int(amount) for _, amount in consumed)
    )
    for consumed in by_fraction[:_MOST_ACTIVATED]:
        ad = dynamic_slot_ad(node, slot, dict(consumed), whole)
        expressions = [f"MY.Consumption{asset}" for asset in slot.policies]
        again = subject.htcondor.evaluate(expressions, [ad], [taken[consumed]])
        for asset, rows in zip(slot.policies, again):
            wanted = rows[0][0] if rows is not None else "error"
            if not isinstance(wanted, (int, float)) or wanted > float(ad[asset]):
                failed.setdefault(asset, (taken[consumed], float(ad[asset]), wanted))
    return failed


def _modifying(node: Node, slot: SlotType) -> dict[str, tuple[str, str]]:
    """Asset → the knob that changes requests of it for slots of that type, and its text."""
    found = {}
    for asset, knob in REQUESTS.items():
        for name in (f"SLOT_TYPE_{slot.number}_{knob}", knob):
            if text := node.configuration.text(name):
                found[asset] = (name, text)
                break
    return found


def _changed(
    subject: Subject,
    node: Node,
    slot: SlotType,
    jobs: Sequence[Ad],
    knobs: dict[str, tuple[str, str]],
) -> list[dict[str, str]]:
    """The jobs as the startd changes them; one request after another, each seeing those before."""
    (whole, *_), _ = sizes(node, slot, subject.size)
    changed = [dict(job) for job in jobs]
    for asset, (_, text) in knobs.items():
        rows = subject.htcondor.evaluate([text], changed, [slot_ad(node, slot, whole)])[0] or []
        for job, (value,) in zip(changed, rows):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                job[f"Request{asset}"] = str(int(value))
    return changed


def _typed(slot: SlotType) -> str:
    return f"SLOT_TYPE_{slot.number}_" if slot.number else ""


def _short(text: str, most: int = 80) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else "…"


_ENDS = "the startd of 23.9.6 ends as it starts (Unknown attribute), again and again"


def counted_on(subject: Subject) -> Iterator[Finding]:
    """Slot types with GPUs on machines where nothing declares them, and the startd does not look for them or may not.

    Seen on 23.9.6. Whether a startd that looks for GPUs finds some is not known from its
    configuration.
    """
    for node in subject.nodes:
        is_told = node.input.is_whole or bool(node.configuration.assignments(DETECT_GPUS))
        looks_for = bool(node.configuration.text(DETECT_GPUS).strip())
        is_said = bool(subject.size.get(GPUS.lower())) and not is_told
        if _declared(node) or is_said or (is_told and looks_for):
            continue
        for slot in node.slot_types:
            # A part of the GPUs of a machine may be a part of none.
            wanted = amount_of(slot.shares, GPUS, 0.0)
            if not wanted:
                continue
            knob = f"SLOT_TYPE_{slot.number}"
            yield Finding(
                "slot types",
                node.configuration.place(knob),
                f"{knob}: gpus = {wanted:g}, and "
                + (
                    f"the machine has no gpus: nothing declares them and {DETECT_GPUS} is "
                    f"empty: {_ENDS}, and that of 25.14.1 "
                    "makes no slot of the type"
                    if is_told
                    else f"nothing here declares GPUs: on a machine where they are not detected either, {_ENDS}"
                ),
                "write use feature:GPUs, or take it out"
                if is_told
                else f"write use feature:GPUs, and see condor_config_val {DETECT_GPUS} on the machine",
                advice=not is_told,
            )


def _declared(node: Node) -> bool:
    """Whether a file declares GPUs, or has the startd run a script that finds them."""
    return any(
        name.lower() == GPUS.lower() and chosen.text for name, chosen in node.resources.items()
    )


_FAMILY = re.compile(
    r"con?su?mp?|slots?_?types?_|slot_?wei|num_?claim|machine_?res|claim_?part", re.IGNORECASE
)
"""What a knob of consumption policies begins with, however it is misspelt; after SLOT_TYPE_<N>_ too."""
_NUMBERED = re.compile(r"MACHINE_RESOURCE_|NUM_SLOTS_TYPE_\d|SLOT_TYPE_\d", re.IGNORECASE)
_CONSUMPTION = "CONSUMPTION_"
_KNOBS_ALIKE, _VERY_ALIKE = 0.75, 0.88
"""Of 1: how alike a misspelt knob is to the one that was meant; more is asked of names that begin otherwise."""
_ASSET_ALIKE = 0.66
"""Of the asset alone, where the rest of the knob is right."""

_OF_TYPES = (
    POLICY,
    WEIGHT,
    NUM_CLAIMS,
    "PARTITIONABLE",
    "NAME_PREFIX",
    "BACKFILL",
    "HIDDEN",
    "START",
    "RANK",
    "CLAIM_WORKLIFE",
)
"""Knobs that a slot type may have of its own; any attribute and policy expression may be one, so others pass."""

_THREADS = "NEGOTIATOR_NUM_THREADS"
_CACHING = "NEGOTIATOR_MATCHLIST_CACHING"
_RECYCLING = "CLAIM_RECYCLING_CONSIDER_LIMITS"
_RANKS = ("NEGOTIATOR_PRE_JOB_RANK", "NEGOTIATOR_POST_JOB_RANK")

Applies = Callable[[Subject, Node], bool]


@dataclass(frozen=True)
class _Combination:
    """A knob that does not go with consumption policies."""

    knob: str
    applies: Applies
    problem: str
    remedy: str
    advice: bool = False
    set_by: tuple[str, ...] = ()
    """Knobs that make it matter: the place of a default is theirs."""

    def place(self, configuration: Configuration) -> str:
        """Where it comes from."""
        places = [
            configuration.place(knob)
            for knob in (self.knob, *self.set_by)
            if configuration.assignments(knob)
        ]
        return places[0] if places else self.knob


def _on(knob: str) -> Applies:
    return lambda _, node: node.is_on(knob)


def _knobs_number(text: str) -> int:
    return int(text) if re.fullmatch(r"\s*\d{1,9}\s*", text) else 0


def _off(knob: str) -> Applies:
    return lambda _, node: node.boolean(knob) is False


_COMBINATIONS = (
    # Accountant::GetSlotWeight is 1 for each slot then, but cp_deduct_assets asks for SlotWeight
    # all the same.
    _Combination(
        "NEGOTIATOR_USE_SLOT_WEIGHTS",
        _off("NEGOTIATOR_USE_SLOT_WEIGHTS"),
        "quotas and shares count each partitionable slot as 1, but a match on one with a "
        "consumption policy still costs "
        "the change of its SLOT_WEIGHT: quotas in two units",
        "write NEGOTIATOR_USE_SLOT_WEIGHTS = True",
    ),
    # negotiate() in matchmaker.cpp: jobsInSlot() jobs are passed over, since the schedd is expected
    # to split the slot.
    _Combination(
        "NEGOTIATOR_DEPTH_FIRST",
        _on("NEGOTIATOR_DEPTH_FIRST"),
        "after a match the negotiator passes over as many jobs as the rest of the slot could "
        "take, since it expects the "
        "access point to start them from leftovers: with a consumption policy nobody starts "
        "them in this cycle",
        "write NEGOTIATOR_DEPTH_FIRST = False; what fills slots one after the other with a "
        "consumption policy is "
        "NEGOTIATOR_MATCHLIST_CACHING = False",
    ),
    # negotiate() keeps the ranks of a list of equal jobs' matches; cp_deduct_assets() does not
    # bring them up to date.
    _Combination(
        _CACHING,
        lambda _, node: node.is_on(_CACHING) and any(map(node.configuration.assignments, _RANKS)),
        "slots are ranked once for a list of equal jobs, and not again after its matches: with "
        "a consumption policy a rank by "
        "free cores fills slots in the opposite order",
        f"write {_CACHING} = False if the order matters; negotiation takes longer then",
        advice=True,
        set_by=_RANKS,
    ),
    # The schedd asks it of leftovers too, before it starts a job there.
    _Combination(
        _RECYCLING,
        lambda _, node: node.is_on(LEFTOVERS) and node.boolean(_RECYCLING) is False,
        "beside leftovers, access points start jobs whatever their concurrency limits say: 6 "
        "ran where 3 were allowed and matched",
        f"write {_RECYCLING} = True, and {LEFTOVERS} = False on the access points",
    ),
    # matchmakingAlgorithm(): pslotMultiMatch() may overrule cp_sufficient_assets(), and all is
    # deducted below zero.
    _Combination(
        "ALLOW_PSLOT_PREEMPTION",
        lambda _, node: (
            node.is_on("ALLOW_PSLOT_PREEMPTION") and node.is_on("NEGOTIATOR_CONSIDER_PREEMPTION")
        ),
        "a job with WantPslotPreemption is matched though the policy says that assets do not "
        "suffice, and the negotiator "
        "deducts them below zero",
        "write ALLOW_PSLOT_PREEMPTION = False",
    ),
    # scheduler_handleMatch() asks for the whole slot, request_claim(): "Refusing claim of pslot
    # with consumption policy".
    _Combination(
        "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS",
        _on("ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS"),
        "access points that have it too claim partitionable slots as a whole, which the startd "
        "refuses where there is a "
        "consumption policy: jobs are matched in every cycle, and none starts",
        "write ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = False, on the nodes or on the access points",
    ),
    # matchmakingAlgorithm(): ParallelIsAMatch() comes before cp_override_requested(), IsAMatch()
    # after it.
    _Combination(
        _THREADS,
        lambda subject, node: (
            _knobs_number(node.configuration.text(_THREADS)) > 1
            and any(
                its is node and takes_less_than_requested(subject, node, slot)
                for its, slot in subject.sound
            )
        ),
        "Requirements are then asked of what a job requests, not of what the policy takes of "
        "it, which is less: jobs that fit by "
        "the policy stay idle (2 of 4 ran), unless the slot still has all that they request",
        f"write {_THREADS} = 1, or let the policy take what is requested at least",
    ),
    # obtainAdsFromCollector(): the slot's own weight is replaced.
    _Combination(
        "FORCE_NEGOTIATOR_SLOT_WEIGHT",
        lambda subject, node: (
            node.is_on("FORCE_NEGOTIATOR_SLOT_WEIGHT")
            and any(
                slot.weight.text.strip().lower()
                != (node.configuration.text(WEIGHT).strip() or "Cpus").lower()
                for _, slot in subject.slots
            )
        ),
        "the negotiator replaces the weight of every slot by its own SLOT_WEIGHT: matches cost "
        "something else than the "
        "slot's says",
        "write FORCE_NEGOTIATOR_SLOT_WEIGHT = False, or the same SLOT_WEIGHT everywhere",
    ),
)
"""The manual warns of all at once: "experimental … may not work well in combination with other HTCondor features"
(EP policy configuration, section condor_negotiator-Side Resource Consumption Policies). Nothing
there or in the source speaks against condor_defrag, draining, or prefetched requests, so nothing is
said of them. What NEGOTIATOR_NUM_THREADS does with START, `consumption_check_claims.asked_twice`
tells."""


def unknown(subject: Subject) -> Iterator[Finding]:
    """Knobs that nothing reads, and that look like one of consumption policies."""
    for node in subject.nodes:
        configuration = node.configuration
        judged = [found for found in configuration.definitions if configuration.is_judged(found)]
        if not judged:
            continue
        used = _used(configuration)
        odd = [
            (found, said)
            for found in judged
            if (said := _unknown(node, found.name, used)) is not None
        ]
        real = expand(Source(), [found.name for found, _ in odd], subject.htcondor) if odd else {}
        for definition, said in odd:
            if definition.name not in real:
                yield Finding("knobs", definition.place, *said)


def knobs_that_clash(subject: Subject) -> Iterator[Finding]:
    """Knobs that do not go with consumption policies."""
    if not subject.slots:
        return
    for node in subject.nodes:
        for found in _COMBINATIONS:
            if found.applies(subject, node):
                text = node.configuration.text(found.knob).strip()
                yield Finding(
                    "combinations",
                    found.place(node.configuration),
                    f"{found.knob} = {text}: {found.problem}",
                    found.remedy,
                    advice=found.advice,
                )


def resource_limits(subject: Subject) -> Iterator[Finding]:
    """Custom resources that MACHINE_RESOURCE_NAMES leaves out ("will have no effect", says the startd)."""
    for node in subject.nodes:
        allowed = {word.lower() for word in node.configuration.words("MACHINE_RESOURCE_NAMES")}
        for definition in node.configuration.definitions if allowed else ():
            name = definition.name[len("MACHINE_RESOURCE_") :]
            name = name[len("INVENTORY_") :] if name.upper().startswith("INVENTORY_") else name
            if definition.name.upper().startswith("MACHINE_RESOURCE_") and name.lower() not in {
                *allowed,
                "names",
            }:
                yield Finding(
                    "knobs",
                    definition.place,
                    f"{definition.name} has no effect: MACHINE_RESOURCE_NAMES does not have {name}",
                    f"write MACHINE_RESOURCE_NAMES = $(MACHINE_RESOURCE_NAMES) {name}, or take "
                    "that knob out",
                )


def _unknown(node: Node, name: str, used: frozenset[str]) -> Optional[tuple[str, str]]:
    """What is wrong with a name, and what to write; None if it is a knob, or nothing of ours."""
    # A name may have a daemon's before it.
    number, rest = typed(name) or (None, name.rpartition(".")[2])
    known = _knobs_known(node, is_typed=number is not None)
    is_known = rest.lower() in {knob.lower() for knob in (*known, *MACROS)}
    if (
        is_known
        or not rest
        or {name.lower(), rest.lower()} & used
        or (number is None and _NUMBERED.match(name))
    ):
        return None
    if meant := _knobs_meant(rest.upper(), [knob.upper() for knob in known]):
        prefix = name[: len(name) - len(rest)]
        return f"HTCondor has no knob {name}, so nothing reads it", f"write {prefix}{meant}"
    if not rest.upper().startswith(_CONSUMPTION):
        return None
    assets = sorted({asset for slot in node.slot_types for asset in slot.policies})
    return (
        (
            f"{name}: the node has no asset of that name (it has {', '.join(assets)}), so nothing "
            "reads it"
        ),
        f"declare it, MACHINE_RESOURCE_{rest[len(_CONSUMPTION) :]} = AMOUNT, or take the line out",
    )


def _knobs_meant(written: str, known: Sequence[str]) -> Optional[str]:
    """The knob that is most like ``written``, the first of those that are equally so; None if none is like it."""
    start, least = "", _KNOBS_ALIKE if _FAMILY.match(written) else _VERY_ALIKE
    if written.startswith(_CONSUMPTION):
        # What all of them begin with would make any two assets alike.
        start, least = _CONSUMPTION, _ASSET_ALIKE
    alike = [
        (_likeness(written, knob, len(start)), knob) for knob in known if knob.startswith(start)
    ]
    close = [found for found in alike if found[0] >= least]
    return max(close, key=lambda found: found[0])[1] if close else None


def _likeness(written: str, knob: str, after: int) -> float:
    return difflib.SequenceMatcher(None, knob[after:], written[after:]).ratio()


def _knobs_known(node: Node, *, is_typed: bool) -> tuple[str, ...]:
    named = node.configuration.words("MACHINE_RESOURCE_NAMES")
    assets = dict.fromkeys((*STANDARD_ASSETS, GPUS, *node.resources, *named))
    policies = [f"{_CONSUMPTION}{asset}" for asset in assets]
    if is_typed:
        return (*_OF_TYPES, *policies)
    return (POLICY, WEIGHT, NUM_CLAIMS, LEFTOVERS, *NEGOTIATORS, *policies)


def _used(configuration: Configuration) -> frozenset[str]:
    """Names that another macro refers to, or that become attributes, lower case: they mean something to the site."""
    used = {
        reference for definition in configuration.definitions for reference in definition.references
    }
    used |= {word.lower() for macro in ATTRIBUTE_LISTS for word in configuration.words(macro)}
    used |= {
        definition.name.lower()
        for definition in configuration.definitions
        if any(_fits(pattern, definition) for pattern in used if pattern.endswith("*"))
    }
    return frozenset(used)


def _fits(pattern: str, definition: Definition) -> bool:
    return definition.name.lower().startswith(pattern[:-1])


_LEFTOVERS_REMEDY = (
    f"write {LEFTOVERS} = False, on the nodes and on the access points: since HTCondor 23.7.2 "
    "the access "
    "point's alone decides"
)


def leftovers(subject: Subject) -> Iterator[Finding]:
    """Both ways to use a slot more than once in a cycle: HTCondor's wiki names that an unsupported combination.

    Since 23.7.2 the startd does not ask its own knob for slots with a policy (request_claim in
    src/condor_startd.V6/command.cpp): it sends leftovers to any access point that wants them. Seen
    on both versions, with False on the node: so a node that leaves it to HTCondor has no fault.
    """
    for node in subject.nodes:
        if not node.is_on(LEFTOVERS):
            continue
        is_set = bool(node.configuration.assignments(LEFTOVERS))
        if subject.slots and (node.runs("SCHEDD") or (is_set and node.with_policy)):
            yield Finding(
                "leftovers",
                _place(node),
                f"{_told(node)} beside a consumption policy: access "
                "points that want leftovers get them, and start jobs there that the negotiator "
                "has not weighed against "
                "group quotas and concurrency limits",
                _LEFTOVERS_REMEDY,
            )
        elif not subject.slots and node.is_access_point:
            yield Finding(
                "leftovers",
                _place(node),
                f"{_told(node)} on an access point: if any node has a consumption policy, this "
                "access point starts jobs on the "
                "leftovers of its slots, which pass group quotas and concurrency limits",
                f"write {LEFTOVERS} = False here: since HTCondor 23.7.2 the access point's "
                "alone decides",
                advice=True,
            )


def _place(node: Node) -> str:
    """Where it is set, or the configuration that leaves it to HTCondor."""
    is_set = node.configuration.assignments(LEFTOVERS)
    return node.configuration.place(LEFTOVERS) if is_set else node.input.name


def _told(node: Node) -> str:
    return f"{LEFTOVERS} is True" + (
        "" if node.configuration.assignments(LEFTOVERS) else ", as by default,"
    )


_CORES, _MEMORY_MIB = 64, 262144
_NODES_JOBS = tuple(
    {"RequestCpus": str(cores), "RequestMemory": str(memory), "RequestDisk": "102400"}
    for cores, memory in ((1, 2048), (1, 8192), (8, 16384))
)


@dataclass(frozen=True)
class _Priced:
    """Slots of a type of a node, and what each of the jobs costs there."""

    node: Node
    slot: SlotType
    costs: Sequence[Optional[float]]
    """None where the job does not fit."""

    def differs(self, other: _Priced) -> Optional[int]:
        """Number of the first job that costs something else there; None if all cost the same."""
        for number, (here, there) in enumerate(zip(self.costs, other.costs)):
            if (
                here is not None
                and there is not None
                and not math.isclose(here, there, rel_tol=1e-6)
            ):
                return number
        return None


def units(subject: Subject) -> Iterator[Finding]:
    """Weights by which the same job costs more on one node than on another.

    The manual wants the same SLOT_WEIGHT "on all machines in the pool" (EP policy configuration,
    section condor_negotiator-Side Resource Consumption Policies). Group quotas are in weighted
    slots: two units, and a quota means something else on each node. Slot types of one node may well
    differ on purpose, so like is compared with like.
    """
    quotas = any(node.configuration.text("GROUP_NAMES") for node in subject.nodes)
    seen: list[_Priced] = []
    told: set[tuple[str, str]] = set()
    for node in subject.nodes:
        priced = [
            _Priced(node, slot, _costs(subject, node, slot))
            for its, slot in subject.sound
            if its is node
        ]
        for here, there in _unlike(priced, seen):
            key = (here.node.input.name, here.slot.weight.place)
            if key not in told:
                told.add(key)
                yield _nodes_finding(here, there, advice=not quotas)
        seen += priced


def _costs(subject: Subject, node: Node, slot: SlotType) -> list[Optional[float]]:
    """What each of the jobs costs on a slot of one size, so that only weights are compared."""
    whole = dict.fromkeys(slot.policies, 8.0)
    whole.update(Cpus=_CORES, Memory=_MEMORY_MIB, Disk=_CORES * DISK_KIB_PER_CORE)
    (found,) = subject.matches([slot_ad(node, slot, whole)], _NODES_JOBS)
    return [match.cost if not match.refused else None for match in found]


def _unlike(
    priced: Sequence[_Priced], before: Sequence[_Priced]
) -> Iterator[tuple[_Priced, _Priced]]:
    """Slots of a node, and those of a node before it that are to cost the same and do not.

    Types of one number are meant alike. Where nodes have no number in common, it is enough that one
    type of each is alike.
    """
    first: dict[int, _Priced] = {}
    for there in before:
        first.setdefault(there.slot.number, there)
    pairs = [(here, first[here.slot.number]) for here in priced if here.slot.number in first]
    if not pairs and all(here.differs(there) is not None for here in priced for there in before):
        pairs = [(here, there) for here in priced[:1] for there in before[:1]]
    return (pair for pair in pairs if pair[0].differs(pair[1]) is not None)


def _nodes_finding(here: _Priced, there: _Priced, *, advice: bool) -> Finding:
    number = here.differs(there) or 0
    costs = [plain(one.costs[number]) for one in (here, there)]
    return Finding(
        "nodes",
        here.slot.weight.place,
        f"a job with {said(_NODES_JOBS[number])} costs {costs[0]} on {_name(here)}, and "
        f"{costs[1]} on {_name(there)} "
        f"({there.slot.weight.place}): quotas and shares are in two units",
        "write the same SLOT_WEIGHT on all nodes, or weights in the same unit",
        advice=advice,
    )


def _name(priced: _Priced) -> str:
    name = priced.node.input.name
    return f"{name}, {priced.slot.name}" if priced.slot.number else name


_PLAIN = {"cpus": "RequestCpus", "memory": "RequestMemory"}
"""SLOT_WEIGHT → what a schedd takes instead."""
_SCHEDDS_JOBS = tuple(
    {"RequestCpus": "1", "RequestMemory": memory, "RequestDisk": disk}
    for memory, disk in itertools.product(("128", "1000", "2048", "4096"), ("1000", "1048576"))
)
"""Small jobs, as most are."""


def weighed(subject: Subject) -> Iterator[Finding]:
    """Weights by which an idle job counts as nothing: with group quotas, no slot is given for such jobs, of any group or none.

    Seen on both versions, with 0, with parts of 1 and with negative weights, by either knob; what
    is undefined does no harm.
    """
    for node in subject.nodes:
        chosen = _chosen(node)
        if chosen is None or not _counts(node):
            continue
        is_for_schedds = "SCHEDD" in chosen.macro.upper()
        # Knobs of slots are for execute points unless the configuration says otherwise.
        if not is_for_schedds and not node.runs("SCHEDD"):
            continue
        of_job = chosen.macro.upper().endswith(SCHEDD_WEIGHT)
        values = _values(subject, chosen.text, of_job=of_job)
        light = [
            (job, value)
            for job, value in zip(_SCHEDDS_JOBS, values)
            if value is not None and value < 1
        ]
        if light:
            yield _schedds_finding(node, chosen, *light[0], every=len(light) == len(_SCHEDDS_JOBS))


def _schedds_finding(
    node: Node, chosen: Setting, job: ScheddsAd, value: float, *, every: bool
) -> Finding:
    of_job = chosen.macro.upper().endswith(SCHEDD_WEIGHT)
    has_schedd = node.runs("SCHEDD")
    happens = (
        f"an idle job with {said(job)}{', and any other,' if every else ''} weighs "
        f"{plain(value)} there, of which the whole part "
        "counts (WeightedIdleJobs): where there are group quotas, the negotiator gives nothing "
        "for such jobs, and none is matched"
    )
    if of_job:
        return Finding(
            "access points",
            chosen.place,
            f"{chosen.macro} on access points: {happens}",
            f"write {SCHEDD_WEIGHT} = RequestCpus, or another number that is 1 at least",
        )
    return Finding(
        "access points",
        chosen.place,
        f"{chosen.macro} on "
        f"{'an access point' if has_schedd else 'access points, if this is for them too'}: "
        f"{happens}",
        f"leave it to the execute points, as STARTD.{WEIGHT} or SLOT_TYPE_<N>_{WEIGHT}, or "
        f"write {SCHEDD_WEIGHT} = RequestCpus beside "
        "it",
        advice=not has_schedd,
    )


def _chosen(node: Node) -> Optional[Setting]:
    """The knob by which a schedd of that configuration weighs jobs; None if no file sets it, or what it is cannot be known."""
    configuration = node.configuration
    for knob in (SCHEDD_WEIGHT, WEIGHT):
        for name in (f"SCHEDD.{knob}", knob):
            text, written = configuration.text(name).strip(), configuration.assignments(name)
            if written and name == knob and configuration.assignments(f"STARTD.{knob}"):
                # The configuration is read as a startd does: only as it is written, it is the
                # schedd's.
                text = "" if "$" in written[-1].text else written[-1].text
            if text and written:
                return Setting(written[-1].name, text, configuration.place(name))
    return None


def _counts(node: Node) -> bool:
    """Whether a schedd reads that configuration, or may, and weighs jobs."""
    if node.boolean(SCHEDD_USES_WEIGHT) is False:
        return False
    is_known = node.input.is_whole or node.configuration.assignments("DAEMON_LIST")
    return node.runs("SCHEDD") or not is_known


def _values(subject: Subject, text: str, *, of_job: bool) -> list[Optional[float]]:
    """What each job weighs; None for what is no number, for which a schedd takes the job's cores."""
    if not of_job and text.lower() in _PLAIN:
        text, of_job = _PLAIN[text.lower()], True
    ads = [job if of_job else _as_slot(job) for job in _SCHEDDS_JOBS]
    rows = subject.htcondor.evaluate([text], ads, [{}])[0]
    return [_schedds_number(row[0]) for row in rows] if rows is not None else [None] * len(ads)


def _as_slot(job: ScheddsAd) -> dict[str, str]:
    return {name[len("Request") :]: text for name, text in job.items()}


def _schedds_number(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


_STATIC_ALIKE = 0.6
_BY_HAND = re.compile(r"Consumption(?!_)(\w+)", re.IGNORECASE)
"""Attribute of a slot that is its policy for an asset."""


def none(subject: Subject) -> Iterator[Finding]:
    """Configurations that have no consumption policy at all."""
    nodes = [node for node in subject.nodes if not _is_for_access_points(node)]
    told_elsewhere = any(
        slot.wants_policy
        or slot.is_misread
        or not all(policy.is_default for policy in slot.policies.values())
        for node in subject.nodes
        for slot in node.slot_types
    ) or any(_in_vain(node) for node in nodes)
    told_elsewhere = told_elsewhere or any(of_type_0(subject)) or any(by_hand(subject))
    if told_elsewhere or not nodes:
        return
    yield Finding(
        "policy",
        ", ".join(node.input.name for node in nodes),
        "no slot has a consumption policy: nothing to check, and the negotiator matches one job "
        "a cycle on each "
        "partitionable slot",
        "write CONSUMPTION_POLICY = True, or SLOT_TYPE_<N>_CONSUMPTION_POLICY = True for slots "
        "of one type",
    )


def _is_for_access_points(node: Node) -> bool:
    """Whether it has no slots: a schedd alone, or a snippet that sets what access points need of a pool with policies."""
    return node.is_access_point or (
        not node.input.is_whole and bool(node.configuration.assignments(LEFTOVERS))
    )


def by_hand(subject: Subject) -> Iterator[Finding]:
    """Consumption… as attributes of slots in STARTD_ATTRS, as before HTCondor 8.1.2.

    Seen on both versions: with CONSUMPTION_POLICY the startd puts its own in their place; without
    it the negotiator goes by them, and the slot has one claim id ("has no claim id").
    """
    for node in subject.nodes:
        attributes = {
            name: policy_of for name in node.attributes if (policy_of := _BY_HAND.fullmatch(name))
        }
        if not attributes:
            continue
        is_on = any(slot.wants_policy for slot in node.slot_types)
        yield Finding(
            "policy",
            node.configuration.place(next(iter(attributes))),
            f"{_together(list(attributes))}: the form of 2012, attributes of the slot: "
            + (
                "CONSUMPTION_POLICY = True puts HTCondor's own policies in their place"
                if is_on
                else "the slot has one claim id, so it is matched once a cycle"
            ),
            "write "
            + ("" if is_on else "CONSUMPTION_POLICY = True, ")
            + ", ".join(
                f"CONSUMPTION_{asset[1].upper()} = {_one_line(node.attributes[name])}"
                for name, asset in attributes.items()
            )
            + ", and take the attributes out",
        )


def unreadable(subject: Subject) -> Iterator[Finding]:
    """Expressions on which the startd ends as it starts ("Bad consumption policy expression")."""
    seen: set[tuple[str, str]] = set()
    for _, slot in subject.slots:
        for chosen in (*slot.policies.values(), slot.weight):
            if chosen.text in subject.readable or (chosen.macro, chosen.place) in seen:
                continue
            seen.add((chosen.macro, chosen.place))
            shown = _one_line(chosen.text)
            problem = (
                f"HTCondor cannot read {chosen.macro} = {shown}"
                if shown
                else f"{chosen.macro} is empty"
            )
            yield Finding(
                "expressions",
                chosen.place,
                f"{problem}: the startd ends as soon as it starts, again and again",
                (
                    "look for a missing bracket, quote or operator"
                    if shown
                    else "take the line out, and HTCondor uses its default"
                )
                + "; nothing else of these slots' policies and weight is tried before",
            )


def scoped(subject: Subject) -> Iterator[Finding]:
    """Names that a policy or a weight asks for on the wrong side, or on no side."""
    seen: set[tuple[str, str]] = set()
    for node, slot in subject.slots:
        asked = [
            (chosen, reference, _out_of_scope(node, slot, chosen, reference))
            for chosen in (*slot.policies.values(), slot.weight)
            for reference in references(subject.readable.get(chosen.text, ""))
        ]
        for chosen, reference, fault in asked:
            key = (chosen.place, f"{reference.scope}.{reference.name}".lower())
            if fault is not None and key not in seen:
                seen.add(key)
                # HTCondor finds the job's attribute all the same, and a slot's weight costs no job
                # its start.
                advice = reference.scope == UNSCOPED or chosen is slot.weight
                yield Finding(
                    "scope", chosen.place, f"{chosen.macro}: {fault[0]}", fault[1], advice=advice
                )


def slot_types(subject: Subject) -> Iterator[Finding]:
    """Policies for slots that cannot have one, or that are not there; one finding for all knobs of a type."""
    for node in subject.nodes:
        most = _most_types(node)
        for number, definitions in _in_vain(node).items():
            names = _together([definition.name for definition in definitions])
            if number >= most:
                yield Finding(
                    "slot types",
                    definitions[0].place,
                    f"{names}: HTCondor takes no notice of slot types from {most} on "
                    "(MAX_SLOT_TYPES)",
                    f"use a number below {most}, or write MAX_SLOT_TYPES = {number + 1}",
                )
                continue
            yield Finding(
                "slot types",
                definitions[0].place,
                f"{names}: the node has no slot of type {number}",
                f"write NUM_SLOTS_TYPE_{number} = 1, or use the number of a type that it has",
            )
        yield from _counted_on(node)
        for slot in node.slot_types:
            if slot.is_misread:
                continue
            if slot.wants_policy and not slot.partitionable:
                yield _not_partitionable(slot)
            elif not slot.wants_policy:
                yield from _switched_off(node, slot)


def _in_vain(node: Node) -> dict[int, list[Definition]]:
    """Slot type that the node does not have → knobs of policies for it."""
    found: dict[int, list[Definition]] = {}
    most = _most_types(node)
    for definition in node.configuration.definitions:
        number, knob = typed(definition.name) or (-1, "")
        is_policy = knob.upper().startswith(("CONSUMPTION_", "NUM_CLAIMS"))
        if number >= most or (number in node.unused_types and is_policy):
            found.setdefault(number, []).append(definition)
    return found


def _counted_on(node: Node) -> Iterator[Finding]:
    """Types that a snippet counts on another file to have, though it has slots of others itself."""
    written = {
        slot.number: bool(node.configuration.assignments(f"NUM_SLOTS_TYPE_{slot.number}"))
        for slot in node.slot_types
    }
    for slot in node.slot_types:
        policies = [
            policy for policy in (slot.policy, *slot.policies.values()) if typed(policy.macro)
        ]
        if any(written.values()) and not written[slot.number] and policies:
            own = ", ".join(str(number) for number, is_own in written.items() if is_own)
            yield Finding(
                "slot types",
                policies[0].place,
                f"{_together([policy.macro for policy in policies])}: this configuration has "
                f"slots of type {own}, and none of "
                f"type {slot.number}: unless another file has them, nothing reads that",
                f"use the number of a type that it has, or write NUM_SLOTS_TYPE_{slot.number} = 1",
                advice=True,
            )


def _most_types(node: Node) -> int:
    written = node.configuration.text("MAX_SLOT_TYPES").strip()
    return int(written) if written.isdecimal() else MAX_SLOT_TYPES


def _together(names: Sequence[str], most: int = 6) -> str:
    """Knobs, each once."""
    once = tuple(dict.fromkeys(names))
    return ", ".join(once[:most]) + (f" and {len(once) - most} more" if len(once) > most else "")


def _not_partitionable(slot: SlotType) -> Finding:
    return Finding(
        "slot types",
        slot.policy.place,
        f"{slot.name}: not partitionable, so HTCondor leaves the consumption policy aside",
        f"write SLOT_TYPE_{slot.number}_PARTITIONABLE = True, or {slot.policy.macro} = False "
        "for it",
        advice=not typed(slot.policy.macro),
    )


def _switched_off(node: Node, slot: SlotType) -> Iterator[Finding]:
    others = any(other.wants_policy for other in node.slot_types)
    idle = [
        policy
        for policy in slot.policies.values()
        if not policy.is_default and (typed(policy.macro) or not others)
    ]
    if idle:
        (first, *more) = idle
        yield Finding(
            "slot types",
            first.place,
            f"{_together([policy.macro for policy in idle])} {'have' if more else 'has'} no "
            f"effect: {slot.policy.macro} is not True"
            + (f" for {slot.name}" if slot.number else ""),
            f"write {_scope(slot, first)}CONSUMPTION_POLICY = True, or take the "
            f"{'lines' if more else 'line'} out",
        )


def _out_of_scope(
    node: Node, slot: SlotType, chosen: Setting, reference: Reference
) -> tuple[str, str] | None:
    """Problem and remedy of a name; None if it is where it is asked for."""
    name = reference.name
    is_weight = chosen is slot.weight
    requests = [f"Request{asset}" for asset in slot.policies]
    of_job = name.lower() in {request.lower() for request in requests} or name.lower().startswith(
        "request"
    )
    if is_weight and (reference.scope == TARGET or (reference.scope == UNSCOPED and of_job)):
        return (
            (
                f"{name} is the job's, and the weight of a slot is asked for without a job: the "
                "negotiator takes its own "
                "SLOT_WEIGHT instead"
            ),
            "make the weight of the slot's Cpus, Memory, Disk and custom resources only",
        )
    if reference.scope == MY and of_job:
        return (
            f"MY.{name} asks the slot for what the job requests: undefined",
            f"write TARGET.{name}",
        )
    if reference.scope == TARGET and name.lower() in {asset.lower() for asset in slot.policies}:
        return (
            f"TARGET.{name} asks the job for what the slot has",
            f"write MY.{name}, or TARGET.Request{name}",
        )
    if (
        of_job
        and name.lower() not in {request.lower() for request in requests}
        and reference.scope != MY
    ):
        lower = {request.lower(): request for request in requests}
        close = [
            lower[found]
            for found in difflib.get_close_matches(name.lower(), lower, 1, _STATIC_ALIKE)
        ]
        return (
            (
                f"no asset of this slot is requested by {name}: undefined for most jobs, and they "
                "match nothing"
            ),
            f"write TARGET.{close[0]}" if close else f"ask for one of {', '.join(requests)}",
        )
    # No slot has an attribute Request….
    if (
        reference.scope != UNSCOPED
        or of_job
        or is_htcondors(name)
        or name.lower() in _static_known(node, slot)
    ):
        return None
    side = "TARGET" if name.lower() in JOB_ATTRIBUTES else ""
    return (
        (
            f"{name} is not scoped: HTCondor takes it from the job wherever the slot has no such "
            "attribute"
        ),
        f"write {side}.{name}"
        if side
        else f"write MY.{name} for the slot's, TARGET.{name} for the job's",
    )


def _static_known(node: Node, slot: SlotType) -> set[str]:
    names = [*slot.policies, *node.attributes]
    names += [f"{prefix}{asset}" for prefix in ("Total", "TotalSlot") for asset in slot.policies]
    return {name.lower() for name in names}


def _scope(slot: SlotType, near: Setting | None = None) -> str:
    is_typed = typed((near or slot.policy).macro) is not None
    return f"SLOT_TYPE_{slot.number}_" if is_typed else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


_CLOCK = re.compile(r"\b(time|random|formatTime)\s*\(|\bCurrentTime\b", re.IGNORECASE)
_WEIGHTS_REMEDY = (
    "make the weight what the policy makes of the slot, such as the least of floor(asset / "
    "smallest charge) over all "
    "assets that the slot can run out of (sharectl consumption render writes it)"
)
_ALLOWED = ("CurrentTime", "SlotWeight", "PartitionableSlot", "DynamicSlot", "SlotTypeID")


def evaluable(subject: Subject) -> Iterator[Finding]:
    """Weights that are no number in some state of the slot.

    On an empty slot, the negotiator takes its own SLOT_WEIGHT instead; after a match it ends
    ("Failed to evaluate SlotWeight"), is started again, and ends again. Seen with 8 / Cpus on both
    versions.
    """
    for node, slot in subject.sound:
        amounts, _ = sizes(node, slot, subject.size)
        whole = amounts[-1]
        (full,) = _weights(subject, [slot_ad(node, slot, whole)])
        if _weights_number(full) is None:
            if not _others(subject, node, slot):
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} is {_word(full)} on an empty slot: the negotiator "
                    "takes its own SLOT_WEIGHT instead",
                    "write an expression over Cpus, Memory, Disk and the slot's custom "
                    "resources that is a number",
                    advice=True,
                )
            continue
        states = [{**whole, **dict.fromkeys(gone, 0.0)} for gone in _subsets(tuple(whole))]
        weights = _weights(subject, [slot_ad(node, slot, whole, left) for left in states])
        for left, weight in zip(states, weights):
            value = _weights_number(weight)
            if value is None:
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} is {_word(weight)} where {amounts_said(_gone(left))}: "
                    "the negotiator ends there "
                    "(Failed to evaluate SlotWeight), is started again, and ends again",
                    "make it a number for a slot that has run out of anything: nothing is "
                    "divided by what can be 0",
                )
                break
            if value < 0:
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} is {plain(value)} where {amounts_said(_gone(left))}: "
                    "the accountant counts a negative weight "
                    "as 1",
                    f"write max({{0, {slot.weight.text}}})",
                    advice=True,
                )
                break


def steady(subject: Subject) -> Iterator[Finding]:
    """Weights that change without a match, or do not change by one."""
    for node, slot in subject.sound:
        text = subject.readable[slot.weight.text]
        if match := _CLOCK.search(text):
            yield Finding(
                "weight",
                slot.weight.place,
                f"{slot.weight.macro} depends on {match[0].rstrip('(').strip()}: it may change "
                "while a match is made, and the "
                "change is added to what the job is charged",
                "make the weight of assets only",
                advice=True,
            )
        for reference in _others(subject, node, slot):
            yield Finding(
                "weight",
                slot.weight.place,
                f"{slot.weight.macro} asks for {reference.name}: the negotiator deducts assets "
                "only, so it has the old value "
                "for all matches of a cycle, or none",
                "make the weight of Cpus, Memory, Disk and the slot's custom resources only",
                advice=True,
            )


def follows(subject: Subject) -> Iterator[Finding]:
    """Weights that say something else than the policy: of what still fits, and of what a claim takes."""
    for found in filled_slots(subject):
        node, slot = found[0].node, found[0].slot
        (full,) = _weights(subject, [slot_ad(node, slot, found[-1].whole)])
        if _weights_number(full) is None:
            continue
        for problem in (_free, _stranded, _charged_anew):
            told = [problem(subject, filled) for filled in found]
            if told and all(told):
                yield Finding(
                    "weight",
                    slot.weight.place,
                    f"{slot.weight.macro} = {_flat(slot.weight.text)}: {told[0]}",
                    _WEIGHTS_REMEDY,
                    advice=True,
                )
                break


def _free(_: Subject, filled: Filled) -> Optional[str]:
    """A match that costs nothing, though it takes something."""
    left = dict(filled.whole)
    for match in filled.claims:
        if match.claim is not None and match.cost is not None and match.cost == 0:
            return (
                f"where the slot has {amounts_said(left)}, the policy lets a job with "
                f"{said(filled.job)} in, and the weight "
                f"goes from {plain(match.claim.weight_before)} to "
                f"{plain(match.claim.weight_after)}: the match costs nothing, and no quota "
                "or share holds such jobs back"
            )
        left = after(left, match)
    return None


def _stranded(subject: Subject, filled: Filled) -> Optional[str]:
    """Weight that is left where no job fits any more."""
    last = filled.claims[-1].claim
    weight, price = last.weight_after if last else None, filled.cost
    if not filled.is_full or weight is None or price is None or weight < price:
        return None
    ad = slot_ad(filled.node, filled.slot, filled.whole, filled.left)
    (tried,) = subject.matches([ad], bare_minimum(tuple(filled.whole)))
    if any(not match.refused for match in tried):
        return None
    return (
        f"after {len(filled.claims)} jobs with {said(filled.job)} the slot has "
        f"{amounts_said(filled.left)}, and by the policy "
        f"no further job fits (W = 0), but the weight is {plain(weight)}: quotas and shares "
        "count what nobody can use"
    )


def _charged_anew(subject: Subject, filled: Filled) -> Optional[str]:
    """A dynamic slot whose own weight is not what the match has cost.

    Accountant::CheckMatches counts the dynamic slot's SlotWeight, from the cycle after the match
    on.
    """
    claim = filled.claims[0].claim
    if claim is None or claim.cost is None:
        return None
    ad = dynamic_slot_ad(filled.node, filled.slot, claim.consumed, filled.whole)
    weight = _weights_number(_weights(subject, [ad])[0])
    if weight is not None and abs(weight - claim.cost) <= max(1e-6, 1e-3 * abs(claim.cost)):
        return None
    shown = "no number, so 1" if weight is None else f"{plain(weight)}"
    return (
        f"a job with {said(filled.job)} costs {plain(claim.cost)} when it is matched in a slot "
        f"of {amounts_said(filled.whole)}, and "
        f"from the next cycle on the accountant counts the weight of its dynamic slot, {shown}"
    )


def _others(subject: Subject, node: Node, slot: SlotType) -> list[Reference]:
    """Attributes that the weight asks the slot for, and that no match changes; TARGET's are the check of scopes'."""
    deducted = {asset.lower() for asset in slot.policies}
    known = {f"{prefix}{asset}" for prefix in ("total", "totalslot") for asset in deducted}
    known |= {name.lower() for name in (*node.attributes, *_ALLOWED)} | deducted
    return [
        reference
        for reference in references(subject.readable[slot.weight.text])
        if reference.scope != TARGET
        and reference.name.lower() not in known
        and not reference.name.lower().startswith("request")
    ]


def _weights(subject: Subject, ads: Sequence[Ad]) -> list[Any]:
    rows = subject.htcondor.evaluate(["MY.SlotWeight"], ads, [{}])[0] or []
    return [value for (value,) in rows]


def _subsets(assets: Sequence[str]) -> list[tuple[str, ...]]:
    """Assets that have run out: each, each pair, and all."""
    return [(), *((asset,) for asset in assets), *combinations(assets, 2), tuple(assets)]


def _gone(left: Amounts) -> Amounts:
    return {asset: amount for asset, amount in left.items() if not amount} or left


def _weights_number(value: Any) -> Optional[float]:
    if isinstance(value, (int, float)) and abs(value) < float("inf"):
        return float(value)
    return None


def _word(value: Any) -> str:
    return value if value in ("undefined", "error") else f"{value!r}, no number"


def _flat(text: str, most: int = 100) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 2] + " …"
