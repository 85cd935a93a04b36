"""Run times and durations of cycles: from the live pool, from histories and from job logs."""

from __future__ import annotations

from functools import partial
from typing import Any, Optional

from sharectl.cadence.choice import Facts, Knobs
from sharectl.cadence.file import left_out_notes
from sharectl.cadence.history import POOL_MOST_JOBS, counted_history
from sharectl.cadence.jobs import JobsRun
from sharectl.cadence.run_times import load_of
from sharectl.condor.ads import evaluated, whole
from sharectl.condor.daemons import ask_collector, locations, schedd_questions, slots, why_silent
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.negotiator import KNOBS, Cycle, cycles_and_knobs, one_of
from sharectl.errors import PoolUnavailableError
from sharectl.words import counted

_FEW_JOBS = 100


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
    schedds = schedd_questions(places, schedd_deadline_seconds, counted_history)
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
    problems += [
        f"{name}: {answer.source.problem}"
        for name, answer in answers.items()
        if answer.source.problem
    ]
    values = {name: answer.value for name, answer in answers.items()}
    negotiated: tuple[list[Cycle], dict[str, int]] = values.get("negotiator") or ([], {})
    cycles, knobs = negotiated
    histories = [values[name] for name in schedds if values[name] is not None]
    jobs = JobsRun()
    for history in histories:
        jobs.counted.update(history.counted)
        jobs.left_out.update(history.left_out)
    if not jobs.counted:
        reasons = "; ".join(left_out_notes(jobs.left_out))
        nothing = (
            f"no schedd told of a job that ran ({reasons or 'no history'}): "
            "give --run-time, --history or --swf"
        )
        raise PoolUnavailableError(*problems, nothing)
    return facts_of(
        jobs,
        f"the live pool, {counted(len(histories), 'schedd')}, of each the newest {POOL_MOST_JOBS} "
        "jobs at most",
        cores=cores or None,
        durations=tuple(cycle.duration_seconds for cycle in cycles),
        jobs_waited=any(cycle.idle_jobs for cycle in cycles),
        knobs=Knobs(*(knobs[name] for name in KNOBS)) if len(knobs) == len(KNOBS) else None,
        problems=tuple(problems),
    )


def _pool(collector: Any) -> tuple[int, list[dict[str, str]], list[dict[str, str]]]:
    """Cores of the pool, and locations of its schedds and negotiators."""
    ads = slots(collector, projection=["TotalSlotCpus"])
    cores = sum(whole(evaluated(ad, "TotalSlotCpus"), 0) for ad in ads)
    return cores, locations(collector, "Schedd"), locations(collector, "Negotiator")
