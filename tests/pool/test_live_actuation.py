"""Live actuation beside the cron way: the cap, and refusals at claim time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from poolbox import Box, BoxSpec, ExecutePoint, event_log
from tests.pool import consumption_pools
from tests.pool.deployed import (
    CONSUMPTION_POLICY,
    cycles,
    held,
    jobs,
    publish,
    refusals,
    shown,
    snippet,
)

pytestmark = pytest.mark.semantics

ACCESS, WHOLE = "ap-1.example.org", "ap-2.example.org"
"""Access points: one that starts jobs on leftovers, and one that must not.

With a consumption policy the startd's own CLAIM_PARTITIONABLE_LEFTOVERS does not count.
"""
CORES, CAP, MULTICORE = 16, 4, 8
PERIODS = {"grace_seconds": 20, "job_ctl_period_seconds": 5, "mc_grace_period_seconds": 5}
JOBS = 200
LOOKS = 24
"""One a second."""

WITHOUT_WHAT_THE_CYCLE_TOOK = "t1_matched_since = 0\n"
NODES: Mapping[str, tuple[str, str]] = {
    # node: actuation, how cores are given out
    "wn-001": ("live", ""),
    "wn-002": ("live", "CLAIM_PARTITIONABLE_LEFTOVERS = False\n"),
    "wn-003": ("live", CONSUMPTION_POLICY),
    "wn-004": ("cron", ""),
    "wn-005": ("cron", CONSUMPTION_POLICY),
    "wn-006": ("live", CONSUMPTION_POLICY + WITHOUT_WHAT_THE_CYCLE_TOOK),
    "wn-007": ("live", CONSUMPTION_POLICY),
    "wn-008": ("cron", CONSUMPTION_POLICY),
}
LIVE, CRON = ("wn-001", "wn-002", "wn-003", "wn-007"), ("wn-004", "wn-005", "wn-008")
WITH_POLICY, WITHOUT_MATCHED, NO_LEFTOVERS = "wn-003", "wn-006", ("wn-007", "wn-008")


def full(node: str) -> str:
    return f"{node}.example.org"


SPEC = BoxSpec(
    execute_points=tuple(
        ExecutePoint(full(node), CORES, config=snippet(more, actuation=actuation, **PERIODS))
        for node, (actuation, more) in NODES.items()
    ),
    access_points=(ACCESS, WHOLE),
    access_config=event_log.EVENT_TIMES,
)


def prepare(box: Box) -> None:
    consumption_pools.forbid_leftovers(box)


def test_live_never_passes_the_cap_by_a_core_and_cron_does(pool: Box) -> None:
    """With leftovers, without, and with a consumption policy."""
    box = pool  # it ends with its jobs
    log = box.shared_directory / "cap.log"
    publish(box, *(f"{node} alice {CAP} cms {MULTICORE}" for node in NODES))
    for node in NODES:
        box.wait_until(partial(ready, box, node), f"{node}: a target, no grace")
    before, began = {node: refusals(box, full(node)) for node in NODES}, cycles(box)
    there = " || ".join(f'TARGET.Machine == "{full(node)}"' for node in NO_LEFTOVERS)
    seconds, whole = "$RANDOM_INTEGER(8,14)", box.shared_directory / "whole.log"
    for where, access, file in ((f"!({there})", ACCESS, log), (there, WHOLE, whole)):
        lines = (f"requirements = {where}", f"log = {file}")
        box.submit(jobs("alice", 1, JOBS, seconds, *lines), access)
    most: Counter[str] = Counter()
    with ThreadPoolExecutor(len(NODES)) as looks:
        for _ in range(LOOKS):
            next_look = time.monotonic() + 1
            seen = looks.map(lambda node: held(box, full(node))["alice"], NODES)
            most |= Counter(dict(zip(NODES, seen)))
            time.sleep(max(0, next_look - time.monotonic()))
    logged = event_log.most_at_once(log) | event_log.most_at_once(whole)
    gone = cycles(box) - began
    lost = {node: (refusals(box, full(node)) - before[node]) / gone for node in NODES}
    print(f"most cores at once: {dict(most)}; by the event log: {dict(logged)}; cap {CAP}")
    print(f"matches refused at claim time, per cycle: {lost}")

    for node in LIVE:
        assert most[node] <= CAP, f"{node}: the cap is never passed"
        assert logged[full(node)] == CAP, f"{node}: but it is reached"
    for node in CRON:
        assert most[node] >= CAP, f"{node}: the cap is reached"
    assert lost[WITHOUT_MATCHED] > 1, "without what the cycle took, it would go on matching"
    # A cycle that begins before the last one's claims are in the collector may lose one match.
    assert lost[WITH_POLICY] <= lost[WITHOUT_MATCHED] / 4, "the negotiator's own copy stops it"


def ready(box: Box, node: str) -> bool:
    names = ("t1_Targetcores[0]", "MC_GRACE", "t1_Disabled")
    return shown(box, "-direct", full(node), "-af", *names) == [[str(CAP), "false", "false"]]
