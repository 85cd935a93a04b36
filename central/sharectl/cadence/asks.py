"""Jobs that ran, and cycles, of the live pool; facts of jobs for a choice."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Optional

from sharectl.cadence.choice import Facts, Knobs
from sharectl.cadence.file import ATTRIBUTES, JOB_ATTRIBUTES, count_ad, jobs_of_ad, left_out_notes
from sharectl.cadence.run_times import JobsRun, LoggedJob, load_of
from sharectl.condor.accounts import charged
from sharectl.condor.ads import evaluated, whole
from sharectl.condor.daemons import ask_collector, locations, schedd_questions, slots, why_silent
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.negotiator import KNOBS, Cycle, cycles_and_knobs, one_of
from sharectl.errors import PoolUnavailableError
from sharectl.words import counted

_FEW_JOBS = 100
_MOST_JOBS = 10_000
"""Of each schedd."""
_RAN = "RemoteWallClockTime > 0"


def facts_of(jobs: JobsRun, source: str, **more: Any) -> Facts:
    """Run times of jobs, with notes on their number and on those that were left out."""
    load = load_of(jobs.counted)
    work = counted(round(load.work / 3600), "core-hour")
    notes = [f"run times of {counted(load.jobs or 0, 'job')}, {work}"]
    notes += left_out_notes(jobs.left_out)
    if (load.jobs or 0) < _FEW_JOBS:
        notes.append("that are few: the next ones may be quite different")
    return Facts(source, load, notes=tuple(notes), **more)


def ask(
    collector: Optional[str],
    negotiator: Optional[str],
    *,
    collector_deadline_seconds: float,
    schedd_deadline_seconds: float,
) -> Facts:
    """Ask the collector, then all schedds and the negotiator at once.

    The negotiator of that name, or the only one, has the deadline of schedds because it answers
    between cycles. Raises PoolUnavailableError if the collector does not answer, or no schedd has a
    job that ran.
    """
    cores, places, negotiators = ask_collector(collector, collector_deadline_seconds, _pool)
    schedds = schedd_questions(places, schedd_deadline_seconds, _counted)
    questions: dict[str, Question] = dict(schedds)
    problems: list[str] = []
    try:
        location = one_of(negotiators, negotiator)
    except PoolUnavailableError as error:
        problems.append(f"negotiator: {error}")
    else:
        why = partial(why_silent, location.get("MyAddress", ""), "NEGOTIATOR")
        cycles_of = partial(cycles_and_knobs, location)
        questions["negotiator"] = Question(cycles_of, schedd_deadline_seconds, why)
    answers = ask_all(questions)
    problems += _problems(answers)
    values = {name: answer.value for name, answer in answers.items()}
    negotiated: tuple[list[Cycle], dict[str, int]] = values.get("negotiator") or ([], {})
    cycles, knobs = negotiated
    histories = [values[name] for name in schedds if values[name] is not None]
    jobs = JobsRun()
    for history in histories:
        jobs.counted.update(history.counted)
        jobs.left_out.update(history.left_out)
    if not jobs.counted:
        remedy = "give --run-time or --history"
        raise PoolUnavailableError(*problems, f"{_none_ran(jobs.left_out)}: {remedy}")
    return facts_of(
        jobs,
        f"the live pool, {counted(len(histories), 'schedd')}, of each the newest {_MOST_JOBS} jobs "
        "at most",
        cores=cores or None,
        durations=tuple(cycle.duration_seconds for cycle in cycles),
        jobs_waited=any(cycle.idle_jobs for cycle in cycles),
        knobs=Knobs(*(knobs[name] for name in KNOBS)) if len(knobs) == len(KNOBS) else None,
        problems=tuple(problems),
    )


def pool_jobs(
    collector: Optional[str] = None,
    collector_deadline_seconds: float = 20.0,
    schedd_deadline_seconds: float = 60.0,
) -> tuple[list[LoggedJob], list[str]]:
    """Newest jobs that ran on the pool, and notes on those that were left out.

    Raises PoolUnavailableError if the collector or a schedd does not answer, or no schedd has a
    job that ran.
    """
    _, places, _ = ask_collector(collector, collector_deadline_seconds, _pool)
    answers = ask_all(schedd_questions(places, schedd_deadline_seconds, _logged))
    problems = _problems(answers)
    jobs: list[LoggedJob] = []
    left_out: Counter[str] = Counter()
    for answer in answers.values():
        ran, reasons = answer.value or ([], {})
        jobs += ran
        left_out.update(reasons)
    if not jobs and not problems:
        problems = [_none_ran(left_out)]
    if problems:
        raise PoolUnavailableError(*problems)
    return jobs, left_out_notes(left_out)


def _problems(answers: dict[str, Answer]) -> list[str]:
    sources = {name: answer.source for name, answer in answers.items()}
    return [f"{name}: {source.problem}" for name, source in sources.items() if source.problem]


def _none_ran(left_out: Counter[str]) -> str:
    reasons = "; ".join(left_out_notes(left_out))
    return f"no schedd told of a job that ran ({reasons or 'no history'})"


# ---- in a child


def _pool(collector: Any) -> tuple[int, list[dict[str, str]], list[dict[str, str]]]:
    """Cores of the pool, and locations of its schedds and negotiators."""
    ads = slots(collector, projection=["TotalSlotCpus"])
    cores = sum(whole(evaluated(ad, "TotalSlotCpus"), 0) for ad in ads)
    return cores, locations(collector, "Schedd"), locations(collector, "Negotiator")


def _counted(schedd: Any, _name: str) -> JobsRun:
    jobs = JobsRun()
    for ad in charged(schedd.history(_RAN, list(ATTRIBUTES), match=_MOST_JOBS)):
        count_ad(jobs, ad.get)
    return jobs


def _logged(schedd: Any, _name: str) -> tuple[list[LoggedJob], Counter[str]]:
    left_out: Counter[str] = Counter()
    ads = charged(schedd.history(_RAN, list(JOB_ATTRIBUTES), match=_MOST_JOBS))
    return [job for ad in ads for job in jobs_of_ad(ad.get, left_out)], left_out
