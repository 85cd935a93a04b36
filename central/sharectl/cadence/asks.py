"""Run times and durations of cycles: from the live pool, from histories and from job logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from math import ceil, nan
from pathlib import Path
from typing import Any, Callable, Optional, TextIO

from sharectl.cadence.choice import Facts, Knobs
from sharectl.cadence.run_times import JobsRun, load_of
from sharectl.condor.ads import account, evaluated, number, whole
from sharectl.condor.daemons import ask_collector, locations, schedd_questions, slots, why_silent
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.negotiator import KNOBS, Cycle, cycles_and_knobs, one_of
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.files import files, packed
from sharectl.shares.groups import without_user
from sharectl.words import Problems, counted

POOL_MOST_JOBS = 10_000
"""Of each schedd."""
ATTRIBUTES = (
    "RemoteWallClockTime",
    "NumShadowStarts",
    "CpusProvisioned",
    "RequestCpus",
    "AccountingGroup",
    "JobUniverse",
)
COMMAND = f"condor_history -json -limit 100000 -attributes {','.join(ATTRIBUTES)}"
"""Makes a file that `history_read` reads."""
HISTORY_NO_TIME = "RemoteWallClockTime 0 or not there: it never ran"
NO_SLOT = "its universe needs no slot"
NO_CORES = "neither CpusProvisioned nor RequestCpus"
SWF_NO_TIME = "run time 0 or not known"
PART = "a part of a checkpointed job, which has a line for the whole too"

# Scheduler, grid and local universe, as in `condor.schedds`.
_NO_SLOT = (7, 9, 12)
_MOST_CORES = 1_000_000
_MOST_SECONDS = 10**9
_MOST_STARTS = 100_000
_FEW_JOBS = 100
_PIECE = 2**20
_MOST_AD = 2**23
"""Characters of one job; HTCondor's own are some ten thousand."""
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")
_LINE = 4096
_FIELDS = 18
_RUN_TIME, _ALLOCATED, _REQUESTED, _STATUS, _GROUP = 3, 4, 7, 10, 12
# A job that was checkpointed has a line for each part besides its own.
_PARTS = ("2", "3", "4")


def facts_of(jobs: JobsRun, source: str, **more: Any) -> Facts:
    """Run times of jobs, with notes on their number and on those that were left out."""
    load = load_of(jobs.counted)
    work = counted(round(load.work / 3600), "core-hour")
    notes = [f"run times of {counted(load.jobs or 0, 'job')}, {work}", *_left_out(jobs)]
    if (load.jobs or 0) < _FEW_JOBS:
        notes.append("that are few: the next ones may be quite different")
    return Facts(source, load, notes=tuple(notes), **more)


def _left_out(jobs: JobsRun) -> list[str]:
    return [f"jobs left out: {count} ({why})" for why, count in jobs.left_out.items()]


def _add_ad(jobs: JobsRun, value: Callable[[str], Any]) -> None:
    """Count a job by its ad, of which ``value`` gives an attribute or None.

    A job that was started several times counts as so many runs, each of an equal part of its
    time, because every start holds a slot.
    """
    total = number(value("RemoteWallClockTime"), 0.0, most=_MOST_SECONDS)
    cores = whole(value("CpusProvisioned"), 0, most=_MOST_CORES)
    cores = cores or whole(value("RequestCpus"), 0, most=_MOST_CORES)
    if value("JobUniverse") in _NO_SLOT:
        jobs.left_out[NO_SLOT] += 1
    elif total <= 0:
        jobs.left_out[HISTORY_NO_TIME] += 1
    elif not cores:
        jobs.left_out[NO_CORES] += 1
    else:
        starts = whole(value("NumShadowStarts"), 1, least=1, most=_MOST_STARTS)
        group = (without_user(account(value("AccountingGroup"))) or "").partition(".")[0].lower()
        jobs.counted[group, cores, ceil(total / starts)] += starts


def history_read(path: Path) -> JobsRun:
    """Jobs of a file that `COMMAND` made, with ``-jsonl`` too, packed or not.

    Raises InputError with the place if it cannot be read or holds something else.
    """
    jobs = JobsRun()
    with packed.opened(path) as text:
        for ad in _objects(path, text):
            _add_ad(jobs, ad.get)
    return _not_empty(jobs, path)


def _not_empty(jobs: JobsRun, path: Path) -> JobsRun:
    if not jobs.counted:
        reasons = ", ".join(f"{count} left out: {why}" for why, count in jobs.left_out.items())
        fault = f"no job with a known run time is in it ({reasons or 'no job'})"
        raise InputError([f"{path}: {fault}"])
    return jobs


def _objects(path: Path, text: TextIO) -> Iterator[dict[str, Any]]:
    """Objects of a list or one after the other: a whole history does not fit into memory."""
    decoder = json.JSONDecoder()
    pending, line = "", 1
    while piece := text.read(_PIECE):
        pending += piece
        at = _between(pending, 0)
        while at < len(pending):
            try:
                ad, end = decoder.raw_decode(pending, at)
            except (ValueError, RecursionError):
                break  # more of the text is needed, or it is no job
            if not isinstance(ad, dict):
                break
            yield ad
            at = _between(pending, end)
        line += pending.count("\n", 0, at)
        pending = pending[at:]
        if len(pending) > _MOST_AD:
            break
    if pending:
        fault = f"{pending[:20]!r} begins no job, or one that does not end"
        raise InputError([f"{path}:{line}: {fault}; make the file with {COMMAND}"])


def _between(text: str, at: int) -> int:
    """End of the blanks, commas and brackets between two objects."""
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def swf_read(path: Path) -> JobsRun:
    """Jobs of a log in Standard Workload Format, packed or not.

    A job is a line of 18 numbers, -1 where unknown: the fourth is the run time in seconds, the
    fifth the processors allocated, the eighth those requested, the eleventh the status, the
    thirteenth the group. Comments begin with a semicolon. Raises InputError if it cannot be read,
    or with all lines that are no jobs.
    """
    jobs, problems = JobsRun(), Problems()
    with packed.opened(path) as text:
        for line_number, line in enumerate(files.lines_of(text, _LINE), start=1):
            if line.strip() and not line.lstrip().startswith(";"):
                try:
                    _add_line(jobs, line.split())
                except ValueError as error:
                    problems.add(f"{path}:{line_number}", str(error))
    if problems:
        raise InputError(problems.lines())
    return _not_empty(jobs, path)


def _add_line(jobs: JobsRun, fields: list[str]) -> None:
    """Count a job by its line of a log; raises ValueError if that is no job."""
    if len(fields) != _FIELDS:
        raise ValueError(
            f"not {_FIELDS} fields but {len(fields)}; a job of the Standard Workload Format "
            f"has {_FIELDS} numbers. Write --history for a file of condor_history"
        )
    seconds = _whole("run time", fields[_RUN_TIME], _MOST_SECONDS)
    if fields[_STATUS] in _PARTS:
        jobs.left_out[PART] += 1
    elif seconds <= 0:
        jobs.left_out[SWF_NO_TIME] += 1
    else:
        cores = _whole("allocated processors", fields[_ALLOCATED], _MOST_CORES)
        if cores <= 0:
            cores = _whole("requested processors", fields[_REQUESTED], _MOST_CORES)
        group = _whole("group", fields[_GROUP], _MOST_SECONDS)
        jobs.counted[str(group), max(1, cores), seconds] += 1


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
    schedds = schedd_questions(places, schedd_deadline_seconds, _history)
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
        nothing = (
            f"no schedd told of a job that ran ({'; '.join(_left_out(jobs)) or 'no history'}): "
            "give --run-time, --history or --swf"
        )
        raise PoolUnavailableError("\n".join([*problems, nothing]))
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


def _history(schedd: Any, _name: str) -> JobsRun:
    """Newest jobs that a schedd has on record."""
    jobs = JobsRun()
    constraint = "RemoteWallClockTime > 0"
    for ad in schedd.history(constraint, list(ATTRIBUTES), match=POOL_MOST_JOBS):
        _add_ad(jobs, ad.get)
    return jobs
