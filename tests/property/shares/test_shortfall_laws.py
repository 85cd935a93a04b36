"""Power that is due to groups and not delivered."""

from __future__ import annotations

from dataclasses import replace

from sharectl.model import ClosedTo, Node, PendingJobs, RunningJobs, Snapshot
from sharectl.shares.errors import shortfalls_hs06, shortfalls_of


def test_shortfall_is_never_below_zero_and_counts_a_group_without_jobs() -> None:
    short = shortfalls_hs06({"alice": 100.0, "cms": 300.0}, {"alice": 500.0})
    assert short == {"alice": 0.0, "cms": 300.0}


OWN = Node("wn-1", "wn-1.example.org", 40, 10.0, controlled=True)
FOREIGN = Node("wn-2", "wn-2.example.org", 40, 20.0, controlled=False)
POOL = Snapshot(
    0,
    (OWN, FOREIGN),
    (RunningJobs("wn-1", "alice", 1, 10.0, 60, 20), RunningJobs("wn-2", "other", 4, 20.0, 60, 5)),
    (PendingJobs("cms", 8, 100), PendingJobs("alice", 64, 9, placeable=False)),
)


def test_power_of_others_cannot_be_had_and_nodes_out_of_control_count() -> None:
    lacking = shortfalls_of(POOL, {"alice": 1.0, "cms": 1.0})
    assert lacking.present_hs06 == 400 + 800 - 400
    assert lacking.due_hs06 == {"alice": 200.0, "cms": 600.0}, "no node could run alice's jobs"
    assert lacking.shortfall_hs06 == {"alice": 0.0, "cms": 600.0}


def test_idle_cores_of_a_node_that_takes_no_waiting_job_are_not_present() -> None:
    to_cms = (ClosedTo("cms", (8,), "HEALTHY"),)
    for shut in (replace(OWN, hot=True), replace(OWN, closed=to_cms)):
        lacking = shortfalls_of(replace(POOL, nodes=(shut, FOREIGN)), {"alice": 1.0, "cms": 1.0})
        assert lacking.present_hs06 == 800 - 200
    other_size = replace(OWN, closed=(ClosedTo("cms", (1,), "HEALTHY"),))
    lacking = shortfalls_of(replace(POOL, nodes=(other_size, FOREIGN)), {"cms": 1.0})
    assert lacking.present_hs06 == 1200 - 600, "it takes those of 8 cores, and alice is another"
