"""What one schedd knows of its jobs. Each function asks one question and returns plain values."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from sharectl.adapters.ads import MAX_TEXT, evaluated, number, text, whole
from sharectl.core.nodes import HOST_NAME

# Universes whose jobs hold no slot of the pool: they run in the schedd (scheduler, as DAGMan does, and local) or
# elsewhere (grid). The seed leaves out the first; the slots do not know the others either.
_SCHEDULER, _GRID, _LOCAL = 7, 9, 12
_NO_SLOT = (_SCHEDULER, _GRID, _LOCAL)
# The schedd applies the constraint to the grouped rows too: what it names must be a key. It evaluates it for each
# job, so the few rows are sorted out by universe here.
_PENDING = "JobStatus == 1"
_PENDING_KEYS = ["JobStatus", "JobUniverse", "AcctGroup", "RequestCpus"]
_ALL = "(JobStatus == 1 || JobStatus == 2) && " + " && ".join(
    f"JobUniverse =!= {number}" for number in _NO_SLOT
)
_JOB_PROJECTION = [
    "JobStatus",
    "RemoteHost",
    "AcctGroup",
    "JobStartDate",
    "CpusProvisioned",
    "RequestCpus",
    "MATCH_t1_wn_hs06",
    "MATCH_TotalSlotCpus",
]
_MOST_CORES = 1_000_000
_MOST_HS06 = 1e9


@dataclass(frozen=True)
class Job:
    """A job that runs, as its schedd knows it."""

    machine: str
    """Host name, lower case."""
    accounting_group: Optional[str]
    since: int
    """Unix seconds; 0 if unknown."""
    cores: int
    node_hs06: Optional[float]
    """MATCH_t1_wn_hs06; None if the job carries none."""
    node_cores: Optional[int]
    """MATCH_TotalSlotCpus, likewise."""


@dataclass(frozen=True)
class ScheddJobs:
    """Jobs of one schedd."""

    pending: tuple[tuple[Optional[str], int, int], ...]
    """AcctGroup, cores requested, jobs."""
    running: tuple[Job, ...] = ()


def count_pending(location: Mapping[str, str], most_cores: int) -> ScheddJobs:
    """Pending jobs, counted by the schedd itself: the answer grows with kinds of jobs, not with jobs.

    Parameters
    ----------
    location
        Of the schedd: attributes `sharectl.adapters.collector.SCHEDD_LOCATION`.
    most_cores
        Larger requests count as this (8 in the seed).
    """
    import htcondor2

    rows = _schedd(location).query(
        constraint=_PENDING, projection=_PENDING_KEYS, opts=htcondor2.QueryOpt.GroupBy
    )
    counted: Counter[tuple[Optional[str], int]] = Counter()
    for row in rows:
        if row.get("JobUniverse") in _NO_SLOT:
            continue
        counted[_accounting_group(row), _requested(row, most_cores)] += whole(row.get("JobCount"), 0)
    return ScheddJobs(_flat(counted))


def list_jobs(location: Mapping[str, str], most_cores: int) -> ScheddJobs:
    """Pending jobs counted, running ones in full, from one query for every job, as the seed's command does."""
    pending: Counter[tuple[Optional[str], int]] = Counter()
    running: list[Job] = []
    for ad in _schedd(location).query(constraint=_ALL, projection=_JOB_PROJECTION):
        if evaluated(ad, "JobStatus") == 1:
            pending[_accounting_group(ad), _requested(ad, most_cores)] += 1
        elif (job := _running(ad, most_cores)) is not None:
            running.append(job)
    return ScheddJobs(_flat(pending), tuple(running))


def _schedd(location: Mapping[str, str]) -> Any:
    import classad2
    import htcondor2

    return htcondor2.Schedd(classad2.ClassAd(dict(location)))


def _running(ad: Any, most_cores: int) -> Optional[Job]:
    """Job that runs; None if its schedd does not say where: it holds no slot."""
    host = (text(evaluated(ad, "RemoteHost")) or "").rpartition("@")[2].lower()
    if not HOST_NAME.fullmatch(host):
        return None
    power = _match_number(ad, "MATCH_t1_wn_hs06")
    node_cores = int(_match_number(ad, "MATCH_TotalSlotCpus"))
    return Job(
        machine=host,
        accounting_group=_accounting_group(ad),
        since=whole(evaluated(ad, "JobStartDate"), 0),
        cores=whole(evaluated(ad, "CpusProvisioned"), 0, most=_MOST_CORES) or _requested(ad, most_cores),
        node_hs06=power if power > 0 else None,
        node_cores=node_cores if node_cores > 0 else None,
    )


def _match_number(ad: Any, name: str) -> float:
    """Number that ``$$(…)`` left in the job, 0 if there is none; it may be there as text, hence the seed's int()."""
    value = evaluated(ad, name)
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value[:MAX_TEXT])
    return number(value, 0.0, most=_MOST_HS06)


def _accounting_group(ad: Any) -> Optional[str]:
    return text(evaluated(ad, "AcctGroup"))


def _requested(ad: Any, most_cores: int) -> int:
    return min(whole(evaluated(ad, "RequestCpus"), 1, least=1, most=sys.float_info.max), most_cores)


def _flat(counted: Counter[tuple[Optional[str], int]]) -> tuple[tuple[Optional[str], int, int], ...]:
    return tuple((group, cores, jobs) for (group, cores), jobs in counted.items())
