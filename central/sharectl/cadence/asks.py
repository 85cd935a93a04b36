"""What a live pool tells of its cadence: its cores, what ran on them, and how long its negotiator's cycles take.

Files of jobs that ran, packed by gzip or not, which somebody else wrote: read in pieces, and not
without end.

Run times of jobs that HTCondor has on record: what `condor_history -json` printed, and ads of
`Schedd.history`.

Laws of run times as they are written on a command line, such as ``normal:255,50``.

Job logs in Standard Workload Format, as the Parallel Workloads Archive has them: a line a job, 18
numbers.

Of these the fourth is the run time in seconds, the fifth the processors allocated, the eighth those
requested, the eleventh the status and the thirteenth the group; -1 is not known. Lines that begin
with ``;`` are comments.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, nan
from pathlib import Path
from typing import Any, Callable, Optional, cast

from sharectl.cadence.loads import Job, Jobs
from sharectl.cadence.run_times import Exponential, RunTimes, Seen, log_normal, normal
from sharectl.condor import negotiator as negotiation_cycles
from sharectl.condor.ads import account, number, whole
from sharectl.condor.collector import CollectorAnswer, look
from sharectl.condor.daemons import collector_question, locations, schedd, why_daemon
from sharectl.condor.deadline import Answer, Question, ask_all
from sharectl.condor.negotiator import Cycle
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.files import files
from sharectl.model import OTHER, SCHEDD_SOURCE, Source
from sharectl.shares.groups import GROUP_NAME, group_of, without_user
from sharectl.words import Problems

MOST_BYTES = 2**30
"""Of text, unpacked: some ten million jobs."""
MOST_CORES = 1_000_000
FILE_MOST_SECONDS = 10**9
_GZIP = b"\x1f\x8b"


@dataclass
class Tally:
    """Jobs counted while a file is read, and what is wrong with it."""

    name: str
    limit: int
    """Jobs that are counted at most."""
    counted: Counter[Job] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    problems: Problems = field(default_factory=Problems)
    seen: int = 0

    @property
    def full(self) -> bool:
        """Whether no more jobs are counted."""
        return self.seen >= self.limit

    def problem(self, line: int, said: str) -> None:
        """Note what is wrong in a line."""
        self.problems.add(f"{self.name}:{line}", said)

    def jobs(self) -> Jobs:
        """What was counted.

        Raises
        ------
        InputError
            If there was a problem, or no job with a run time.
        """
        if self.problems:
            raise InputError(self.problems.lines())
        if not self.counted:
            reasons = ", ".join(f"{jobs} left out: {why}" for why, jobs in self.left_out.items())
            raise InputError(
                [f"{self.name}: no job with a known run time is in it ({reasons or 'no job'})"]
            )
        return Jobs(dict(self.counted), dict(self.left_out), self.limit if self.full else None)


@contextlib.contextmanager
def opened(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[io.TextIOWrapper]:
    """Text of a file or a pipe, unpacked if it is packed.

    Raises
    ------
    InputError
        If it cannot be read, is broken, or is longer than ``most_bytes`` unpacked; within the block
        too.
    """
    try:
        with files.open_bytes(path) as packed:
            # gzip reads any buffered file; typeshed wants a smaller protocol than io offers.
            raw = gzip.GzipFile(fileobj=packed) if packed.peek(2)[:2] == _GZIP else packed
            bounded = io.BufferedReader(cast("io.RawIOBase", _Bounded(raw, most_bytes)))
            with io.TextIOWrapper(bounded, encoding="utf-8", errors="replace") as text:
                yield text
    except _TooLongError as error:
        raise InputError(
            [f"{path}: longer than {most_bytes} bytes unpacked; give a part of it"]
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError([f"{path}: packed by gzip, and broken: {error}"]) from error
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror or error}"]) from error


class _TooLongError(Exception):
    pass


class _Bounded(io.RawIOBase):
    """A file that may not be longer than it should."""

    def __init__(self, file: Any, most_bytes: int) -> None:
        super().__init__()
        self.file = file
        self.left = most_bytes

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Bytes read into ``buffer``; 0 at the end."""
        count: int = self.file.readinto(buffer)
        self.left -= count
        if self.left < 0:
            raise _TooLongError
        return count


HISTORY_MOST_JOBS = 2_000_000
ATTRIBUTES = (
    "RemoteWallClockTime",
    "NumShadowStarts",
    "CpusProvisioned",
    "RequestCpus",
    "AccountingGroup",
    "JobUniverse",
)
COMMAND = f"condor_history -json -limit 100000 -attributes {','.join(ATTRIBUTES)}"
"""Makes a file that `read` reads."""
HISTORY_NO_TIME = "RemoteWallClockTime 0 or not there: it never ran"
NO_SLOT = "its universe needs no slot"
NO_CORES = "neither CpusProvisioned nor RequestCpus"
# Scheduler, grid and local universe, as in `condor.schedds`.
_NO_SLOT = (7, 9, 12)
_MOST_STARTS = 100_000
_CHUNK = 2**20
_MOST_AD = 2**23
"""Characters of one job; HTCondor's own are some ten thousand."""
_TAIL = 16
"""Characters at the end of what has been read so far in which half a number or word may stand."""
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")


def count(tally: Tally, value: Callable[[str], Any], groups: Optional[Collection[str]]) -> None:
    """Add a job to the tally.

    A job that was started several times counts as so many runs, each of an equal part of its time:
    every start holds a slot.

    Parameters
    ----------
    value
        Attribute -> value in the job's ad, None if it has none.
    groups
        Configured groups; None for whatever the jobs say.
    """
    tally.seen += 1
    if value("JobUniverse") in _NO_SLOT:
        tally.left_out[NO_SLOT] += 1
        return
    total = number(value("RemoteWallClockTime"), 0.0, most=FILE_MOST_SECONDS)
    if total <= 0:
        tally.left_out[HISTORY_NO_TIME] += 1
        return
    cores = whole(value("CpusProvisioned"), 0, most=MOST_CORES) or whole(
        value("RequestCpus"), 0, most=MOST_CORES
    )
    if not cores:
        tally.left_out[NO_CORES] += 1
        return
    starts = whole(value("NumShadowStarts"), 1, least=1, most=_MOST_STARTS)
    group = _group(account(value("AccountingGroup")), groups)
    tally.counted[group, cores, ceil(total / starts)] += starts


def history_read(
    path: Path, groups: Optional[Collection[str]] = None, limit: int = HISTORY_MOST_JOBS
) -> Jobs:
    """Jobs of a file that `COMMAND` or ``condor_history -jsonl`` made, packed by gzip or not; the first ``limit``.

    Raises
    ------
    InputError
        If it cannot be read or holds something else; the place is named.
    """
    tally = Tally(str(path), limit)
    with opened(path) as file:
        _read_ads(file, tally, groups)
    return tally.jobs()


def _read_ads(file: io.TextIOBase, tally: Tally, groups: Optional[Collection[str]]) -> None:
    """Ad after ad: a whole history does not fit into memory, and objects in a list or one by one are read alike."""
    decoder = json.JSONDecoder(parse_int=_int)
    text, at, line = "", 0, 1
    while not tally.full:
        between = _BETWEEN.match(text, at)
        assert between is not None  # noqa: S101 - it may match nothing
        line, at = line + between[0].count("\n"), between.end()
        try:
            ad, end = _decoded(decoder, text, at)
        except ValueError as error:
            tally.problem(line, str(error))
            return
        if end > at:
            count(tally, ad.get, groups)
            line, at = line + text.count("\n", at, end), end
            continue
        more = file.read(_CHUNK)
        if not more:
            if at < len(text):
                tally.problem(line, "the object that begins here does not end; is the file whole?")
            return
        text, at = text[at:] + more, 0


def _decoded(decoder: json.JSONDecoder, text: str, at: int) -> tuple[dict[str, Any], int]:
    """Object that begins at ``at``, and where it ends; that is ``at`` if more of the text is needed."""
    if at == len(text):
        return {}, at
    if text[at] != "{":
        raise ValueError(f"{text[at : at + 20]!r} is no job; make the file with {COMMAND}")
    try:
        ad, end = decoder.raw_decode(text, at)
    except RecursionError:
        raise ValueError("the object that begins here is nested too deeply to be a job") from None
    except json.JSONDecodeError as error:
        if len(text) - at > _MOST_AD:
            raise ValueError("the object that begins here is too long to be a job") from None
        if error.msg.startswith("Unterminated") or error.pos >= len(text) - _TAIL:
            return {}, at
        raise ValueError(f"the object that begins here is no JSON: {error.msg}") from None
    return ad, end


def _int(digits: str) -> float:
    """Whole number; one of more digits than any attribute has costs no time, and counts as no number."""
    return int(digits) if len(digits) < 20 else float("inf")  # noqa: PLR2004 - digits of 64 bits


def _group(accounting_group: Optional[str], groups: Optional[Collection[str]]) -> str:
    if groups is not None:
        return group_of(accounting_group, groups)
    name = (without_user(accounting_group) or "").partition(".")[0].lower()
    return name if GROUP_NAME.fullmatch(name) else OTHER


LAW_MOST_SECONDS = 1e9

_LAWS: Mapping[str, tuple[tuple[str, ...], Callable[..., RunTimes]]] = {
    "constant": (("SECONDS",), lambda seconds: Seen({seconds: 1.0})),
    "exponential": (("MEAN",), Exponential),
    "normal": (("MEAN", "SD"), normal),
    "log-normal": (("MEAN", "SD"), log_normal),
}
FORMS = tuple(f"{name}:{','.join(words)}" for name, (words, _) in _LAWS.items())


def parse(text: str) -> RunTimes:
    """Law that ``text`` names, in seconds.

    Raises
    ------
    ValueError
        If it names none.
    """
    name, colon, rest = text.partition(":")
    if name not in _LAWS or not colon:
        raise ValueError(f"{text[:60]!r} is no law of run times; write one of {' '.join(FORMS)}")
    words, law = _LAWS[name]
    parts = rest.split(",")
    if len(parts) != len(words):
        raise ValueError(f"{text[:60]!r}: write {name}:{','.join(words)}, in seconds")
    return law(*(_seconds(text, part) for part in parts))


def _seconds(text: str, part: str) -> float:
    try:
        value = float(part)
    except ValueError:
        value = -1.0
    if value > LAW_MOST_SECONDS:
        raise ValueError(
            f"{text[:60]!r}: {part[:20]!r} is too long; write at most {LAW_MOST_SECONDS:.0f} "
            "seconds, such as 255"
        )
    if 0 < value < 1 / LAW_MOST_SECONDS:
        raise ValueError(
            f"{text[:60]!r}: {part[:20]!r} is too short; write at least "
            f"{1 / LAW_MOST_SECONDS:g} seconds, such as 255"
        )
    if not value > 0:
        raise ValueError(
            f"{text[:60]!r}: {part[:20]!r} is no time; write seconds above 0, such as 255"
        )
    return value


POOL_MOST_JOBS = 10_000
_RAN = "RemoteWallClockTime > 0"


@dataclass(frozen=True)
class Access:
    """How to reach the pool."""

    collector: Optional[str] = None
    """Address; None for the pool of this machine's HTCondor configuration."""
    groups: Optional[Collection[str]] = None
    """Configured groups; None for whatever the jobs say."""
    negotiator: Optional[str] = None
    """Name, where there are several."""
    limit: int = POOL_MOST_JOBS
    """Jobs of each schedd, the newest."""
    collector_deadline_seconds: float = 20
    schedd_deadline_seconds: float = 60
    """The negotiator's too: it answers between cycles."""


@dataclass(frozen=True)
class PoolCadence:
    """What there is to know; what nobody told is empty or None, and in `sources`."""

    cores: Optional[int]
    jobs: Jobs
    negotiator: Optional[str]
    cycles: tuple[Cycle, ...]
    knobs: Mapping[str, int]
    sources: tuple[Source, ...]
    schedds: int = field(default=0)
    """How many told of their jobs."""


def ask(access: Access) -> PoolCadence:
    """Ask the collector, then all schedds and the negotiator at once.

    Raises
    ------
    PoolUnavailableError
        If the collector does not answer, or there are several negotiators and none of them was
        named.
    """
    seconds = access.collector_deadline_seconds
    first = ask_all(
        {
            "collector": collector_question(access.collector, seconds, look),
            "negotiators": collector_question(
                access.collector, seconds, partial(locations, kind="Negotiator")
            ),
        }
    )
    if first["collector"].value is None:
        raise PoolUnavailableError(
            f"collector: {first['collector'].source.problem}; see --config, or CONDOR_CONFIG. "
            "Without a pool, give "
            "--run-time, --history or --swf"
        )
    known: CollectorAnswer = first["collector"].value
    negotiator = _chosen(first["negotiators"].value or [], access.negotiator)
    schedds = {
        f"{SCHEDD_SOURCE}{location['Name']}": location
        for location in known.schedds
        if "Name" in location
    }
    answers = ask_all(_questions(access, schedds, negotiator))
    jobs, told = _together([answers[name].value for name in schedds], access.limit)
    return PoolCadence(
        cores=sum(slot.cores for slot in known.slots) or None,
        jobs=jobs,
        negotiator=negotiator["Name"] if negotiator else None,
        cycles=tuple(_value(answers, "negotiator", [])),
        knobs=_value(answers, "negotiator's configuration", {}),
        sources=(
            first["collector"].source,
            *(answer.source for answer in answers.values()),
            *([] if negotiator else [no_negotiator(first["negotiators"], access.negotiator)]),
        ),
        schedds=told,
    )


def history(location: Mapping[str, str], groups: Optional[Collection[str]], limit: int) -> Jobs:
    """Jobs that ran, as one schedd has them on record, the newest ``limit``."""
    ads = schedd(location).history(_RAN, list(ATTRIBUTES), match=limit)
    tally = Tally(location["Name"], limit)
    for ad in ads:
        count(tally, ad.get, groups)
    return Jobs(dict(tally.counted), dict(tally.left_out), limit if tally.full else None)


def _questions(
    access: Access,
    schedds: Mapping[str, Mapping[str, str]],
    negotiator: Optional[Mapping[str, str]],
) -> dict[str, Question]:
    seconds = access.schedd_deadline_seconds
    questions = {
        name: Question(
            partial(history, location, access.groups, access.limit),
            seconds,
            partial(why_daemon, location, "SCHEDD"),
        )
        for name, location in schedds.items()
    }
    if negotiator:
        questions["negotiator"] = Question(
            partial(negotiation_cycles.last_cycles, negotiator),
            seconds,
            partial(why_daemon, negotiator, "NEGOTIATOR"),
        )
        questions["negotiator's configuration"] = Question(
            partial(negotiation_cycles.knobs, negotiator),
            seconds,
            partial(why_daemon, negotiator, "NEGOTIATOR"),
        )
    return questions


def _chosen(
    negotiators: Collection[dict[str, str]], name: Optional[str]
) -> Optional[dict[str, str]]:
    if name is not None:
        negotiators = [found for found in negotiators if found["Name"].lower() == name.lower()]
    if len(negotiators) > 1:
        names = ", ".join(sorted(found["Name"] for found in negotiators))
        raise PoolUnavailableError(
            f"the pool has several negotiators: give --negotiator with one of {names}"
        )
    return next(iter(negotiators), None)


def no_negotiator(answer: Answer, name: Optional[str]) -> Source:
    """What is told of a negotiator that is not asked: of ``answer``, those that the collector knows, none has the name."""
    known = ", ".join(sorted(found["Name"] for found in answer.value or []))
    said = (
        f"the collector knows none named {name[:80]!r}, only {known}; give --negotiator with "
        "one of these, or leave it out"
        if name is not None and known
        else "the collector does not know it"
    )
    return replace(answer.source, name="negotiator", problem=answer.source.problem or said)


def _together(answers: Collection[Optional[Jobs]], limit: int) -> tuple[Jobs, int]:
    counted: Counter[Job] = Counter()
    left_out: Counter[str] = Counter()
    told = [answer for answer in answers if answer is not None]
    for jobs in told:
        counted.update(jobs.counted)
        left_out.update(jobs.left_out)
    return Jobs(counted, left_out, limit if any(jobs.limit for jobs in told) else None), len(told)


def _value(answers: Mapping[str, Answer], name: str, default: Any) -> Any:
    value = answers[name].value if name in answers else None
    return default if value is None else value


SWF_MOST_JOBS = 2_000_000
_FIELDS = 18
_LINE = 4096
_RUN_TIME, _ALLOCATED, _REQUESTED, _STATUS, _GROUP = 3, 4, 7, 10, 12
# A job that was checkpointed has a line for each part besides its own.
_PARTS: Collection[str] = ("2", "3", "4")
SWF_NO_TIME = "run time 0 or not known"
PART = "a part of a checkpointed job, which has a line for the whole too"


def swf_read(path: Path, limit: int = SWF_MOST_JOBS) -> Jobs:
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
        f"{path}:{number}: {text[:40]!r}: this is no log in Standard Workload Format, in which "
        f"a job is a line of {_FIELDS} "
        f"numbers and comments begin with a semicolon: no line of the file is like that; {remedy}"
    )


def _count(tally: Tally, fields: list[str]) -> None:
    if len(fields) != _FIELDS:
        what = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise ValueError(f"{what}; a job of the Standard Workload Format has {_FIELDS} numbers")
    seconds = _whole("run time", fields[_RUN_TIME], FILE_MOST_SECONDS)
    if fields[_STATUS] in _PARTS:
        tally.left_out[PART] += 1
    elif seconds <= 0:
        tally.left_out[SWF_NO_TIME] += 1
    else:
        cores = _whole("allocated processors", fields[_ALLOCATED], MOST_CORES)
        if cores <= 0:
            cores = _whole("requested processors", fields[_REQUESTED], MOST_CORES)
        group = _whole("group", fields[_GROUP], FILE_MOST_SECONDS)
        tally.counted[f"group {group}" if group >= 0 else "no group", max(1, cores), seconds] += 1


def _whole(what: str, text: str, most: int) -> int:
    """Whole number of a field, at least -1; a fraction is rounded up, as the format's seconds are whole."""
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not -1 <= value <= most:
        raise ValueError(
            f"{what} is {text[:40]!r}; write a number up to {most}, or -1 if it is not known"
        )
    return ceil(value)
