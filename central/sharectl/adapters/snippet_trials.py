"""Checks by trial: typical jobs at typical nodes, judged by HTCondor's own evaluation of the expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sharectl.adapters.snippet_subject import EXPRESSIONS, Finding, Subject
from sharectl.core import trial_ads, trials
from sharectl.core.references import MY, references
from sharectl.core.trial_ads import Ad
from sharectl.core.trials import CLAUSES, HELD_BACK_SLOT, TARGET_ACTIVE, Trial
from sharectl.core.trials_nested import nested_trials

START, WORKLIFE = "START", "CLAIM_WORKLIFE"
SITES_OWN = {**dict.fromkeys(CLAUSES, "True"), TARGET_ACTIVE: "False", HELD_BACK_SLOT: "False"}
"""Attributes of a slot that is not sharectl's."""
_CLAUSES = " && ".join(f"MY.{clause} =!= False" for clause in CLAUSES)
_LAST_OF_CLAIM = "MY.t1_TargetActive =?= True && MY.t1_HeldBackSlot =?= True"
SHOWN = 3
"""So many jobs or situations are named in a finding; the others are counted."""


def refused(subject: Subject) -> Iterator[Finding]:
    """Typical jobs that get in without sharectl's clauses, and not with them, where there is no target."""
    quiet = trials.quiet_trials(subject.node)
    outcomes, sites_own = _started(subject, quiet)
    failures: dict[tuple[str, ...], list[str]] = {}
    for situation in dict.fromkeys(trial.situation for trial in quiet):
        jobs = [
            f"{trial.job} ({_word(outcome)})"
            for trial, outcome, without in zip(quiet, outcomes, sites_own)
            if trial.situation == situation
            and (outcome in ("undefined", "error") or (_true(without) and not _true(outcome)))
        ]
        if jobs:
            failures.setdefault(tuple(dict.fromkeys(jobs)), []).append(situation)
    for kept_out, situations in failures.items():
        yield Finding(
            "typical jobs",
            subject.configuration.place(START),
            f"START keeps jobs out {_some(situations)}: {_some(kept_out)}",
            "test for what may be missing or broken with =?= and =!=, so that it lets jobs in; if it waits for what a "
            "STARTD_CRON job of the site publishes, say --published NAME=VALUE",
        )
    if not failures and not any(_true(outcome) for outcome in outcomes):
        yield Finding(
            "typical jobs",
            subject.configuration.place(START),
            "START keeps out every typical job, with sharectl and without",
            "mend it, or say with --published NAME=VALUE what STARTD_CRON jobs of the site publish on a healthy node",
        )


def without_effect(subject: Subject) -> Iterator[Finding]:
    """Jobs that sharectl's clauses have to let in or keep out, and do not."""
    if not subject.has_clauses or subject.is_off:
        return
    acting = [*trials.acting_trials(subject.node), *nested_trials(subject.node)]
    outcomes, sites_own = _started(subject, acting)
    wrong = [
        (trial, outcome)
        for trial, outcome, without in zip(acting, outcomes, sites_own)
        if _true(outcome) != (trial.expected and _true(without))
    ]
    for situation in dict.fromkeys(trial.situation for trial, _ in wrong):
        jobs = [f"{trial.job} ({_word(outcome)})" for trial, outcome in wrong if trial.situation == situation]
        yield Finding(
            "clauses",
            subject.configuration.place(START),
            f"START does not do what sharectl is for {situation}: {_some(jobs)}",
            "let START end in && ($(t1_clauses)), in the last file that sets it, and leave the clauses as they are",
        )


def forgeable(subject: Subject) -> Iterator[Finding]:
    """Jobs that gain something by attributes that their users wrote into them."""
    honest = [
        *trials.quiet_trials(subject.node),
        *trials.acting_trials(subject.node),
        *nested_trials(subject.node),
    ]
    start = [subject.configuration.text(START)]
    (honestly,) = _tried(subject, start, honest)
    kept_out = [trial for trial, outcome in zip(honest, honestly) if not _true(outcome)]
    (forging,) = _tried(subject, start, [trials.forged(trial, trial_ads.FORGED) for trial in kept_out])
    gained = [f"{trial.job} {trial.situation}" for trial, outcome in zip(kept_out, forging) if _true(outcome)]
    if gained:
        yield Finding(
            "forging",
            subject.configuration.place(START),
            f"a job gets in by attributes that its user has written into it: {_some(gained)}",
            "ask for every attribute of the node with MY.",
        )


def claims(subject: Subject) -> Iterator[Finding]:
    """Claims that outlive a target, or end early without one."""
    node = subject.node
    quiet = [
        (situation, trial_ads.dynamic_slot({**subject.constants, **ours}, 1, trial_ads.HELD_BACK))
        for situation, ours in trials.targetless_situations(node).items()
    ]
    target = {**subject.constants, **trials.target_attributes(node)}
    quiet.append(("of another group under a target", trial_ads.dynamic_slot(target, 1, "lhcb")))
    quiet.append(("before it has a claim", trial_ads.dynamic_slot(target, 1)))
    held_back = trial_ads.dynamic_slot(target, 1, trial_ads.HELD_BACK)
    slots = [*(slot for _, slot in quiet), held_back]
    with_target = _in_slots(subject, subject.configuration.text(WORKLIFE), slots)
    sites_own = subject.without_sharectl.get(WORKLIFE, "1200")
    without = _in_slots(subject, sites_own, [{**slot, **SITES_OWN} for slot in slots])
    changed = [
        f"{situation} ({_word(value)} instead of {_word(usual)})"
        for (situation, _), value, usual in zip(quiet, with_target, without)
        if value != usual
    ]
    place = subject.configuration.place(WORKLIFE)
    if changed:
        yield Finding(
            "claims",
            place,
            f"CLAIM_WORKLIFE is not the site's own {_some(changed)}",
            f"let it be 0 only where {_LAST_OF_CLAIM}",
        )
    if subject.has_clauses and not subject.is_off and with_target[-1] != 0:
        yield Finding(
            "claims",
            place,
            f"under a target, a claim of the held-back group lives on ({_word(with_target[-1])}): its jobs follow each "
            "other in it, and START is not asked",
            f"write CLAIM_WORKLIFE = ifThenElse({_LAST_OF_CLAIM}, 0, $(CLAIM_WORKLIFE:1200)), in the last file that "
            "sets it",
        )


def not_the_clauses(subject: Subject) -> Iterator[Finding]:
    """Expressions that HTCondor uses in the place of START, and that let in whom a clause keeps out."""
    if not subject.knows_sharectl:
        return
    tried = [trial for clause in CLAUSES for trial in trials.clause_trials(subject.node, clause)]
    others = {
        macro: text
        for macro, text in subject.readable.items()
        if EXPRESSIONS.fullmatch(macro.upper()) and START in macro.upper() and macro.upper() != START
    }
    for (macro, text), outcomes in zip(others.items(), _tried(subject, list(others.values()), tried)):
        asks = {reference.name for reference in references(text) if reference.scope == MY}
        let_in = [
            f"{trial.job} {trial.situation}" for trial, outcome in zip(tried, outcomes) if _true(outcome)
        ]
        # What lets in none of the typical jobs may still let in others: then the clauses have to be in its text.
        if let_in or (text.lower() != "false" and not asks.issuperset(CLAUSES)):
            whom = f"lets in {_some(let_in)}" if let_in else "has none of sharectl's clauses"
            yield Finding(
                "clauses",
                subject.configuration.place(macro),
                f"HTCondor uses {macro} in the place of START, and it {whom}",
                f"let it end in && ({_CLAUSES}), in the last file that sets it",
            )


def quantized(subject: Subject) -> Iterator[Finding]:
    """Single-core jobs that get the slot of a multicore job by MODIFY_REQUEST_EXPR_REQUESTCPUS, and are kept out of it."""
    macro = "MODIFY_REQUEST_EXPR_REQUESTCPUS"
    text, cores = subject.configuration.text(macro), subject.multicore_cores
    if not (text and subject.has_clauses):
        return
    slot = trial_ads.partitionable_slot({}, 8 * cores)
    values = subject.htcondor.evaluate([text], [slot], [trial_ads.job("1", None)])[0]
    given = values[0][0] if values is not None else "error"
    if isinstance(given, (int, float)) and given >= cores:
        yield Finding(
            "claims",
            subject.configuration.place(macro),
            f"a job of one core gets a slot of {given:g}, and START keeps single-core jobs out of slots of {cores} cores",
            f"make it smaller than {cores} for such jobs, or SHARECTL_MULTICORE_CORES larger",
        )


def _started(subject: Subject, tried: Sequence[Trial]) -> tuple[list[Any], list[Any]]:
    """In each trial what START is, and what the site's own START is."""
    (outcomes,) = _tried(subject, [subject.configuration.text(START)], tried)
    switched_off = [replace(trial, slot_ad={**trial.slot_ad, **SITES_OWN}) for trial in tried]
    (sites_own,) = _tried(subject, [subject.without_sharectl.get(START, "True")], switched_off)
    return outcomes, sites_own


def _tried(subject: Subject, expressions: Sequence[str], tried: Sequence[Trial]) -> list[list[Any]]:
    """For each expression its value in each trial; ``error`` in all if it cannot be read."""
    slots, slot_numbers = _numbered(trial.slot_ad for trial in tried)
    jobs, job_numbers = _numbered(trial.job_ad for trial in tried)
    return [
        ["error"] * len(tried)
        if values is None
        else [values[slot][job] for slot, job in zip(slot_numbers, job_numbers)]
        for values in subject.htcondor.evaluate(expressions, slots, jobs)
    ]


def _in_slots(subject: Subject, expression: str, slots: Sequence[Ad]) -> list[Any]:
    """Value of an expression in each slot; ``error`` if it cannot be read."""
    (values,) = subject.htcondor.evaluate([expression], slots, [{}])
    return [row[0] for row in values] if values is not None else ["error"] * len(slots)


def _numbered(ads: Iterable[Ad]) -> tuple[list[Ad], list[int]]:
    """The different ones among ``ads``, and for each of ``ads`` which one it is."""
    numbers: dict[tuple[tuple[str, str], ...], int] = {}
    found: list[Ad] = []
    order = []
    for ad in ads:
        key = tuple(ad.items())
        if key not in numbers:
            numbers[key] = len(found)
            found.append(ad)
        order.append(numbers[key])
    return found, order


def _true(value: Any) -> bool:
    return value not in ("undefined", "error") and bool(value)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _some(words: Sequence[str]) -> str:
    shown = "; ".join(words[:SHOWN])
    return shown if len(words) <= SHOWN else f"{shown}; and {len(words) - SHOWN} more"
