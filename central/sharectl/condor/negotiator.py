"""How long a negotiator's last cycles took, and what it is configured to.

The knobs of group quotas as the negotiator itself has them, however its files came to say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from sharectl.condor.ads import evaluated, number, whole
from sharectl.condor.daemons import daemon, locations, macros, query, why_daemon
from sharectl.condor.quotas import Knob, is_of_quotas
from sharectl.errors import PoolUnavailableError

KNOBS = ("NEGOTIATOR_INTERVAL", "NEGOTIATOR_CYCLE_DELAY", "NEGOTIATOR_MIN_INTERVAL")
_DURATION = re.compile(r"LastNegotiationCycleDuration(\d{1,2})", re.IGNORECASE)
_MOST_SECONDS = 1e7


@dataclass(frozen=True)
class Cycle:
    """A negotiation cycle that has ended."""

    duration_seconds: float
    """Whole seconds, as the negotiator's clock has them."""
    period_seconds: Optional[float]
    """From the start of the one before; None if there was none."""
    idle_jobs: Optional[int]
    """Jobs that waited for a slot."""


def last_cycles(location: Mapping[str, str]) -> list[Cycle]:
    """Cycles by the negotiator itself, the newest first; the collector's copy may be 300 s old.

    It answers between cycles only.
    """
    ads = query(daemon(location), "Negotiator")
    return cycles_of(ads[0]) if ads else []


def cycles_of(ad: Any) -> list[Cycle]:
    """Cycles that a negotiator's ad tells of (NEGOTIATION_CYCLE_STATS_LENGTH of them)."""
    numbers = sorted(int(match[1]) for name in ad for match in [_DURATION.fullmatch(name)] if match)
    cycles = []
    for index in numbers:
        duration, period, idle = (
            number(evaluated(ad, f"LastNegotiationCycle{name}{index}"), -1.0, most=_MOST_SECONDS)
            for name in ("Duration", "Period", "NumIdleJobs")
        )
        if duration >= 0:
            cycles.append(
                Cycle(duration, period if period > 0 else None, int(idle) if idle >= 0 else None)
            )
    return cycles


def knobs(location: Mapping[str, str]) -> dict[str, int]:
    """The negotiator's own values of `KNOBS`, in seconds, without those that it does not tell."""
    configuration = macros(location)
    values = {name: whole(_number(configuration.get(name)), -1) for name in KNOBS}
    return {name: value for name, value in values.items() if value >= 0}


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else None  # noqa: PLR2004


def quota_knobs(collector: Any, name: Optional[str] = None) -> list[Knob]:
    """Knobs of quotas that the pool's negotiator has; in a child.

    Parameters
    ----------
    collector
        Of the bindings.
    name
        Name of the negotiator, if there are several.

    Raises
    ------
    PoolUnavailableError
        If the collector does not know exactly one such negotiator.
    """
    location = _one(locations(collector, "Negotiator"), name)
    place = f"negotiator {location['Name']}"
    try:
        configuration = macros(location)
        return [
            Knob(place, key, str(configuration[key]).strip())
            for key in configuration
            if is_of_quotas(key)
        ]
    except Exception as error:
        raise type(error)(why_daemon(location, "NEGOTIATOR", error)) from error


def _one(negotiators: list[dict[str, str]], name: Optional[str]) -> Mapping[str, str]:
    matching = [ad for ad in negotiators if name is None or ad["Name"].lower() == name.lower()]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(sorted(ad["Name"] for ad in negotiators)) or "none"
    wanted = f"no negotiator {name}" if name else f"{len(negotiators)} negotiators"
    raise PoolUnavailableError(
        f"the collector knows {wanted}, but {names}; write the name of one as "
        "pledges.negotiator.name"
        if negotiators
        else "the collector knows no negotiator; see condor_status -negotiator"
    )
