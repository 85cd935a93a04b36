"""Jobs that ran: ads of histories, and files of ``condor_history -json``."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from math import ceil
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, TextIO

from sharectl.cadence.run_times import JobsRun, LoggedJob
from sharectl.condor.ads import account, number, text, whole
from sharectl.errors import InputError
from sharectl.files import files, packed
from sharectl.shares.groups import without_user
from sharectl.words import Problems

ATTRIBUTES = (
    "RemoteWallClockTime",
    "NumShadowStarts",
    "CpusProvisioned",
    "RequestCpus",
    "AccountingGroup",
    "JobUniverse",
)
"""Attributes of run times."""
JOB_ATTRIBUTES = (*ATTRIBUTES, "QDate", "MemoryProvisioned", "RequestMemory", "Owner", "User")
"""Attributes of jobs that are submitted again."""
_COMMAND = "condor_history -json -limit 100000 -attributes"
COMMAND = f"{_COMMAND} {','.join(ATTRIBUTES)}"
"""Makes a file that `history_read` reads."""
JOBS_COMMAND = f"{_COMMAND} {','.join(JOB_ATTRIBUTES)}"
"""Makes a file that `history_jobs` reads."""
HISTORY_NO_TIME = "RemoteWallClockTime 0 or not there: it never ran"
NO_SLOT = "its universe needs no slot"
NO_CORES = "neither CpusProvisioned nor RequestCpus"
NO_SUBMISSION = "no QDate: when it was submitted is not known"
BROKEN = "broken row, passed over by skip_broken"

# Scheduler, grid and local universe, as in `condor.schedds`.
_NO_SLOT = (7, 9, 12)
_MOST_CORES = 1_000_000
_MOST_SECONDS = 10**9
_MOST_MIB = 2**40
_MOST_RUNS = 100
"""Runs of one job that are submitted again; a job in a loop of crashes may have any number."""
_MOST_TEXT = 2**26
"""Characters of the jobs that begin on one line."""
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")


def left_out_notes(left_out: Counter[str]) -> list[str]:
    """Numbers of jobs that were left out, with reasons."""
    return [f"jobs left out: {count} ({why})" for why, count in left_out.items()]


def refuse_empty(jobs: Collection[Any], left_out: Counter[str], path: Path) -> None:
    """Raise InputError if no job of a file is left."""
    if not jobs:
        reasons = ", ".join(f"{count} left out: {why}" for why, count in left_out.items())
        fault = f"no job with a known run time is in it ({reasons or 'no job'})"
        remedy = f"; make the file with {JOBS_COMMAND}" if left_out[NO_SUBMISSION] else ""
        raise InputError([f"{path}: {fault}{remedy}"])


def refuse_broken(path: Path, problems: Problems) -> None:
    """Raise InputError if a log of a scenario has broken rows."""
    if problems:
        remedy = f"{path}: skip_broken: true beside file: passes over such rows, and counts them"
        raise InputError([*problems.lines(), remedy])


# ---- ads


class _Run(NamedTuple):
    """Runs of a job: as many as it was started, each of an equal part of its time."""

    total_seconds: float
    cores: int
    starts: int

    @property
    def seconds(self) -> int:
        """Time of each."""
        return ceil(self.total_seconds / self.starts)


def _run_of(value: Callable[[str], Any], left_out: Counter[str]) -> Optional[_Run]:
    """Runs of a job by its ad, of which ``value`` gives an attribute or None.

    A job that was started several times counts as so many runs, because every start holds a slot.
    """
    total = number(value("RemoteWallClockTime"), 0.0, most=_MOST_SECONDS)
    cores = whole(value("CpusProvisioned"), 0, most=_MOST_CORES)
    cores = cores or whole(value("RequestCpus"), 0, most=_MOST_CORES)
    if value("JobUniverse") in _NO_SLOT:
        left_out[NO_SLOT] += 1
    elif total <= 0:
        left_out[HISTORY_NO_TIME] += 1
    elif not cores:
        left_out[NO_CORES] += 1
    else:
        # Users can write it: no run is shorter than a second.
        starts = min(whole(value("NumShadowStarts"), 1, least=1), max(1, int(total)))
        return _Run(total, cores, starts)
    return None


def _account(value: Callable[[str], Any]) -> str:
    return (without_user(account(value("AccountingGroup"))) or "").lower()


def count_ad(jobs: JobsRun, value: Callable[[str], Any]) -> None:
    """Count a job by its ad, of which ``value`` gives an attribute or None."""
    run = _run_of(value, jobs.left_out)
    if run is not None:
        jobs.counted[_account(value).partition(".")[0], run.cores, run.seconds] += run.starts


def jobs_of_ad(value: Callable[[str], Any], left_out: Counter[str]) -> list[LoggedJob]:
    """Job by its ad, as often as it was started, `_MOST_RUNS` at most; its queue is empty."""
    run = _run_of(value, left_out)
    if run is None:
        return []
    run = run._replace(starts=min(run.starts, _MOST_RUNS))
    submitted_at = number(value("QDate"), 0.0)
    if submitted_at <= 0:
        left_out[NO_SUBMISSION] += 1
        return []
    memory_mib = whole(value("MemoryProvisioned"), 0, most=_MOST_MIB)
    memory_mib = memory_mib or whole(value("RequestMemory"), 0, most=_MOST_MIB)
    user = text(value("Owner")) or text(value("User")) or "user"
    user = user.partition("@")[0]
    job = LoggedJob(submitted_at, run.seconds, run.cores, memory_mib, user, _account(value), "")
    return [job] * run.starts


# ---- files


def history_read(path: Path) -> JobsRun:
    """Run times of a file that `COMMAND` made, with ``-jsonl`` too, packed or not.

    Raises InputError with the place if it cannot be read or holds something else.
    """
    jobs, problems = JobsRun(), Problems()
    for ad in _ads(path, COMMAND, jobs.left_out, problems):
        count_ad(jobs, ad.get)
    if problems:
        raise InputError(problems.lines())
    refuse_empty(jobs.counted, jobs.left_out, path)
    return jobs


def history_jobs(path: Path, left_out: Counter[str], *, skip: bool = False) -> list[LoggedJob]:
    """Jobs of a file that `JOBS_COMMAND` made; ``skip`` passes over broken ones, and counts them.

    Errors as of `history_read`.
    """
    problems = Problems()
    ads = _ads(path, JOBS_COMMAND, left_out, problems)
    jobs = [job for ad in ads for job in jobs_of_ad(ad.get, left_out)]
    if not skip:
        refuse_broken(path, problems)
    refuse_empty(jobs, left_out, path)
    return jobs


def _ads(
    path: Path, command: str, left_out: Counter[str], problems: Problems
) -> Iterator[dict[str, Any]]:
    """Objects of a list or one after the other; broken ones are counted, and are problems."""
    decoder, lists, last = json.JSONDecoder(), 0, 1
    with packed.opened(path) as content:
        for first, part in _parts(content):
            last, at = first, 0
            while True:
                begin = at
                at = _BETWEEN.match(part, begin).end()  # type: ignore[union-attr]
                lists += part.count("[", begin, at) - part.count("]", begin, at)
                if at == len(part):
                    break
                try:
                    ad, end = decoder.raw_decode(part, at)
                except (ValueError, RecursionError):
                    ad = None
                if not isinstance(ad, dict):
                    left_out[BROKEN] += 1
                    fault = f"{part[at : at + 20]!r} begins no job, or one that does not end"
                    line = first + part.count("\n", 0, at)
                    problems.add(f"{path}:{line}", f"{fault}; make the file with {command}")
                    break
                yield ad
                at = end
    if lists > 0 and not problems:
        left_out[BROKEN] += 1
        problems.add(f"{path}:{last}", "the list does not end: it is cut off; make it again")


def _parts(content: TextIO) -> Iterator[tuple[int, str]]:
    """Parts of a file that begin with a line of an object, and the number of that line.

    A whole history does not fit into memory. A part is cut to `_MOST_TEXT`.
    """
    first, part = 1, ""
    for place, line in enumerate(files.lines_of(content, _MOST_TEXT), start=1):
        if line.lstrip().startswith("{"):
            yield first, part
            first, part = place, ""
        if len(part) < _MOST_TEXT:
            part += line
    yield first, part
