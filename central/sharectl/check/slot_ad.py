"""Ads of a startd and of jobs, saved: names that a check may expect of any slot or job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SAVED_AD = Path(__file__).with_name("slot_ad.txt")
"""Ad of a partitionable slot of 25.14.1, with attributes of 23.9.6, as ``condor_status -l`` prints
it: first the attributes that every slot has; then the others; then those of a claimed dynamic slot
besides."""
SAVED_JOB = Path(__file__).with_name("job_ad.txt")
"""Names of attributes that HTCondor or condor_submit gives to jobs, of both versions."""
_OF_MACHINES = re.compile(
    r"has|total|recent|last|assigned|available|offline|detected|gpus|docker|singularity|slot\d+_",
    re.IGNORECASE,
)
"""Attributes that depend on devices and programs of the machine, or on its past."""
_OF_REQUESTS = re.compile(r"request|machineattr|x509|(pre|post|dag)\w*_", re.IGNORECASE)
"""Attributes of jobs with any ending."""


@cache
def _parts() -> tuple[Mapping[str, str], ...]:
    parts = SAVED_AD.read_text(encoding="utf-8").split("\n\n")
    return tuple(dict(line.split(" = ", 1) for line in part.splitlines()) for part in parts)


@cache
def saved_ads() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Attributes of a partitionable slot, and those that a dynamic one has besides."""
    always, others, dynamic = _parts()
    return {**always, **others}, dynamic


@cache
def _names(parts: int) -> frozenset[str]:
    return frozenset(name.lower() for ad in _parts()[:parts] for name in ad)


def every_slot_has(name: str) -> bool:
    """True if each slot of each startd has it: HTCondor never takes that name from the job."""
    return name.lower() in _names(1)


def startd_publishes(name: str) -> bool:
    """True if a startd publishes an attribute of that name, or may on another machine."""
    return name.lower() in _names(3) or _OF_MACHINES.match(name) is not None


@cache
def _job_names() -> frozenset[str]:
    return frozenset(SAVED_JOB.read_text(encoding="utf-8").lower().split())


def jobs_have(name: str) -> bool:
    """True if HTCondor or condor_submit may give a job an attribute of that name."""
    return name.lower() in _job_names() or _OF_REQUESTS.match(name) is not None
