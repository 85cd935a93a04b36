"""Why a group is helped, held back or neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.cycle.record import record_of
from sharectl.model import PendingJobs, PlanLimits, RunningJobs
from sharectl.plan.plan import PlanConfig, State, decide, withdrawal
from sharectl.plan.records import GROUP_REASONS, GroupReason, group_reasons
from tests.fakes import NOW, running, snapshot

FULL = [running(f"wn-{n}", "alice", 1, 64) for n in range(4)]
PLEDGES = {"alice": 100.0, "cms": 100.0, "lhcb": 100.0}
Pending = dict[tuple[str, int], int]


def reasons(
    held: list[RunningJobs], pending: Pending, strategy: str = "many", **limits: object
) -> dict[str, GroupReason]:
    """Reason of each group after a first cycle."""
    config = PlanConfig(PLEDGES, PlanLimits(**limits), 3060, strategy=strategy)  # type: ignore[arg-type]
    taken = snapshot(held, pending)
    decision = decide(config, State(), taken, NOW)
    return dict(record_of(config, taken, decision, decision.plan, ("fake",)).group_reasons)


@pytest.mark.parametrize(
    ("held", "pending", "how", "codes"),
    [
        (FULL, {("cms", 8): 9}, {}, ("held-back", "helped", "no-demand")),
        (FULL, {}, {}, ("no-taker", "no-demand", "no-demand")),
        ([], {("cms", 8): 9}, {}, ("no-output", "no-output", "no-output")),
        (FULL, {("cms", 8): 9}, {"deadband_hs06": 1e9}, ("no-output",) * 3),
        (FULL, {("cms", 128): 9}, {}, ("no-fit", "no-fit", "no-demand")),
        (
            FULL,
            {("cms", 8): 9, ("lhcb", 8): 9},
            {"max_nodes": 0},
            ("limited", "limited", "limited"),
        ),
        (
            FULL,
            {("cms", 8): 9, ("lhcb", 8): 9},
            {"strategy": "pair"},
            ("held-back", "helped", "not-furthest"),
        ),
        (
            [running("wn-1", "alice", 1, 8)],
            {("cms", 8): 9},
            {},
            ("too-small", "too-small", "no-demand"),
        ),
        (
            [*FULL, running("wn-9", "cms", 1, 1)],
            {("cms", 8): 99, ("lhcb", 1): 99},
            {},
            ("held-back", "others-first", "helped"),
        ),
    ],
)
def test_each_group_has_its_reason(
    held: list[RunningJobs], pending: Pending, how: dict[str, object], codes: tuple[str, ...]
) -> None:
    found = reasons(held, pending, **how)  # type: ignore[arg-type]
    assert tuple(reason.code for reason in found.values()) == codes
    assert set(codes) <= set(GROUP_REASONS)


def test_jobs_that_no_node_could_run_are_told_from_no_jobs() -> None:
    config = PlanConfig(PLEDGES, PlanLimits(), 3060)
    taken = snapshot(FULL)
    decision = decide(config, State(), taken, NOW)
    taken = replace(taken, pending=(PendingJobs("cms", 8, 9, placeable=False),))
    record = record_of(config, taken, decision, decision.plan, ("fake",))
    assert record.group_reasons["cms"].code == "not-placeable"


def test_a_group_that_holds_no_steered_core_cannot_give() -> None:
    config = PlanConfig(PLEDGES, PlanLimits(), 3060)
    held = [running("wn-1", "alice", 1, 64), running("wn-2", "cms", 1, 30)]
    taken = snapshot(held, {("lhcb", 8): 9}, uncontrolled=["wn-1"])
    decision = decide(config, State(), taken, NOW)
    record = record_of(config, taken, decision, decision.plan, ("fake",))
    assert record.group_reasons["alice"].code == "no-cores"


@pytest.mark.parametrize(
    ("plan", "node", "codes"),
    [
        ("given-up", "no-call", ("no-taker", "given-up", "no-demand")),
        ("not-worth", "given-up", ("not-worth", "given-up", "no-demand")),
        ("not-worth", "probing", ("not-worth", "probing", "no-demand")),
    ],
)
def test_cores_that_no_job_took_are_the_reason(
    plan: str, node: str, codes: tuple[str, ...]
) -> None:
    config = PlanConfig(PLEDGES, PlanLimits(), 3060)
    taken = snapshot(FULL, {("cms", 8): 9})
    decision = decide(config, State(), taken, NOW)
    nodes = tuple(replace(record, target=None, reason=node) for record in decision.nodes)
    published = replace(decision.plan, reason=plan)
    found = group_reasons(decision.groups, published, "many", nodes, taken.pending)
    assert tuple(reason.code for reason in found.values()) == codes


def test_nodes_that_targets_close_are_counted() -> None:
    found = reasons(FULL, {("cms", 8): 2, ("cms", 1): 5, ("lhcb", 1): 0})
    # Two nodes for the jobs of eight cores, one for those of one core.
    assert found["lhcb"] == GroupReason("no-demand", 3, 0)
    assert found["cms"] == GroupReason("helped", 0, 3)
    assert found["alice"] == GroupReason("held-back", 0, 0)


def test_a_withdrawal_is_the_reason_of_all() -> None:
    config = PlanConfig(PLEDGES, PlanLimits(), 3060)
    taken = snapshot(FULL, {("cms", 8): 9})
    decision = decide(config, State(), taken, NOW)
    plan, _ = withdrawal(config, State(), NOW, "disabled")
    record = record_of(config, taken, decision, plan, ("fake",), disabled=True)
    assert {reason.code for reason in record.group_reasons.values()} == {"no-plan"}


def test_pending_jobs_of_a_group_within_count_for_it() -> None:
    config = PlanConfig(
        {"alice": 100.0, "cms.prod": 100.0}, PlanLimits(), 3060, own_hs06={"cms": 10.0}
    )
    taken = snapshot(FULL)
    taken = replace(taken, pending=(PendingJobs("cms.prod", 8, 9),))
    decision = decide(config, State(), taken, NOW)
    record = record_of(config, taken, decision, decision.plan, ("fake",))
    assert {group: reason.code for group, reason in record.group_reasons.items()} == {
        "alice": "held-back",
        "cms": "helped",
        "cms.prod": "helped",
    }
