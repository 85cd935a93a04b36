from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cycle.cycle import Circumstances, run_cycle
from sharectl.cycle.ports import Ports
from sharectl.model import PlanLimits, Source
from sharectl.plan.free_blocks import BlockMemory, OpenBlock
from sharectl.plan.plan import PlanConfig, State
from sharectl.publish.state import StateFile
from tests.fakes import (
    NOW,
    FakeAudit,
    FakeFormerPlaces,
    FakeHistory,
    FakePool,
    FakePublisher,
    FakeStateStore,
    FakeSwitch,
    running,
    snapshot,
)

CONFIG = PlanConfig({"alice": 1.0, "cms": 1.0}, PlanLimits(), validity_seconds=3060)
UNEVEN = snapshot([running("wn-1", "alice", 1, 64)], {("cms", 8): 3})
INCOMPLETE = snapshot(
    [running("wn-1", "alice", 1, 64)],
    {("cms", 8): 3},
    sources=[Source("schedd ap-2", 3.0, "no answer within 3 s")],
)


def world(looks_like: object = UNEVEN, **parts: object) -> Ports:
    defaults = {
        "pool": FakePool(looks_like),  # type: ignore[arg-type]
        "publishers": [FakePublisher()],
        "history": FakeHistory(),
        "state": FakeStateStore(State(5)),
        "switch": FakeSwitch(),
        "audit": FakeAudit(),
        "former": FakeFormerPlaces(),
    }
    return Ports(**{**defaults, **parts})  # type: ignore[arg-type]


def test_a_cycle_publishes_its_plan_and_remembers() -> None:
    publisher, history, state = FakePublisher(), FakeHistory(), FakeStateStore()
    result = run_cycle(CONFIG, world(publishers=[publisher], history=history, state=state), NOW)
    assert publisher.plans == [result.publication.plan]
    assert history.records == [result.record]
    assert tuple(control.error for control in history.records[0].groups) == result.errors
    assert result.publication.plan is not None
    assert (state.state.sequence, state.state.nodes, state.state.schedds) == (
        result.publication.plan.sequence,
        1,
        0,
    )
    assert result.problems == ()


def test_a_dry_run_writes_nothing_and_decides_the_same() -> None:
    publisher, history, state = FakePublisher(), FakeHistory(), FakeStateStore(State(5))
    ports = world(publishers=[publisher], history=history, state=state)
    result = run_cycle(CONFIG, ports, NOW, Circumstances(dry_run=True))
    assert (publisher.plans, history.records, state.state) == ([], [], State(5))
    assert result.publication.plan == run_cycle(CONFIG, ports, NOW).publication.plan


def test_an_incomplete_look_changes_nothing() -> None:
    publisher, history, state = FakePublisher(), FakeHistory(), FakeStateStore(State(5))
    result = run_cycle(
        CONFIG, world(INCOMPLETE, publishers=[publisher], history=history, state=state), NOW
    )
    assert (publisher.plans, state.state) == ([], State(5))
    assert result.publication.plan is None
    assert [(kept.complete, kept.groups, kept.nodes) for kept in history.records] == [
        (False, (), ())
    ]
    assert result.problems == ("schedd ap-2: no answer within 3 s",)


def test_blocks_that_stood_free_while_a_schedd_was_silent_are_no_failure() -> None:
    block = OpenBlock("wn-1", "cms", 8, NOW - 2000, free_since=NOW - 1020)
    state = State(5, blocks=BlockMemory(open=(block,)))
    store = FakeStateStore(state)
    run_cycle(CONFIG, world(INCOMPLETE, state=store), NOW, Circumstances(dry_run=True))
    assert store.state == state
    run_cycle(CONFIG, world(INCOMPLETE, state=store), NOW)
    assert store.state == replace(
        state, blocks=BlockMemory(open=(replace(block, free_since=None),))
    )


def test_an_incomplete_look_withdraws_if_the_operator_says_so() -> None:
    publisher, history = FakePublisher(), FakeHistory()
    ports = world(INCOMPLETE, publishers=[publisher], history=history)
    run_cycle(CONFIG, ports, NOW, Circumstances(withdraw_incomplete=True))
    assert [(plan.targets, plan.reason) for plan in publisher.plans] == [((), "withdrawn")]
    assert [(kept.reason, kept.complete) for kept in history.records] == [("withdrawn", False)]


def test_a_broken_state_file_a_full_history_and_a_dead_publisher_do_not_stop_the_others() -> None:
    publisher = FakePublisher()
    ports = world(
        publishers=[FakePublisher(broken="no room"), publisher],
        history=FakeHistory(broken="log full"),
        state=FakeStateStore(broken="garbage"),
    )
    result = run_cycle(CONFIG, ports, NOW)
    assert publisher.plans == [result.publication.plan]
    assert result.publication.places == ("fake",)
    assert result.problems == ("garbage", "log full", "no room")


@pytest.mark.parametrize("left_bytes", [0, 40])
def test_while_the_state_is_broken_no_sequence_is_published_twice(
    tmp_path: Path, left_bytes: int
) -> None:
    publisher, file = FakePublisher(), StateFile(tmp_path / "state.json")
    ports = world(publishers=[publisher], state=file)
    assert run_cycle(CONFIG, ports, NOW).problems == ()
    file.path.write_bytes(file.path.read_bytes()[:left_bytes])
    os.utime(file.path, (NOW, NOW))
    (problem,) = run_cycle(CONFIG, ports, NOW).problems
    assert "moved to" in problem
    assert run_cycle(CONFIG, ports, NOW).problems == ()
    assert [plan.sequence for plan in publisher.plans] == [NOW, NOW + 1, NOW + 2]


def test_a_dry_run_moves_no_broken_state(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("{", encoding="utf-8")
    run_cycle(CONFIG, world(state=StateFile(path)), NOW, Circumstances(dry_run=True))
    assert [left.name for left in tmp_path.iterdir()] == ["state.json"]
