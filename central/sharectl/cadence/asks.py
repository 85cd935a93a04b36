"""Jobs that ran, and cycles, of the live pool."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Optional

from sharectl.cadence.choice import Facts
from sharectl.cadence.file import ATTRIBUTES, jobs_of_ad
from sharectl.cadence.laws import LoggedJob, law_of
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
_FEW_JOBS = 100
"""Jobs whose mean run time has an error of a tenth if run times vary as much as their mean."""
_RAN = "RemoteWallClockTime > 0"
_NEGOTIATOR = "negotiator"


def ask(pool: PoolConfig, negotiator: Optional[str]) -> Facts:
    """Ask the collector, then all schedds and the negotiator of that name, or the only one.

    The negotiator has the deadline of schedds: it answers between cycles. Raises
    PoolUnavailableError if the collector does not answer or does not know the negotiator, or if no
    schedd has a job that ran.
    """
    cores, places, negotiators = ask_collector(
        pool.collector, pool.collector_deadline_seconds, _pool
    )
    deadline_seconds = pool.schedd_deadline_seconds
    location = one_of(negotiators, negotiator)
    why = partial(why_silent, location.get("MyAddress", ""), "NEGOTIATOR")
    questions = schedd_questions(places, deadline_seconds, _jobs)
    questions[_NEGOTIATOR] = Question(partial(cycles_and_knobs, location), deadline_seconds, why)
    answers = ask_all(questions)
    sources = {name: answer.source.problem for name, answer in answers.items()}
    problems = [f"{name}: {problem}" for name, problem in sources.items() if problem]
    negotiated: Optional[tuple[list[Cycle], dict[str, int]]] = answers.pop(_NEGOTIATOR).value
    cycles, knobs = negotiated or ([], {})
    histories = [answer.value for answer in answers.values() if answer.value is not None]
    jobs = [job for jobs in histories for job in jobs]
    if not jobs:
        raise PoolUnavailableError(*problems, "no schedd told of a job that ran: give --run-time")
    # The negotiator's clock counts whole seconds: a cycle may have taken so much longer.
    duration = max(cycle.duration_seconds for cycle in cycles) + 1 if cycles else None
    notes = {
        f"the answer is made of {counted(len(jobs), 'job')}: so few may not be typical; look again "
        "when more have ended": len(jobs) < _FEW_JOBS,
        "no job waited in the negotiator's last cycles: those of a busy pool take longer": cycles
        and not any(cycle.idle_jobs for cycle in cycles),
    }
    return Facts(
        f"{counted(len(jobs), 'job')} of {counted(len(histories), 'schedd')}",
        law_of(jobs),
        cores=cores or None,
        duration_seconds=duration,
        interval_seconds=knobs.get("NEGOTIATOR_INTERVAL"),
        notes=tuple(note for note, holds in notes.items() if holds),
        problems=tuple(problems),
    )


# ---- in a child


def _pool(collector: Any) -> tuple[int, list[dict[str, str]], list[dict[str, str]]]:
    """Cores of the pool, and locations of its schedds and negotiators."""
    ads = slots(collector, projection=["TotalSlotCpus"])
    cores = sum(whole(evaluated(ad, "TotalSlotCpus"), 0) for ad in ads)
    return cores, locations(collector, "Schedd"), locations(collector, "Negotiator")


def _jobs(schedd: Any, _name: str) -> list[LoggedJob]:
    ads = charged(schedd.history(_RAN, list(ATTRIBUTES), match=_MOST_JOBS))
    return [job for ad in ads for job in jobs_of_ad(ad.get, Counter())]
