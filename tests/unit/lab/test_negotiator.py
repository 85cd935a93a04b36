"""Allocations of HTCondor's own tests and of its manual, and those that its source tells."""

from __future__ import annotations

import math
from typing import Optional

import pytest

from sharectl_lab.twin.accountant import Accountant
from sharectl_lab.twin.group_quotas import ROOT, GroupQuota, QuotaTree
from sharectl_lab.twin.negotiator import PoolWeights, SubmitterAd, negotiate
from sharectl_lab.twin.settings import Negotiator
from tests.static_slots import StaticSlots


def static(quotas: dict[str, float], *, surplus: bool = False) -> QuotaTree:
    return QuotaTree(
        GroupQuota(name, quota, accept_surplus=surplus) for name, quota in quotas.items()
    )


def units(count: int) -> list[float]:
    return [1.0] * count


PHYSICS = [
    GroupQuota("physics", 20),
    GroupQuota("physics.hep", 15, accept_surplus=True),
    GroupQuota("physics.lep", 5, accept_surplus=True),
    GroupQuota("chemistry", 10),
]


@pytest.mark.parametrize(
    ("tree", "slots", "pending", "running"),
    [
        # job_hgq_autoregroup_basic, and job_cp_cclim_acctgrp_basic, whose concurrency limit of c is
        # the part of the pool: it has no job for the third.
        (
            QuotaTree([GroupQuota(name, 1, autoregroup=True) for name in "ab"]),
            4, {"a.u": 2, "b.u": 2}, {"a.u": 2, "b.u": 2},
        ),
        (
            static({"a": 1, "b": 2, "c": 3}),
            6, {"a.u": 5, "b.u": 5, "c.u": 2}, {"a.u": 1, "b.u": 2, "c.u": 2},
        ),
        # The manual: surplus within a parent, and quotas above the pool.
        (QuotaTree(PHYSICS), 60, {"physics.lep.einstein": 100}, {"physics.lep.einstein": 20}),
        (static({"physics": 20, "chemistry": 10}), 15, {"physics.u": 99}, {"physics.u": 15}),
        # Surplus goes by quota, and what is not taken to the others.
        (
            static({"a": 10, "b": 20, "c": 30}, surplus=True),
            60, {"a.u": 99, "b.u": 99}, {"a.u": 20, "b.u": 40},
        ),
        (
            static({"a": 10, "b": 20, "c": 30}, surplus=True),
            60, {"a.u": 12, "b.u": 99}, {"a.u": 12, "b.u": 48},
        ),
        # A group without a quota uses surplus alone.
        (static({"a": 10, "b": 0}, surplus=True), 20, {"a.u": 15, "b.u": 9}, {"a.u": 15, "b.u": 5}),
        (static({"a": 10, "b": 0}), 20, {"b.u": 99}, {}),
        # A later spin gives what is left: 15 after the first, and a is the first of two.
        (QuotaTree(), 60, {"a.u": 99, "b.u": 99, "c.u": 5}, {"a.u": 30, "b.u": 25, "c.u": 5}),
    ],
)  # fmt: skip
def test_allocations(
    tree: QuotaTree, slots: int, pending: dict[str, int], running: dict[str, int]
) -> None:
    pool = StaticSlots(units(slots), dict(pending))
    pool.negotiate(tree)
    assert pool.running == running


def test_the_group_that_uses_least_of_its_quota_goes_first_and_the_root_last() -> None:
    tree = static({"a": 10, "b": 10})
    pool = StaticSlots(units(20), {"u": 9, "a.u": 9, "b.u": 9})
    pool.accountant.charge("a.v", 0.0, 4)
    pool.negotiate(tree)
    assert pool.turns[:2] == ["b.u", "a.u"]
    # The root group takes surplus.
    assert pool.running == {"b.u": 9, "a.u": 6, "u": 1}


def test_an_account_that_no_group_has_negotiates_in_the_deepest_that_is_there() -> None:
    tree = static({"a": 3, "a.x": 1})
    assert tree.assigned("a.y.z.user").name == "a"
    assert tree.assigned("A.X.user").name == "a.x"
    assert tree.assigned("user").name == ROOT
    assert tree.assigned("lhcb.user").name == ROOT


@pytest.mark.parametrize(
    "groups", [[GroupQuota("a.b", 1)], [GroupQuota("a", 1), GroupQuota("A", 2)]]
)
def test_a_tree_with_a_gap_or_a_double_is_refused(groups: list[GroupQuota]) -> None:
    with pytest.raises(ValueError, match="group"):
        QuotaTree(groups)


@pytest.mark.parametrize(
    ("weight", "least", "used"),
    [
        # One that weighs more than the limit is taken once in a spin.
        (16.0, 16.0, {"a.u": 16.0, "b.u": 16.0}),
        (16.0, 0.0, {"a.u": 16.0, "b.u": 32.0}),
        # The limit of a group is a whole number.
        (0.25, None, {"a.u": 10.0, "b.u": 20.0}),
    ],
)
def test_weights_of_slots(weight: float, least: Optional[float], used: dict[str, float]) -> None:
    pool = StaticSlots([weight] * 200, {"a.u": 99, "b.u": 99}, least_weight=least)
    pool.negotiate(static({"a": 10.9, "b": 20}))
    assert pool.used == used


@pytest.mark.parametrize(
    ("knobs", "weight"), [(Negotiator(consider_preemption=False), 10), (Negotiator(), 12)]
)
def test_with_preemption_the_first_spin_does_not_stop_at_the_quota(
    knobs: Negotiator, weight: float
) -> None:
    # v uses 8 of 10; u and w have a limit of 2 each, and a third of the quota as share.
    pool = StaticSlots(units(40), {"a.u": 9, "a.w": 9}, knobs=knobs)
    pool.accountant.charge("a.v", 0.0, 8)
    stopped = pool.negotiate(static({"a": 10}))
    assert sum(pool.used.values()) == weight
    assert stopped == {"a.u", "a.w"}


def test_submitters_whose_jobs_match_nowhere_are_not_stopped_by_quota() -> None:
    pool = StaticSlots(units(10), {"a.u": 99, "b.u": 9}, fits=lambda name, _slot: name == "a.u")
    assert pool.negotiate(static({"a": 5, "b": 5})) == {"a.u"}


def test_access_points_share_the_limit_of_a_submitter() -> None:
    matched: list[int] = []

    def match(ad: SubmitterAd, room: float) -> Optional[float]:
        if room < 1:
            return math.inf
        matched.append(ad.access_point)
        return 1.0

    ads = [SubmitterAd("a.u", 50, 0), SubmitterAd("a.u", 50, 1), SubmitterAd("b.u", 50)]
    knobs = Negotiator(consider_preemption=False)
    tree = static({"a": 10, "b": 10})
    negotiate(knobs, tree, ads, Accountant(60), PoolWeights(40, 1), 0.0, match)
    assert len(matched) == 20


def test_a_pool_that_always_asks_for_more_room_ends_the_cycle() -> None:
    ads = [SubmitterAd("a.u", 50), SubmitterAd("b.u", 50)]
    tree = static({"a": 10, "b": 10})
    stopped = negotiate(
        Negotiator(), tree, ads, Accountant(60), PoolWeights(40), 0.0, lambda _ad, _room: math.inf
    )
    assert not stopped


def test_usage_decays_to_the_best_priority_and_rises_with_the_half_life() -> None:
    accountant = Accountant(100.0, {"cms": 10.0})
    accountant.charge("cms.u", 0.0, 64)
    assert accountant.priority("cms.u", 100.0) == pytest.approx(32.25)
    assert accountant.effective_priority("cms.u", 100.0) == pytest.approx(322.5)
    accountant.charge("cms.u", 100.0, -64)
    assert accountant.priority("cms.u", 200.0) == pytest.approx(16.125)
    assert accountant.priority("cms.u", 1e6) == 0.5
    assert accountant.effective_priority("new", 0.0) == 500.0
    accountant.charge("cms.u", 200.0, -1)
    assert accountant.usages["cms.u"] == 0.0
