"""Laws of the power that is due to groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import fsum, isclose

from hypothesis import given
from hypothesis import strategies as st

from sharectl.model import ClosedTo, Node, PendingJobs, RunningJobs, Snapshot
from sharectl.shares.shortfall import (
    Lack,
    due_powers_hs06,
    lacks,
    shortfalls_hs06,
    shortfalls_of,
)

GROUPS = ("alice", "atlas", "cms", "lhcb")
# Less than a thousandth of an HS06 is no core, and quotients of such powers lack digits.
POWERS = st.fixed_dictionaries(dict.fromkeys(GROUPS, st.just(0.0) | st.floats(1e-3, 1e6)))
PRESENT = st.just(0.0) | st.floats(1e-3, 1e6)
PLEDGES = st.fixed_dictionaries(dict.fromkeys(GROUPS, st.floats(1, 1e6)))


@given(PLEDGES, POWERS, PRESENT)
def test_no_power_is_due_twice_and_none_that_nobody_can_use(
    pledge: Mapping[str, float], demand: Mapping[str, float], present: float
) -> None:
    due = due_powers_hs06(pledge, demand, present)
    for group in GROUPS:
        assert 0 <= due[group] <= demand[group]
    assert isclose(fsum(due.values()), min(present, fsum(demand.values())), abs_tol=1e-3)


@given(PLEDGES, POWERS, PRESENT)
def test_a_group_that_can_use_more_has_the_largest_part_of_its_pledge(
    pledge: Mapping[str, float], demand: Mapping[str, float], present: float
) -> None:
    due = due_powers_hs06(pledge, demand, present)
    for group in GROUPS:
        if due[group] < demand[group] * (1 - 1e-9):
            level = due[group] / pledge[group]
            assert level >= max(due[other] / pledge[other] for other in GROUPS) * (1 - 1e-9)


def test_what_a_group_leaves_goes_to_the_others_by_their_pledges() -> None:
    pledge = {"alice": 400.0, "cms": 400.0, "lhcb": 200.0}
    due = due_powers_hs06(pledge, {"alice": 100.0, "cms": 9000.0, "lhcb": 9000.0}, 1000.0)
    assert due == {"alice": 100.0, "cms": 600.0, "lhcb": 300.0}


def test_a_group_without_a_pledge_is_due_nothing() -> None:
    assert due_powers_hs06({"alice": 0.0, "cms": 1.0}, {"alice": 50.0, "cms": 10.0}, 100.0) == {
        "alice": 0.0,
        "cms": 10.0,
    }


def test_shortfall_is_never_below_zero_and_counts_a_group_without_jobs() -> None:
    short = shortfalls_hs06({"alice": 100.0, "cms": 300.0}, {"alice": 500.0})
    assert short == {"alice": 0.0, "cms": 300.0}


def test_a_group_lacks_power_from_the_begin_of_its_shortfall_until_it_has_90_percent() -> None:
    due = [100.0, 100.0, 100.0, 100.0, 100.0, 0.0, 100.0, 100.0, 100.0]
    power = [100.0, 85.0, 70.0, 89.0, 90.0, 0.0, 80.0, 95.0, 0.0]
    begun_slowly, cut_off = Lack(180.0, ended=True), Lack(60.0, ended=False)
    assert lacks(due, power, 60.0) == [begun_slowly, cut_off], "it never was far below at 80"


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
