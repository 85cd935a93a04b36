"""Jobs of one schedd: pending ones counted by kind, running ones, in few enough rows to send."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Optional

from sharectl.condor import job_waits
from sharectl.condor.ads import (
    MAX_TEXT,
    account,
    ad_of,
    evaluated,
    number,
    text,
    value_of,
    whole,
)
from sharectl.condor.daemons import grouped
from sharectl.condor.job_waits import SampledJob
from sharectl.plan.nodes import HOST_NAME

LEAST_GRAIN_MIB = 128
"""What HTCondor itself rounds a request for memory up to (MODIFY_REQUEST_EXPR_REQUESTMEMORY)."""


def counted_memory_mib(requested_mib: int) -> int:
    """``requested_mib`` rounded up by an eighth at most, or to 128 MiB; 0 if unknown."""
    if requested_mib <= 0:
        return 0
    grain = max(LEAST_GRAIN_MIB, 1 << max(0, (requested_mib - 1).bit_length() - 4))
    return -(-requested_mib // grain) * grain


def shared_out(jobs: int, sample: Mapping[int, int]) -> dict[int, int]:
    """``jobs`` in the proportions of a sample: value -> jobs; without a sample all are of 0."""
    sizes = sorted(size for size, count in sample.items() if count > 0)
    total = sum(sample[size] for size in sizes)
    if not total:
        return {0: jobs} if jobs > 0 else {}
    bounds = [0, *(jobs * seen // total for seen in accumulate(sample[size] for size in sizes))]
    return {size: high - low for size, low, high in zip(sizes, bounds, bounds[1:]) if high > low}


_SCHEDULER, _GRID, _LOCAL = 7, 9, 12
NO_SLOT = (_SCHEDULER, _GRID, _LOCAL)
"""Universes whose jobs hold no slot of the pool: they run in the schedd, or elsewhere (grid)."""
# The schedd applies the constraint to the grouped rows too: what it names must be a key. It
# evaluates it for each job, so the few rows are sorted out by universe here.
_PENDING = "JobStatus == 1"
_PENDING_KEYS = ["JobStatus", "JobUniverse", "AccountingGroup", "RequestCpus"]
MOST_ROWS = 2000
"""Rows of an answer. Where each job has a RequestMemory of its own, there is a row a job.

Beyond so many the jobs are counted without memory, which is that of a sample then.
"""
SAMPLE_JOBS = 2000
_IN_SLOTS = " && ".join(f"JobUniverse =!= {number}" for number in NO_SLOT)
_ALL = f"(JobStatus == 1 || JobStatus == 2) && {_IN_SLOTS}"
_JOB_NAMES = """
    JobStatus RemoteHost AccountingGroup JobStartDate CpusProvisioned RequestCpus MemoryProvisioned
    RequestMemory MATCH_t1_wn_hs06 MATCH_TotalSlotCpus QDate ServerTime
"""
_JOB_PROJECTION = _JOB_NAMES.split()
_MOST_CORES = 1_000_000
_MOST_HS06 = 1e9


@dataclass(frozen=True)
class Held:
    """Cores and memory that a job holds."""

    accounting_group: Optional[str]
    cores: int
    since: int
    """Unix seconds; 0 if unknown."""
    memory_mib: int = 0
    """0 if unknown."""


@dataclass(frozen=True)
class Job:
    """A job that runs, as its schedd knows it."""

    machine: str
    """Host name, lower case."""
    held: Held
    node_hs06: Optional[float] = None
    """MATCH_t1_wn_hs06; None if the job carries none."""
    node_cores: Optional[int] = None
    """MATCH_TotalSlotCpus; None if the job carries none."""


@dataclass(frozen=True)
class Sizes:
    """How requests for cores are counted."""

    most_cores: int
    """Larger requests count as this."""
    whole_node: Mapping[str, int] = field(default_factory=dict)
    """Slot in which requests that name its attributes are evaluated; empty: they count as 1."""


@dataclass(frozen=True)
class ScheddJobs:
    """Jobs of one schedd."""

    pending: tuple[tuple[Optional[str], int, int, int], ...]
    """AccountingGroup, cores and MiB requested (rounded up; 0: unknown), jobs."""
    running: tuple[Job, ...] = ()
    waits: tuple[SampledJob, ...] = ()
    """Of jobs that wait or have just started; without those of which it is not known."""


Kind = tuple[Optional[str], int, int]
"""AccountingGroup, cores, memory in MiB."""


def count_pending(schedd: Any, _name: str, sizes: Sizes) -> ScheddJobs:
    """Pending jobs counted by the schedd: the answer grows with kinds of jobs, not with jobs.

    Parameters
    ----------
    schedd
        Of the bindings.
    sizes
        How requests are counted.
    """
    rows = grouped(schedd, _PENDING, [*_PENDING_KEYS, "RequestMemory"], MOST_ROWS)
    if len(rows) < MOST_ROWS:
        return _with_waits(schedd, _counted(rows, sizes), sizes)
    counted = _counted(grouped(schedd, _PENDING, _PENDING_KEYS), sizes)
    every = max(1, sum(counted.values()) // SAMPLE_JOBS)
    sample = schedd.query(
        constraint=f"{_PENDING} && (ClusterId + ProcId) % {every} == 0",
        projection=[*_PENDING_KEYS, "RequestMemory"],
    )
    return _with_waits(schedd, _with_memory(counted, _counted(sample, sizes)), sizes)


def _with_waits(schedd: Any, counted: Counter[Kind], sizes: Sizes) -> ScheddJobs:
    """Pending jobs, and how long they wait."""
    by_cores: Counter[int] = Counter()
    for (_, cores, _), jobs in counted.items():
        by_cores[cores] += jobs
    waits = job_waits.sample(schedd, by_cores, partial(_group_and_cores, sizes=sizes), _IN_SLOTS)
    return ScheddJobs(_flat(counted), waits=tuple(waits))


def _group_and_cores(ad: Any, sizes: Sizes) -> tuple[Optional[str], int]:
    return _accounting_group(ad), _requested(ad, sizes)


def _counted(rows: Iterable[Any], sizes: Sizes) -> Counter[Kind]:
    """Jobs by kind, of rows or of jobs, which are one each."""
    counted: Counter[Kind] = Counter()
    for row in rows:
        if row.get("JobUniverse") not in NO_SLOT:
            counted[kind_of(row, sizes)] += whole(row.get("JobCount"), 1)
    return counted


def _with_memory(counted: Mapping[Kind, int], sample: Mapping[Kind, int]) -> Counter[Kind]:
    """Jobs counted without memory, with that of a sample, group by group and size by size."""
    seen: dict[tuple[Optional[str], int], Counter[int]] = {}
    for (group, cores, memory_mib), jobs in sample.items():
        seen.setdefault((group, cores), Counter())[memory_mib] += jobs
    return Counter(
        {
            (group, cores, memory_mib): share
            for (group, cores, _), jobs in counted.items()
            for memory_mib, share in shared_out(jobs, seen.get((group, cores), Counter())).items()
        }
    )


def list_jobs(schedd: Any, _name: str, sizes: Sizes) -> ScheddJobs:
    """Pending jobs counted, running ones in full, from one query for every job."""
    pending: Counter[Kind] = Counter()
    running: list[Job] = []
    ads = schedd.query(constraint=_ALL, projection=_JOB_PROJECTION)
    for ad in ads:
        if evaluated(ad, "JobStatus") == 1:
            pending[kind_of(ad, sizes)] += 1
        elif (job := _running(ad, sizes)) is not None:
            running.append(job)
    waits = job_waits.waits_in(ads, partial(_group_and_cores, sizes=sizes), {}, int(time.time()))
    return ScheddJobs(_flat(pending), tuple(running), tuple(waits))


def _running(ad: Any, sizes: Sizes) -> Optional[Job]:
    """Job that runs; None if its schedd does not say where: it holds no slot."""
    host = (text(evaluated(ad, "RemoteHost")) or "").rpartition("@")[2].lower()
    if not HOST_NAME.fullmatch(host):
        return None
    power = _match_number(ad, "MATCH_t1_wn_hs06")
    node_cores = int(_match_number(ad, "MATCH_TotalSlotCpus"))
    held = Held(
        _accounting_group(ad),
        whole(evaluated(ad, "CpusProvisioned"), 0, most=_MOST_CORES) or _requested(ad, sizes),
        whole(evaluated(ad, "JobStartDate"), 0),
        whole(evaluated(ad, "MemoryProvisioned"), 0),
    )
    return Job(host, held, power if power > 0 else None, node_cores if node_cores > 0 else None)


def _match_number(ad: Any, name: str) -> float:
    """Number that ``$$(…)`` left in the job, perhaps as text; 0 if there is none."""
    value = evaluated(ad, name)
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value[:MAX_TEXT])
    return number(value, 0.0, most=_MOST_HS06)


def _accounting_group(ad: Any) -> Optional[str]:
    return account(ad.get("AccountingGroup"))


def kind_of(ad: Any, sizes: Sizes) -> Kind:
    """Kind of a job, or of jobs that were grouped."""
    memory_mib = whole(evaluated(ad, "RequestMemory"), 0)
    return _accounting_group(ad), _requested(ad, sizes), counted_memory_mib(memory_mib)


def _requested(ad: Any, sizes: Sizes) -> int:
    """Cores that a job requests, at least 1.

    What only a slot can tell is asked of the node that ``sizes`` names.
    """
    cores = evaluated(ad, "RequestCpus")
    if sizes.whole_node and type(cores) not in (int, float):
        cores = _in_slot(ad.get("RequestCpus"), ad, sizes.whole_node)
    return min(whole(cores, 1, least=1, most=sys.float_info.max), sizes.most_cores)


def _in_slot(request: Any, job: Any, slot: Mapping[str, int]) -> Any:
    """Value of a request in a slot; None of one that is no expression, or has no value there."""
    return value_of(request, job, ad_of(slot))


def _flat(counted: Counter[Kind]) -> tuple[tuple[Optional[str], int, int, int], ...]:
    return tuple(
        (group, cores, memory_mib, jobs) for (group, cores, memory_mib), jobs in counted.items()
    )
