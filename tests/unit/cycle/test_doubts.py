from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.cycle.doubts import WARMUP_SECONDS, doubts, power_doubts, with_restart
from sharectl.model import OTHER, PlanLimits, Source, Standing, Target
from sharectl.plan.nodes import (
    ALL_NODES,
    Controlled,
    ControlledConstraint,
    ControlledHosts,
    ControlledShare,
)
from sharectl.plan.plan import PlanConfig, State
from tests.fakes import NOW, running, snapshot
from tests.unit.cycle.test_cycle import INCOMPLETE, cycle, world

TYPO = ControlledHosts(("cn-[", "vn-*"))
TWO = [running("wn-1", "alice", 1, 8), running("wn-2", "cms", 8)]
NONE_CONTROLLED = snapshot(TWO, uncontrolled=("wn-1", "wn-2"))
PLEDGES = {"alice": 1.0, "cms": 1.0}


def config(controlled: Controlled = ALL_NODES) -> PlanConfig:
    return PlanConfig(PLEDGES, PlanLimits(), 3060, controlled)


@pytest.mark.parametrize(
    ("controlled", "words"),
    [
        (TYPO, "none of 2 nodes: cn-[, vn-*: no node gets a target; "),
        (ControlledConstraint("t1_room ==\n3"), "none of 2 nodes: t1_room == 3: "),
        (ControlledShare(0.2), "none of 2 nodes: the share comes to less than one node: "),
    ],
)
def test_a_choice_of_nodes_that_fits_none_is_doubted(controlled: Controlled, words: str) -> None:
    (doubt,) = doubts(config(controlled), State(), NONE_CONTROLLED, NOW)
    assert words in doubt


def test_targets_that_go_with_it_are_counted() -> None:
    stood = (Standing(Target("wn-1", "alice", 0, "cms", 8), NOW - 9),)
    state = State(standing=stood, standing_until=NOW + 1)
    (doubt,) = doubts(config(TYPO), state, NONE_CONTROLLED, NOW)
    assert "and the 1 that stood are withdrawn" in doubt
    (doubt,) = doubts(config(TYPO), state, NONE_CONTROLLED, NOW + 1)
    assert "stood" not in doubt


def test_what_is_meant_so_is_not_doubted() -> None:
    assert doubts(config(ControlledShare(0.0)), State(), NONE_CONTROLLED, NOW) == ()
    assert doubts(config(), State(), snapshot(TWO, uncontrolled=("wn-1",)), NOW) == ()
    assert doubts(config(), State(), snapshot([], {}), NOW) == (), "an empty pool has no typo"


def test_power_that_no_node_publishes_is_doubted_once() -> None:
    seen = snapshot(TWO)
    silent = [replace(node, power_assumed=True) for node in seen.nodes]
    (doubt,) = doubts(config(), State(), replace(seen, nodes=tuple(silent)), NOW)
    assert doubt.startswith("no node publishes t1_wn_hs06: ")
    assert "STARTD_ATTRS = $(STARTD_ATTRS) t1_wn_hs06" in doubt
    assert doubts(config(), State(), replace(seen, nodes=(silent[0], seen.nodes[1])), NOW) == ()
    assert power_doubts(replace(seen, nodes=())) == ()


def test_a_group_without_jobs_is_doubted_while_other_has_some() -> None:
    some = running("wn-1", "alice", 1, 8)
    assert doubts(config(), State(), snapshot([some]), NOW) == (), "cms may have a holiday"
    expected = "group cms has neither running nor pending jobs, and other has"
    for seen in (snapshot([some, running("wn-1", OTHER, 8)]), snapshot([some], {(OTHER, 8): 3})):
        (doubt,) = doubts(config(), State(), seen, NOW)
        assert expected in doubt
        assert "is it spelt as in AccountingGroup?" in doubt
    assert doubts(config(), State(), snapshot([some], {(OTHER, 8): 3, ("cms", 1): 1}), NOW) == ()


def test_a_cycle_says_its_doubts_and_is_no_failure() -> None:
    seen = snapshot([running("wn-1", "alice", 8), running("wn-1", OTHER, 1)])
    result = cycle(world(seen))
    assert (len(result.warnings), result.problems) == (1, ())
    assert cycle(world(INCOMPLETE)).warnings == (), "missing data is never zero"


@pytest.mark.parametrize(
    ("started_seconds_ago", "nodes_before", "schedds_before", "complete"),
    [
        (10, 2, 1, True),
        (10, 0, 0, True),
        (10, 3, 1, False),
        (10, 2, 2, False),
        (WARMUP_SECONDS - 1, 3, 1, False),
        (WARMUP_SECONDS, 3, 1, True),
        (NOW, 3, 2, True),
    ],
)
def test_a_collector_that_just_started_may_not_know_all_yet(
    started_seconds_ago: int, nodes_before: int, schedds_before: int, *, complete: bool
) -> None:
    sources = [Source("collector", 0.1), Source("schedd ap-1", 0.1)]
    seen = replace(snapshot(TWO, sources=sources), collector_started_at=NOW - started_seconds_ago)
    judged = with_restart(seen, State(1, nodes_before, schedds_before))
    assert judged.complete is complete
    assert (
        complete
        or f"of {nodes_before} execute points" in str(judged.problems)
        or (f"of {schedds_before} schedds" in str(judged.problems))
    )


def test_plan_says_them_beside_the_plan_and_publish_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, jobs, plan = tmp_path / "sharectl.yaml", tmp_path / "jobs", tmp_path / "plan.json"
    settings.write_text(
        "groups: {alice: {pledge_hs06: 1}, cmss: {pledge_hs06: 1}}\nnodes: {controlled: [no-*]}\n"
        f"publish: [{{file: {tmp_path}/sharectl.txt}}]\nstate_directory: {tmp_path}\n"
    )
    jobs.write_text("2 cn-1 cms 60 8 10\n2 cn-1 alice 60 8 10\n")
    options = ["--config", str(settings)]
    assert main(["plan", "--json", "--jobs", str(jobs), *options]) == 0
    out, err = capsys.readouterr()
    first, second = json.loads(out)["warnings"]
    assert "nodes.controlled matches not the only node: no-*" in first
    assert "group cmss" in second
    assert f"sharectl: warning: {first}\nsharectl: warning: {second}\n" in err
    plan.write_text(out)
    assert main(["publish", "--plan", str(plan), *options]) == 0
