"""Ads of a startd as it publishes them, saved: what a check may expect of any slot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SAVED_AD = Path(__file__).with_name("slot_ad.txt")
"""Ad of a partitionable slot of 25.14.1, with attributes of 23.9.6, as ``condor_status -l`` prints
it; below it what a claimed dynamic slot has besides."""
_OF_MACHINES = re.compile(
    r"has|total|recent|last|assigned|available|offline|detected|gpus|docker|singularity|slot\d+_",
    re.IGNORECASE,
)
"""Attributes that depend on devices and programs of the machine, or on its past."""


@cache
def saved_ads() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Attributes of a partitionable slot, and those that a dynamic one has besides."""
    first, second = (
        dict(line.split(" = ", 1) for line in part.splitlines())
        for part in SAVED_AD.read_text(encoding="utf-8").split("\n\n")
    )
    return first, second


@cache
def _saved_names() -> frozenset[str]:
    return frozenset(name.lower() for ad in saved_ads() for name in ad)


def startd_publishes(name: str) -> bool:
    """True if a startd publishes an attribute of that name, or may on another machine."""
    return name.lower() in _saved_names() or _OF_MACHINES.match(name) is not None
