"""Slots, pending jobs and groups of a live pool as ads, each daemon asked in a process of its own with a deadline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, Optional

from sharectl.adapters.collector import SCHEDD_LOCATION, unanswered
from sharectl.adapters.condor_boolean import boolean_here
from sharectl.adapters.condor_reach import why_collector, why_daemon
from sharectl.adapters.deadline import Question, ask_all
from sharectl.adapters.negotiator_knobs import ask
from sharectl.adapters.slot_ads import AdOfFile, from_long, number_of
from sharectl.adapters.slot_ads_pending import PendingShape, both, shapes
from sharectl.core.model import SCHEDD_SOURCE
from sharectl.errors import PoolUnavailableError
from sharectl.report.words import counted

_GROUP = re.compile(r"[\w.]+", re.ASCII)
_NOT_DYNAMIC = 'SlotType =!= "Dynamic"'


@dataclass(frozen=True)
class PoolAds:
    """What a pool answered."""

    slots: tuple[AdOfFile, ...]
    """Partitionable and static ones."""
    groups: tuple[AdOfFile, ...]
    """Accounting ads of groups; none if the negotiator advertises none."""
    schedds: tuple[Mapping[str, str], ...]
    """Location of each."""


@dataclass(frozen=True)
class PoolPlace:
    """Where a pool is, and for how long its daemons are waited for."""

    collector: Optional[str] = None
    """Address; None for the pool of this machine's HTCondor configuration."""
    collector_deadline_seconds: float = 20
    schedd_deadline_seconds: float = 60


def look(place: PoolPlace, constraint: Optional[str]) -> PoolAds:
    """Slots that meet ``constraint``, groups, and where the schedds are.

    Raises
    ------
    PoolUnavailableError
        If the collector does not answer.
    """
    # Loaded before the questions fork, or each of them would load it anew.
    import htcondor2  # noqa: F401

    question = Question(
        partial(_collector, place.collector, constraint),
        place.collector_deadline_seconds,
        partial(why_collector, place.collector),
    )
    answer = ask_all({"collector": question})["collector"]
    if answer.value is None:
        raise PoolUnavailableError(f"collector: {unanswered(place.collector, answer.source.problem or '')}")
    known: PoolAds = answer.value
    return known


def pending(
    place: PoolPlace,
    schedds: Iterable[Mapping[str, str]],
    slots: Iterable[AdOfFile],
    constraint: Optional[str],
) -> tuple[list[PendingShape], list[str]]:
    """Shapes of pending jobs that meet ``constraint``, and what is missing: a schedd that did not answer, jobs left out.

    Parameters
    ----------
    slots
        Those that the jobs are for: which attributes of jobs count is theirs to say.
    """
    import htcondor2  # noqa: F401

    looking = [slot.attributes for slot in slots]
    questions = {
        f"{SCHEDD_SOURCE}{schedd['Name']}": Question(
            partial(_shapes, schedd, looking, constraint),
            place.schedd_deadline_seconds,
            partial(why_daemon, schedd, "SCHEDD"),
        )
        for schedd in schedds
    }
    found: list[PendingShape] = []
    missing: list[str] = []
    for name, answer in ask_all(questions).items():
        if answer.value is None:
            missing.append(f"{name}: {answer.source.problem}; its jobs are missing here")
            continue
        of_schedd, left_out = answer.value
        found += of_schedd
        if left_out:
            missing.append(
                f"{name}: {counted(left_out, 'job')} left out, those of rarer shapes; restrict it with --job-constraint"
            )
    return found, missing


def leftovers(place: PoolPlace, schedds: Iterable[Mapping[str, str]]) -> Optional[bool]:
    """Whether an access point uses leftovers (CLAIM_PARTITIONABLE_LEFTOVERS).

    None if one of them did not answer, or there is none, and no other does.
    """
    import htcondor2  # noqa: F401

    questions = {
        schedd["Name"]: Question(partial(_leftovers, schedd), place.schedd_deadline_seconds)
        for schedd in schedds
    }
    told = [answer.value for answer in ask_all(questions).values()]
    return True if True in told else False if told and None not in told else None


def static_quotas(place: PoolPlace, groups: Iterable[str]) -> dict[str, float]:
    """GROUP_QUOTA_<group> of those groups that have one, as the pool's one negotiator tells it; none if it does not."""
    import htcondor2  # noqa: F401

    question = Question(
        partial(_static_quotas, place.collector, tuple(groups)), place.collector_deadline_seconds
    )
    return ask_all({"negotiator": question})["negotiator"].value or {}


def _static_quotas(collector: Optional[str], groups: Iterable[str]) -> dict[str, float]:
    try:
        told = {knob.name.lower(): knob.value for knob in ask(collector)}
    except PoolUnavailableError:
        return {}
    found = {
        group: number_of({"quota": told.get(f"group_quota_{group.lower()}", "none")}, "quota")
        for group in groups
        if _GROUP.fullmatch(group)
    }
    return {group: quota for group, quota in found.items() if isfinite(quota) and quota >= 0}


def _leftovers(location: Mapping[str, str]) -> Optional[bool]:
    import classad2
    import htcondor2

    told = htcondor2.RemoteParam(classad2.ClassAd(dict(location)))["CLAIM_PARTITIONABLE_LEFTOVERS"]
    return boolean_here(str(told))


def _collector(address: Optional[str], constraint: Optional[str]) -> PoolAds:
    import htcondor2

    asked = htcondor2.Collector(address) if address else htcondor2.Collector()
    slots = asked.query(htcondor2.AdType.Slot, constraint=both(_NOT_DYNAMIC, constraint))
    groups = asked.query(htcondor2.AdType.Accounting, constraint="IsAccountingGroup")
    schedds = asked.query(htcondor2.AdType.Schedd, projection=SCHEDD_LOCATION)
    return PoolAds(
        slots=tuple(_ad(ad, "slot") for ad in slots),
        groups=tuple(_ad(ad, "group") for ad in groups),
        schedds=tuple({name: str(ad[name]) for name in SCHEDD_LOCATION if name in ad} for ad in schedds),
    )


def _ad(ad: Any, sort: str) -> AdOfFile:
    return AdOfFile(f"{sort} {ad.get('Name')}", from_long(ad.printOld()))


def _shapes(
    location: Mapping[str, str], slots: Sequence[Mapping[str, str]], constraint: Optional[str]
) -> tuple[list[PendingShape], int]:
    import classad2
    import htcondor2

    schedd = htcondor2.Schedd(classad2.ClassAd(dict(location)))
    return shapes(schedd, location["Name"], slots, constraint)
