"""Jobs that ran, and cycles, of the live pool."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Optional

from sharectl.cadence.choice import Facts
from sharectl.cadence.file import ATTRIBUTES, jobs_of_ad, left_out_notes
from sharectl.cadence.laws import LoggedJob, load_of
from sharectl.condor.accounts import charged
from sharectl.condor.ads import evaluated, whole
from sharectl.condor.daemons import ask_collector, locations, schedd_questions, slots, why_silent
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.negotiator import Cycle, cycles_and_knobs, one_of
from sharectl.errors import PoolUnavailableError
from sharectl.model import PoolConfig
from sharectl.words import counted

_MOST_JOBS = 10_000
"""Of each schedd."""
_RAN = "RemoteWallClockTime > 0"
_NEGOTIATOR = "negotiator"


def ask(pool: PoolConfig, negotiator: Optional[str]) -> Facts:
    """Ask the collector, then all schedds and the negotiator of that name, or the only one.

    The negotiator has the deadline of schedds: it answers between cycles. Raises
    PoolUnavailableError if the collector does not answer, or no schedd has a job that ran.
    """
    cores, places, negotiators = ask_collector(
        pool.collector, pool.collector_deadline_seconds, _pool
    )
    deadline_seconds = pool.schedd_deadline_seconds
    questions = schedd_questions(places, deadline_seconds, _jobs)
    problems: list[str] = []
    try:
        location = one_of(negotiators, negotiator)
    except PoolUnavailableError as error:
        problems.append(f"negotiator: {error}")
    else:
        why = partial(why_silent, location.get("MyAddress", ""), "NEGOTIATOR")
        cycles_of = partial(cycles_and_knobs, location)
        questions[_NEGOTIATOR] = Question(cycles_of, deadline_seconds, why)
    answers = ask_all(questions)
    sources = {name: answer.source.problem for name, answer in answers.items()}
    problems += [f"{name}: {problem}" for name, problem in sources.items() if problem]
    negotiated = answers.pop(_NEGOTIATOR, None)
    value: Optional[tuple[list[Cycle], dict[str, int]]] = negotiated.value if negotiated else None
    cycles, knobs = value or ([], {})
    jobs: list[LoggedJob] = []
    left_out: Counter[str] = Counter()
    for answer in answers.values():
        logged, reasons = answer.value or ([], {})
        jobs += logged
        left_out.update(reasons)
    if not jobs:
        reason = "; ".join(left_out_notes(left_out)) or "no history"
        fault = f"no schedd told of a job that ran ({reason}): give --run-time"
        raise PoolUnavailableError(*problems, fault)
    load = load_of(jobs)
    schedds = sum(answer.value is not None for answer in answers.values())
    work = counted(round(load.work / 3600), "core-hour")
    ran = f"run times of {counted(len(jobs), 'job')} of {counted(schedds, 'schedd')}, {work}"
    return Facts(
        load,
        cores=cores or None,
        durations=tuple(cycle.duration_seconds for cycle in cycles),
        jobs_waited=any(cycle.idle_jobs for cycle in cycles),
        interval_seconds=knobs.get("NEGOTIATOR_INTERVAL"),
        notes=(ran, *left_out_notes(left_out)),
        problems=tuple(problems),
    )


# ---- in a child


def _pool(collector: Any) -> tuple[int, list[dict[str, str]], list[dict[str, str]]]:
    """Cores of the pool, and locations of its schedds and negotiators."""
    ads = slots(collector, projection=["TotalSlotCpus"])
    cores = sum(whole(evaluated(ad, "TotalSlotCpus"), 0) for ad in ads)
    return cores, locations(collector, "Schedd"), locations(collector, "Negotiator")


def _jobs(schedd: Any, _name: str) -> tuple[list[LoggedJob], Counter[str]]:
    left_out: Counter[str] = Counter()
    ads = charged(schedd.history(_RAN, list(ATTRIBUTES), match=_MOST_JOBS))
    return [job for ad in ads for job in jobs_of_ad(ad.get, left_out)], left_out
