"""Run times and durations of cycles: from the live pool, from histories and from job logs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, nan
from pathlib import Path
from typing import Any, Callable, Optional, TextIO

from sharectl.cadence.loads import Job, JobsRun
from sharectl.condor import negotiator as negotiators
from sharectl.condor.ads import account, evaluated, number, whole
from sharectl.condor.daemons import (
    collector_question,
    locations,
    schedd_questions,
    slots,
    why_daemon,
)
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.negotiator import Cycle
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.files import files, packed
from sharectl.model import OTHER, Source
from sharectl.shares.groups import GROUP_NAME, group_of, without_user
from sharectl.words import Problems

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
_PIECE = 2**20
_MOST_AD = 2**23
"""Characters of one job; HTCondor's own are some ten thousand."""
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")
_LINE = 4096
_FIELDS = 18
_RUN_TIME, _ALLOCATED, _REQUESTED, _STATUS, _GROUP = 3, 4, 7, 10, 12
# A job that was checkpointed has a line for each part besides its own.
_PARTS = ("2", "3", "4")


class Tally:
    """Counts jobs, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.seen = 0
        self.counted: Counter[Job] = Counter()
        self.left_out: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        """True if no more jobs are counted."""
        return self.seen >= self.limit

    def add_ad(self, value: Callable[[str], Any], groups: Groups) -> None:
        """Count a job by its ad.

        A job that was started several times counts as so many runs, each of an equal part of its
        time, because every start holds a slot.

        Parameters
        ----------
        value
            Attribute -> value in the ad, None if it has none.
        """
        self.seen += 1
        total = number(value("RemoteWallClockTime"), 0.0, most=_MOST_SECONDS)
        cores = whole(value("CpusProvisioned"), 0, most=_MOST_CORES)
        cores = cores or whole(value("RequestCpus"), 0, most=_MOST_CORES)
        if value("JobUniverse") in _NO_SLOT:
            self.left_out[NO_SLOT] += 1
        elif total <= 0:
            self.left_out[HISTORY_NO_TIME] += 1
        elif not cores:
            self.left_out[NO_CORES] += 1
        else:
            starts = whole(value("NumShadowStarts"), 1, least=1, most=_MOST_STARTS)
            group = _group(account(value("AccountingGroup")), groups)
            self.counted[group, cores, ceil(total / starts)] += starts

    def add_line(self, line: str) -> None:
        """Count a job by its line of a log; raises ValueError if that is no job."""
        self.seen += 1
        fields = line.split()
        if len(fields) != _FIELDS:
            raise ValueError(
                f"not {_FIELDS} fields but {len(fields)}; a job of the Standard Workload Format "
                f"has {_FIELDS} numbers. Write --history for a file of condor_history"
            )
        seconds = _whole("run time", fields[_RUN_TIME], _MOST_SECONDS)
        if fields[_STATUS] in _PARTS:
            self.left_out[PART] += 1
        elif seconds <= 0:
            self.left_out[SWF_NO_TIME] += 1
        else:
            cores = _whole("allocated processors", fields[_ALLOCATED], _MOST_CORES)
            if cores <= 0:
                cores = _whole("requested processors", fields[_REQUESTED], _MOST_CORES)
            group = _whole("group", fields[_GROUP], _MOST_SECONDS)
            name = f"group {group}" if group >= 0 else "no group"
            self.counted[name, max(1, cores), seconds] += 1

    def jobs(self, path: Optional[Path] = None) -> JobsRun:
        """Jobs that were counted; raises InputError if ``path`` has none."""
        if path is not None and not self.counted:
            reasons = ", ".join(f"{jobs} left out: {why}" for why, jobs in self.left_out.items())
            fault = f"no job with a known run time is in it ({reasons or 'no job'})"
            raise InputError([f"{path}: {fault}"])
        return JobsRun(self.counted, self.left_out, self.limit if self.full else None)


def history_read(path: Path, groups: Groups = None, limit: int = FILE_MOST_JOBS) -> JobsRun:
    """First ``limit`` jobs of a file that `COMMAND` made, with ``-jsonl`` too, packed or not.

    Raises
    ------
    InputError
        If it cannot be read or holds something else; the place is named.
    """
    tally = Tally(limit)
    with packed.opened(packed.file_source(path)) as text:
        for ad in _objects(path, text):
            tally.add_ad(ad.get, groups)
            if tally.full:
                break
    return tally.jobs(path)


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


def _group(accounting_group: Optional[str], groups: Groups) -> str:
    if groups is not None:
        return group_of(accounting_group, groups)
    name = (without_user(accounting_group) or "").partition(".")[0].lower()
    return name if GROUP_NAME.fullmatch(name) else OTHER


def swf_read(path: Path, limit: int = FILE_MOST_JOBS) -> JobsRun:
    """First ``limit`` jobs of a log in Standard Workload Format, packed or not.

    A job is a line of 18 numbers, -1 where unknown: the fourth is the run time in seconds, the
    fifth the processors allocated, the eighth those requested, the eleventh the status, the
    thirteenth the group. Comments begin with a semicolon.

    Raises
    ------
    InputError
        If it cannot be read or has lines that are no jobs: all of them are named.
    """
    tally = Tally(limit)
    problems = Problems()
    with packed.opened(packed.file_source(path)) as text:
        for line_number, line in enumerate(files.lines_of(text, _LINE), start=1):
            if not line.strip() or line.lstrip().startswith(";"):
                continue
            if tally.full:
                break
            try:
                tally.add_line(line)
            except ValueError as error:
                problems.add(f"{path}:{line_number}", str(error))
    if problems:
        raise InputError(problems.lines())
    return tally.jobs(path)


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


@dataclass(frozen=True)
class PoolCadence:
    """Answers of a pool; empty or None where a daemon did not answer."""

    cores: Optional[int]
    jobs: JobsRun
    cycles: tuple[Cycle, ...]
    knobs: Mapping[str, int]
    sources: tuple[Source, ...]
    schedds: int
    """Schedds that answered."""


def ask(
    *,
    collector: Optional[str] = None,
    groups: Groups = None,
    negotiator: Optional[str] = None,
    limit: int = POOL_MOST_JOBS,
    collector_deadline_seconds: float = 20,
    schedd_deadline_seconds: float = 60,
) -> PoolCadence:
    """Ask the collector, then all schedds and the negotiator at once.

    Parameters
    ----------
    collector
        Address; None for the pool of this machine's HTCondor configuration.
    negotiator
        Name, where there are several.
    limit
        Jobs of each schedd, the newest.
    schedd_deadline_seconds
        The negotiator's too: it answers between cycles.

    Raises
    ------
    PoolUnavailableError
        If the collector does not answer, or there are several negotiators and none was named.
    """
    at_first: dict[str, Callable[[Any], Any]] = {
        "collector": _cores_and_schedds,
        "negotiators": partial(locations, kind="Negotiator"),
    }
    first = ask_all(
        {
            name: collector_question(collector, collector_deadline_seconds, ask_it)
            for name, ask_it in at_first.items()
        }
    )
    pool: Optional[tuple[int, list[dict[str, str]]]] = first["collector"].value
    if pool is None:
        raise PoolUnavailableError(
            f"collector: {first['collector'].source.problem}; see --config, or CONDOR_CONFIG. "
            "Without a pool, give --run-time, --history or --swf"
        )
    location = _chosen(first["negotiators"].value or [], negotiator)
    schedds = schedd_questions(
        pool[1],
        schedd_deadline_seconds,
        partial(_history, groups=groups, limit=limit),
    )
    answers = ask_all({**schedds, **_of_negotiator(location, schedd_deadline_seconds)})
    histories = [answers[name].value for name in schedds if answers[name].value is not None]
    sources = [first["collector"].source, *(answer.source for answer in answers.values())]
    if location is None:
        sources.append(no_negotiator(first["negotiators"], negotiator))
    cycles, knobs = (
        answers[name].value if name in answers else None
        for name in ("negotiator", "negotiator's configuration")
    )
    return PoolCadence(
        cores=pool[0] or None,
        jobs=_together(histories, limit),
        cycles=tuple(cycles or ()),
        knobs=knobs or {},
        sources=tuple(sources),
        schedds=len(histories),
    )


def _cores_and_schedds(collector: Any) -> tuple[int, list[dict[str, str]]]:
    """Cores of the pool, and locations of its schedds."""
    ads = slots(collector, projection=["TotalSlotCpus"])
    cores = sum(whole(evaluated(ad, "TotalSlotCpus"), 0) for ad in ads)
    return cores, locations(collector, "Schedd")


def _history(schedd: Any, _name: str, groups: Groups, limit: int) -> JobsRun:
    """Newest ``limit`` jobs that a schedd has on record."""
    tally = Tally(limit)
    for ad in schedd.history("RemoteWallClockTime > 0", list(ATTRIBUTES), match=limit):
        tally.add_ad(ad.get, groups)
    return tally.jobs()


def _of_negotiator(
    location: Optional[Mapping[str, str]], deadline_seconds: float
) -> dict[str, Question]:
    if location is None:
        return {}
    questions = {
        "negotiator": negotiators.last_cycles,
        "negotiator's configuration": negotiators.knobs,
    }
    why = partial(why_daemon, location, "NEGOTIATOR")
    return {
        name: Question(partial(ask, location), deadline_seconds, why)
        for name, ask in questions.items()
    }


def _chosen(
    negotiators: Collection[dict[str, str]], name: Optional[str]
) -> Optional[dict[str, str]]:
    if name is not None:
        negotiators = [ad for ad in negotiators if ad["Name"].lower() == name.lower()]
    if len(negotiators) > 1:
        names = ", ".join(sorted(ad["Name"] for ad in negotiators))
        raise PoolUnavailableError(
            f"the pool has several negotiators: give --negotiator with one of {names}"
        )
    return next(iter(negotiators), None)


def no_negotiator(answer: Answer, name: Optional[str]) -> Source:
    """Problem of a negotiator that is not among those of the collector's ``answer``."""
    names = ", ".join(sorted(ad["Name"] for ad in answer.value or []))
    problem = (
        f"the collector knows none named {name[:80]!r}, only {names}; give --negotiator with "
        "one of these, or leave it out"
        if name is not None and names
        else "the collector does not know it"
    )
    return replace(answer.source, name="negotiator", problem=answer.source.problem or problem)


def _together(histories: Collection[JobsRun], limit: int) -> JobsRun:
    counted: Counter[Job] = Counter()
    left_out: Counter[str] = Counter()
    for jobs in histories:
        counted.update(jobs.counted)
        left_out.update(jobs.left_out)
    return JobsRun(counted, left_out, limit if any(jobs.limit for jobs in histories) else None)
