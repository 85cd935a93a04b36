from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest

from sharectl.config.fields import keys_of
from sharectl.config.model import ControlConfig
from sharectl.errors import ConfigError, SettingError, SharectlError
from sharectl_lab.scenarios.strategies import (
    LEAST,
    USUAL,
    Static,
    Strategy,
    multicore_ratio,
    read_strategies,
    shipped,
)
from sharectl_lab.twin.settings import Defrag, Loop


def only(text: str) -> Strategy:
    (strategy,) = read_strategies(text)
    return strategy


def problems_of(text: str, kind: type[SharectlError] = SettingError) -> list[str]:
    with pytest.raises(kind) as raised:
        read_strategies(text)
    assert type(raised.value) is kind
    return [line.removeprefix("--strategies: ") for line in raised.value.problems]


def test_the_usual_strategies_are_shipped_and_differ() -> None:
    strategies = read_strategies(",".join(USUAL))
    assert tuple(strategy.name for strategy in strategies) == USUAL
    assert {name for usual in USUAL for name in usual.split("+")} == set(shipped())
    parts = {(s.grace, s.steering, s.defrag, s.static) for s in strategies}
    assert len(parts) == len(USUAL)
    assert pickle.loads(pickle.dumps(strategies)) == strategies  # noqa: S301 - for processes


def test_options_go_to_the_part_that_has_them() -> None:
    strategy = only("live:law=pid:pid.gain=0.5:control.give_up_seconds=600:period_seconds=600")
    settings = ("control.law=pid", "control.pid.gain=0.5", "control.give_up_seconds=600")
    assert (strategy.control_settings, strategy.loop_settings) == (
        settings,
        (("period_seconds", 600.0),),
    )
    assert strategy.loop_of(Loop(deaf_ratio=0.1)) == Loop(600.0, deaf_ratio=0.1)
    both = only("static+defrag:ratio=0.3:machines_per_hour=5")
    assert both.static == Static(0.3)
    assert both.defrag is not None
    assert (both.defrag.machines_per_hour, both.defrag.max_whole) == (5, 20)


def test_no_option_has_two_meanings() -> None:
    names = [name for record in (ControlConfig, Defrag, Loop, Static) for name in keys_of(record)]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_a_user_adds_a_strategy_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    law = "control: {law: ewma, ewma: {half_life_seconds: 60}}"
    path.write_text(f"summary: ours\nsteering: cron\n{law}\n")
    ours, changed = read_strategies(f"{path},{path}:law=pid")
    settings = ("control.law=ewma", "control.ewma.half_life_seconds=60")
    assert (ours.name, ours.steering, ours.control_settings) == ("ours", "cron", settings)
    assert (changed.name, changed.control_settings[0]) == ("ours:law=pid", "control.law=pid")
    named = tmp_path / "live.yaml"
    named.write_text("summary: not the shipped one\n")
    assert problems_of(f"live,{named}") == [f'{named}: another strategy is "live"; rename the file']


def test_all_problems_of_a_list_at_once() -> None:
    assert problems_of("") == [
        "there is no strategy; write one of nothing, defrag, static, grace, cron, live"
    ]
    two = "live:law=pdi:max_nodes=0"
    assert problems_of(
        "lve,live:lw=pid,nothing:law=pid,grace:ratio=1,live+cron,"
        f"{two},live:law,live:ewma.x=1,live:law.x=1"
    ) == [
        'lve: "lve" is no strategy; did you mean live?',
        'live:lw=pid: "lw" is no option; did you mean law?',
        'nothing:law=pid: "law" has no effect: sharectl does not run in it; write live',
        'grace:ratio=1: "ratio" has no effect: it has no static nodes; write static+grace',
        "live+cron: both have steering; join strategies that differ in their parts",
        f"{two}: control.max_nodes: 0 is invalid; write a whole number, 1 to 1000000",
        f'{two}: control.law: "pdi" is invalid; write one of latest, ewma, pid, learned',
        'live:law: "law": write KEY=VALUE behind a colon, such as live:law=pid',
        "live:ewma.x=1: control.ewma.x: unknown key; write one of half_life_seconds",
        "live:law.x=1: control.law: this is a mapping; write text",
    ]


def test_all_problems_of_a_file_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("summary: 5\nsteerin: live\ncontrol: {law: pdi}\ndefrag: {rank: best}\n")
    absent = tmp_path / "absent.yaml"
    assert problems_of(f"{path},{absent},lve", ConfigError) == [
        f'{path}:1: summary: 5 is invalid; write text, in quotes: "5"',
        f"{path}:2: steerin: unknown key; did you mean steering?",
        f"{path}:3: control: has no effect without steering; write steering too",
        f'{path}:3: control.law: "pdi" is invalid; write one of latest, ewma, pid, learned',
        f'{path}:4: defrag.rank: "best" is invalid; write one of badput, cores-to-free',
        f"{absent}: there is no such file; {LEAST}, or name another file",
        'lve: "lve" is no strategy; did you mean live?',
    ]


def test_the_multicore_part_of_the_pledges() -> None:
    pledges = {"a": 300.0, "b": 100.0}
    assert multicore_ratio(pledges, {"a": 0.5, "b": 1.0}) == pytest.approx(250 / 400)
    assert multicore_ratio(pledges, {"b": 1.0}) == pytest.approx(0.25)
    assert multicore_ratio({}, {}) == 0
