"""Jobs that ran on the live pool, from the histories of its schedds."""

from __future__ import annotations

from collections import Counter
from typing import Any, Optional

from sharectl.cadence.file import ATTRIBUTES, JOB_ATTRIBUTES, count_ad, jobs_of_ad, left_out_notes
from sharectl.cadence.jobs import JobsRun, LoggedJob
from sharectl.condor.accounts import charged
from sharectl.condor.daemons import ask_collector, locations, schedd_questions
from sharectl.condor.deadline import ask_all
from sharectl.errors import PoolUnavailableError

POOL_MOST_JOBS = 10_000
"""Of each schedd."""
_RAN = "RemoteWallClockTime > 0"


def counted_history(schedd: Any, _name: str) -> JobsRun:
    """Run times of the newest jobs that a schedd has on record; for a child."""
    jobs = JobsRun()
    for ad in charged(schedd.history(_RAN, list(ATTRIBUTES), match=POOL_MOST_JOBS)):
        count_ad(jobs, ad.get)
    return jobs


def pool_jobs(
    collector: Optional[str] = None,
    collector_deadline_seconds: float = 20.0,
    schedd_deadline_seconds: float = 60.0,
) -> tuple[list[LoggedJob], list[str]]:
    """Newest jobs that ran on the pool, `POOL_MOST_JOBS` of each schedd at most, and notes.

    Raises PoolUnavailableError if the collector or a schedd does not answer, or no schedd has a
    job that ran.
    """
    places = ask_collector(collector, collector_deadline_seconds, _schedds)
    answers = ask_all(schedd_questions(places, schedd_deadline_seconds, _history))
    problems = [
        f"{name}: {answer.source.problem}"
        for name, answer in answers.items()
        if answer.source.problem
    ]
    jobs: list[LoggedJob] = []
    left_out: Counter[str] = Counter()
    for answer in answers.values():
        ran, without = answer.value or ([], {})
        jobs += ran
        left_out.update(without)
    notes = left_out_notes(left_out)
    if not jobs and not problems:
        problems = [f"no schedd told of a job that ran ({'; '.join(notes) or 'no history'})"]
    if problems:
        raise PoolUnavailableError(*problems)
    return jobs, notes


def _schedds(collector: Any) -> list[dict[str, str]]:
    return locations(collector, "Schedd")


def _history(schedd: Any, _name: str) -> tuple[list[LoggedJob], Counter[str]]:
    left_out: Counter[str] = Counter()
    ads = charged(schedd.history(_RAN, list(JOB_ATTRIBUTES), match=POOL_MOST_JOBS))
    return [job for ad in ads for job in jobs_of_ad(ad.get, left_out)], left_out
