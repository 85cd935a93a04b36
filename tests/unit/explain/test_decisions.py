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
from sharectl.plan.plan import State, decide
from tests.fakes import NOW
from tests.ledgers import busy, law, write
from tests.unit.explain.conftest import CYCLES, Run


def test_a_node_that_refused_refuses_again() -> None:
    nodes = tuple(replace(node, refusal="unsigned") for node in busy(0).nodes)
    taken = replace(busy(0), nodes=nodes)
    decision = decide(law("many"), State(), taken, NOW)
    record = record_of(law("many"), taken, decision, decision.plan, ())
    explained = of_ledger(record, law("many"))
    assert (explained.decision.plan.targets, explained.agrees) == ((), True)
    assert {node.reason for node in explained.decision.nodes} == {"refused", "uncontrolled"}


@pytest.fixture
def spoilt(tmp_path: Path, config: Path) -> None:
    """A ledger whose first cycle says that it had no target; those after it had."""
    looks = [busy(number) for number in range(CYCLES)]
    first, *others = write(tmp_path / "made", law(max_nodes=4), looks, digest_of(load(config)))
    without = tuple(replace(node, target=None) for node in first.nodes)
    for record, taken in zip((replace(first, nodes=without), *others), looks):
        Ledger(tmp_path / PLACE).record(replace(record, number=0), taken)


OUTCOMES = {
    ("node", "cn-00", "--cycle"): "a target",
    ("group", "alice", "--cycle"): "gives",
    ("cycle",): "4 targets",
}
"""Subject -> outcome of deciding the first cycle again."""


@pytest.mark.usefixtures("spoilt")
def test_another_decision_is_told_from_that_of_the_cycle(run: Run) -> None:
    for subject, outcome in OUTCOMES.items():
        content = run("explain", *subject, 1, "--json").json
        assert (content["agrees"], content["decided_again"]) == (False, outcome)
        assert run("explain", *subject, 2, "--json").json["agrees"]


@pytest.mark.usefixtures("spoilt")
def test_a_replay_names_the_cycle_that_the_ledger_does_not_tell_wholly(run: Run) -> None:
    """Each cycle begins with its own state: one that is wrong spoils no other."""
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
