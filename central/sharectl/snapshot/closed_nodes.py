"""Nodes that refuse waiting jobs whatever their running jobs give back, by HTCondor's own library.

A slot is closed to a job if a clause of its Requirements (START), or of the job's, is false or
undefined while everything that jobs hold there is free, at the time of the slot's ad. Clauses on
cores, memory, disk, grace and target do not count. An error, or what only the node can tell, closes
nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Optional

from sharectl.condor.ad_rows import AdRow, emptied, resources_of, seen_by
from sharectl.condor.ads import ad_of_long, expression, is_refusal, is_true, value_of
from sharectl.condor.clock import clocked_text
from sharectl.condor.expressions import conjunction
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
        self.ad = ad_of_long(f"{text}\n{_WANTS} = {conjunction(self.clauses)}")


class Slots:
    """Slots of a pool as they are now, without what jobs hold there."""

    def __init__(self, rows: Iterable[AdRow], of_jobs: frozenset[str]) -> None:
        """Slots of these rows; ``of_jobs`` are the attributes that jobs tell, in lower case."""
        self._clauses: dict[str, list[str]] = {}
        slots = []
        for row in map(_as_it_is, rows):
            clauses, looks_at = list[str](), set[str]()
            for clause in clauses_in(row):
                # A negotiator may not have seen yet that a clause looks at an attribute of jobs.
                if clause.of_job <= of_jobs and _counts(clause.of_slot, clause.words):
                    clauses.append(clause.text)
                    looks_at |= clause.of_slot
            self._clauses[conjunction(clauses)] = clauses
            slots.append((row, {_ACCEPTS: conjunction(clauses)}, looks_at))
        self._kinds = SlotGroups(slots)
        self.machines = self._kinds.machines

    def refusals(self, job: WaitingJob, others: Optional[Refusals] = None) -> Refusals:
        """Machines of which all slots are closed to a job, and to ``others`` if they are given."""
        refused: Refusals = {}
        admitting: set[str] = set()
        for slots in self._kinds.of(self._kinds.reached(job.looks_at)):
            if others is None or not slots.machines.isdisjoint(others):
                clause = self._refusal(job, slots)
                if clause is None:
                    admitting |= slots.machines
                elif others is None:
                    refused.update(dict.fromkeys(slots.machines, clause))
        closed = refused if others is None else others
        return {machine: closed[machine] for machine in closed.keys() - admitting}

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
        sizes[group, " ".join(clause.split())[:MAX_CLAUSE]].append(cores)
    return tuple(ClosedTo(group, tuple(cores), clause) for (group, clause), cores in sizes.items())


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
    # The copy of a quiet slot's ad is minutes old.
    return {name: clocked_text(text, "MyCurrentTime") for name, text in free.items()}


def _counts(slots: Collection[str], words: Iterable[str]) -> bool:
    """True if a clause that looks at these attributes of slots asks for more than resources."""
    return not (slots and _RESOURCES.issuperset(slots)) and _NOT_HERE.isdisjoint(words)
