"""Jobs of one schedd: pending ones by kind, waiting times of a sample, and shapes for a trial.

A shape is pending jobs that are alike, with all that nodes see of them. A user may have thousands:
of each user so many are read as a trial has time for.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import ceil
from typing import Any, NamedTuple, Optional

from sharectl.condor import daemons
from sharectl.condor.accounts import ACCOUNT, charged
from sharectl.condor.ad_rows import LITERAL, AdRow, row_of, seen_by
from sharectl.condor.ads import account, classads, evaluated, number, quoted, text, whole
from sharectl.condor.daemons import CLUSTER, NO_SLOT, PARALLEL
from sharectl.model import IN_SLOTS
from sharectl.shares.demand import STARTED_SECONDS, JobWait, shared_out

LEAST_GRAIN_MIB = 128
"""Step of requests for memory in HTCondor (MODIFY_REQUEST_EXPR_REQUESTMEMORY)."""


def counted_memory_mib(requested_mib: int) -> int:
    """``requested_mib`` rounded up by an eighth at most, or to 128 MiB; 0 if unknown."""
    if requested_mib <= 0:
        return 0
    grain = max(LEAST_GRAIN_MIB, 1 << max(0, (requested_mib - 1).bit_length() - 4))
    return -(-requested_mib // grain) * grain


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
"""Rows of an answer; beyond so many, jobs are counted without memory, and a sample tells theirs."""
ALL_TELL_JOBS = 1000
"""Pending jobs that all tell their waiting times."""
MEMORY_SAMPLE_JOBS = 2000
SAMPLE_JOBS = 150
"""Of more jobs a sample tells them: about as many of one core, and of larger ones. A job costs as
much as 20 counted."""
MOST_SAMPLED = 8 * ALL_TELL_JOBS
"""More jobs are not read: many may have started."""
_IN_SLOTS = " && ".join(f"JobUniverse =!= {number}" for number in NO_SLOT)
_STARTED = f"{_HOLDS_SLOT} && time() - JobStartDate < {STARTED_SECONDS}"
MOST_REQUEST_CHARACTERS = 2000
"""Of a request that is evaluated on slots, with all that it looks at."""
MOST_REQUEST_NAMES = 100
"""Attributes that requests hang on, and that are fetched of a sample."""
_OF_FACTORIES = (
    *("TotalSubmitProcs", "JobMaterializeNextProcId", "JobMaterializeLimit", "JobsPresent"),
    *("JobFactoryStepSize", "JobFactoryItemCount"),
)
_REQUESTS = ("RequestCpus", "RequestMemory")
_OF_JOBS = frozenset(("memoryusage", "imagesize", "residentsetsize"))
"""Attributes of HTCondor's default requests, in lower case, that no slot has."""
_WAIT_PROJECTION = [
    "JobStatus", "AccountingGroup", *_REQUESTS, "QDate", "JobStartDate", "ServerTime"
]  # fmt: skip
_MOST_SLOTS = 10_000


class JobKind(NamedTuple):
    """Kind of jobs as their schedd counts them."""

    account: Optional[str]
    """AccountingGroup."""
    cores: int
    memory_mib: int
    """0 if unknown."""
    request: str = ""
    """`request_of` the jobs: they request these cores and this memory only where no slot is."""


class ScheddJobs(NamedTuple):
    """Jobs of one schedd."""

    pending: Mapping[JobKind, int]
    """Kind -> jobs; requested memory is rounded up."""
    waits: tuple[JobWait, ...] = ()
    """Of jobs that wait or have just started, with AccountingGroup for the group."""
    late: Mapping[JobKind, int] = {}
    """Jobs that are materialised as soon as others of their cluster start."""

    @property
    def counted(self) -> tuple[JobKind, ...]:
        """Kinds of all jobs that count."""
        return (*self.pending, *self.late)


def count_pending(schedd: Any, _name: str, most_cores: int) -> ScheddJobs:
    """Pending jobs counted by the schedd: the answer grows with kinds of jobs, not with jobs."""
    rows = daemons.grouped(schedd, IS_PENDING, COUNTED_KEYS, MOST_ROWS)
    counted = counted_kinds(charged(rows), most_cores)
    if len(rows) >= MOST_ROWS:
        rows = daemons.grouped(schedd, IS_PENDING, COUNTED_KEYS[:-1])
        without = counted_kinds(charged(rows), most_cores)
        every = max(1, sum(without.values()) // MEMORY_SAMPLE_JOBS)
        constraint = f"{IS_PENDING} && (ClusterId + ProcId) % {every} == 0"
        sample = schedd.query(constraint=constraint, projection=list(COUNTED_KEYS))
        counted = with_memory(without, counted_kinds(charged(sample), most_cores))
    return counted_jobs(schedd, counted, most_cores)


def with_memory(counted: Mapping[JobKind, int], sample: Mapping[JobKind, int]) -> Counter[JobKind]:
    """Jobs counted without memory, with that of a sample, group by group and size by size."""
    seen: defaultdict[tuple[Optional[str], int], Counter[int]] = defaultdict(Counter)
    for kind, jobs in sample.items():
        seen[kind[:2]][kind.memory_mib] += jobs
    return Counter(
        {
            kind._replace(memory_mib=memory_mib): share
            for kind, jobs in counted.items()
            for memory_mib, share in shared_out(jobs, seen[kind[:2]]).items()
        }
    )


def counted_jobs(schedd: Any, counted: Counter[JobKind], most_cores: int) -> ScheddJobs:
    """Pending jobs by kind, with late ones and a sample of waiting times."""
    late = late_jobs(charged(daemons.factories(schedd)), most_cores)
    return ScheddJobs(counted, sampled_waits(schedd, counted, most_cores), late)


def counted_kinds(rows: Iterable[Any], most_cores: int) -> Counter[JobKind]:
    """Jobs by kind, of rows or of jobs, which are one each."""
    counted: Counter[JobKind] = Counter()
    for row in rows:
        if row.get("JobUniverse") not in NO_SLOT:
            counted[kind_of(row, most_cores)] += number_in(row)
    return counted


def number_in(row: Any) -> int:
    """Jobs of a row; a parallel job counts once for each slot that it wants (machine_count)."""
    slots = row.get("MaxHosts") if row.get("JobUniverse") == PARALLEL else 1
    return whole(row.get("JobCount"), 1) * whole(slots, 1, 1, _MOST_SLOTS)


def late_jobs(clusters: Iterable[Any], most_cores: int) -> Counter[JobKind]:
    """Jobs that a factory makes as soon as others of its cluster start (max_idle), by kind.

    Jobs that wait for others to end (max_materialize), of a paused factory, or of a cluster in
    which the size of each job is another one, are no demand.
    """
    late: Counter[JobKind] = Counter()
    for ad in clusters:
        numbers = (whole(evaluated(ad, name), 0) for name in _OF_FACTORIES)
        total, made, limit, present, step, items = numbers
        jobs = max(0, (total or step * max(1, items)) - made)
        stopped = evaluated(ad, "JobFactoryPaused") or evaluated(ad, "JobMaterializeMaxIdle") == 0
        if "RequestCpus" in ad and not stopped and evaluated(ad, "JobUniverse") not in NO_SLOT:
            late[kind_of(ad, most_cores)] += min(jobs, max(0, limit - present))
    return +late


def sampled_waits(
    schedd: Any, counted: Mapping[JobKind, int], most_cores: int
) -> tuple[JobWait, ...]:
    """Sample of jobs that wait or have just started; empty if the schedd cannot tell."""
    steps = steps_of(counted)
    step = f"ifThenElse(RequestCpus =?= 1, {steps[0]}, {steps[1]})"
    wanted = f"{IS_PENDING} ? (ClusterId + ProcId) % ({step}) == 0 : {_STARTED}"
    # What a request hangs on has to be fetched with it.
    names = {name for kind in counted if kind.request for name in row_of(kind.request)}
    projection = list(dict.fromkeys((*_WAIT_PROJECTION, *sorted(names)[:MOST_REQUEST_NAMES])))
    try:
        wanted = f"({wanted}) && {_IN_SLOTS}"
        ads = schedd.query(constraint=wanted, projection=projection, limit=MOST_SAMPLED)
    except Exception:  # noqa: BLE001 - waiting times are unknown then, and nothing hangs on them
        return ()
    # Of the jobs that were cut off nobody knows which they are.
    return () if len(ads) >= MOST_SAMPLED else tuple(waits_in(charged(ads), most_cores, steps))


def steps_of(counted: Mapping[JobKind, int]) -> tuple[int, int]:
    """One in how many jobs of one core, and of other sizes, is asked for."""
    total = sum(counted.values())
    single = sum(jobs for kind, jobs in counted.items() if kind.cores == 1)
    if total <= ALL_TELL_JOBS:
        return 1, 1
    return max(1, ceil(single / SAMPLE_JOBS)), max(1, ceil((total - single) / SAMPLE_JOBS))


def waits_in(ads: Iterable[Any], most_cores: int, steps: tuple[int, int]) -> Iterator[JobWait]:
    """Jobs that tell how long they wait, or did; ``steps`` are as of `steps_of`."""
    for ad in ads:
        submitted = whole(evaluated(ad, "QDate"), 0)
        started = evaluated(ad, "JobStatus") != _PENDING
        began = whole(evaluated(ad, "JobStartDate"), 0) if started else 0
        at = whole(evaluated(ad, "ServerTime"), 0) or int(time.time())
        if submitted and (not started or 0 <= at - began < STARTED_SECONDS):
            # The step is that of the request itself, which may count as less.
            cores = evaluated(ad, "RequestCpus")
            step = steps[0] if type(cores) is int and cores == 1 else steps[1]
            kind, seconds = kind_of(ad, most_cores), max(0, (began if started else at) - submitted)
            jobs = 1 if started else step
            yield JobWait(kind.account or "", kind.cores, started, seconds, jobs, kind.request)


def kind_of(ad: Any, most_cores: int) -> JobKind:
    """Kind of a job, or of jobs that were grouped."""
    cores = whole_cores(evaluated(ad, "RequestCpus"), most_cores) or 1
    memory_mib = counted_memory_mib(whole(evaluated(ad, "RequestMemory"), 0))
    return JobKind(account(ad.get("AccountingGroup")), cores, memory_mib, request_of(ad))


def request_of(ad: Any) -> str:
    """Requests of a job for cores and memory, and the attributes that they hang on, as lines.

    Empty if no slot changes their values. An ad of grouped jobs has all these attributes.
    """
    if not any(isinstance(ad.get(name), classads().ExprTree) for name in _REQUESTS):
        return ""
    row = row_of(ad)
    reached, others = {name.lower() for name in _REQUESTS} & row.keys(), set[str]()
    for name in tuple(reached):
        of_job, slots, _ = seen_by(row[name], row, MOST_REQUEST_CHARACTERS)
        reached |= of_job & row.keys()
        others |= slots
    text = "\n".join(f"{name} = {row[name]}" for name in sorted(reached))
    return "" if others <= _OF_JOBS or len(text) > MOST_REQUEST_CHARACTERS else text


def whole_cores(value: Any, most_cores: int) -> Optional[int]:
    """Cores of a request of this value, which HTCondor rounds up; None if it is no number."""
    cores = number(value, -1.0, 0.0, sys.float_info.max)
    return None if cores < 0 else max(1, min(ceil(cores), most_cores))


MOST_SHAPE_ROWS = 4000
"""Of an answer of a schedd."""
MOST_CUT_USERS = 8
"""Users who may fill answers of a schedd before jobs of others are left untried."""
MOST_SHAPES = 500
"""Shapes of a user at a schedd that are tried."""
MOST_OF_USER = 1_000_000
"""Characters of the ads of a user that are tried."""
MOST_CHARACTERS = 20_000
"""Of an ad that is tried."""
_ATTRIBUTES = "AutoClusterAttrs"
"""Attribute of a job: names of those by which its negotiator tells jobs apart."""
USER = "User"
"""Attribute of a job that the schedd sets: its user as authenticated, whatever the job says."""
_OF_ROWS = frozenset(("id", "jobids", "jobcount", "autoclusterid"))
"""Attributes that the schedd adds to those of jobs."""
_JOB_ID = re.compile(r"\d{1,10}\.\d{1,10}\b")


class JobShape(NamedTuple):
    """Pending jobs that no slot and no Requirements can tell apart."""

    kind: JobKind
    jobs: int
    example: str
    """One of them, SCHEDD#CLUSTER.PROC."""
    ad: Optional[str]
    """Attributes that are seen of them, as ``-long`` prints them; None if not to be tried."""
    start_knows: bool = True
    """False if their AccountingGroup is an expression: START evaluates none, see config.d."""
    user: str = ""
    over: bool = False
    """True if they are too many, or too long, to be tried."""


class Shapes(NamedTuple):
    """Pending jobs of a schedd that a negotiator has seen."""

    shapes: tuple[JobShape, ...]
    complete: bool
    """False if the schedd has more."""
    attributes: Optional[frozenset[str]]
    """Attributes that all these jobs tell, if they have them, in lower case; None without jobs."""
    jobs: Optional[ScheddJobs] = None
    """Jobs of the schedd, if they were counted by the way."""


def shapes_of(schedd: Any, name: str, most_cores: int) -> Shapes:
    """Shapes of the pending jobs of a schedd of the bindings, and its jobs if no row is cut off.

    They are its autoclusters: jobs with equal attributes of all that START of any node and
    Requirements of the jobs look at. Jobs that no negotiator has seen yet have none.
    """
    rows, more, complete = _rows(schedd)
    written = {id(row): row_of(row) for row in rows}
    long = {id(row) for row in rows if _shortened(row, written[id(row)])}
    seen, trimmed = _most_of_each(
        row
        for row in charged(rows)
        if row.get("JobUniverse") == PARALLEL
        or (row.get(CLUSTER) is not None and row.get("JobUniverse") not in NO_SLOT)
    )
    short = (row for row in seen if id(row) not in long)
    numbers = (row[CLUSTER] for row in short if type(row.get(CLUSTER)) is int)
    clusters = {ad.get(CLUSTER): row_of(ad) for ad in daemons.autoclusters(schedd, numbers)}
    named = (row[_ATTRIBUTES] for row in seen if _ATTRIBUTES in row)
    attributes = [frozenset(str(names).lower().split(",")) for names in named]
    shapes = [
        _shape(row, written[id(row)], clusters.get(row.get(CLUSTER), {}), name, most_cores)
        for row in seen
    ]
    cut_off = more or len(rows) >= MOST_ROWS
    jobs = None if cut_off else counted_jobs(schedd, counted_kinds(rows, most_cores), most_cores)
    return Shapes(
        (*_affordable(shapes), *_rest(schedd, more | trimmed, shapes, most_cores)),
        complete,
        frozenset.intersection(*attributes) if attributes else None,
        jobs,
    )


def _rows(schedd: Any) -> tuple[list[Any], set[str], bool]:
    """Rows of pending jobs, users who have more than these, and False if others may have too."""
    rows: list[Any] = []
    more: set[str] = set()
    while True:
        others = "".join(f" && {USER} =!= {quoted(user)}" for user in sorted(more))
        keys = [*COUNTED_KEYS, CLUSTER, _ATTRIBUTES, USER]
        page = daemons.grouped(schedd, f"{IS_PENDING}{others}", keys, MOST_SHAPE_ROWS)
        complete = len(page) < MOST_SHAPE_ROWS
        of_users = Counter(filter(None, map(user_of, page)))
        if complete or not of_users or len(more) >= MOST_CUT_USERS:
            return rows + page, more, complete
        most = {user for user, count in of_users.items() if count > MOST_SHAPES}
        most |= {user for user, _ in of_users.most_common(1)}
        rows += _most_of_each(row for row in page if user_of(row) in most)[0]
        more |= most


def _shortened(row: Any, texts: dict[str, str]) -> bool:
    """Take what is too long to be tried out of a row and its texts; True if there was any."""
    long = [name for name, text in texts.items() if len(text) > MOST_CHARACTERS]
    for name in long:
        del row[name]
        texts[name] = texts[name][: MOST_CHARACTERS + 1]
    return bool(long)


def user_of(ad: Any) -> str:
    """User of a job as authenticated; empty if the ad has none."""
    return text(ad.get(USER)) or ""


def _most_of_each(rows: Iterable[Any]) -> tuple[list[Any], set[str]]:
    """At most `MOST_SHAPES` rows of each user, and users who have more.

    They are of each size in turn those of the most jobs: what is tried of a user tells of all.
    """
    turns: Counter[tuple[str, str, str]] = Counter()

    def turn(row: Any) -> int:
        size = (user_of(row), str(row.get(ACCOUNT)), str(row.get("RequestCpus")))
        turns[size] += 1
        return turns[size]

    of_user: Counter[str] = Counter()
    most = []
    for row in sorted(sorted(rows, key=number_in, reverse=True), key=turn):
        of_user[user_of(row)] += 1
        if of_user[user_of(row)] <= MOST_SHAPES:
            most.append(row)
    return most, {user for user, count in of_user.items() if count > MOST_SHAPES}


def _affordable(shapes: Iterable[JobShape]) -> Iterator[JobShape]:
    """The shapes; those for which `MOST_OF_USER` is not enough have no ad."""
    characters: Counter[str] = Counter()
    for shape in shapes:
        characters[shape.user] += len(shape.ad or "")
        is_over = shape.over or characters[shape.user] > MOST_OF_USER
        yield shape._replace(ad=None, over=True) if is_over else shape


def _rest(
    schedd: Any, users: Collection[str], shapes: Iterable[JobShape], most_cores: int
) -> Iterator[JobShape]:
    """Jobs of users beyond their shapes, without memory."""
    if not users:
        return
    jobs: Counter[tuple[str, JobKind]] = Counter()
    whose = " || ".join(f"{USER} =?= {quoted(user)}" for user in sorted(users))
    keys = [*COUNTED_KEYS[:-1], USER]
    for row in charged(daemons.grouped(schedd, f"{IS_PENDING} && ({whose})", keys)):
        if row.get("JobUniverse") not in NO_SLOT:
            jobs[user_of(row), _without_memory(kind_of(row, most_cores))] += number_in(row)
    for shape in shapes:
        jobs[shape.user, _without_memory(shape.kind)] -= shape.jobs
    for (user, kind), count in sorted((+jobs).items(), key=repr):
        yield JobShape(kind, count, "", None, user=user, over=True)


def _without_memory(kind: JobKind) -> JobKind:
    return kind._replace(memory_mib=0, request="")


def _shape(row: Any, texts: AdRow, cluster: AdRow, schedd: str, most_cores: int) -> JobShape:
    """Shape of grouped jobs; autoclusters that were numbered again meanwhile are not tried.

    ``texts`` are those of the row as the jobs have them, not ``charged``.
    """
    if row.get("JobUniverse") == PARALLEL:
        # No negotiator sees these jobs, but requests of their dedicated scheduler.
        wanted = daemons.dedicated(schedd, cluster.get("requirements", "true"))
        cluster = {**texts, **cluster, "requirements": wanted}
    example = _JOB_ID.search(str(row.get("JobIds"))[:100])
    same = all(cluster.get(name, texts[name]) == texts[name] for name in texts.keys() - _OF_ROWS)
    ad = "\n".join(f"{key} = {cluster[key]}" for key in sorted(cluster.keys() - _OF_ROWS))
    is_long = max(len(ad), *map(len, texts.values())) > MOST_CHARACTERS
    return JobShape(
        kind_of(row, most_cores),
        number_in(row),
        f"{schedd}#{example.group()}" if example else "",
        ad if same and ad and not is_long else None,
        LITERAL.fullmatch(texts.get(ACCOUNT.lower(), '""')) is not None,
        user_of(row),
        is_long,
    )
