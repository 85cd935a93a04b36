from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sharectl.control.laws import Control, Shadow
from sharectl.control.steering import SteeringConfig
from sharectl.cycle.cycle import Circumstances, CycleResult, run_cycle
from sharectl.model import Disabled, PlanLimits, ShadowMove, Snapshot, Source
from sharectl.plan.blocks import BlockMemory, OpenBlock
from sharectl.plan.plan import PlanConfig, State
from sharectl.publish.state import StateFile
from tests.fakes import (
    NOW,
    FakeHistory,
    FakePool,
    FakePublisher,
    FakeStateStore,
    World,
    running,
    snapshot,
)
from tests.policies import HALF

CONFIG = PlanConfig({"alice": 1.0, "cms": 1.0}, PlanLimits(), validity_seconds=3060)
UNEVEN = snapshot([running("wn-1", "alice", 1, 64)], {("cms", 8): 3})
INCOMPLETE = replace(UNEVEN, sources=(Source("schedd ap-2", 3.0, "no answer within 3 s"),))


def world(seen: Snapshot = UNEVEN, **parts: Any) -> World:
    return World(FakePool(seen), **{"state": FakeStateStore(State(5)), **parts})


def cycle(around: World, **how: Any) -> CycleResult:
    return run_cycle(CONFIG, around.ports(), NOW, Circumstances(**how))


def steered(control: Control) -> PlanConfig:
    return replace(CONFIG, steering=SteeringConfig(control))


def test_a_cycle_publishes_its_plan_and_remembers() -> None:
    around = world()
    result = cycle(around)
    assert around.publishers[0].plans == [result.publication.plan]
    assert around.history.records == [result.record]
    (record,) = around.history.records
    assert tuple(control.error for control in record.groups) == result.errors
    state = around.state.state
    assert (state.sequence, state.nodes, state.schedds) == (record.sequence, 1, 0)
    assert result.problems == ()


def test_a_record_has_the_shortfall_of_groups_and_of_those_around_them() -> None:
    """Groups within cms could use 24 of 64 cores, and have none."""
    jobs = snapshot([running("wn-1", "alice", 1, 64)], {("cms.a", 8): 2, ("cms.b", 8): 1})
    nested = replace(
        CONFIG, pledge_hs06={"alice": 2.0, "cms.a": 1.0, "cms.b": 1.0}, own_hs06={"cms": 0.0}
    )
    around = world(jobs)
    run_cycle(nested, around.ports(), NOW)
    (record,) = around.history.records
    core_hs06 = record.present_hs06 / 64 if record.present_hs06 else 0.0
    short = {control.group: control.shortfall_hs06 for control in record.groups}
    cores = {"alice": 0, "cms": 24, "cms.a": 16, "cms.b": 8}
    assert short == {group: held * core_hs06 for group, held in cores.items()}
    assert record.shortfall_hs06 == 24 * core_hs06, "each group once"


def test_a_dry_run_writes_nothing_and_decides_the_same() -> None:
    around = world()
    result = cycle(around, dry_run=True)
    written = (around.publishers[0].plans, around.history.records, around.state.state)
    assert written == ([], [], State(5))
    off = Disabled("cooling", "ann@cm", NOW - 10)
    around.switch.said = off
    again = cycle(around, dry_run=True).publication
    assert (again.plan, again.disabled) == (result.publication.plan, off)
    around.switch.said = None
    assert result.publication.plan == cycle(around).publication.plan


@pytest.mark.parametrize("withdraws", [False, True])
def test_an_incomplete_look_changes_nothing_or_withdraws_if_the_operator_says_so(
    *, withdraws: bool
) -> None:
    around = world(INCOMPLETE)
    result = cycle(around, withdraw_incomplete=withdraws)
    published = [(plan.targets, plan.reason) for plan in around.publishers[0].plans]
    assert published == ([((), "withdrawn")] if withdraws else [])
    assert withdraws or (around.state.state, result.publication.plan) == (State(5), None)
    (record,) = around.history.records
    assert (record.complete, record.groups, record.nodes) == (False, (), ())
    assert record.reason == ("withdrawn" if withdraws else None)
    assert result.problems == ("schedd ap-2: no answer within 3 s",)


def test_a_shadow_that_cannot_be_loaded_is_a_warning_and_not_recorded() -> None:
    around, words = world(), "control.shadow.policy: there is no p.json on this machine"
    beside = Control("latest", shadow=Shadow("learned", loaded=words))
    shadowed, alone = (
        run_cycle(steered(control), ports, NOW)
        for control, ports in ((beside, around.ports()), (Control(), world().ports()))
    )
    assert shadowed.problems == ()
    assert shadowed.publication.plan == alone.publication.plan
    assert shadowed.warnings == (f"{words}; cycles leave the shadow out",)
    assert {control.shadow for control in around.history.records[0].groups} == {None}


def test_a_shadow_is_recorded_and_goes_on_from_cycle_to_cycle() -> None:
    around = world()
    shadow = Shadow("learned", loaded=HALF)
    for number in range(2):
        how = steered(Control("latest", shadow=shadow))
        run_cycle(how, around.ports(), NOW + 1000 * number)
    alice, cms = (control.shadow for control in around.history.records[1].groups)
    assert (alice, cms) == (ShadowMove("learned", 160.0), ShadowMove("learned", -160.0))
    states = around.state.state.controllers
    assert states["cms"] == {
        "shadow.learned.mean_ratio": -0.5,
        "shadow.learned.error_ratio": -0.5,
        "stepped_at_seconds": NOW + 1000.0,
    }


def test_blocks_that_stood_free_while_a_schedd_was_silent_are_no_failure() -> None:
    block = OpenBlock("wn-1", "cms", 8, NOW - 2000, free_since=NOW - 1020)
    state = State(5, blocks=BlockMemory(open=(block,)))
    around = world(INCOMPLETE, state=FakeStateStore(state))
    cycle(around, dry_run=True)
    assert around.state.state == state
    cycle(around)
    blocks = BlockMemory(open=(replace(block, free_since=None),))
    assert around.state.state == replace(state, blocks=blocks)


def test_a_broken_state_file_a_full_history_and_a_dead_publisher_do_not_stop_the_others() -> None:
    around = world(
        publishers=[FakePublisher(broken="no room"), FakePublisher()],
        history=FakeHistory(broken="log full"),
        state=FakeStateStore(broken="garbage"),
    )
    result = cycle(around)
    assert around.publishers[1].plans == [result.publication.plan]
    assert result.publication.places == ("fake",)
    assert result.problems == ("garbage", "log full", "no room")


@pytest.mark.parametrize("left_bytes", [0, 40])
def test_while_the_state_is_broken_no_sequence_is_published_twice(
    tmp_path: Path, left_bytes: int
) -> None:
    file = StateFile(tmp_path / "state.json")
    around = world(state=file)
    assert cycle(around).problems == ()
    file.path.write_bytes(file.path.read_bytes()[:left_bytes])
    os.utime(file.path, (NOW, NOW))
    assert "moved to" in cycle(around).problems[-1]
    assert cycle(around).problems == ()
    assert [plan.sequence for plan in around.publishers[0].plans] == [NOW, NOW + 1, NOW + 2]
