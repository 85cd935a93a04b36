"""The cap where access points leave leftovers to the negotiator, for consumption policies.

With a policy the startd's own CLAIM_PARTITIONABLE_LEFTOVERS does not count, so this takes a pool of
its own beside test_live_actuation.py, whose access point gives leftovers. A node that acts by cron
stands beside the live one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import event_log
from tests.pool.conftest import OpenBox
from tests.pool.deployed import publish, snippet
from tests.pool.event_log import TERMINATED
from tests.pool.test_live_actuation import (
    ACCESS,
    CAP,
    CONSUMPTION_POLICY,
    CORES,
    JOBS,
    MULTICORE,
    held_cores,
    ready,
    submit,
)

pytestmark = pytest.mark.semantics

LIVE, CRON = "wn-001", "wn-002"
ENDED = 6 * CAP
"""So many jobs have ended before the nodes are no longer watched."""


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(
                f"{node}.example.org", CORES, config=snippet(actuation=way) + CONSUMPTION_POLICY
            )
            for node, way in ((LIVE, "live"), (CRON, "cron"))
        ),
        access_points=(ACCESS,),
        access_config=f"{event_log.EVENT_TIMES}CLAIM_PARTITIONABLE_LEFTOVERS = False\n",
    )
    with open_box(spec) as running:
        yield running


def test_with_a_policy_and_no_leftovers_live_never_passes_the_cap(box: Box) -> None:
    log = box.shared_directory / "cap.log"
    publish(box, *(f"{node} alice {CAP} cms {MULTICORE}" for node in (LIVE, CRON)))
    box.wait_until(
        lambda: ready(box, LIVE) and ready(box, CRON), 90, "both nodes have their target, no grace"
    )
    submit(box, "alice", 1, "$RANDOM_INTEGER(4,8)", JOBS, log)
    most: Counter[str] = Counter()

    def watched() -> bool:
        """Whether both have reached the cap, and jobs have followed on jobs."""
        for node in (LIVE, CRON):
            most[node] = max(most[node], held_cores(box, node, "alice"))
        time.sleep(0.5)
        so_far = event_log.most_at_once(log)
        come = so_far[f"{LIVE}.example.org"] >= CAP and so_far[f"{CRON}.example.org"] >= CAP
        return come and len(event_log.times(log, TERMINATED)) >= ENDED

    box.wait_until(watched, 180, "the cap is reached on both, and jobs have followed on jobs")
    logged = event_log.most_at_once(log)
    print(f"most cores at once, seen: {dict(most)}; from the event log: {dict(logged)}; cap {CAP}")
    assert most[LIVE] <= CAP
    assert logged[f"{LIVE}.example.org"] == CAP, "it is reached, and never passed"
