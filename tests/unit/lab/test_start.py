"""START in Python: what the engine asks of it; tests/contract/test_start_law.py has the law."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Optional

import pytest

from sharectl_lab.twin.start import (
    SlotTarget,
    StartKnobs,
    is_in_grace,
    is_seen,
)

LIVE = StartKnobs()


@dataclass
class Slot:
    """A partitionable slot of 32 cores."""

    free_cores: int = 24
    target: Optional[SlotTarget] = None
    held_back_cores: int = 8
    counted_cores: int = 3
    taken_since: int = 5
    room_since: float = -inf
    multicore_only: bool = False
    draining: bool = False


def test_grace_is_over_at_its_end() -> None:
    """Sums of floats are not exact, and an engine looks at the moment itself."""
    for tenth in range(1000):
        slot = Slot(room_since=tenth / 10)
        assert not is_in_grace(slot, slot.room_since + LIVE.grace_seconds, LIVE)


@pytest.mark.parametrize(
    ("begin", "end", "seen"),
    [(7, 67, True), (8, 67, False), (8, 68, True), (0, 7, False), (0, 8, True), (127, 127, False)],
)
def test_a_periodic_job_sees_what_lasts_until_its_next_look(
    begin: float, end: float, *, seen: bool
) -> None:
    assert is_seen(begin, end, 60, 7) is seen
