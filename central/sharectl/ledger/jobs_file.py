"""``AcctGroup_hs06.txt``: one row a job, as the seed's ``condor_q … -af`` command prints them.

JobStatus (1, 2, 6 or 7), node (or ``PEND``), group, seconds running, cores, HS06 per core.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Optional

from sharectl.errors import InputError
from sharectl.files import files
from sharectl.files.packed import MOST_PROBLEMS, text_errors
from sharectl.model import (
    DEFAULT_NODE_CORES,
    DEFAULT_NODE_HS06,
    IN_SLOTS,
    Node,
    PendingJobs,
    RunningJobs,
    Snapshot,
)
from sharectl.plan.nodes import HOST_NAME, Controlled, controlled_machines
from sharectl.shares.groups import group_of

PENDING_NODE = "PEND"
IDLE, RUNNING = 1, 2
MOST_PENDING = 5_000_000

MAX_CORES = 1_000_000
MAX_SECONDS = 10**10
MAX_LINE = 2**20
"""Characters of a line that are looked at."""

_DEFAULT_POWER = DEFAULT_NODE_HS06 / DEFAULT_NODE_CORES
_NO_VALUE = frozenset(("undefined", "error"))
_SILENCE = "All queues are empty"
"""Line that ``condor_q -global`` prints where there is no job."""
_COLUMNS = 6
_LEAST_POWER, _MOST_POWER = 1e-9, 1e6
_NEEDS = (
    f"needs 6 columns: JobStatus, node or {PENDING_NODE}, group, seconds running, cores and HS06 "
    "per core; of a running job whole cores and a power above 0"
)


@dataclass(frozen=True)
class JobRows:
    """Content of a jobs file."""

    running: tuple[RunningJobs, ...]
    pending: tuple[PendingJobs, ...]
    ignored_rows: int
    """Jobs that neither run nor wait (held, completed), or run without a slot (local, grid)."""
    defaulted_rows: int
    """Running jobs whose cores or power condor_q printed no value of: they count by default."""


def write(path: Path, snapshot: Snapshot, most_pending: int = MOST_PENDING) -> None:
    """Replace a file by jobs; of more pending ones than ``most_pending`` it has the number."""
    files.replace(path, _lines(snapshot, most_pending))


def read_jobs(path: Path, groups: Collection[str]) -> JobRows:
    """Jobs of a file, their groups matched against ``groups``.

    A value that condor_q printed as ``undefined`` or ``error`` takes the seed's default. Raises
    InputError if it cannot be read, or has invalid rows, with the first 20 of these.
    """
    with text_errors(str(path)), files.open_text(path, errors="replace") as file:
        return parse(files.lines_of(file, MAX_LINE), str(path), groups)


def parse(lines: Iterable[str], name: str, groups: Collection[str]) -> JobRows:
    """Jobs of the rows of a file ``name``. Raises as `read_jobs`."""
    running: list[RunningJobs] = []
    pending: Counter[tuple[str, int]] = Counter()
    ignored = defaulted = 0
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#") or text == _SILENCE:
            continue
        try:
            status, job, by_default = _row(text, groups)
        except ValueError as error:
            if "\0" in line:
                raise InputError([f"{name}:{number}: is no text; {_NEEDS}"]) from error
            problems.append(f"{name}:{number}: {_NEEDS}; found {text[:200]!r}; remove the row")
            if len(problems) == MOST_PROBLEMS:
                break
            continue
        if status in IN_SLOTS and job.node != PENDING_NODE:
            running.append(job)
            defaulted += by_default
        elif status == IDLE:
            pending[job.group, job.cores] += 1
        else:
            ignored += 1
    if problems:
        raise InputError(problems)
    waiting = tuple(PendingJobs(group, cores, jobs) for (group, cores), jobs in pending.items())
    return JobRows(tuple(running), waiting, ignored, defaulted)


def as_snapshot(
    rows: JobRows, taken_at: int, controlled: Controlled, reserved: Optional[Controlled] = None
) -> Snapshot:
    """Snapshot made of the rows of a file, to decide on it again."""
    power = {job.node: job.hs06_per_core for job in rows.running}
    under = controlled_machines(controlled, power)
    kept = controlled_machines(reserved, power) if reserved is not None else ()
    nodes = (
        Node(node, node, 0, power[node], controlled=node in under, reserved=node in kept)
        for node in sorted(power)
    )
    return Snapshot(taken_at, tuple(nodes), rows.running, rows.pending)


def _row(text: str, groups: Collection[str]) -> tuple[int, RunningJobs, bool]:
    """JobStatus, the job, and True if its cores or power have no value. Raises ValueError."""
    # Users write the group: it may hold blanks, or be empty between two.
    if len(re.split(r"\s", text)) < _COLUMNS:
        raise ValueError
    status, node, *words, seconds, cores, power = text.split()
    group = " ".join(words)
    if not HOST_NAME.fullmatch(node):
        raise ValueError
    job = RunningJobs(
        node=PENDING_NODE if node in (PENDING_NODE, *_NO_VALUE) else node.lower(),
        group=group_of(None if group in _NO_VALUE else group, groups),
        cores=_requested(cores),
        hs06_per_core=_DEFAULT_POWER,
        # A node's clock may be a little ahead of the schedd's.
        seconds=max(0, int(_number(seconds, -MAX_SECONDS, MAX_SECONDS, default=0))),
    )
    if int(status) in IN_SLOTS:
        # HTCondor lets a job hold 0 cores, which count as 1.
        slot_cores = max(1.0, _number(cores, 0, MAX_CORES, default=1))
        hs06 = _number(power, _LEAST_POWER, _MOST_POWER, default=_DEFAULT_POWER)
        if not slot_cores.is_integer():
            raise ValueError
        job = job._replace(cores=int(slot_cores), hs06_per_core=hs06)
    return int(status), job, bool(_NO_VALUE & {cores, power})


def _number(text: str, least: float, most: float, default: float) -> float:
    value = default if text in _NO_VALUE else float(text)
    if not least <= value <= most:
        raise ValueError
    return value


def _requested(text: str) -> int:
    """Cores that a pending job requests, cut to a whole number: users write what they wish."""
    try:
        value = float(text)
    except ValueError:
        return 1
    return int(min(value, MAX_CORES)) if value >= 1 else 1


def _lines(snapshot: Snapshot, most_pending: int) -> Iterator[str]:
    for job in snapshot.running:
        power = f"{job.hs06_per_core:.12g}"
        row = f"{RUNNING} {job.node} {job.group} {job.seconds} {job.cores} {power}\n"
        yield from repeat(row, job.jobs)
    room = most_pending
    # The largest last: users write how many slots a parallel job wants.
    for jobs in sorted(snapshot.pending, key=lambda jobs: jobs.jobs):
        written = min(jobs.jobs, room)
        room -= written
        row = f"{IDLE} {PENDING_NODE} {jobs.group} 0 {jobs.cores} {_DEFAULT_POWER:.12g}\n"
        yield from repeat(row, written)
        if written < jobs.jobs:
            yield f"# {jobs.jobs - written} more of {jobs.group}: {most_pending} are written\n"
