"""Pending jobs of a schedd by shape: all that slots, policies and Requirements can tell of them.

The schedd groups them by attributes and by what these refer to, as it makes autoclusters, which jobs have only once they
were negotiated for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Protocol

from sharectl.adapters.ads import evaluated, whole
from sharectl.adapters.consumption_policy_kinds import EVERYTHING, kinds, words_of_slots, words_of_text
from sharectl.adapters.slot_ads import AdOfFile, from_long

MOST_SHAPES = 500
"""Shapes of pending jobs that a schedd is asked for; those with the most jobs go first."""
MOST_ALONE = 1000
"""Jobs that are asked for one by one, in full, where they cannot be grouped."""
MOST_ROWS = 20_000
"""Of the schedd's answer."""

NO_SLOT = (7, 9, 12)
"""Universes whose jobs hold no slot of the pool: scheduler, grid, local."""
_PENDING = "JobStatus == 1"
_KEYS = ("JobStatus", "JobUniverse")
_GROUP = "AccountingGroup"
_SEEN = ("Requirements", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs")
_JOB_ID = re.compile(r"\s*(\d{1,10})\.(\d{1,10})\b")


class Schedd(Protocol):
    """What is asked of the bindings' schedd."""

    def query(
        self, *, constraint: str, projection: Sequence[str] = ..., opts: Any = ..., limit: int = ...
    ) -> list[Any]:
        """Ads of jobs, or rows of groups of them."""


@dataclass(frozen=True)
class PendingShape:
    """Pending jobs that are alike."""

    ad: AdOfFile
    """One of them."""
    jobs: int


def shapes(
    schedd: Schedd, name: str, slots: Sequence[Mapping[str, str]], constraint: Optional[str]
) -> tuple[list[PendingShape], int]:
    """Shapes, those with the most jobs first, and how many jobs are left out.

    Parameters
    ----------
    name
        Of the schedd.
    slots
        What tells which attributes of jobs count.
    """
    keys = _keys(slots, constraint)
    rows = None if EVERYTHING in keys else _rows(schedd, keys, constraint)
    if rows is None:
        return _alone(schedd, name, constraint)
    _, alike = kinds(slots, [row.attributes for row in rows], apart=(_GROUP.lower(),))
    counted = sorted(
        ((sum(rows[member].jobs for member in kind.members), rows[kind.members[0]].job_id) for kind in alike),
        key=lambda each: -each[0],
    )
    found, left_out = [], sum(jobs for jobs, _ in counted[MOST_SHAPES:])
    for jobs, (cluster, proc) in counted[:MOST_SHAPES]:
        ads = schedd.query(constraint=f"ClusterId == {cluster} && ProcId == {proc}", limit=1)
        found += [PendingShape(_ad(ad, name), jobs) for ad in ads]
        # It may just have gone, which says nothing of those like it.
        left_out += 0 if ads else jobs
    return found, left_out


@dataclass(frozen=True)
class _Row:
    """Jobs that the schedd cannot tell apart by the keys."""

    attributes: Mapping[str, str]
    job_id: tuple[int, int]
    """Of one of them."""
    jobs: int


def _keys(slots: Sequence[Mapping[str, str]], constraint: Optional[str]) -> list[str]:
    """Attributes to group by; the constraint's too, since the schedd asks it of the groups as well."""
    named = {name.lower() for name in (*_KEYS, _GROUP, *_SEEN)}
    others = words_of_slots(slots) | words_of_text(constraint or "")
    return [*_KEYS, _GROUP, *_SEEN, *sorted(others - named)]


def _rows(schedd: Schedd, keys: Sequence[str], constraint: Optional[str]) -> Optional[list[_Row]]:
    """Groups of pending jobs; None if there are too many, or one of them may be more than one shape."""
    import htcondor2

    found = []
    given = schedd.query(
        constraint=both(_PENDING, constraint),
        projection=list(keys),
        opts=htcondor2.QueryOpt.GroupBy,
        limit=MOST_ROWS,
    )
    for row in given:
        if evaluated(row, "JobUniverse") in NO_SLOT:
            continue
        attributes = from_long(row.printOld())
        job_id = _JOB_ID.match(str(row.get("JobIds")))
        # eval() sees what is no key.
        if job_id is None or any(EVERYTHING in words_of_text(text) for text in attributes.values()):
            return None
        found.append(_Row(attributes, (int(job_id[1]), int(job_id[2])), whole(row.get("JobCount"), 0)))
    return found if len(given) < MOST_ROWS else None


def _alone(schedd: Schedd, name: str, constraint: Optional[str]) -> tuple[list[PendingShape], int]:
    """Jobs one by one."""
    asked = " && ".join((_PENDING, *(f"JobUniverse =!= {universe}" for universe in NO_SLOT)))
    asked = both(asked, constraint)
    found = [PendingShape(_ad(ad, name), 1) for ad in schedd.query(constraint=asked, limit=MOST_ALONE)]
    every = len(schedd.query(constraint=asked, projection=["ClusterId"])) if len(found) == MOST_ALONE else 0
    return found, max(0, every - len(found))


def _ad(ad: Any, schedd: str) -> AdOfFile:
    return AdOfFile(f"job {ad.get('ClusterId')}.{ad.get('ProcId')} of {schedd}", from_long(ad.printOld()))


def both(one: str, other: Optional[str]) -> str:
    """Constraint that is true where both are."""
    return f"({one}) && ({other})" if other else one
