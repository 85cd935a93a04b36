"""Job logs in the Standard Workload Format."""

from __future__ import annotations

from collections import Counter
from math import ceil, nan
from pathlib import Path
from typing import Optional

from sharectl.cadence.file import BROKEN, refuse_broken, refuse_empty
from sharectl.cadence.laws import LoggedJob
from sharectl.files import files, packed
from sharectl.words import Problems

NO_TIME = "run time 0 or not known"
PART = "a part of a checkpointed job, which has a line for the whole too"
NO_SUBMISSION = "submit time not known"

_MOST_CORES = 1_000_000
_MOST_SECONDS = 10**9
_MOST_UNIX_SECONDS = 10**10
_MOST_KIB = 2**40
_LINE = 4096
_FIELDS = 18
_SUBMITTED, _RUN_TIME, _ALLOCATED, _USED_KIB, _REQUESTED, _REQUESTED_KIB = 1, 3, 4, 6, 7, 9
_STATUS, _USER, _GROUP, _QUEUE = 10, 11, 12, 14
# A job that was checkpointed has a line for each part besides the whole.
_PARTS = ("2", "3", "4")


def swf_jobs(path: Path, left_out: Counter[str], *, skip: bool = False) -> list[LoggedJob]:
    """Jobs of a log, packed or not; ``skip`` passes over broken rows, and counts them.

    A job is a line of 18 numbers, -1 where unknown; more columns are ignored. Comments begin with
    a semicolon. Raises InputError if it cannot be read, or with all lines that are no jobs.
    """
    jobs, problems = list[LoggedJob](), Problems()
    with packed.opened(path) as content:
        for line_number, line in enumerate(files.lines_of(content, _LINE), start=1):
            fields = line.split()
            if not fields or fields[0].startswith(";"):
                continue
            try:
                job = _job(fields, left_out)
            except ValueError as error:
                left_out[BROKEN] += 1
                problems.add(f"{path}:{line_number}", str(error))
                continue
            if job is not None:
                jobs.append(job)
    if not skip:
        refuse_broken(path, problems)
    refuse_empty(jobs, left_out, path)
    return jobs


def _job(fields: list[str], left_out: Counter[str]) -> Optional[LoggedJob]:
    """Job of a line; None if it is left out. Raises ValueError if it is no job."""
    if len(fields) < _FIELDS:
        raise ValueError(
            f"not {_FIELDS} fields but {len(fields)}; a job of the Standard Workload Format "
            f"has {_FIELDS} numbers. A file of condor_history goes with history: {{file: …}}"
        )
    seconds = _whole("run time", fields[_RUN_TIME], _MOST_SECONDS)
    submitted_at = _whole("submit time", fields[_SUBMITTED], _MOST_UNIX_SECONDS)
    reason = ""
    if fields[_STATUS] in _PARTS:
        reason = PART
    elif seconds <= 0:
        reason = NO_TIME
    elif submitted_at < 0:
        reason = NO_SUBMISSION
    if reason:
        left_out[reason] += 1
        return None
    cores = _whole("allocated processors", fields[_ALLOCATED], _MOST_CORES)
    if cores <= 0:
        cores = _whole("requested processors", fields[_REQUESTED], _MOST_CORES)
    cores = max(1, cores)
    kib = _whole("requested memory", fields[_REQUESTED_KIB], _MOST_KIB)
    if kib <= 0:
        kib = _whole("used memory", fields[_USED_KIB], _MOST_KIB)
    memory_mib = -(-kib * cores // 1024) if kib > 0 else 0
    return LoggedJob(
        submitted_at, seconds, cores, memory_mib, fields[_USER], fields[_GROUP], fields[_QUEUE]
    )


def _whole(name: str, text: str, most: int) -> int:
    """Whole number of a field, at least -1; a fraction is rounded up."""
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not -1 <= value <= most:
        raise ValueError(
            f"{name} is {text[:40]!r}; write a number up to {most}, or -1 if it is not known"
        )
    return ceil(value)
