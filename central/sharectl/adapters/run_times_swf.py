"""Job logs in Standard Workload Format, as the Parallel Workloads Archive has them: a line a job, 18 numbers.

Of these the fourth is the run time in seconds, the fifth the processors allocated, the eighth those requested, the
eleventh the status and the thirteenth the group; -1 is not known. Lines that begin with ``;`` are comments.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil, nan
from pathlib import Path
from typing import Optional

from sharectl.adapters import files
from sharectl.adapters.run_times_file import MOST_CORES, MOST_SECONDS, Tally, opened
from sharectl.adapters.run_times_history import COMMAND
from sharectl.core.run_times_jobs import Jobs
from sharectl.errors import InputError

MOST_JOBS = 2_000_000
_FIELDS = 18
_LINE = 4096
_RUN_TIME, _ALLOCATED, _REQUESTED, _STATUS, _GROUP = 3, 4, 7, 10, 12
# A job that was checkpointed has a line for each part besides its own.
_PARTS: Collection[str] = ("2", "3", "4")
NO_TIME = "run time 0 or not known"
PART = "a part of a checkpointed job, which has a line for the whole too"


def read(path: Path, limit: int = MOST_JOBS) -> Jobs:
    """Jobs of a log, packed by gzip or not; the first ``limit`` of them.

    Raises
    ------
    InputError
        If it cannot be read or has lines that are no jobs: all of them are named.
    """
    tally = Tally(str(path), limit)
    like_a_job = False
    foreign: Optional[tuple[int, str]] = None
    with opened(path) as text:
        for number, line in enumerate(files.lines_of(text, _LINE), start=1):
            fields = line.split()
            if not fields or fields[0].startswith(";"):
                continue
            if tally.full:
                break
            tally.seen += 1
            if not like_a_job:
                like_a_job = _is_like_a_job(fields)
                foreign = foreign or (number, line)
            try:
                _count(tally, fields)
            except ValueError as error:
                tally.problem(number, str(error))
    if foreign and not like_a_job:
        raise InputError([_no_log(path, *foreign)])
    return tally.jobs()


def _is_like_a_job(fields: list[str]) -> bool:
    return len(fields) == _FIELDS and fields[0].lstrip("-").isdecimal()


def _no_log(path: Path, number: int, line: str) -> str:
    """That a file is another kind of file, with ``line`` as an example; all its lines' faults would tell less."""
    text = line.strip()
    remedy = (
        f"it looks like JSON: if condor_history printed it, write --history {path}"
        if text[:1] in ("{", "[")
        else f"write --swf with such a log, or --history with what `{COMMAND}` printed"
    )
    return (
        f"{path}:{number}: {text[:40]!r}: this is no log in Standard Workload Format, in which a job is a line of {_FIELDS} "
        f"numbers and comments begin with a semicolon: no line of the file is like that; {remedy}"
    )


def _count(tally: Tally, fields: list[str]) -> None:
    if len(fields) != _FIELDS:
        what = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise ValueError(f"{what}; a job of the Standard Workload Format has {_FIELDS} numbers")
    seconds = _whole("run time", fields[_RUN_TIME], MOST_SECONDS)
    if fields[_STATUS] in _PARTS:
        tally.left_out[PART] += 1
    elif seconds <= 0:
        tally.left_out[NO_TIME] += 1
    else:
        cores = _whole("allocated processors", fields[_ALLOCATED], MOST_CORES)
        if cores <= 0:
            cores = _whole("requested processors", fields[_REQUESTED], MOST_CORES)
        group = _whole("group", fields[_GROUP], MOST_SECONDS)
        tally.counted[f"group {group}" if group >= 0 else "no group", max(1, cores), seconds] += 1


def _whole(what: str, text: str, most: int) -> int:
    """Whole number of a field, at least -1; a fraction is rounded up, as the format's seconds are whole."""
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not -1 <= value <= most:
        raise ValueError(f"{what} is {text[:40]!r}; write a number up to {most}, or -1 if it is not known")
    return ceil(value)
