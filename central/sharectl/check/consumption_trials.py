"""Checks of consumption policies and weights by trial: HTCondor evaluates them for ordinary jobs.

The jobs and the slots are the same each time, and so are the findings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Optional

from sharectl.check.consumption_subject import (
    Ad,
    ConsumptionSubject,
    Filling,
    PolicyTrial,
    Setting,
    fits,
    listed,
    number_of,
    plain,
    requests,
    requests_of,
    setting,
)
from sharectl.check.findings import Finding, Level, one_line
from sharectl.check.trials import is_true


def numbers(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies that are undefined, an error or negative (cp_sufficient_assets)."""
    for trial in subject.trials:
        for asset, policy in trial.slot.policies.items():
            wrong = [
                (job, amount)
                for job, taken in trial.taken
                if (amount := taken[asset]) is None or amount < 0
            ]
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
        short = [
            asset
            for asset, amount in taken.items()
            if amount is not None and amount > trial.whole[asset]
        ]
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
        seen: set[str] = set()
        # Fractions first: they are what the startd cuts.
        rows = sorted(trial.accepted, key=lambda row: all(map(float.is_integer, row[1].values())))
        for job, taken in rows:
            ad = trial.dynamic_slot_ad(taken)
            expressions = [f"MY.Consumption{asset}" for asset in taken]
            again = subject.htcondor.evaluate(expressions, [ad], [job])
            for asset, column in zip(taken, again):
                wanted = number_of(column[0][0]) if column else None
                if asset in seen or (wanted is not None and wanted <= float(ad[asset])):
                    continue
                seen.add(asset)
                yield _refused_claim(trial.slot.policies[asset], asset, job, ad[asset], wanted)


def _refused_claim(
    policy: Setting, asset: str, job: Ad, amount: str, wanted: Optional[float]
) -> Finding:
    if wanted is None:
        return Finding(
            policy.place,
            f"{policy.macro} is no number for a job with {requests_of(job)}: the slot's "
            "Requirements ask for it, and the negotiator matches no such job",
            f"write TARGET.Request{asset} ?: 0 for TARGET.Request{asset}, or another expression "
            "that is a number for every job",
        )
    return Finding(
        policy.place,
        f"{policy.macro}: a job with {requests_of(job)} gets a dynamic slot with {asset} = "
        f"{amount}, and there the policy asks for {plain(wanted)}: the startd refuses the claim, "
        "and the job is matched again in every cycle",
        "make it depend on what the job requests, and not on what is left in the slot"
        if wanted.is_integer()
        else f"write ceiling({one_line(policy.text)})",
    )


def claim_ids(subject: ConsumptionSubject) -> Iterator[Finding]:
    """NUM_CLAIMS that ends a cycle before the slot is full ("has no claim id")."""
    for trial in subject.trials:
        claims, is_known = trial.slot.claims, trial.is_size_known
        if not claims.text or not is_known or not trial.fillings:
            continue
        (rows,) = subject.htcondor.evaluate([claims.text])
        number = number_of(rows[0][0]) if rows else None
        most = max(trial.fillings, key=lambda filling: len(filling.steps))
        if number is not None and number < len(most.steps):
            yield Finding(
                claims.place,
                f"{claims.macro} = {plain(number)}, and {len(most.steps)} jobs with "
                f"{requests_of(most.job)} fit: the others wait for further cycles",
                f"write {len(most.steps)} or more, or take it out: HTCondor's own is the slot's "
                "cores",
                Level.ADVICE,
            )


def cores(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Policies that take less than the core that the startd gives each claim (create_dslot)."""
    for trial in subject.trials:
        policy = trial.slot.policies["Cpus"]
        filling = next((f for f in trial.fillings if len(f.steps) > trial.whole["Cpus"]), None)
        less = [(job, taken) for job, taken in trial.accepted if taken["Cpus"] < 1]
        if filling is not None:
            yield Finding(
                policy.place,
                f"the policy lets more than {plain(trial.whole['Cpus'])} jobs with "
                f"{requests_of(filling.job)} into a slot of as many cores, and the startd gives "
                "each of them one core: it refuses the others, which are matched again in every "
                "cycle",
                f"let {policy.macro} be 1 at least, or let another asset run out sooner",
            )
        elif less:
            job, taken = less[0]
            yield Finding(
                policy.place,
                f"{policy.macro}: of a job with {requests_of(job)} the policy takes "
                f"{plain(taken['Cpus'])}, and the startd gives it one core: when cores run out "
                "first, the startd refuses what is matched",
                f"let {policy.macro} be 1 at least",
                Level.ADVICE,
            )


def start(subject: ConsumptionSubject) -> Iterator[Finding]:
    """STARTs that differ for what a job requests and for what the policy makes of it.

    The negotiator asks about the latter (cp_override_requested in matchmakingAlgorithm), the
    startd about the former before it makes a dynamic slot, and about the latter on that slot.
    """
    for trial in subject.trials:
        chosen = setting(trial.node.configuration, trial.slot.number, "START", "")
        jobs = [job for job, _ in trial.accepted]
        made = [
            {
                **job,
                **{
                    name: plain(taken[asset])
                    for asset in taken
                    if (name := f"Request{asset}") in job
                },
            }
            for job, taken in trial.accepted
        ]
        ad = trial.slot_ad(trial.whole)
        (rows,) = subject.htcondor.evaluate([chosen.text], [ad], [*jobs, *made])
        values = [is_true(value) for value in rows[0]] if rows else []
        differ = [
            job for job, first, then in zip(jobs, values, values[len(jobs) :]) if first != then
        ]
        if differ:
            yield Finding(
                chosen.place,
                f"{chosen.macro} differs for what a job with {requests_of(differ[0])} requests "
                "and for what the policy makes of it: the negotiator asks about the latter, the "
                "startd about both, so such jobs are matched in vain, or never",
                "let it ask for TARGET.Request… only in ways that quantizing does not change",
            )


def weight_is_number(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights that are no number in some state of the slot ("Failed to evaluate SlotWeight")."""
    for trial in subject.trials:
        weight, assets = trial.slot.weight, tuple(trial.whole)
        gone = [(), *((a,) for a in assets), *itertools.combinations(assets, 2), assets]
        ads = [trial.slot_ad({**trial.whole, **dict.fromkeys(state, 0.0)}) for state in gone]
        values = trial.weights(ads)
        if number_of(values[0]) is None:
            yield Finding(
                weight.place,
                f"{weight.macro} is {values[0]} on an empty slot: the negotiator takes its own "
                "SLOT_WEIGHT instead",
                "write a number made of Cpus, Memory, Disk and the slot's custom resources",
                Level.ADVICE,
            )
            continue
        wrong = [(state, value) for state, value in zip(gone, values) if number_of(value) is None]
        for state, value in wrong[:1]:
            yield Finding(
                weight.place,
                f"{weight.macro} is {value} where {' = '.join((*state, '0'))}: the negotiator "
                "ends there (Failed to evaluate SlotWeight), is started again, and ends again",
                "divide by nothing that can be 0",
            )


def weight_follows(subject: ConsumptionSubject) -> Iterator[Finding]:
    """Weights that do not follow from the policy: of the rest, and of what a claim takes."""
    for trial in subject.trials:
        weight = trial.slot.weight
        faults = (
            fault
            for problem in (_cheap, _stranded, _charged_again)
            for filling in trial.fillings
            if filling.steps and filling.steps[0].cost is not None
            if (fault := problem(trial, filling))
        )
        for fault in itertools.islice(faults, 1):
            yield Finding(
                weight.place,
                f"{weight.macro} = {one_line(weight.text)}: {fault}",
                "make the weight the number of claims that still fit (sharectl consumption "
                "render writes it)",
                Level.ADVICE,
            )


def _cheap(_: PolicyTrial, filling: Filling) -> str:
    """Match that costs nothing, or less."""
    for step in filling.steps:
        if step.cost is not None and step.cost <= 0:
            return (
                f"where the slot has {listed(step.before)}, a job with {requests_of(filling.job)} "
                f"costs {plain(step.cost)}: no quota or share holds such jobs back"
            )
    return ""


def _stranded(trial: PolicyTrial, filling: Filling) -> str:
    """Weight of a slot where no job fits any more."""
    free, weight = filling.free, filling.weight
    if not trial.is_size_known:
        free = dict.fromkeys(trial.whole, 0.0)
        (weight,) = map(number_of, trial.weights([trial.slot_ad(free)]))
    price = filling.steps[0].cost
    if not filling.is_full or weight is None or price is None or weight < price:
        return ""
    # Jobs that ask for one asset only, or for all but one.
    ones = dict.fromkeys(trial.whole, "1")
    jobs = [requests({**dict.fromkeys(ones, "0"), asset: "1"}) for asset in ones]
    jobs += [requests({**ones, asset: "0"}) for asset in ones]
    if any(fits(taken, free) for taken in trial.charges(free, jobs)):
        return ""
    return (
        f"where the slot has {listed(free)}, no further job fits, and the weight is "
        f"{plain(weight)}: quotas and shares count what nobody can use"
    )


def _charged_again(trial: PolicyTrial, filling: Filling) -> str:
    """Dynamic slot whose own weight is not the cost of its match (Accountant::CheckMatches)."""
    step = filling.steps[0]
    value = trial.weights([trial.dynamic_slot_ad(step.taken)])[0]
    again = 1.0 if number_of(value) is None else number_of(value)
    if again is None or step.cost is None or math.isclose(again, step.cost, rel_tol=1e-3):
        return ""
    return (
        f"a job with {requests_of(filling.job)} costs {plain(step.cost)} when it is matched, and "
        "from the next cycle on the accountant counts the weight of its dynamic slot, "
        f"{plain(again)}"
    )
