"""Run times and durations of cycles: from the live pool, from histories and from job logs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from functools import partial
from math import ceil, nan
from pathlib import Path
from typing import Any, Callable, Optional, TextIO

from sharectl.cadence.run_times import Facts, JobsRun, loads
from sharectl.condor.ads import account, evaluated, number, whole
from sharectl.condor.daemons import (
    collector_question,
    locations,
    schedd_questions,
    slots,
    why_daemon,
)
from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.negotiator import cycles_and_knobs, one_of
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.files import files, packed
from sharectl.model import OTHER
from sharectl.shares.groups import GROUP_NAME, group_of, without_user
from sharectl.words import Problems, counted

POOL_MOST_JOBS = 10_000
FILE_MOST_JOBS = 2_000_000
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

Groups = Optional[Collection[str]]
"""Configured groups; None for the groups that jobs name."""

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


def facts_of(jobs: JobsRun, source: str, by: Optional[str], limited: str, **more: Any) -> Facts:
    """Run times of jobs, with notes on their number and on those that were left out."""
    ran = sum(jobs.counted.values())
    work = counted(round(jobs.core_hours), "core-hour")
    notes = [f"run times of {counted(ran, 'job')}, {work}", *_left_out(jobs)]
    if jobs.full:
        notes.append(f"no more than {limited} looked at (--limit)")
    if ran < _FEW_JOBS:
        notes.append("that are few: the next ones may be quite different")
    return Facts(source, loads(jobs.counted, by), notes=tuple(notes), **more)


def _left_out(jobs: JobsRun) -> list[str]:
    return [f"jobs left out: {count} ({why})" for why, count in jobs.left_out.items()]


def _add_ad(jobs: JobsRun, value: Callable[[str], Any], groups: Groups) -> None:
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
        group = _group(account(value("AccountingGroup")), groups)
        jobs.counted[group, cores, ceil(total / starts)] += starts


def _group(accounting_group: Optional[str], groups: Groups) -> str:
    if groups is not None:
        return group_of(accounting_group, groups)
    name = (without_user(accounting_group) or "").partition(".")[0].lower()
    return name if GROUP_NAME.fullmatch(name) else OTHER


def history_read(path: Path, groups: Groups = None, limit: int = FILE_MOST_JOBS) -> JobsRun:
    """First ``limit`` jobs of a file that `COMMAND` made, with ``-jsonl`` too, packed or not.

    Raises InputError with the place if it cannot be read or holds something else.
    """
    jobs = JobsRun()
    with packed.opened(packed.file_source(path)) as text:
        for seen, ad in enumerate(_objects(path, text), start=1):
            _add_ad(jobs, ad.get, groups)
            if seen == limit:
                jobs.full = True
                break
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


def swf_read(path: Path, limit: int = FILE_MOST_JOBS) -> JobsRun:
    """First ``limit`` jobs of a log in Standard Workload Format, packed or not.

    A job is a line of 18 numbers, -1 where unknown: the fourth is the run time in seconds, the
    fifth the processors allocated, the eighth those requested, the eleventh the status, the
    thirteenth the group. Comments begin with a semicolon. Raises InputError if it cannot be read,
    or with all lines that are no jobs.
    """
    jobs, problems, seen = JobsRun(), Problems(), 0
    with packed.opened(packed.file_source(path)) as text:
        for line_number, line in enumerate(files.lines_of(text, _LINE), start=1):
            if not line.strip() or line.lstrip().startswith(";"):
                continue
            try:
                _add_line(jobs, line.split())
            except ValueError as error:
                problems.add(f"{path}:{line_number}", str(error))
            seen += 1
            if seen == limit:
                jobs.full = True
                break
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
        name = f"group {group}" if group >= 0 else "no group"
        jobs.counted[name, max(1, cores), seconds] += 1


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
    groups: Groups,
    by: Optional[str],
    collector: Optional[str],
    *,
    negotiator: Optional[str],
    limit: int,
    collector_deadline_seconds: float,
    schedd_deadline_seconds: float,
) -> Facts:
    """Ask the collector, then all schedds and the negotiator at once.

    ``by`` is one of `BY`; ``limit`` the newest jobs of each schedd; without ``negotiator`` it is
    the only one, which has the deadline of schedds because it answers between cycles. Raises
    PoolUnavailableError if the collector does not answer, or no schedd has a job that ran.
    """
    cores, places, negotiators = _ask_collector(collector, collector_deadline_seconds)
    schedds = schedd_questions(
        places,
        schedd_deadline_seconds,
        partial(_history, groups=groups, limit=limit),
    )
    questions: dict[str, Question] = dict(schedds)
    problems: list[str] = []
    try:
        location = one_of(negotiators, negotiator, "--negotiator")
    except PoolUnavailableError as error:
        problems.append(f"negotiator: {error}")
    else:
        why = partial(why_daemon, location, "NEGOTIATOR")
        cycles_of = partial(cycles_and_knobs, location)
        questions["negotiator"] = Question(cycles_of, schedd_deadline_seconds, why)
    answers = ask_all(questions)
    problems += [
        f"{name}: {answer.source.problem}"
        for name, answer in answers.items()
        if answer.source.problem
    ]
    values = {name: answer.value for name, answer in answers.items()}
    cycles, knobs = values.get("negotiator") or ([], {})
    histories = [values[name] for name in schedds if values[name] is not None]
    jobs = _together(histories)
    if not jobs.counted:
        nothing = (
            f"no schedd told of a job that ran ({'; '.join(_left_out(jobs)) or 'no history'}): "
            "give --run-time, --history or --swf"
        )
        raise PoolUnavailableError("\n".join([*problems, nothing]))
    return facts_of(
        jobs,
        f"the live pool, {counted(len(histories), 'schedd')}",
        by,
        f"the newest {limit} jobs of each schedd",
        cores=cores or None,
        durations=tuple(cycle.duration_seconds for cycle in cycles),
        jobs_waited=any(cycle.idle_jobs for cycle in cycles),
        knobs=knobs,
        problems=tuple(problems),
    )


_Places = tuple[int, list[dict[str, str]], list[dict[str, str]]]


def _ask_collector(collector: Optional[str], deadline_seconds: float) -> _Places:
    question = collector_question(collector, deadline_seconds, _pool)
    answer = ask_all({"collector": question})["collector"]
    if answer.source.problem is not None:
        raise PoolUnavailableError(
            f"collector: {answer.source.problem}; see --config, or CONDOR_CONFIG. "
            "Without a pool, give --run-time, --history or --swf"
        )
    places: _Places = answer.value
    return places


def _pool(collector: Any) -> _Places:
    """Cores of the pool, and locations of its schedds and negotiators."""
    ads = slots(collector, projection=["TotalSlotCpus"])
    cores = sum(whole(evaluated(ad, "TotalSlotCpus"), 0) for ad in ads)
    return cores, locations(collector, "Schedd"), locations(collector, "Negotiator")


def _history(schedd: Any, _name: str, groups: Groups, limit: int) -> JobsRun:
    """Newest ``limit`` jobs that a schedd has on record."""
    jobs = JobsRun()
    ads = list(schedd.history("RemoteWallClockTime > 0", list(ATTRIBUTES), match=limit))
    for ad in ads:
        _add_ad(jobs, ad.get, groups)
    jobs.full = len(ads) >= limit
    return jobs


def _together(histories: Collection[JobsRun]) -> JobsRun:
    jobs = JobsRun(full=any(history.full for history in histories))
    for history in histories:
        jobs.counted.update(history.counted)
        jobs.left_out.update(history.left_out)
    return jobs
