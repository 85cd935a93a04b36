"""``AcctGroup_hs06.txt``: a row a job, as the seed's ``condor_q … -af`` command prints them.

JobStatus (1 or 2), node (or ``PEND``), group, seconds running, cores, HS06 per core.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Optional

from sharectl.adapters import files, pipes
from sharectl.core.groups import group_of
from sharectl.core.model import (
    DEFAULT_NODE_CORES,
    DEFAULT_NODE_HS06,
    Node,
    PendingJobs,
    RunningJobs,
    Snapshot,
)
from sharectl.core.nodes import HOST_NAME
from sharectl.errors import InputError

PENDING_NODE = "PEND"
IDLE, RUNNING = 1, 2

MAX_CORES = 1_000_000
MAX_SECONDS = 10**10
MAX_PROBLEMS = 20
"""Problems that one error message lists."""
MAX_LINE = 2**20
"""Characters of a line that are looked at."""

_DEFAULT_POWER = DEFAULT_NODE_HS06 / DEFAULT_NODE_CORES
# The group is the one column that a user writes: it may hold blanks, or nothing, so it is what the others leave over.
_ROW = re.compile(
    r"(?P<status>\S+)\s+(?P<node>\S+)\s(?P<group>.*)\s(?P<seconds>\S+)\s+(?P<cores>\S+)\s+(?P<power>\S+)"
)
_NO_VALUE = frozenset(("undefined", "error"))
_SILENCE = "All queues are empty"
"""What ``condor_q -global`` prints on standard output where there is no job."""
_ROWS_A_CHUNK = 1000


@dataclass(frozen=True)
class JobRows:
    """What a jobs file holds."""

    running: tuple[RunningJobs, ...]
    pending: tuple[PendingJobs, ...]
    ignored_rows: int
    """Rows of jobs that neither run nor wait (held, completed), or that run without a slot (local, grid universe)."""
    defaulted_rows: int
    """Rows of running jobs whose cores or power condor_q could not tell: they count by default."""


def write(path: Path, snapshot: Snapshot) -> None:
    """Replace the file at ``path`` by the jobs of ``snapshot``, running ones first.

    Raises
    ------
    StateError
        If it cannot be written.
    """
    files.replace(path, _lines(snapshot))


def read(path: Path, groups: Collection[str]) -> JobRows:
    """Jobs of a file, their groups matched against ``groups``.

    A value that condor_q printed as ``undefined`` or ``error`` takes the seed's default.

    Raises
    ------
    InputError
        If it cannot be read, or has rows that are none; all of them are named.
    """
    try:
        with pipes.open_text(path, errors="replace") as file:
            return parse(files.lines_of(file, MAX_LINE), str(path), groups)
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror}"]) from error


def parse(lines: Iterable[str], name: str, groups: Collection[str]) -> JobRows:
    """Jobs of the rows ``lines``; ``name`` is what messages call the file. Raises as `read`."""
    running: list[RunningJobs] = []
    pending: Counter[tuple[str, int]] = Counter()
    ignored = defaulted = 0
    problems: list[str] = []
    wrong_rows = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#") or text == _SILENCE:
            continue
        try:
            status, job = _job(text, groups)
        except ValueError as error:
            wrong_rows += 1
            if wrong_rows <= MAX_PROBLEMS:
                problems.append(f"{name}:{number}: {error}")
            continue
        if status == RUNNING and job.node != PENDING_NODE:
            running.append(job)
            defaulted += not _NO_VALUE.isdisjoint(text.split()[-2:])
        elif status == IDLE:
            pending[job.group, job.cores] += 1
        else:
            ignored += 1
    if problems:
        rest = wrong_rows - len(problems)
        raise InputError([*problems, f"… and {rest} more like these"] if rest else problems)
    waiting = tuple(PendingJobs(group, cores, jobs) for (group, cores), jobs in pending.items())
    return JobRows(tuple(running), waiting, ignored, defaulted)


def _job(text: str, groups: Collection[str]) -> tuple[int, RunningJobs]:
    row = _ROW.fullmatch(text)
    if row is None:
        raise ValueError(
            "needs 6 columns: JobStatus, node or PEND, group, seconds running, cores, HS06 per core; "
            f"found {len(text.split())}"
        )
    status = int(_number("JobStatus", row["status"], 0, 9))
    group = row["group"].strip()
    # HTCondor wrote cores and power of a job that runs; those of one that waits may be whatever its user wished.
    provisioned = status == RUNNING
    return status, RunningJobs(
        node=_node(row["node"]),
        group=group_of(None if group in _NO_VALUE else group, groups),
        cores=_provisioned(row["cores"]) if provisioned else _requested(row["cores"]),
        hs06_per_core=_power(row["power"]) if provisioned else _DEFAULT_POWER,
        # A node's clock may be a little ahead of the schedd's.
        seconds=max(0, _whole("seconds running", row["seconds"], -MAX_SECONDS, MAX_SECONDS, default=0)),
    )


def _node(text: str) -> str:
    if text in _NO_VALUE:
        return PENDING_NODE
    if not HOST_NAME.fullmatch(text):
        raise ValueError(f"node is {text[:40]!r}; write a host name or {PENDING_NODE}")
    return text if text == PENDING_NODE else text.lower()


def _number(what: str, text: str, least: float, most: float, default: Optional[float] = None) -> float:
    if default is not None and text in _NO_VALUE:
        return default
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{what} is {text[:40]!r}; write a number") from None
    if not (isfinite(value) and least <= value <= most):
        raise ValueError(f"{what} is {text[:40]!r}; write a number from {least:g} to {most:g}")
    return value


def _whole(what: str, text: str, least: int, most: int, default: int) -> int:
    value = _number(what, text, least, most, default)
    if value != int(value):
        raise ValueError(f"{what} is {text[:40]!r}; write a whole number")
    return int(value)


def _provisioned(text: str) -> int:
    """Cores of a job that runs; HTCondor lets a job have 0, which is counted as 1."""
    return max(1, _whole("cores", text, 0, MAX_CORES, default=1))


def _requested(text: str) -> int:
    """Cores that a pending job requests: 1 if that is less, nothing or no number, cut to a whole number."""
    try:
        value = float(text)
    except ValueError:
        return 1
    return int(min(value, MAX_CORES)) if value >= 1 else 1


def _power(text: str) -> float:
    value = _number("HS06 per core", text, 0, 1e6, default=_DEFAULT_POWER)
    if value == 0:
        raise ValueError("HS06 per core is 0; write the power of one core, such as 10.0")
    return value


def _lines(snapshot: Snapshot) -> Iterator[str]:
    power = f"{_DEFAULT_POWER:.12g}"
    for job in snapshot.running:
        row = f"{RUNNING} {job.node} {job.group} {job.seconds} {job.cores} {job.hs06_per_core:.12g}\n"
        yield from _repeated(row, job.jobs)
    for jobs in snapshot.pending:
        row = f"{IDLE} {PENDING_NODE} {jobs.group} 0 {jobs.cores} {power}\n"
        yield from _repeated(row, jobs.jobs)


def _repeated(row: str, times: int) -> Iterator[str]:
    """``row`` so many times, in chunks: 100,000 pending jobs are not held in memory at once."""
    chunks, rest = divmod(times, _ROWS_A_CHUNK)
    for _ in range(chunks):
        yield row * _ROWS_A_CHUNK
    yield row * rest


def as_snapshot(
    rows: JobRows,
    taken_at: int,
    controlled: Mapping[str, bool],
    reserved: Collection[str] = frozenset(),
) -> Snapshot:
    """Snapshot made of the rows of a file, for replaying a decision.

    Parameters
    ----------
    rows
        What `read` returned.
    taken_at
        Unix seconds.
    controlled
        Node -> whether it is under control.
    reserved
        Nodes that are kept free of targets.
    """
    power = {job.node: job.hs06_per_core for job in rows.running}
    return Snapshot(
        taken_at=taken_at,
        nodes=tuple(
            Node(node, node, cores=0, hs06_per_core=power[node], controlled=under, reserved=node in reserved)
            for node, under in controlled.items()
        ),
        running=rows.running,
        pending=rows.pending,
    )
