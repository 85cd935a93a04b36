"""Files of jobs that ran: `condor_history -json` and the Standard Workload Format."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from math import ceil, nan
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from sharectl.cadence.jobs import JobsRun, LoggedJob
from sharectl.condor.ads import account, number, text, whole
from sharectl.errors import InputError
from sharectl.files import files, packed
from sharectl.shares.groups import without_user
from sharectl.words import Problems

T = TypeVar("T")
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
SWF_NO_TIME = "run time 0 or not known"
PART = "a part of a checkpointed job, which has a line for the whole too"
NO_SUBMISSION = "no QDate: when it was submitted is not known"
SWF_NO_SUBMISSION = "submit time not known"
BROKEN = "broken row, passed over by skip_broken"

# Scheduler, grid and local universe, as in `condor.schedds`.
_NO_SLOT = (7, 9, 12)
_MOST_CORES = 1_000_000
_MOST_SECONDS = 10**9
_MOST_UNIX_SECONDS = 10**10
_MOST_MIB = 2**40
_MOST_RUNS = 100
"""Runs of one job that are submitted again; a job in a loop of crashes may have any number."""
_PIECE = 2**20
_MOST_AD = 2**23
"""Characters of one job; HTCondor's own are some ten thousand."""
_MOST_DIGITS = 20
"""Of an integer, with its sign."""
_BEGIN = "\n{"
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")
_LINE = 4096
_FIELDS = 18
_SUBMITTED, _RUN_TIME, _ALLOCATED, _USED_KIB, _REQUESTED, _REQUESTED_KIB = 1, 3, 4, 6, 7, 9
_STATUS, _USER, _GROUP, _QUEUE = 10, 11, 12, 14
# A job that was checkpointed has a line for each part besides the whole.
_PARTS = ("2", "3", "4")


def left_out_notes(left_out: Counter[str]) -> list[str]:
    """Numbers of jobs that were left out, with reasons."""
    return [f"jobs left out: {count} ({why})" for why, count in left_out.items()]


def _not_empty(content: Any, left_out: Counter[str], path: Path) -> None:
    if not content:
        reasons = ", ".join(f"{count} left out: {why}" for why, count in left_out.items())
        fault = f"no job with a known run time is in it ({reasons or 'no job'})"
        remedy = f"; make the file with {JOBS_COMMAND}" if left_out[NO_SUBMISSION] else ""
        raise InputError([f"{path}: {fault}{remedy}"])


# ---- condor_history


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


def history_read(path: Path) -> JobsRun:
    """Run times of a file that `COMMAND` made, with ``-jsonl`` too, packed or not.

    Raises InputError with the place if it cannot be read or holds something else.
    """
    jobs = JobsRun()
    for ad in _objects(path, jobs.left_out):
        count_ad(jobs, ad.get)
    _not_empty(jobs.counted, jobs.left_out, path)
    return jobs


def history_jobs(path: Path, left_out: Counter[str], *, skip: bool = False) -> list[LoggedJob]:
    """Jobs of a file that `JOBS_COMMAND` made; ``skip`` passes over broken ones, and counts them.

    Errors as of `history_read`.
    """
    ads = _objects(path, left_out, skip=skip)
    jobs = [job for ad in ads for job in jobs_of_ad(ad.get, left_out)]
    _not_empty(jobs, left_out, path)
    return jobs


def _objects(
    path: Path, left_out: Counter[str], *, skip: Optional[bool] = None
) -> Iterator[dict[str, Any]]:
    """Objects of a list or one after the other: a whole history does not fit into memory."""
    decoder, problems = json.JSONDecoder(parse_int=_integer), Problems()
    pending, line, is_end, is_broken, lists = "", 1, False, False, 0
    with packed.opened(path) as content:
        while not is_end:
            piece = content.read(_PIECE)
            pending, is_end = pending + piece, not piece
            at = 0 if is_broken else _between(pending, 0)
            lists += _opened(pending, 0, at)
            while at < len(pending):
                begin = pending.find(_BEGIN, at) + 1 if is_broken else 0
                if is_broken and not begin:
                    at = len(pending) - (not is_end)  # the line break of the next object's begin
                    break
                is_broken, at, reason = False, begin or at, None
                try:
                    ad, end = decoder.raw_decode(pending, at)
                except (ValueError, RecursionError) as error:
                    ad, end, reason = None, at, error
                if isinstance(ad, dict):
                    yield ad
                    at = _between(pending, end)
                    lists += _opened(pending, end, at)
                    continue
                # Another object's begin tells that this one does not need more of the text.
                whole = is_end or len(pending) - at > _MOST_AD
                if not whole and pending.find(_BEGIN, at) < 0:
                    break
                is_broken = True
                left_out[BROKEN] += 1
                fault = f"{pending[at : at + 20]!r} begins no job, or one that does not end"
                if type(reason) is ValueError:
                    fault = str(reason)
                place = f"{path}:{line + pending.count(_BEGIN[0], 0, at)}"
                command = COMMAND if skip is None else JOBS_COMMAND
                problems.add(place, f"{fault}; make the file with {command}")
            line += pending.count("\n", 0, at)
            pending = pending[at:]
    if lists > 0 and not problems:
        left_out[BROKEN] += 1
        problems.add(f"{path}:{line}", "the list does not end: the file is cut off; make it again")
    _raise_broken(path, problems, skip=skip)


def _integer(digits: str) -> int:
    """Integer of JSON; raises ValueError if it is beyond HTCondor's 64 bits."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits, and none of HTCondor's has")
    return int(digits)


def _raise_broken(path: Path, problems: Problems, *, skip: Optional[bool]) -> None:
    """Raise InputError with broken rows, unless they are skipped; ``skip`` None: by no key."""
    if problems and not skip:
        remedy = f"{path}: skip_broken: true beside file: passes over such rows, and counts them"
        raise InputError([*problems.lines(), *([] if skip is None else [remedy])])


def _opened(text: str, begin: int, end: int) -> int:
    """Lists that begin between two objects, less those that end."""
    return text.count("[", begin, end) - text.count("]", begin, end)


def _between(text: str, at: int) -> int:
    """End of the blanks, commas and brackets between two objects."""
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


# ---- Standard Workload Format


def swf_read(path: Path) -> JobsRun:
    """Run times of a log in Standard Workload Format, packed or not.

    A job is a line of 18 numbers, -1 where unknown: the fourth is the run time in seconds, the
    fifth the processors allocated, the eighth those requested, the eleventh the status, the
    thirteenth the group. More columns are ignored. Comments begin with a semicolon. Raises
    InputError if it cannot be read, or with all lines that are no jobs.
    """
    jobs = JobsRun()
    jobs.counted.update(_lines(path, _counted, jobs.left_out))
    _not_empty(jobs.counted, jobs.left_out, path)
    return jobs


def swf_jobs(path: Path, left_out: Counter[str], *, skip: bool = False) -> list[LoggedJob]:
    """Jobs of a log in Standard Workload Format; format and errors as of `swf_read`.

    The second column is the time of submission, the seventh and tenth are memory in KiB for each
    processor, used and requested, the twelfth is the user and the fifteenth the queue. ``skip``
    passes over broken rows, and counts them.
    """
    jobs = []
    for job in _lines(path, _logged, left_out, skip=skip):
        if job.submitted_at < 0:
            left_out[SWF_NO_SUBMISSION] += 1
        else:
            jobs.append(job)
    _not_empty(jobs, left_out, path)
    return jobs


def _lines(
    path: Path,
    take: Callable[[list[str], int, int], T],
    left_out: Counter[str],
    *,
    skip: Optional[bool] = None,
) -> Iterator[T]:
    """Value that ``take`` makes of the fields, run time and cores of each job."""
    problems = Problems()
    with packed.opened(path) as content:
        for line_number, line in enumerate(files.lines_of(content, _LINE), start=1):
            fields = line.split()
            if not fields or fields[0].startswith(";"):
                continue
            try:
                size = _size(fields, left_out)
                if size is not None:
                    yield take(fields, *size)
            except ValueError as error:
                left_out[BROKEN] += 1
                problems.add(f"{path}:{line_number}", str(error))
    _raise_broken(path, problems, skip=skip)


def _size(fields: list[str], left_out: Counter[str]) -> Optional[tuple[int, int]]:
    """Run time and cores of a job by its line; raises ValueError if that is no job."""
    if len(fields) < _FIELDS:
        raise ValueError(
            f"not {_FIELDS} fields but {len(fields)}; a job of the Standard Workload Format "
            f"has {_FIELDS} numbers. A file of condor_history goes with --history, in a "
            "scenario with history: {file: …}"
        )
    seconds = _whole("run time", fields[_RUN_TIME], _MOST_SECONDS)
    if fields[_STATUS] in _PARTS:
        left_out[PART] += 1
    elif seconds <= 0:
        left_out[SWF_NO_TIME] += 1
    else:
        cores = _whole("allocated processors", fields[_ALLOCATED], _MOST_CORES)
        if cores <= 0:
            cores = _whole("requested processors", fields[_REQUESTED], _MOST_CORES)
        return seconds, max(1, cores)
    return None


def _counted(fields: list[str], seconds: int, cores: int) -> tuple[str, int, int]:
    return str(_whole("group", fields[_GROUP], _MOST_SECONDS)), cores, seconds


def _logged(fields: list[str], seconds: int, cores: int) -> LoggedJob:
    submitted_at = _whole("submit time", fields[_SUBMITTED], _MOST_UNIX_SECONDS)
    kib = _whole("requested memory", fields[_REQUESTED_KIB], _MOST_MIB)
    if kib <= 0:
        kib = _whole("used memory", fields[_USED_KIB], _MOST_MIB)
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
