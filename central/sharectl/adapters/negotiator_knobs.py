"""The knobs of group quotas as the negotiator itself has them, however its files came to say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from sharectl.adapters.condor_reach import why_daemon
from sharectl.adapters.negotiation_cycles import locate
from sharectl.adapters.slot_ads_quotas import Knob, is_of_quotas
from sharectl.errors import PoolUnavailableError


def ask(collector: Optional[str], name: Optional[str] = None) -> list[Knob]:
    """Knobs of quotas that the pool's negotiator has; without a deadline: ask in a child.

    Parameters
    ----------
    collector
        Address; None for the pool of this machine's configuration.
    name
        Name of the negotiator, if there are several.

    Raises
    ------
    PoolUnavailableError
        If the collector does not know exactly one such negotiator.
    """
    import classad2
    import htcondor2

    location = _one(locate(collector), name)
    place = f"negotiator {location['Name']}"
    try:
        told: Any = htcondor2.RemoteParam(classad2.ClassAd(dict(location)))
        return [Knob(place, key, str(told[key]).strip()) for key in told if is_of_quotas(key)]
    except htcondor2.HTCondorException as error:
        raise htcondor2.HTCondorException(why_daemon(location, "NEGOTIATOR", error)) from error


def _one(known: list[dict[str, str]], name: Optional[str]) -> Mapping[str, str]:
    found = [ad for ad in known if name is None or ad["Name"].lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(ad["Name"] for ad in known)) or "none"
    wanted = f"no negotiator {name}" if name else f"{len(known)} negotiators"
    raise PoolUnavailableError(
        f"the collector knows {wanted}, but {names}; write the name of one as pledges.negotiator.name"
        if known
        else "the collector knows no negotiator; see condor_status -negotiator"
    )
