"""`--set` of `sharectl simulate`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.errors import SettingError
from sharectl_lab.scenarios import file


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
