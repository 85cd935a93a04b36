"""Status of slots with given ads, as if all of them were controlled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sharectl.condor.node_ads import Awaited, counts_of, facts_of

NOTHING = Awaited()


def status_of(
    ads: Iterable[Any], now: int, stale_seconds: int, awaited: Awaited = NOTHING
) -> dict[str, Any]:
    """Counts of the slots with these ads at Unix time ``now``."""
    facts = [facts_of(ad, now, stale_seconds) for ad in ads]
    return counts_of(facts, awaited, {slot.machine for slot in facts})
