"""START in Python: what the engine asks of it; tests/contract/test_start_law.py has the law."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Optional

import pytest

from sharectl_lab.twin.start import (
    SlotTarget,
    StartKnobs,
    claim_worklife_seconds,
    is_in_grace,
    is_seen,
    refusal,
    reuse_refusal,
)

NOW = 1000.0
LIVE, CRON = StartKnobs(), StartKnobs(actuation="cron")
OFF = StartKnobs(enabled=False)
TARGET = SlotTarget("alice", 16, "cms", 8, until=NOW + 60)


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


IN_GRACE = Slot(room_since=NOW - 479)
AIMED = Slot(target=TARGET)


@pytest.mark.parametrize(
    ("slot", "cores", "account", "knobs", "cause"),
    [
        (Slot(), 1, "", LIVE, None),
        (Slot(draining=True), 8, "", OFF, "drain"),
        (Slot(multicore_only=True), 1, "", OFF, "start"),
        (Slot(multicore_only=True), 2, "", LIVE, None),
        (IN_GRACE, 1, "cms", LIVE, "grace"),
        (IN_GRACE, 1, "cms", CRON, "grace"),
        (IN_GRACE, 2, "cms", LIVE, None),
        (IN_GRACE, 1, "cms", OFF, None),
        (replace(IN_GRACE, room_since=NOW - 480), 1, "cms", LIVE, None),
        (replace(IN_GRACE, free_cores=7), 1, "cms", LIVE, None),
        (IN_GRACE, 1, "cms", StartKnobs(multicore_pending=False), None),
        (IN_GRACE, 1, "cms", StartKnobs(multicore_pending=True), "grace"),
        (
            IN_GRACE,
            1,
            "cms",
            StartKnobs(multicore_pending=False, multicore_pending_until=NOW),
            "grace",
        ),
        # A target for single-core jobs frees the cores for its group.
        (replace(IN_GRACE, target=TARGET._replace(request_cores=1)), 1, "cms.x", LIVE, None),
        (replace(IN_GRACE, target=TARGET._replace(request_cores=1)), 1, "alice", LIVE, "grace"),
        (AIMED, 8, "cms.prod", LIVE, None),
        (AIMED, 4, "cms", LIVE, "target"),
        (AIMED, 8, "cms2", LIVE, "target"),
        (AIMED, 8, "", LIVE, "target"),
        (AIMED, 8, "alice.prod", LIVE, None),
        (AIMED, 9, "alice", LIVE, "target"),
        (AIMED, 8, "alice", CRON, None),
        (AIMED, 9, "alice", CRON, "target"),
        (replace(AIMED, taken_since=6), 8, "alice", CRON, "target"),
        (AIMED, 8, "lhcb", OFF, None),
        (replace(AIMED, target=TARGET._replace(until=NOW)), 8, "lhcb", LIVE, None),
    ],
)
def test_start_of_a_partitionable_slot(
    slot: Slot, cores: int, account: str, knobs: StartKnobs, cause: Optional[str]
) -> None:
    assert refusal(slot, cores, account, NOW, knobs) == cause


@pytest.mark.parametrize(
    ("slot", "claim_cores", "claim_account", "cores", "account", "cause"),
    [
        (Slot(), 8, "cms", 8, "cms", None),
        (Slot(), 8, "cms", 1, "cms", "grace"),
        (Slot(), 7, "cms", 1, "cms", None),
        (Slot(draining=True), 8, "cms", 8, "cms", "drain"),
        (Slot(multicore_only=True), 4, "cms", 1, "cms", "start"),
        (AIMED, 8, "cms", 8, "alice", "target"),
        (AIMED, 8, "alice", 8, "alice.prod", None),
        (AIMED, 8, "lhcb", 4, "lhcb", None),
    ],
)
def test_start_of_a_claimed_slot(
    slot: Slot, claim_cores: int, claim_account: str, cores: int, account: str, cause: Optional[str]
) -> None:
    assert reuse_refusal(slot, claim_cores, claim_account, cores, account, NOW, LIVE) == cause


def test_a_held_back_claim_takes_no_further_job_under_a_target() -> None:
    def life(slot: Slot, account: str, knobs: StartKnobs = LIVE) -> float:
        return claim_worklife_seconds(slot, account, NOW, knobs, 1200)

    assert life(AIMED, "alice.prod") == 0
    assert life(AIMED, "cms") == life(Slot(), "alice") == life(AIMED, "alice", OFF) == 1200


def test_grace_begins_when_the_plan_no_longer_tells_that_nobody_waits() -> None:
    slot = Slot(room_since=NOW - 100)
    knobs = StartKnobs(multicore_pending=False, multicore_pending_until=NOW + 5)
    assert not is_in_grace(slot, NOW, knobs)
    assert is_in_grace(slot, NOW + 5, knobs)


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
