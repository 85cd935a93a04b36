"""Why a group is helped, held back or neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.cycle.record import record_of
from sharectl.model import PendingJobs, PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import PlanConfig, State, decide, withdrawal
from sharectl.plan.records import GROUP_REASONS, GroupReason, group_reasons
from tests.fakes import NOW, running, snapshot

FULL = [running(f"wn-{n}", "alice", 1, 64) for n in range(4)]
PLEDGES = {"alice": 100.0, "cms": 100.0, "lhcb": 100.0}
Pending = dict[tuple[str, int], int]


CONFIG = PlanConfig(PLEDGES, PlanLimits(), 3060)


def reasons(
    held: list[RunningJobs], pending: Pending, strategy: str = "many", **limits: object
) -> dict[str, GroupReason]:
    config = replace(CONFIG, limits=PlanLimits(**limits), strategy=strategy)  # type: ignore[arg-type]
    taken = snapshot(held, pending)
    decision = decide(config, State(), taken, NOW)
    return dict(record_of(config, taken, decision, decision.plan, ("fake",)).group_reasons)


BOTH_WAIT = {("cms", 8): 9, ("lhcb", 8): 9}
TOO_SMALL = [running("wn-1", "alice", 1, 5)]
CMS_HOLDS = [*FULL, running("wn-9", "cms", 8, 1)]


@pytest.mark.parametrize(
    ("held", "pending", "how", "codes"),
    [
        (FULL, {}, {}, "no-taker no-demand no-demand"),
        (FULL, {("cms", 8): 9}, {"deadband_hs06": 1e9}, "no-output no-output no-output"),
        (FULL, {("cms", 128): 9}, {}, "no-taker no-fit no-demand"),
        (FULL, BOTH_WAIT, {"max_nodes": 0}, "limited limited limited"),
        (FULL, BOTH_WAIT, {"strategy": "pair"}, "held-back helped not-furthest"),
        (TOO_SMALL, {("cms", 8): 9}, {"deadband_hs06": 0.0}, "too-small too-small no-demand"),
        (CMS_HOLDS, {("cms", 8): 99, ("lhcb", 1): 99}, {}, "held-back others-first helped"),
    ],
)
def test_each_group_has_its_reason(
    held: list[RunningJobs], pending: Pending, how: dict[str, object], codes: str
) -> None:
    by_group = reasons(held, pending, **how)  # type: ignore[arg-type]
    assert [reason.code for reason in by_group.values()] == codes.split()
    assert set(codes.split()) <= set(GROUP_REASONS)


@pytest.mark.parametrize("code", ["given-up", "probing"])
def test_cores_that_no_job_took_are_the_reason(code: str) -> None:
    taken = snapshot(FULL, {("cms", 8): 9})
    decision = decide(CONFIG, State(), taken, NOW)
    nodes = tuple(replace(record, target=None, reason=code) for record in decision.nodes)
    published = replace(decision.plan, reason="not-worth")
    by_group = group_reasons(decision.groups, published, "many", nodes, taken.pending)
    assert [reason.code for reason in by_group.values()] == ["not-worth", code, "no-demand"]


NOT_PLACEABLE = replace(snapshot(FULL), pending=(PendingJobs("cms", 8, 9, placeable=False),))
HELD = [running("wn-1", "alice", 1, 64), running("wn-2", "cms", 1, 30)]
NOT_STEERED = snapshot(HELD, {("lhcb", 8): 9}, uncontrolled=["wn-1"])
NESTED = replace(CONFIG, pledge_hs06={"alice": 1.0, "cms.prod": 1.0}, own_hs06={"cms": 0.1})
CMS_WAITS = snapshot(FULL, {("cms", 8): 9})
CMS_PROD_WAITS = snapshot(FULL, {("cms.prod", 8): 9})


@pytest.mark.parametrize(
    ("config", "taken", "published", "codes"),
    [
        (CONFIG, NOT_PLACEABLE, "plan", {"cms": "not-placeable"}),
        (CONFIG, NOT_STEERED, "plan", {"alice": "no-cores"}),
        (CONFIG, NOT_PLACEABLE, "withdrawal", dict.fromkeys(PLEDGES, "no-plan")),
        (CONFIG, NOT_STEERED, "nothing", dict.fromkeys(PLEDGES, "no-plan")),
        # Jobs of a group within count for it.
        (NESTED, CMS_PROD_WAITS, "plan", {"alice": "held-back", "cms": "helped"}),
    ],
)
def test_the_reason_of_some_groups(
    config: PlanConfig, taken: Snapshot, published: str, codes: dict[str, str]
) -> None:
    decision = decide(config, State(), taken, NOW)
    plans = {"plan": decision.plan, "nothing": None}
    plans["withdrawal"] = withdrawal(config, State(), NOW, "disabled")[0]
    off = "disabled" if published != "plan" else None
    record = record_of(config, taken, decision, plans[published], ("fake",), off=off)
    assert {group: record.group_reasons[group].code for group in codes} == codes
