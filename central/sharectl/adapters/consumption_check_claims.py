"""Checks of what becomes of a match: there is a claim id for it, the startd makes a slot for it, and of the same size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sharectl.adapters.consumption_check_filling import Filled, filled_slots, filled_with_each
from sharectl.adapters.consumption_check_requests import Ad, dynamic_slot_ad, ordinary, sizes, slot_ad
from sharectl.adapters.consumption_check_settings import setting
from sharectl.adapters.consumption_check_subject import (
    REQUESTS,
    STANDARD_ASSETS,
    Node,
    SlotType,
    Subject,
)
from sharectl.adapters.consumption_check_trials import amounts_said, plain, said, tried
from sharectl.adapters.snippet_subject import Finding

_STARTD_GIVES = {
    "Cpus": (
        "one core, which the negotiator does not deduct: when cores run out first, the startd refuses what is matched",
        "1 at least, or let the slot have a core for every claim (NUM_CPUS, where jobs share cores)",
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

    The negotiator has a claim id for each match ("has no claim id"); HTCondor's own NUM_CLAIMS is the slot's cores,
    rounded up, and that is enough, since every dynamic slot has a core at least.
    """
    for of_jobs in filled_with_each(subject):
        node, slot = of_jobs[0][0].node, of_jobs[0][0].slot
        written = [definition.text for definition in node.configuration.assignments(slot.claims.macro)]
        # What is made of macros of this machine, such as NUM_CPUS, is another number on the node.
        if not slot.claims.text or (not node.input.is_whole and any("$" in text for text in written)):
            continue
        rows = subject.htcondor.evaluate([slot.claims.text], [{}], [{}])[0]
        number = rows[0][0] if rows is not None else None
        # On the size of slot that takes the fewest, the job of which it takes the most.
        fewest = max((min(found, key=_taken) for found in of_jobs), key=_taken)
        if not isinstance(number, (int, float)):
            yield Finding(
                "claims",
                slot.claims.place,
                f"{slot.claims.macro} = {slot.claims.text} is no number: HTCondor takes the slot's cores instead",
                "write a whole number, or take it out",
                advice=True,
            )
        elif number < len(fewest.claims):
            yield Finding(
                "claims",
                slot.claims.place,
                f"{slot.claims.macro} = {plain(number)}, and {len(fewest.claims)} jobs with {said(fewest.job)} fit into a slot "
                f"of {amounts_said(fewest.whole)}: the others wait for further cycles (has no claim id)",
                f"write {len(fewest.claims)} or more, or take it out: HTCondor's own is the slot's cores",
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
                f"{plain(filled.whole['Cpus'])} cores, and the startd gives each of them one core at least: it refuses the "
                "others, which are matched again in every cycle",
                f"let {knob.macro} be 1 at least, or let another asset run out sooner",
            )


def given_more(subject: Subject) -> Iterator[Finding]:
    """Policies that take less of a job than the startd gives it, of jobs that request a core and more.

    Of Cpus where they never suffice, `cores` tells. Seen on both versions: 8 matches and 6 claims of 0 cores on 4, half as many
    claims as matches of half a core, and dynamic slots of 1 MiB.
    """
    out_of_cores = [
        (found[0].node, found[0].slot) for found in filled_slots(subject) if _run_out_of_cores(found)
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
                    f"{policy.macro}: of a job with {said(job)} the policy takes {plain(took)}, and the startd gives it {least[0]}",
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

    The startd makes whole numbers of what it takes for the slot, and asks the policy again on that slot
    ("Slot Requirements not satisfied"). Seen with RequestMemory * 1.1 on both versions.
    """
    for node, slot in subject.sound:
        for asset, (job, given, wanted) in _refused_claims(subject, node, slot).items():
            policy = slot.policies[asset]
            if not isinstance(wanted, (int, float)):
                yield Finding(
                    "claims",
                    policy.place,
                    f"{policy.macro} is no number for a job with {said(job)}: the slot's Requirements ask for it, so the "
                    "negotiator matches no such job",
                    f"write TARGET.Request{asset} ?: 0 for TARGET.Request{asset}, or another expression that is a number "
                    "for every job",
                )
                continue
            yield Finding(
                "claims",
                policy.place,
                f"{policy.macro}: a job with {said(job)} gets a dynamic slot with {asset} = {plain(given)}, and there the "
                f"policy asks for {plain(wanted)}: the startd refuses the claim, and the job is matched again in every cycle",
                (
                    f"write ceiling({_short(policy.text)})"
                    if isinstance(wanted, float)
                    else "make it depend on what the job requests, and not on what is left in the slot"
                ),
            )


def asked_twice(subject: Subject) -> Iterator[Finding]:
    """STARTs that say something else of what a job requests than of what the policy makes of it: both have to be true.

    The negotiator asks about the latter (cp_override_requested in matchmakingAlgorithm; with NEGOTIATOR_NUM_THREADS > 1 about
    the former), the startd about the former before it makes a dynamic slot, and about the latter on that slot. Seen on
    both versions: eight matches in every cycle, and no job runs.
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
            (subject.htcondor.evaluate([start.text], [slot_ad(node, slot, whole)], list(asked))[0] or [[]])[0]
            for asked in zip(*pairs)
        ]
        differ = (
            [job for (job, _), first, second in zip(pairs, *said_of) if _holds(first) != _holds(second)]
            if pairs
            else []
        )
        if differ:
            yield Finding(
                "start",
                start.place,
                f"{start.macro} says one thing of what a job with {said(differ[0])} requests, and another of what the "
                "policy makes of it: the negotiator asks about the latter (with NEGOTIATOR_NUM_THREADS > 1 about the "
                "former) and the startd about both, so such jobs are matched in vain, or never",
                "let it ask for TARGET.Request… only in ways that quantizing does not change",
            )


def modified(subject: Subject) -> Iterator[Finding]:
    """Requests that a site's own MODIFY_REQUEST_EXPR_… makes larger on the node than the negotiator has seen them.

    create_dslot in src/condor_startd.V6/Resource.cpp applies them before the policy, and tries again without if the slot
    then has no room.
    """
    for node, slot in subject.sound:
        jobs = _that_request_all(slot)
        knobs = {
            asset: found
            for asset, found in _modifying(node, slot).items()
            if node.configuration.assignments(found[0])
        }
        changed = _changed(subject, node, slot, jobs, knobs)
        pairs = list(zip(jobs, tried(subject, node, slot, jobs), tried(subject, node, slot, changed)))
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
                    f"{knob} = {_short(text)} is coarser than {slot.policies[asset].macro}: of a job with {said(job)} the "
                    f"negotiator deducts {asset} = {plain(had)}, and the node takes {plain(has)}, so it may be full before the "
                    "negotiator knows",
                    f"write {_typed(slot)}{REQUESTS[asset]} = Request{asset}, or a policy that is as coarse",
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
    return {name: plain(amount) for asset, amount in consumed.items() if (name := f"Request{asset}") in job}


def _holds(value: Any) -> bool:
    return value not in ("undefined", "error") and bool(value)


def _refused_claims(subject: Subject, node: Node, slot: SlotType) -> dict[str, tuple[Ad, float, Any]]:
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
    by_fraction = sorted(taken, key=lambda consumed: all(amount == int(amount) for _, amount in consumed))
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
    subject: Subject, node: Node, slot: SlotType, jobs: Sequence[Ad], knobs: dict[str, tuple[str, str]]
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
