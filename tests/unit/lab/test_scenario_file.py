from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.errors import ConfigError, SettingError
from sharectl_lab.scenarios import file
from sharectl_lab.twin.records import SlotSpec
from sharectl_lab.workload.draw import JobKind

SCENARIO = """\
summary: three nodes
nodes:
  - {name: wn, count: 3, cores: 33, memory_mib: 100, custom: {gpus: 2}, slots: 2}
  - {name: old, cores: 8, hs06_per_core: 8.5, multicore_only: true, controlled: false,
     attributes: {Rack: "5", HEALTHY: true, Age: 1.5}}
groups: {alice: {pledge_hs06: 100, groups: {prod: {share: 0.5}}}, cms: {pledge_hs06: 300}}
control: {law: pid, deadband_hs06: 5}
start: {grace_seconds: 60, site: MY.Age < 3}
loop: {deaf_ratio: 0.5}
jobs:
  - {group: Alice.prod, keep_pending: 3, run_time: "exponential:7200", users: 2,
     requirements: "Arch == 1"}
  - {group: cms, cores: 8, per_hour: 10, run_time: {600: 3, 3600: 1}, custom: {gpus: 1}}
"""


def test_a_scenario_is_read_and_written_again() -> None:
    scenario = file.parse(SCENARIO, "mine.yaml")
    assert (scenario.name, scenario.start.site) == ("mine", "MY.Age < 3")
    assert file.parse(file.render(scenario), "mine.yaml") == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario  # noqa: S301 - jobs of a pool get it


def test_nodes_have_slots_and_power() -> None:
    nodes = file.parse(SCENARIO, "mine").nodes_of()
    assert [node.name for node in nodes] == ["wn-0001", "wn-0002", "wn-0003", "old"]
    assert nodes[0].slots == (
        SlotSpec(17, 50, 33 * 10_240 * 1024, {"gpus": 1}),
        SlotSpec(16, 50, 33 * 10_240 * 1024, {"gpus": 1}),
    )
    assert nodes[3].attributes == {"age": 1.5, "healthy": True, "rack": "5"}
    assert (nodes[3].multicore_only, nodes[3].controlled, nodes[3].hs06_per_core) == (
        True,
        False,
        8.5,
    )


def test_plans_go_by_groups_and_control() -> None:
    scenario = file.parse(SCENARIO, "mine")
    config = scenario.plan_config()
    assert dict(config.pledge_hs06) == {"alice.prod": 50.0, "cms": 300.0}
    assert (config.steering.control.law, config.limits.deadband_hs06) == ("pid", 5)
    assert scenario.plan_config(["control.law=ewma"]).steering.control.law == "ewma"


def test_streams_have_their_kinds() -> None:
    workload = file.parse(SCENARIO, "mine").workload()
    assert workload.kinds[:2] == [
        JobKind("alice.prod", "user1", 1, 2000, requirements="Arch == 1"),
        JobKind("alice.prod", "user2", 1, 2000, requirements="Arch == 1"),
    ]
    assert [factory.keep_pending for factory in workload.factories] == [2, 1]
    assert next(workload.arrivals()).kind == 2


def test_every_fault_has_its_line_and_its_remedy(
    listing: Callable[[str, Callable[[str], list[str]], int], None],
) -> None:
    def problems(text: str) -> list[str]:
        with pytest.raises(ConfigError) as refused:
            file.parse(text, "mine.yaml")
        return list(refused.value.problems)

    listing("sim/scenarios.txt", problems, 14)


def test_a_name_that_is_not_shipped_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean small-site"):
        file.load("smallsite")


@pytest.mark.parametrize("path", sorted(Path("bench/scenarios").glob("*.yaml")))
def test_a_scenario_of_the_benches_is_read(path: Path) -> None:
    assert file.load(str(path)).groups


@pytest.mark.parametrize("name", file.SHIPPED)
def test_a_shipped_scenario_is_read(name: str) -> None:
    scenario = file.load(name)
    assert scenario.name == name
    assert scenario.summary == file.shipped()[name]
    assert scenario.warmup_hours > 0


# ---- --set


def test_settings_change_keys_of_any_section() -> None:
    scenario = file.load("small-site")
    settings = ["negotiator.interval_seconds=300", "control.law=pid", "control.pid.gain=0.5"]
    changed = file.changed(scenario, settings)
    assert changed.negotiator == replace(scenario.negotiator, interval_seconds=300.0)
    assert (changed.control.acting.law, changed.control.acting.pid.gain) == ("pid", 0.5)
    assert (changed.name, changed.groups) == ("small-site", scenario.groups)
    assert file.changed(scenario, []) == scenario


def test_all_problems_of_settings_at_once() -> None:
    settings = ["negotiator.intervl_seconds=3", "control.law=pdi", "days", "nodes.count=3"]
    with pytest.raises(SettingError) as raised:
        file.changed(file.load("small-site"), settings)
    assert sorted(raised.value.problems) == [
        '--set "days": write KEY=VALUE, such as control.law=pid or control.pid.gain=0.5',
        '--set "nodes.count=3": "nodes" is not a section; docs/configuration.md has the keys',
        '--set: control.law: "pdi" is invalid; write one of latest, ewma, pid, learned',
        "--set: negotiator.intervl_seconds: unknown key; did you mean interval_seconds?",
    ]
