"""Checks of snippets by trial: HTCondor evaluates START and CLAIM_WORKLIFE for typical jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sharectl.check import trials
from sharectl.check.findings import Finding, some
from sharectl.check.subject import EXPRESSIONS, QUANTIZED, START, WORKLIFE, SnippetSubject
from sharectl.check.trials import (
    CLAUSES,
    HELD_BACK_SLOT,
    LIVE,
    TARGET_ACTIVE,
    Ad,
    JobTrial,
    is_true,
)
from sharectl.condor.expressions import MY, references

SITES_OWN = {**dict.fromkeys(CLAUSES, "True"), TARGET_ACTIVE: "False", HELD_BACK_SLOT: "False"}
"""Attributes of a slot that is not sharectl's."""
SHOWN = 3
"""Jobs or situations that a finding names; the others are counted."""

_CLAUSES = " && ".join(f"MY.{clause} =!= False" for clause in CLAUSES)
_LAST_OF_CLAIM = f"MY.{TARGET_ACTIVE} =?= True && MY.{HELD_BACK_SLOT} =?= True"


def refused(subject: SnippetSubject) -> Iterator[Finding]:
    """Typical jobs that sharectl's clauses keep out where there is no target."""
    quiet = trials.quiet_trials(subject.node)
    outcomes, sites_own = _started(subject, quiet)
    kept_out: dict[str, list[str]] = {}
    for trial, outcome, without in zip(quiet, outcomes, sites_own):
        if not is_true(outcome) and (is_true(without) or outcome in ("undefined", "error")):
            jobs = kept_out.setdefault(trial.situation, [])
            jobs += [job for job in [f"{trial.job} ({_word(outcome)})"] if job not in jobs]
    situations: dict[tuple[str, ...], list[str]] = {}
    for situation, jobs in kept_out.items():
        situations.setdefault(tuple(jobs), []).append(situation)
    place = subject.configuration.place(START)
    for names, where in situations.items():
        yield Finding(
            place,
            f"START keeps jobs out {_some(where)}: {_some(names)}",
            "test for what may be missing or broken with =?= and =!=, so that it lets jobs in; if "
            "it waits for what a STARTD_CRON job of the site publishes, say --published NAME=VALUE",
        )
    if not situations and not any(map(is_true, outcomes)):
        yield Finding(
            place,
            "START keeps out every typical job, with sharectl and without",
            "mend it, or say with --published NAME=VALUE what STARTD_CRON jobs of the site "
            "publish on a healthy node",
        )


def without_effect(subject: SnippetSubject) -> Iterator[Finding]:
    """Jobs that sharectl's clauses have to let in or keep out, and do not."""
    if not subject.acts:
        return
    acting = trials.acting_trials(subject.node)
    outcomes, sites_own = _started(subject, acting)
    wrong: dict[str, list[str]] = {}
    for trial, outcome, without in zip(acting, outcomes, sites_own):
        if is_true(outcome) != (trial.expected and is_true(without)):
            wrong.setdefault(trial.situation, []).append(f"{trial.job} ({_word(outcome)})")
    if wrong:
        faults = [f"{situation}: {_some(jobs)}" for situation, jobs in wrong.items()]
        yield Finding(
            subject.configuration.place(START),
            f"START does not obey targets or grace {_some(faults)}",
            "let START end in && ($(t1_clauses)), in the last file that sets it, and leave the "
            "clauses as they are",
        )


def forgeable(subject: SnippetSubject) -> Iterator[Finding]:
    """Jobs that gain something by attributes that their users wrote into them."""
    tried = [*trials.quiet_trials(subject.node), *trials.acting_trials(subject.node)]
    start = subject.configuration.text(START)
    honest = _values(subject, start, tried)
    kept_out = [trial for trial, value in zip(tried, honest) if not is_true(value)]
    forged = [replace(trial, job_ad={**trials.FORGED, **trial.job_ad}) for trial in kept_out]
    values = _values(subject, start, forged)
    gained = [f"{t.job} {t.situation}" for t, value in zip(forged, values) if is_true(value)]
    if gained:
        yield Finding(
            subject.configuration.place(START),
            f"a job gets in by attributes that its user has written into it: {_some(gained)}",
            "ask for every attribute of the node with MY.",
        )


def replaced_start(subject: SnippetSubject) -> Iterator[Finding]:
    """Expressions in the place of START that let in jobs that a clause keeps out."""
    tried = [trial for clause in CLAUSES for trial in trials.clause_trials(subject.node, clause)]
    for macro, text in subject.readable.items() if subject.our_files else ():
        name = macro.upper()
        if name == START or START not in name or not EXPRESSIONS.fullmatch(name):
            continue
        let_in = [
            f"{trial.job} {trial.situation}"
            for trial, value in zip(tried, _values(subject, text, tried))
            if is_true(value)
        ]
        # Jobs that are not typical may get in, unless the clauses are in its text.
        asks = {reference.name for reference in references(text) if reference.scope == MY}
        if let_in or (text.lower() != "false" and not asks.issuperset(CLAUSES)):
            effect = f"lets in {_some(let_in)}" if let_in else "has none of sharectl's clauses"
            yield Finding(
                subject.configuration.place(macro),
                f"HTCondor uses {macro} in the place of START, and it {effect}",
                f"let it end in && ({_CLAUSES}), in the last file that sets it",
            )


def claims(subject: SnippetSubject) -> Iterator[Finding]:
    """Claims that outlive a target, or end early without one."""
    node, place = subject.node, subject.configuration.place(WORKLIFE)
    target = trials.target_attributes(node)
    slots = {
        situation: node.dynamic(ours, 1, trials.HELD_BACK)
        for situation, ours in trials.targetless_situations(node).items()
    }
    slots["of another group under a target"] = node.dynamic(target, 1, "lhcb")
    slots["before it has a claim"] = node.dynamic(target, 1)
    held_back = node.dynamic(target, 1, trials.HELD_BACK)
    own = [{**ad, **SITES_OWN} for ad in slots.values()]
    text = subject.configuration.text(WORKLIFE)
    lives = _in_slots(subject, text, [*slots.values(), held_back])
    sites_own = _in_slots(subject, subject.without_sharectl.get(WORKLIFE, "1200"), own)
    changed = [
        f"{situation} ({_word(life)} instead of {_word(usual)})"
        for situation, life, usual in zip(slots, lives, sites_own)
        if life != usual
    ]
    if changed:
        fault = f"CLAIM_WORKLIFE is not the site's own {_some(changed)}"
        yield Finding(place, fault, f"let it be 0 only where {_LAST_OF_CLAIM}")
    if subject.acts and lives[-1] != 0:
        yield Finding(
            place,
            f"under a target, a claim of the held-back group lives on ({_word(lives[-1])}): its "
            "jobs follow each other in it, and START is not asked",
            f"write CLAIM_WORKLIFE = ifThenElse({_LAST_OF_CLAIM}, 0, $(CLAIM_WORKLIFE:1200)), in "
            "the last file that sets it",
        )


def quantized(subject: SnippetSubject) -> Iterator[Finding]:
    """Single-core jobs that get the slot of a multicore job, and are kept out of it."""
    text, cores = subject.configuration.text(QUANTIZED), subject.multicore_cores
    if not (text and subject.has_clauses):
        return
    slot = trials.partitionable_slot({}, 8 * cores)
    (values,) = subject.htcondor.evaluate([text], [slot], [trials.job("1", None)])
    cores_of_slot = values[0][0] if values is not None else "error"
    if isinstance(cores_of_slot, (int, float)) and cores_of_slot >= cores:
        yield Finding(
            subject.configuration.place(QUANTIZED),
            f"a job of one core gets a slot of {cores_of_slot:g}, and START keeps single-core jobs out of "
            f"slots of {cores} cores",
            f"make it smaller than {cores} for such jobs, or SHARECTL_MULTICORE_CORES larger",
        )


def miscounted(subject: SnippetSubject) -> Iterator[Finding]:
    """Slots that count wrongly: the held-back group's cores, or free cores."""
    if not subject.acts or subject.actuation != LIVE:
        return
    cases = {
        trials.HELD_BACK_CORES: trials.held_cases(subject.node),
        trials.ROOM: trials.room_cases(subject.node),
    }
    for attribute, rows in cases.items():
        values = _in_slots(subject, f"MY.{attribute}", [ad for _, ad, _ in rows])
        wrong = [
            f"{_word(value)} {situation}"
            for (situation, _, expected), value in zip(rows, values)
            if value != expected
        ]
        if wrong:
            yield Finding(
                subject.configuration.place(attribute),
                f"{attribute} is {_some(wrong)}",
                f"leave {attribute} as it is, and in the lists where the snippet puts it",
            )


def _started(subject: SnippetSubject, tried: Sequence[JobTrial]) -> tuple[list[Any], list[Any]]:
    """START in each trial, and the site's own START."""
    switched_off = [replace(trial, slot_ad={**trial.slot_ad, **SITES_OWN}) for trial in tried]
    sites_own = subject.without_sharectl.get(START, "True")
    return (
        _values(subject, subject.configuration.text(START), tried),
        _values(subject, sites_own, switched_off),
    )


def _values(subject: SnippetSubject, expression: str, tried: Sequence[JobTrial]) -> list[Any]:
    """Value of an expression in each trial; ``error`` in all if it cannot be read."""
    slots = {id_of(trial.slot_ad): trial.slot_ad for trial in tried}
    jobs = {id_of(trial.job_ad): trial.job_ad for trial in tried}
    rows, columns = ({key: n for n, key in enumerate(ads)} for ads in (slots, jobs))
    (values,) = subject.htcondor.evaluate([expression], list(slots.values()), list(jobs.values()))
    if values is None:
        return ["error"] * len(tried)
    return [values[rows[id_of(t.slot_ad)]][columns[id_of(t.job_ad)]] for t in tried]


def id_of(ad: Ad) -> tuple[tuple[str, str], ...]:
    """Key of an ad: different ads are evaluated once."""
    return tuple(ad.items())


def _in_slots(subject: SnippetSubject, expression: str, slots: Sequence[Ad]) -> list[Any]:
    """Value of an expression in each slot; ``error`` if it cannot be read."""
    (values,) = subject.htcondor.evaluate([expression], slots)
    return [row[0] for row in values] if values is not None else ["error"] * len(slots)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _some(words: Sequence[str]) -> str:
    return some(words, SHOWN, "; ")
