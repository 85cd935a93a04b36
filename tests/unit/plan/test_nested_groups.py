"""A cycle's decision with groups within groups, from the configuration to its record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli import wiring
from sharectl.cli.main import main
from sharectl.config.load import parse
from sharectl.cycle.doubts import doubts
from sharectl.cycle.record import record_of
from sharectl.errors import InputError
from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot, Standing, Target
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.publish import text as plan_json
from sharectl.report import as_json
from tests.logs import errors_in

CONFIG = """\
groups:
  alice:
    pledge_hs06: 800
    groups: {prod: {share: 0.5}, user: {share: 0.25}}
  cms: {pledge_hs06: 800}
control: {strategy: pair, multicore_cores: 8}
"""
NOW = 1_800_000_000


def law() -> PlanConfig:
    return wiring.plan_config(parse(CONFIG, "F"))


def snapshot(**pending: int) -> Snapshot:
    """Two nodes of 80 cores of 10 HS06 each; names of groups in ``pending`` have __ for a dot."""
    held = {"alice.user": (0, 64), "alice": (0, 8), "alice.prod": (1, 8), "cms": (1, 72)}
    return Snapshot(
        taken_at=NOW,
        nodes=tuple(
            Node(f"wn-{n}", f"wn-{n}.example.org", 80, 10.0, controlled=True) for n in (0, 1)
        ),
        running=tuple(
            RunningJobs(f"wn-{n}", group, 1, 10.0, 600, cores) for group, (n, cores) in held.items()
        ),
        pending=tuple(
            PendingJobs(name.replace("__", "."), 8, jobs) for name, jobs in pending.items()
        ),
    )


def decided(taken: Snapshot) -> Decision:
    return decide(law(), State(), taken, NOW)


def test_a_group_with_subgroups_sums_them_up_and_is_not_steered_itself() -> None:
    config = law()
    assert config.pledge_hs06 == {"alice.prod": 400, "alice.user": 200, "cms": 800}
    assert config.own_hs06 == {"alice": 200}
    assert list(config.shared_hs06) == ["alice", "alice.prod", "alice.user", "cms"]
    decision = decided(snapshot(alice=7, alice__prod=5))
    controls = {control.group: control for control in decision.groups}
    whole = controls["alice"]
    assert (whole.output_hs06, whole.acted) == (0, ("by-subgroups",))
    assert (whole.error.pledge_hs06, whole.error.usage.power_hs06) == (800, 800)
    assert whole.error.usage.pending_by_cores == {8: 12}
    own_hs06 = 80 - 190
    parts = (
        own_hs06 + controls["alice.prod"].error.error_hs06 + controls["alice.user"].error.error_hs06
    )
    assert whole.error.error_hs06 == pytest.approx(parts)
    assert whole.setpoint_hs06 == pytest.approx(2 * controls["alice.prod"].setpoint_hs06)


def test_a_target_counts_for_the_groups_around_those_that_it_names() -> None:
    config, taken = law(), snapshot(alice__prod=5)
    assert decided(snapshot(alice=50, cms=0)).plan.targets == (), "its own jobs call for none"
    decision = decided(taken)
    ((held_back, helped),) = {(t.held_back, t.helped) for t in decision.plan.targets}
    assert (held_back, helped) == ("alice.user", "alice.prod")
    record = record_of(config, taken, decision, decision.plan, ("file",))
    assert record.target_nodes == {
        "alice": (1, 1),
        "alice.prod": (0, 1),
        "alice.user": (1, 0),
        "cms": (0, 0),
    }
    withdrawn = record_of(config, taken, decision, None, (), disabled=True)
    assert set(withdrawn.target_nodes.values()) == {(0, 0)}
    assert record_of(config, taken, None, None, ()).target_nodes == {}


def test_a_plan_is_read_back_and_refused_for_a_group_with_subgroups() -> None:
    """A node would take its subgroups' jobs for its own."""
    plan = decided(snapshot(alice__prod=5)).plan
    text = plan_json.render(plan)
    assert "# groups: alice,alice.prod,alice.user,cms\n" in text
    assert "\nwn-0 alice.user 56 alice.prod 8\n" in text
    assert plan_json.parse_text(text.encode(), "F").targets == plan.targets
    assert plan_json.parse_plan(as_json.dumps("plan", as_json.plan(plan)).encode(), "F") == plan
    content = json.loads(as_json.dumps("plan", as_json.plan(plan)))
    content["targets"][0]["held_back"] = "alice"
    with pytest.raises(InputError, match="'alice' of a target is steered by the groups within it"):
        plan_json.parse_plan(json.dumps(content).encode(), "F")


def test_a_target_that_stands_goes_when_its_group_gets_subgroups() -> None:
    """On the node it would hold back all of alice, those subgroups included."""
    standing = (Standing(Target("wn-0", "alice", 8, "cms", 8), NOW - 60),)
    state = State(sequence=NOW - 60, standing=standing, standing_until=NOW + 600)
    how = replace(law(), limits=PlanLimits(dwell_seconds=3600))
    assert decide(how, state, snapshot(), NOW).plan.targets == ()


def test_own_jobs_of_a_misspelt_subgroup_are_a_doubt() -> None:
    taken = snapshot()
    fewer = tuple(job for job in taken.running if job.group != "alice.prod")
    (doubt,) = doubts(law(), replace(taken, running=fewer))
    assert "group alice.prod has neither running nor pending jobs, and alice has 8 cores" in doubt


JOBS = """\
2 wn-0 alice.user.bob 600 1 10.0
2 wn-0 ALICE.Prod.eve 600 8 10.0
2 wn-0 alice.production 600 1 10.0
2 wn-1 cms.prod 600 8 10.0
1 PEND alice.prod 0 8 10.0
1 PEND alice.bob 0 1 10.0
"""


def test_every_level_has_its_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, jobs = tmp_path / "sharectl.yaml", tmp_path / "jobs.txt"
    config.write_text(CONFIG)
    jobs.write_text(JOBS)
    arguments = ["errors", "--config", str(config), "--jobs", str(jobs), "--taken-at", str(NOW)]
    assert main(arguments) == 0
    log = tmp_path / "log"
    log.write_text(capsys.readouterr().out)
    rows = {row.group: row for _, row in errors_in(log)}
    assert {name: (row.pledge_hs06, row.usage.cores) for name, row in rows.items()} == {
        "alice": (800, 10),
        "alice.prod": (400, 8),
        "alice.user": (200, 1),
        "cms": (800, 8),
    }
    usage = rows["alice"].usage
    assert (usage.pending_single_jobs, usage.pending_multi_jobs) == (1, 1)
    assert rows["alice"].error_hs06 + rows["cms"].error_hs06 == 0
