"""Decisions of the ledger, made again, and cycles in which these differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli.cycle import digest_of
from sharectl.config.load import load
from sharectl.control.setpoints import Entitlement
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.record import record_of
from sharectl.explain.decisions import of_ledger, ratio_of
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import (
    Node,
    PendingJobs,
    PlanLimits,
    RunningJobs,
    Snapshot,
)
from sharectl.plan.plan import PlanConfig, State, decide
from tests.fakes import NOW
from tests.ledgers import PERIOD_SECONDS, busy, law
from tests.unit.explain.conftest import Run

PLEDGES = {"cms": 87_100.0, "atlas": 105_300.0}
LAW = PlanConfig(PLEDGES, PlanLimits(), 3060)
LOOKS = 3
CHOSEN, OTHER = "wn-2", "wn-1"


def test_a_node_that_refused_refuses_again() -> None:
    taken = Snapshot(
        NOW,
        (Node("a", "a", 8, 10.0, controlled=True, refusal="unsigned"),),
        (RunningJobs("a", "cms", 1, 10.0, 600, 8),),
        (PendingJobs("atlas", 8, 5),),
    )
    decision = decide(LAW, State(), taken, NOW)
    record = record_of(LAW, taken, decision, decision.plan, ())
    explained = of_ledger(record, LAW)
    assert (explained.decision.plan.targets, explained.agrees) == ((), True)
    assert explained.decision.nodes[0].reason == "refused"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Of a ledger whose first cycle says that it knew run times by which it chose otherwise."""
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        "groups: {cms: {pledge_hs06: 87100}, atlas: {pledge_hs06: 105300}}\n"
        f"state_directory: {tmp_path}\n",
        encoding="utf-8",
    )
    ledger, state, records = Ledger(tmp_path / "learns"), State(), []
    # Jobs that were old when the first cycle chose, and so were expected to stay, end at once.
    looks = ({OTHER: 14_400, CHOSEN: 600}, {OTHER: 60, CHOSEN: 1620}, {OTHER: 1080, CHOSEN: 2640})
    for number, ages in enumerate(looks):
        taken = Snapshot(
            NOW + number * PERIOD_SECONDS,
            tuple(Node(name, name, 8, 10.0, controlled=True) for name in ages),
            tuple(RunningJobs(name, "cms", 1, 10.0, age, 8) for name, age in ages.items()),
            (PendingJobs("atlas", 8, 5),),
        )
        known = ledger.run_times(tuple(PLEDGES)) if number else {}
        decision = decide(LAW, state, taken, taken.taken_at, known)
        assert [target.node for target in decision.plan.targets] == [CHOSEN]
        records.append((record_of(LAW, taken, decision, decision.plan, ("fake",)), taken))
        ledger.record(*records[-1])
        state = decision.state
    later = {name: table.as_rows() for name, table in ledger.run_times(tuple(PLEDGES)).items()}
    for number, (record, taken) in enumerate(records):
        assert record.basis is not None
        basis = record.basis if number else replace(record.basis, run_times=later)
        made = replace(record, basis=basis, configuration=digest_of(load(path)))
        Ledger(tmp_path / PLACE).record(made, taken)
    return path


OUTCOMES = {
    ("node", CHOSEN, "--cycle"): "no target",
    ("node", OTHER, "--cycle"): "a target",
    ("group", "cms", "--cycle"): "gives",
    ("cycle",): "1 target",
}
"""Subject -> outcome of deciding the first cycle again."""


@pytest.mark.parametrize("subject", OUTCOMES)
@pytest.mark.usefixtures("config")
def test_another_decision_is_told_from_that_of_the_cycle(
    run: Run, subject: tuple[str, ...]
) -> None:
    content = run("explain", *subject, 1, "--json").json
    assert (content["agrees"], content["decided_again"]) == (False, OUTCOMES[subject])
    # In the next cycle the target stands already, and deciding again agrees.
    assert run("explain", *subject, 2, "--json").json["agrees"]


@pytest.mark.usefixtures("config")
def test_a_replay_names_the_cycle_that_the_ledger_does_not_tell_wholly(run: Run) -> None:
    """Each cycle begins with its own state and run times: one that is wrong spoils no other."""
    for words in (("--set", "control.max_nodes=1"), ()):
        again = run("replay", *words, "--json").json
        assert [cycle["note"] for cycle in again["cycles"]] == ["not-reproduced", None, None]
        assert again["summary"]["notes"] == {"not-reproduced": 1}
    assert [cycle["agreement_ratio"] for cycle in again["cycles"]] == [0, 1, 1]


@pytest.mark.parametrize("setpoint", ["in_use", "present", "pledge"])
def test_a_setpoint_is_a_pledge_times_the_ratio(setpoint: str) -> None:
    config = replace(law(), steering=SteeringConfig(entitlement=Entitlement(setpoint)))
    decision = decide(config, State(), busy(1), NOW)
    record = record_of(config, busy(1), decision, decision.plan, ())
    assert ratio_of(record, "tarot") is None
    ratio = ratio_of(record, setpoint) or 0.0
    due = {row.group: row.error.pledge_hs06 * ratio for row in record.groups}
    assert due == pytest.approx({row.group: row.setpoint_hs06 for row in record.groups})
