"""Pending jobs of a schedd by all that slots and their own Requirements see of them, as the schedd itself groups them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from sharectl.adapters.deadline import limit_memory
from sharectl.adapters.placement_slots import ASKED_OF_JOBS
from sharectl.adapters.schedds import NO_SLOT, Kind, Sizes, kind_of, schedd_at

MOST_ROWS = 4000
"""Of the answer of a schedd; jobs beyond count as before."""
MOST_CHARACTERS = 20_000
"""Of an ad that is tried."""
MOST_MEMORY_BYTES = 2**28

PARALLEL = 11
"""Universe of jobs that a dedicated scheduler places."""

_PENDING = "JobStatus == 1"
_OF_ROWS = frozenset(("id", "jobids", "jobcount"))
"""What the schedd adds to the attributes of jobs."""
_GROUP = "accountinggroup"
_JOB_ID = re.compile(r"\d{1,10}\.\d{1,10}\b")
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class JobShape:
    """Pending jobs that no slot and no Requirements can tell apart."""

    kind: Kind
    jobs: int
    example: str
    """One of them, SCHEDD#CLUSTER.PROC."""
    ad: Optional[str]
    """What is seen of them, in the syntax of ``-long``; None if they are not to be tried."""


@dataclass(frozen=True)
class JobShapes:
    """Shapes of a schedd."""

    shapes: tuple[JobShape, ...]
    complete: bool
    """Whether the schedd has no more than these."""


def shapes_of(location: Mapping[str, str], words: Sequence[str], sizes: Sizes) -> JobShapes:
    """Shapes of the pending jobs of one schedd; to run in a process with a deadline.

    Parameters
    ----------
    words
        Attributes of jobs, in lower case, that slots look at. What these, and Requirements, refer to the schedd adds.
    """
    limit_memory(MOST_MEMORY_BYTES)
    return shapes_in(schedd_at(location), location["Name"], words, sizes)


def shapes_in(schedd: Any, name: str, words: Sequence[str], sizes: Sizes) -> JobShapes:
    """Shapes of the pending jobs of a schedd of the bindings, which is called ``name``."""
    import htcondor2

    named = {name.lower() for name in ASKED_OF_JOBS}
    keys = [*ASKED_OF_JOBS, *(word for word in words if word not in named and _ATTRIBUTE.fullmatch(word))]
    rows = schedd.query(
        constraint=_PENDING, projection=keys, opts=htcondor2.QueryOpt.GroupBy, limit=MOST_ROWS
    )
    hidden = _OF_ROWS if _GROUP in words else _OF_ROWS | {_GROUP}
    shapes = (_shape(row, name, sizes, hidden) for row in rows if row.get("JobUniverse") not in NO_SLOT)
    return JobShapes(tuple(shapes), len(rows) < MOST_ROWS)


def _shape(row: Any, schedd: str, sizes: Sizes, hidden: Collection[str]) -> JobShape:
    """Shape of a row.

    Parameters
    ----------
    hidden
        Attributes that no slot looks at: jobs that differ in these alone are tried once.
    """
    example = _JOB_ID.search(str(row.get("JobIds"))[:100])
    lines = sorted(row.printOld().split("\n"))
    seen = [line for line in lines if line.partition(" = ")[0].lower() not in hidden]
    if any(_GROUP in line.lower() for line in seen):
        seen = [line for line in lines if line.partition(" = ")[0].lower() not in _OF_ROWS]
    ad = "\n".join(seen)
    placed_otherwise = row.get("JobUniverse") == PARALLEL
    count = row.get("JobCount")
    return JobShape(
        kind_of(row, sizes),
        count if type(count) is int else 0,
        f"{schedd}#{example.group()}" if example else "",
        None if placed_otherwise or len(ad) > MOST_CHARACTERS else ad,
    )
