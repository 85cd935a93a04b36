"""Waiting times of a schedd's jobs, by one query for a bounded sample."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor.ads import evaluated, whole
from sharectl.shares.job_waits import STARTED_SECONDS

SAMPLE_JOBS = 1000
"""Pending jobs that are all asked for; of more a sample of about as many, evenly by size."""
MOST_SIZES = 8
"""Sizes that have a sample each; of others one in as many jobs is asked for as of all."""
MOST_ROWS = 8 * SAMPLE_JOBS
"""More jobs are not read: many may have started."""

PROJECTION = ["JobStatus", "AccountingGroup", "RequestCpus", "QDate", "JobStartDate", "ServerTime"]
Kind = Callable[[Any], tuple[Optional[str], int]]
_STARTED = f"JobStatus == 2 && time() - JobStartDate < {STARTED_SECONDS}"
_NUMBER = "(ClusterId + ProcId)"


class SampledJob(NamedTuple):
    """One job, as `sharectl.shares.job_waits.JobWait`, with its AccountingGroup."""

    accounting_group: Optional[str]
    cores: int
    started: bool
    seconds: int
    jobs: int


def sample(schedd: Any, pending: Mapping[int, int], kind: Kind, among: str) -> list[SampledJob]:
    """Sample of jobs that wait or have just started; empty if the schedd cannot tell.

    Parameters
    ----------
    pending
        Cores -> jobs that wait.
    kind
        AccountingGroup and cores of a job.
    among
        Constraint that all of them meet.
    """
    steps = steps_of(pending)
    wanted = f"(JobStatus == 1 && {_NUMBER} % ({_step(steps)}) == 0) || ({_STARTED})"
    try:
        ads = schedd.query(
            constraint=f"({wanted}) && {among}", projection=PROJECTION, limit=MOST_ROWS
        )
    except Exception:  # noqa: BLE001 - waiting times are not known then, and nothing hangs on them
        return []
    # Of the jobs that were cut off nobody knows which they are.
    return [] if len(ads) >= MOST_ROWS else list(waits_in(ads, kind, steps, int(time.time())))


def waits_in(
    ads: Iterable[Any], kind: Kind, steps: Mapping[int, int], now: int
) -> Iterator[SampledJob]:
    """Jobs that tell how long they wait, or did.

    Parameters
    ----------
    steps
        As `steps_of`; empty if ``ads`` has all jobs.
    now
        Unix seconds, where the schedd does not say its own time.
    """
    for ad in ads:
        submitted, started = (
            whole(evaluated(ad, "QDate"), 0),
            whole(evaluated(ad, "JobStartDate"), 0),
        )
        at = whole(evaluated(ad, "ServerTime"), 0) or now
        running = evaluated(ad, "JobStatus") == 2  # noqa: PLR2004 - HTCondor's number
        if not submitted or (running and not 0 <= at - started < STARTED_SECONDS):
            continue
        accounting_group, cores = kind(ad)
        seconds = max(0, (started if running else at) - submitted)
        yield SampledJob(
            accounting_group, cores, running, seconds, 1 if running else _stands_for(ad, steps)
        )


def _stands_for(ad: Any, steps: Mapping[int, int]) -> int:
    """How many jobs one stands for: by what it requests, which may count as less."""
    cores = evaluated(ad, "RequestCpus")
    return steps.get(cores if type(cores) is int else 0, steps.get(0, 1))


def steps_of(pending: Mapping[int, int]) -> dict[int, int]:
    """Cores -> one in how many of such jobs is asked for; 0: of those of other sizes."""
    total = sum(pending.values())
    if total <= SAMPLE_JOBS:
        return {0: 1}
    most = Counter(pending).most_common(MOST_SIZES)
    share = SAMPLE_JOBS // len(most)
    return {**{cores: -(-jobs // share) for cores, jobs in most}, 0: -(-total // share)}


def _step(steps: Mapping[int, int]) -> str:
    """Expression of a job for its step in ``steps``."""
    text = str(steps[0])
    for cores, step in steps.items():
        if cores:
            text = f"ifThenElse(RequestCpus =?= {cores}, {step}, {text})"
    return text
