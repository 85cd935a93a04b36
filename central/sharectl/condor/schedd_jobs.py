"""Jobs of one schedd: pending ones counted by kind, running ones, waiting times of a sample."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor.accounts import charged
from sharectl.condor.ads import account, ad_of, evaluated, number, quoted, text, value_of, whole
from sharectl.condor.daemons import grouped
from sharectl.model import IN_SLOTS
from sharectl.plan.nodes import HOST_NAME
from sharectl.shares.demand import STARTED_SECONDS, JobWait

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
    counts = sorted(sample.items()) if any(sample.values()) else [(0, 1)]
    total = sum(count for _, count in counts)
    bounds = [0, *(jobs * seen // total for seen in accumulate(count for _, count in counts))]
    shared = {size: high - low for (size, _), low, high in zip(counts, bounds, bounds[1:])}
    return {size: share for size, share in shared.items() if share}


NO_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid (elsewhere), local."""
PARALLEL = 11
"""Universe of jobs that a dedicated scheduler places."""
IS_DEDICATED = "TARGET.DedicatedScheduler == "
_PENDING = 1
"""JobStatus."""
IS_PENDING = f"JobStatus == {_PENDING}"
_HOLDS_SLOT = f"({' || '.join(f'JobStatus == {status}' for status in IN_SLOTS)})"
# The schedd applies the constraint to the grouped rows too: what it names must be a key. It
# evaluates it for each job, so the few rows are sorted out by universe here.
COUNTED_KEYS = (
    "JobStatus", "JobUniverse", "MaxHosts", "AccountingGroup", "RequestCpus", "RequestMemory"
)  # fmt: skip
MOST_ROWS = 2000
"""Rows of an answer. Where each job has a RequestMemory of its own, there is a row a job.

Beyond so many the jobs are counted without memory, which is that of a sample then.
"""
MEMORY_SAMPLE_JOBS = 2000
ALL_TELL_JOBS = 1000
"""Pending jobs that all tell their waiting times."""
SAMPLE_JOBS = 300
"""Of more jobs a sample of about as many tells them, by size: a job costs as much as 20 counted."""
MOST_SIZES = 8
"""Sizes that have a sample each; of others one in as many jobs is asked for as of all."""
MOST_SAMPLED = 8 * ALL_TELL_JOBS
"""More jobs are not read: many may have started."""
_IN_SLOTS = " && ".join(f"JobUniverse =!= {number}" for number in NO_SLOT)
_ALL = f"({IS_PENDING} || {_HOLDS_SLOT}) && {_IN_SLOTS}"
_STARTED = f"{_HOLDS_SLOT} && time() - JobStartDate < {STARTED_SECONDS}"
_WAIT_PROJECTION = [
    "JobStatus", "AccountingGroup", "RequestCpus", "QDate", "JobStartDate", "ServerTime"
]  # fmt: skip
_JOB_PROJECTION = [
    *_WAIT_PROJECTION,
    "JobUniverse",
    "MaxHosts",
    "RequestMemory",
    "RemoteHost",
    "CpusProvisioned",
    "MemoryProvisioned",
    "MATCH_t1_wn_hs06",
    "MATCH_TotalSlotCpus",
]
_DYNAMIC_PART = re.compile(r"_\d+$")
_MOST_CORES = 1_000_000
_MOST_SLOTS = 10_000
_MOST_HS06 = 1e9


class Job(NamedTuple):
    """A job that runs, by its slot or its schedd."""

    machine: str
    """Host name, lower case."""
    accounting_group: Optional[str]
    cores: int
    since: int
    """Unix seconds; 0 if unknown."""
    memory_mib: int = 0
    """0 if unknown."""
    node_hs06: Optional[float] = None
    """Power of the whole machine (MATCH_t1_wn_hs06); None if unknown."""
    node_cores: Optional[int] = None
    """Cores of the whole machine (MATCH_TotalSlotCpus); None if unknown."""
    slot: str = ""
    """Name of the slot, lower case, of a dynamic one its partitionable slot's; empty if unknown."""


Kind = tuple[Optional[str], int, int]
"""AccountingGroup, cores, memory in MiB (0: unknown)."""


class ScheddJobs(NamedTuple):
    """Jobs of one schedd."""

    pending: Mapping[Kind, int]
    """Kind -> jobs; requested memory is rounded up."""
    running: tuple[Job, ...] = ()
    waits: tuple[JobWait, ...] = ()
    """Of jobs that wait or have just started, with AccountingGroup for the group."""


def count_pending(schedd: Any, _name: str, most_cores: int) -> ScheddJobs:
    """Pending jobs counted by the schedd: the answer grows with kinds of jobs, not with jobs."""
    rows = grouped(schedd, IS_PENDING, COUNTED_KEYS, MOST_ROWS)
    counted = counted_jobs(schedd, charged(rows), most_cores)
    if counted is not None:
        return counted
    rows = grouped(schedd, IS_PENDING, COUNTED_KEYS[:-1])
    without = counted_kinds(charged(rows), most_cores)
    every = max(1, sum(without.values()) // MEMORY_SAMPLE_JOBS)
    constraint = f"{IS_PENDING} && (ClusterId + ProcId) % {every} == 0"
    sample = schedd.query(constraint=constraint, projection=list(COUNTED_KEYS))
    seen = counted_kinds(charged(sample), most_cores)
    return with_waits(schedd, with_memory(without, seen), most_cores)


def counted_jobs(schedd: Any, rows: Sequence[Any], most_cores: int) -> Optional[ScheddJobs]:
    """Pending jobs of all these rows; None if some are cut off."""
    if len(rows) >= MOST_ROWS:
        return None
    return with_waits(schedd, counted_kinds(rows, most_cores), most_cores)


def with_waits(schedd: Any, counted: Mapping[Kind, int], most_cores: int) -> ScheddJobs:
    """Pending jobs by kind, with a sample of waiting times."""
    return ScheddJobs(counted, waits=tuple(sampled_waits(schedd, counted, most_cores)))


def counted_kinds(rows: Iterable[Any], most_cores: int) -> Counter[Kind]:
    """Jobs by kind, of rows or of jobs, which are one each."""
    counted: Counter[Kind] = Counter()
    for row in rows:
        if row.get("JobUniverse") not in NO_SLOT:
            counted[kind_of(row, most_cores)] += number_in(row)
    return counted


def number_in(row: Any) -> int:
    """Jobs of a row; a parallel job counts once for each slot that it wants (machine_count)."""
    slots = row.get("MaxHosts") if row.get("JobUniverse") == PARALLEL else 1
    return whole(row.get("JobCount"), 1) * whole(slots, 1, 1, _MOST_SLOTS)


def with_memory(counted: Mapping[Kind, int], sample: Mapping[Kind, int]) -> Counter[Kind]:
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


def sampled_waits(schedd: Any, counted: Mapping[Kind, int], most_cores: int) -> Iterable[JobWait]:
    """Sample of jobs that wait or have just started; empty if the schedd cannot tell."""
    by_cores: Counter[int] = Counter()
    for (_, cores, _), jobs in counted.items():
        by_cores[cores] += jobs
    steps = steps_of(by_cores)
    step = str(steps[0])
    for cores in [cores for cores in reversed(steps) if cores]:  # the most jobs come first
        step = f"ifThenElse(RequestCpus =?= {cores}, {steps[cores]}, {step})"
    wanted = f"{IS_PENDING} ? (ClusterId + ProcId) % ({step}) == 0 : {_STARTED}"
    try:
        ads = schedd.query(
            constraint=f"({wanted}) && {_IN_SLOTS}", projection=_WAIT_PROJECTION, limit=MOST_SAMPLED
        )
    except Exception:  # noqa: BLE001 - waiting times are unknown then, and nothing hangs on them
        return ()
    # Of the jobs that were cut off nobody knows which they are.
    return () if len(ads) >= MOST_SAMPLED else waits_in(charged(ads), most_cores, steps)


def steps_of(pending: Mapping[int, int]) -> dict[int, int]:
    """Cores -> one in how many of such jobs is asked for; 0: of those of other sizes."""
    total = sum(pending.values())
    if total <= ALL_TELL_JOBS:
        return {0: 1}
    most = Counter(pending).most_common(MOST_SIZES)
    share = SAMPLE_JOBS // len(most)
    return {**{cores: -(-jobs // share) for cores, jobs in most}, 0: -(-total // share)}


def waits_in(ads: Iterable[Any], most_cores: int, steps: Mapping[int, int]) -> Iterator[JobWait]:
    """Jobs that tell how long they wait, or did; ``steps`` is empty if ``ads`` has all jobs."""
    for ad in ads:
        submitted = whole(evaluated(ad, "QDate"), 0)
        started = evaluated(ad, "JobStatus") != _PENDING
        began = whole(evaluated(ad, "JobStartDate"), 0) if started else 0
        at = whole(evaluated(ad, "ServerTime"), 0) or int(time.time())
        if submitted and (not started or 0 <= at - began < STARTED_SECONDS):
            # The step is that of the request itself, which may count as less.
            cores = evaluated(ad, "RequestCpus")
            step = steps.get(cores if type(cores) is int else 0, steps.get(0, 1))
            yield JobWait(
                account(ad.get("AccountingGroup")) or "",
                _requested(ad, most_cores),
                started,
                max(0, (began if started else at) - submitted),
                1 if started else step,
            )


def list_jobs(schedd: Any, _name: str, most_cores: int) -> ScheddJobs:
    """Pending jobs counted, running ones in full, from one query for every job."""
    ads = charged(schedd.query(constraint=_ALL, projection=_JOB_PROJECTION))
    pending = [ad for ad in ads if evaluated(ad, "JobStatus") == _PENDING]
    running = (_running(ad, most_cores) for ad in ads if evaluated(ad, "JobStatus") != _PENDING)
    return ScheddJobs(
        counted_kinds(pending, most_cores),
        tuple(job for job in running if job is not None),
        tuple(waits_in(ads, most_cores, {})),
    )


def _running(ad: Any, most_cores: int) -> Optional[Job]:
    """Job that runs; None if its schedd does not say where: it holds no slot."""
    slot, _, host = (text(evaluated(ad, "RemoteHost")) or "").lower().rpartition("@")
    if not HOST_NAME.fullmatch(host):
        return None
    return Job(
        host,
        account(ad.get("AccountingGroup")),
        whole(evaluated(ad, "CpusProvisioned"), 0, most=_MOST_CORES) or _requested(ad, most_cores),
        whole(evaluated(ad, "JobStartDate"), 0),
        whole(evaluated(ad, "MemoryProvisioned"), 0),
        _match_number(ad, "MATCH_t1_wn_hs06") or None,
        int(_match_number(ad, "MATCH_TotalSlotCpus")) or None,
        f"{_DYNAMIC_PART.sub('', slot)}@{host}",
    )


def _match_number(ad: Any, name: str) -> float:
    """Number that ``$$(…)`` left in the job, perhaps as text; 0 without it."""
    value = evaluated(ad, name)
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    return number(value, 0.0, most=_MOST_HS06)


def kind_of(ad: Any, most_cores: int) -> Kind:
    """Kind of a job, or of jobs that were grouped."""
    memory_mib = whole(evaluated(ad, "RequestMemory"), 0)
    group = account(ad.get("AccountingGroup"))
    return group, _requested(ad, most_cores), counted_memory_mib(memory_mib)


def _requested(ad: Any, most_cores: int) -> int:
    """Cores that a job requests, from 1 to ``most_cores``; 1 if they are unknown.

    A request that only a slot can answer, such as TARGET.TotalSlotCpus, is asked of an empty slot
    that has ``most_cores``.
    """
    cores = evaluated(ad, "RequestCpus")
    if type(cores) not in (int, float):
        slot = ad_of(dict.fromkeys(("Cpus", "TotalSlotCpus", "TotalCpus"), most_cores))
        cores = value_of(ad.get("RequestCpus"), ad, slot)
    return min(whole(cores, 1, 1, sys.float_info.max), most_cores)


MODES: Mapping[str, Callable[..., ScheddJobs]] = {
    "counted": count_pending,
    "jobs": list_jobs,
}
"""Ways to ask for jobs: counted by the schedd, or one by one."""


def dedicated(schedd: str, requirements: str) -> str:
    """Requirements of a parallel job: its dedicated scheduler asks for slots that name it."""
    name = quoted(f"DedicatedScheduler@{schedd}")
    return f"{IS_DEDICATED}{name} && ({requirements})"
