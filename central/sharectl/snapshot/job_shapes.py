"""Pending jobs of a schedd that are alike, with all that nodes see of them, for a trial.

A user may have thousands of kinds of jobs: of each user so many are read as a trial has time for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple, Optional

from sharectl.condor.accounts import ACCOUNT, charged
from sharectl.condor.ad_rows import LITERAL, AdRow, row_of
from sharectl.condor.ads import quoted, text
from sharectl.condor.daemons import CLUSTER, NO_SLOT, PARALLEL, autoclusters, dedicated, grouped
from sharectl.snapshot.schedd_jobs import (
    COUNTED_KEYS,
    IS_PENDING,
    JobKind,
    ScheddJobs,
    counted_jobs,
    kind_of,
    number_in,
)

MOST_ROWS = 4000
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

    They are its autoclusters, which HTCondor makes of jobs with equal significant attributes: all
    that START of any node and Requirements of the jobs look at. Jobs that no negotiator has seen
    yet have none, and count as before.
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
    clusters = {ad.get(CLUSTER): row_of(ad) for ad in autoclusters(schedd, numbers)}
    named = (row[_ATTRIBUTES] for row in seen if _ATTRIBUTES in row)
    attributes = [frozenset(str(names).lower().split(",")) for names in named]
    shapes = [
        _shape(row, written[id(row)], clusters.get(row.get(CLUSTER), {}), name, most_cores)
        for row in seen
    ]
    jobs = counted_jobs(schedd, rows, most_cores) if not more else None
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
        page = grouped(schedd, f"{IS_PENDING}{others}", keys, MOST_ROWS)
        complete = len(page) < MOST_ROWS
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
    for row in charged(grouped(schedd, f"{IS_PENDING} && ({whose})", keys)):
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
        wanted = dedicated(schedd, cluster.get("requirements", "true"))
        cluster = {**texts, **cluster, "requirements": wanted}
    example = _JOB_ID.search(str(row.get("JobIds"))[:100])
    same = all(
        cluster.get(name, text) == text for name, text in texts.items() if name not in _OF_ROWS
    )
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
