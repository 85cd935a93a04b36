"""Changes that would change a decision: each has the effect it names, and no smaller one has."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Optional

import pytest

from sharectl.explain import what_if
from sharectl.explain.codes import CHANGES
from sharectl.explain.what_if import Case, Trials
from sharectl.model import PlanLimits, Snapshot
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot

PLEDGES = {"alice": 100.0, "cms": 100.0}
TWO_NODES = [
    running("wn-1", "alice", 1, 64),
    running("wn-2", "alice", 1, 32),
    running("wn-2", "cms", 1, 16),
]
THREE_NODES = [*(running(f"wn-{n}", "alice", 1, 32) for n in (1, 2, 3))]
THREE_NODES.append(TWO_NODES[-1]._replace(node="wn-3"))
WAIT = {("cms", 8): 9}
THREE = snapshot(THREE_NODES, WAIT)
Change = tuple[str, Optional[float], Optional[float], str]
"""Name, value, changed value and outcome."""


def case(taken: Snapshot, strategy: str = "pair", **limits: Any) -> Case:
    config = PlanConfig(PLEDGES, PlanLimits(**limits), 3060, strategy=strategy)
    return Case(config, State(), taken, NOW)


def trials(of: Case, decisions: int = 300) -> Trials:
    return Trials(of, of.decided(), decisions)


def changes(of: Case, subject: str, code: str) -> list[Change]:
    """Changes by one lever for a group, the ``node`` wn-1, or the ``pool``."""
    again, node = trials(of), of.snapshot.nodes[0]
    if subject == "pool":
        flips = again.flips(what_if.cycle_levers(again), what_if.targets_in_all)
    elif subject == "node":
        flips = again.flips(what_if.node_levers(again, node), what_if.under_target(node.name))
    else:
        flips = again.flips(what_if.group_levers(again, subject), what_if.role(subject))
    return [flip[1:] for flip in flips if flip.code == code]


def test_deadbands_are_found_to_half_a_per_cent() -> None:
    # alice uses 960 and is due 560.
    of = case(snapshot(TWO_NODES, WAIT), deadband_hs06=0.0)
    wide = case(THREE, deadband_hs06=2000.0)
    for where, subject, value, least, most, outcome in (
        (of, "alice", 0.0, 400, 410, what_if.NEITHER),
        (of, "node", 0.0, 400, 410, "no target"),
        (wide, "alice", 2000.0, 390, 400, "gives"),
        (wide, "pool", 2000.0, 390, 400, "3 targets"),
    ):
        ((_, now, becomes, then),) = changes(where, subject, "deadband")
        assert (now, then) == (value, outcome)
        assert least <= (becomes or 0) < most


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_a_limit_is_raised_to_the_next_target_and_lifted(strategy: str) -> None:
    assert changes(case(THREE, strategy, max_nodes=1), "pool", "max-nodes") == [
        ("control.max_nodes", 1.0, 2.0, "2 targets"),
        ("control.max_nodes", 1.0, None, "3 targets"),
    ]
    changed = case(THREE, strategy, max_changed_nodes=2)
    assert changes(changed, "pool", "max-changed-nodes") == [
        ("control.max_changed_nodes", 2.0, 3.0, "3 targets")
    ]
    part = case(THREE, strategy, max_target_ratio=0.4)
    (exact, whole) = changes(part, "pool", "max-target-share")
    assert (exact[1], exact[3], whole[2:]) == (0.4, "2 targets", (None, "3 targets"))
    assert 0.66 < (exact[2] or 0) < 0.68
    assert not changes(case(THREE, strategy, max_nodes=3), "pool", "max-nodes")
    # Decided by hand: with that number, and with one less.
    for most in (2, 1):
        assert len(case(THREE, strategy, max_nodes=most).decided().plan.targets) == most


def test_every_limit_has_its_code() -> None:
    bounds = {field.name for field in fields(PlanLimits)} - {"multicore_cores", "deadband_hs06"}
    assert {name for name, _, _ in what_if.LIFTED.values()} == bounds
    assert {*what_if.LIFTED, "controlled", "deadband"} == set(CHANGES)
