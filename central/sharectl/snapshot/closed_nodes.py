"""Nodes that refuse waiting jobs whatever their running jobs give back, by HTCondor's own library.

A slot is closed to a job if a clause of its Requirements (START), or of the job's, is false or
undefined while everything that jobs hold there is free. Clauses on cores, memory and disk do not
count: a plan looks at these. Neither do sharectl's own for grace and target. The site's own do,
overheat too, at the time of the slot's ad. An error, or what cannot be told here, closes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Optional

from sharectl.condor.ad_rows import LITERAL, AdRow, emptied, resources_of, seen_by
from sharectl.condor.ads import ad_of_long, expression, is_refusal, is_true, value_of
from sharectl.condor.expressions import with_clock
from sharectl.model import ClosedTo, Kind
from sharectl.snapshot.slot_groups import SlotGroup, SlotGroups, clauses_in

MAX_CLAUSE = 300
"""Characters of a clause that are reported."""
_OWN_CLAUSES = ("t1_graceadmits", "t1_targetadmits")
_RESOURCES = frozenset(("cpus", "memory", "disk"))
_DISK_KIB = str(2**50)
"""Free disk of any node: it differs on each, and every job looks at it."""
_NOT_HERE = frozenset(("random", "eval", "evalineachcontext", "usermap", "userhome"))
"""Functions with another value on the node, or that look at attributes which no name tells."""
_WANTS, _ACCEPTS = "t1_jobwants", "t1_slotaccepts"
_BOTH = f"MY.{_WANTS} && TARGET.{_ACCEPTS}"

Refusals = dict[str, str]
"""Machine -> clause that keeps jobs out."""


class WaitingJob:
    """Waiting jobs that are alike."""

    def __init__(self, text: str, row: AdRow, clauses: Iterable[str]) -> None:
        """Jobs with this ad, as text and as a row; ``clauses`` are of their Requirements."""
        self.clauses, self.looks_at = list[str](), set[str]()
        for clause in clauses:
            _, slots, words = seen_by(clause, row)
            if _counts(slots, words):
                self.looks_at |= slots
                self.clauses.append(clause)
        self.ad = ad_of_long(f"{text}\n{_WANTS} = {_all(self.clauses)}")


class Slots:
    """Slots of a pool as they are now, without what jobs hold there."""

    def __init__(self, rows: Iterable[AdRow], of_jobs: frozenset[str]) -> None:
        """Slots of these rows; ``of_jobs`` are the attributes that jobs tell, in lower case."""
        self._clauses: dict[str, tuple[str, ...]] = {}
        slots = []
        for row in map(_as_it_is, rows):
            # A negotiator may not have seen yet that a clause looks at an attribute of jobs.
            counting = [
                c for c in clauses_in(row) if c.of_job <= of_jobs and _counts(c.of_slot, c.words)
            ]
            clauses = tuple(clause.text for clause in counting)
            self._clauses[_all(clauses)] = clauses
            looks_at = frozenset().union(*(clause.of_slot for clause in counting))
            slots.append((row, {_ACCEPTS: _all(clauses)}, looks_at))
        self._kinds = SlotGroups(slots)
        self.machines = self._kinds.machines

    def refusals(self, job: WaitingJob) -> Refusals:
        """Machines of which all slots are closed to a job."""
        refused: Refusals = {}
        admitting: set[str] = set()
        for slots in self.distinct_for(job):
            clause = self._refusal(job, slots)
            if clause is None:
                admitting |= slots.machines
            else:
                refused.update(dict.fromkeys(slots.machines, clause))
        return {machine: refused[machine] for machine in refused.keys() - admitting}

    def admitting(self, job: WaitingJob, among: Collection[str]) -> set[str]:
        """Machines of which a slot is open to a job, all that are ``among`` these at least."""
        admitting: set[str] = set()
        for slots in self.distinct_for(job):
            if not slots.machines.isdisjoint(among) and self._refusal(job, slots) is None:
                admitting |= slots.machines
        return admitting

    def distinct_for(self, job: WaitingJob) -> list[SlotGroup]:
        """Kinds of slots that a job can tell apart."""
        return self._kinds.of(self._kinds.reached(job.looks_at))

    def _refusal(self, job: WaitingJob, slots: SlotGroup) -> Optional[str]:
        """First clause that keeps a job out of slots; None if it may start there, or in doubt."""
        if is_true(value_of(expression(_BOTH), job.ad, slots.ad)):
            return None
        for clauses, my, target in (
            (self._clauses[slots.row[_ACCEPTS]], slots.ad, job.ad),
            (job.clauses, job.ad, slots.ad),
        ):
            for clause in clauses:
                if is_refusal(value_of(expression(clause), my, target)):
                    return clause
        return None


def by_machine(refused: Mapping[Kind, Refusals]) -> dict[str, tuple[ClosedTo, ...]]:
    """Machine -> kinds of jobs to which it is closed; machines that are alike share them."""
    kinds: defaultdict[str, list[tuple[Kind, str]]] = defaultdict(list)
    for kind in sorted(refused):
        for machine, clause in refused[kind].items():
            kinds[machine].append((kind, clause))
    shared = {rows: _closed_to(rows) for rows in set(map(tuple, kinds.values()))}
    return {machine: shared[tuple(rows)] for machine, rows in kinds.items()}


def _closed_to(rows: Iterable[tuple[Kind, str]]) -> tuple[ClosedTo, ...]:
    sizes: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for (group, cores), clause in rows:
        sizes[group, clause].append(cores)
    return tuple(
        ClosedTo(group, tuple(cores), _shown(clause)) for (group, clause), cores in sizes.items()
    )


def _as_it_is(row: AdRow) -> dict[str, str]:
    """Slot without what jobs hold there; sharectl's grace and target admit everything."""
    free = emptied(row)
    free |= {name: "true" for name in _OWN_CLAUSES if name in free}
    free["disk"] = _DISK_KIB
    if "t1_overheat" in row:
        free["t1_overheat"] = row["t1_overheat"]
    # Devices that jobs hold are not in the ad as a collector sends it: in doubt they would do.
    devices = (f"available{resource}" for resource in resources_of(row))
    free |= {name: "error" for name in devices if name in free}
    if "mycurrenttime" not in row:
        return free
    return {
        name: text if LITERAL.fullmatch(text) else _at_its_time(text) for name, text in free.items()
    }


@lru_cache(maxsize=4096)
def _at_its_time(text: str) -> str:
    # The copy of a quiet slot's ad is minutes old.
    return with_clock(text, "MY.MyCurrentTime") if "time" in text.lower() else text


def _counts(slots: Collection[str], words: Iterable[str]) -> bool:
    """True if a clause that looks at these attributes of slots asks for more than resources."""
    return not (slots and _RESOURCES.issuperset(slots)) and _NOT_HERE.isdisjoint(words)


def _all(clauses: Iterable[str]) -> str:
    return " && ".join(f"({clause})" for clause in clauses) or "true"


def _shown(clause: str) -> str:
    text = " ".join(clause.split())
    return text if len(text) <= MAX_CLAUSE else f"{text[: MAX_CLAUSE - 1]}…"
