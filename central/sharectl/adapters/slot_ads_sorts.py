"""Whether the ads of a file are what its option asks for: slots, jobs or accounting groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sharectl.adapters.problems_alike import Problems
from sharectl.adapters.slot_ads import AdOfFile, text_of
from sharectl.errors import InputError


@dataclass(frozen=True)
class Sort:
    """A sort of ads."""

    option: str
    """That names a file of them."""
    types: tuple[str, ...]
    """MyType, in lower case."""
    marks: tuple[str, ...]
    """What names of attributes begin with, in lower case: an ad without MyType has one of these."""
    others: tuple[str, ...]
    """And none of these."""
    made_by: str


_OF_JOBS = ("clusterid", "jobstatus", "jobuniverse", "request")
_OF_SLOTS = ("slottype", "machineresources", "totalslotcpus", "slotweight")
SLOTS = Sort(
    "--slots",
    ("machine", "slot"),
    (*_OF_SLOTS, "cpus", "memory", "disk", "partitionableslot"),
    ("clusterid", "jobstatus", "jobuniverse"),
    "condor_status -long",
)
JOBS = Sort(
    "--jobs",
    ("job",),
    (*_OF_JOBS, "requirements", "acctgroup", "accountinggroup"),
    _OF_SLOTS,
    "condor_q -all -long",
)


def checked(ads: Sequence[AdOfFile], sort: Sort) -> Sequence[AdOfFile]:
    """The ads, all of them of that sort.

    Raises
    ------
    InputError
        If one says by its MyType that it is something else, or has none and does not look like one.
    """
    problems = Problems()
    for ad in ads:
        if problem := _problem(ad, sort):
            problems.add(ad.place, f"{problem}; give {sort.option} what {sort.made_by} prints")
    if problems:
        raise InputError(problems.lines())
    return ads


def _problem(ad: AdOfFile, sort: Sort) -> str:
    told = text_of(ad.attributes, "MyType")
    if told:
        return (
            ""
            if told.lower() in sort.types
            else f"MyType is {told[:40]!r}, not {sort.types[0].capitalize()!r}"
        )
    names = {name.lower() for name in ad.attributes}
    if any(name.startswith(sort.marks) for name in names) and not names & set(sort.others):
        return ""
    return f"no MyType, and no attributes of a {sort.option[2:-1]}"
