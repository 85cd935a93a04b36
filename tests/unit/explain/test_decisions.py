"""Decisions of the ledger, made again, and cycles in which these differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli.cycle import digest_of
from sharectl.config.load import load
from sharectl.cycle.record import record_of
from sharectl.explain.decisions import of_ledger
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


@pytest.mark.usefixtures("spoilt")
def test_a_cycle_that_the_ledger_does_not_tell_wholly_spoils_no_other(run: Run) -> None:
    agrees = [run("explain", "cycle", number, "--json").json["agrees"] for number in (1, 2, 3)]
    assert agrees == [False, True, True]
