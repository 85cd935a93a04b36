"""Decisions made again when more is known of run times than then: of two nodes about alike the other one is chosen."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.cycle.record import record_of
from sharectl.explain.again import Outcome, Replay, ReplayedCycle, alike, replayed
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import NOTHING_KNOWN, PlanConfig, State, decide
from sharectl.report import plans
from sharectl.report.plans import MAY_DIFFER
from tests.fakes import NOW

PERIOD_SECONDS = 1020
PLEDGES = {"cms": 87_100.0, "atlas": 105_300.0}
CONFIG = """
groups: {{cms: {{pledge_hs06: 87100}}, atlas: {{pledge_hs06: 105300}}}}
state_directory: {folder}
"""
LOOKS = 3
CHOSEN, OTHER = "wn-2", "wn-1"


def seen(number: int, ages_seconds: dict[str, int]) -> Snapshot:
    """Two nodes of 8 cores, full of jobs of cms, each node's of one age, while atlas waits."""
    return Snapshot(
        NOW + number * PERIOD_SECONDS,
        tuple(Node(name, name, 8, 10.0, controlled=True) for name in ages_seconds),
        tuple(RunningJobs(name, "cms", 1, 10.0, age, 8) for name, age in ages_seconds.items()),
        (PendingJobs("atlas", 8, 5),),
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Of a ledger that as much was known to in each cycle as in a real one."""
    path = tmp_path / "sharectl.yaml"
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    law, ledger, state = PlanConfig(PLEDGES, PlanLimits(), 3060), Ledger(tmp_path / PLACE), State()
    # The jobs that were old when the first cycle chose, and so were expected to stay, end at once.
    looks = ({OTHER: 14_400, CHOSEN: 600}, {OTHER: 60, CHOSEN: 1620}, {OTHER: 1080, CHOSEN: 2640})
    for number, ages_seconds in enumerate(looks):
        taken = seen(number, ages_seconds)
        known = ledger.known(tuple(PLEDGES)) if number else NOTHING_KNOWN
        decision = decide(law, state, taken, taken.taken_at, known)
        assert [target.node for target in decision.plan.targets] == [CHOSEN]
        ledger.record(record_of(law, taken, decision, decision.plan, ("fake",)), taken)
        state = decision.state
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return " ".join(capsys.readouterr().out.split())


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(run(capsys, *arguments, "--json"))
    return content


@pytest.mark.parametrize("name", [CHOSEN, OTHER])
def test_what_would_change_another_decision_is_left_out(
    capsys: pytest.CaptureFixture[str], config: Path, name: str
) -> None:
    asked = ("explain", "node", name, "--cycle", 1, "--config", config)
    content = data(capsys, *asked)
    assert (content["agrees"], content["would_change"]) == (False, None)
    assert content["decided_again"] == ("no target" if name == CHOSEN else "a target")
    out = run(capsys, *asked)
    assert "deciding again now comes to something else" in out
    assert "otherwise left out: it would tell of that other decision, and not of this one" in out
    assert out.count("otherwise") == 1
    # In the next cycle the target stands already, and deciding again agrees.
    content = data(capsys, "explain", "node", name, "--cycle", 2, "--config", config)
    assert content["agrees"]
    assert content["would_change"] is not None


def test_groups_and_cycles_tell_of_numbers_of_nodes_and_these_agree(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    group = data(capsys, "explain", "group", "cms", "--cycle", 1, "--config", config)
    assert (group["agrees"], group["decided_again"], bool(group["would_change"])) == (
        False,
        "gives",
        True,
    )
    cycle = data(capsys, "explain", "cycle", 1, "--config", config)
    assert (cycle["agrees"], cycle["decided_again"], bool(cycle["would_change"])) == (
        False,
        "1 target",
        True,
    )
    out = run(capsys, "explain", "cycle", 1, "--config", config)
    assert "deciding again now comes to about as many targets, not all of them the same" in out


@pytest.mark.parametrize(
    ("were", "are", "about_as_many"),
    [
        (0, 0, True),
        (0, 1, False),
        (1, 0, False),
        (4, 2, False),
        (9, 10, True),
        (79, 88, False),
        (108, 100, True),
    ],
)
def test_numbers_of_targets_are_alike_within_a_tenth(
    were: int,
    are: int,
    about_as_many: bool,  # noqa: FBT001
) -> None:
    assert alike(were, are) is about_as_many


def test_a_replay_says_why_it_differs_where_nothing_was_changed(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    """The other node is chosen by what is known today, and keeps its target from then on."""
    content = data(capsys, "replay", "--config", config)
    assert [cycle["agreement_ratio"] for cycle in content["cycles"]] == [0.0] * LOOKS
    assert [cycle["would"]["targets"] for cycle in content["cycles"]] == [1] * LOOKS
    assert content["summary"]["note"] == MAY_DIFFER
    assert MAY_DIFFER in run(capsys, "replay", "--config", config)


def test_what_was_known_then_is_all_that_differs(config: Path) -> None:
    """With what the first cycle knew of run times, which is nothing, every cycle comes to its targets."""
    ledger = Ledger(config.parent / PLACE)
    with_nodes = list(ledger.with_nodes(NOW, NOW + LOOKS * PERIOD_SECONDS))
    law = PlanConfig(PLEDGES, PlanLimits(), 3060)
    for known, agrees in ((NOTHING_KNOWN, 1.0), (ledger.known(tuple(PLEDGES)), 0.0)):
        cycles = list(replayed(Replay(law, known, decide), with_nodes, None, State()))
        assert [cycle.agreement_ratio for cycle in cycles] == [agrees] * LOOKS


def test_a_replay_that_agrees_has_no_such_note() -> None:
    outcome = Outcome("targets", 1, 0, 1, 80.0, None)
    for same, noted in ((1, False), (0, True)):
        to = io.StringIO()
        plans.write_text(
            [ReplayedCycle(1, NOW, outcome, outcome, same, 1)],
            {"decides": "law pid"},
            to,
            everything=False,
        )
        assert (MAY_DIFFER in " ".join(to.getvalue().split())) is noted
