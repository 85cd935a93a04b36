"""``sharectl tune``: its arguments, its trials and what it prints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sharectl_lab.study import trial
from sharectl_lab.study.tuning import Score, Task
from tests.policies import write_policy
from tests.simulated import SMALL
from tests.verbs import Ended, run

SIZE = ("--trials", "2", "--batch", "2", "--seeds", "1", "--cores", "1")


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    alike = SMALL.replace("pledge_hs06: 120", "pledge_hs06: 200")
    path.write_text(f"{alike}control: {{deadband_hs06: 0}}\n")
    return str(path)


def tune(*arguments: str) -> Ended:
    return run(["tune", *arguments])


def test_a_search_prints_the_best_settings_beside_the_default(
    scenario: str, tmp_path: Path
) -> None:
    arguments = (scenario, "--over", "control.law,loop.period_seconds=300..3600", *SIZE)
    text = tune(*arguments).out
    assert "tiny.yaml, live, 0.1 days; seeds 1 to 1, confirmed on 2 to 2" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["default", "latest", "300"] in [row[:3] for row in rows]
    folder = str(tmp_path / "kept")
    first = tune(*arguments, "--json", "-o", folder).json
    journal = (tmp_path / "kept" / "trials.jsonl").read_text()
    assert len(journal.splitlines()) == 1 + 3 + 3
    assert tune(*arguments, "--json", "-o", folder).json == first
    assert (tmp_path / "kept" / "trials.jsonl").read_text() == journal
    assert first["default"]["confirmed"]["mean"] > 0
    other = tune(*arguments, "--strategy", "cron", "-o", folder)
    assert (other.code, "trials.jsonl: has trials of another" in other.err) == (65, True)


def test_settings_reach_the_twin(scenario: str) -> None:
    """A longer period, a shorter grace and another law each change the outcome."""
    episode = trial.episode_of(scenario, "live")

    def score(*settings: tuple[str, Any]) -> Any:
        return trial.run(episode, Task(settings, 1), lambda _part: None)

    default = score()
    assert isinstance(default, Score)
    assert score(("loop.period_seconds", 7200.0)) != default
    assert score(("start.grace_seconds", 0.0)) != default
    assert score(("negotiator.interval_seconds", 600.0)) != default
    assert score(("control.dwell_seconds", 1020)) == score(("control.dwell_seconds", 1020))
    problem = score(("control.law", "pidd"))
    assert isinstance(problem, str)
    assert "pidd" in problem


def test_scores_go_with_the_content_of_a_policy(scenario: str, tmp_path: Path) -> None:
    path = write_policy(tmp_path)
    episode = trial.episode_of(scenario, f"live:law=learned:policy={path}")
    before = trial.subject_of(episode)
    assert trial.subject_of(episode) == before
    write_policy(tmp_path, weights=[1.0, 0.0])
    assert trial.subject_of(episode) != before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--over", "control.give_up_second"), "did you mean control.give_up_seconds?"),
        (("--over", "control.law", "--strategy", "nothing"), "has no control"),
        (("--over", "control.law", "--strategy", "live,cron"), "is several"),
        (("--over", "control.law", "--trials", "0"), "write a whole number from 1 to"),
        (("--over", "control.law", "--on-pool"), "--on-pool needs -o DIR"),
        (("--over", "control.law", "--submit", "x"), "write COMMAND=VALUE"),
    ],
)
def test_wrong_arguments_are_refused_with_a_remedy(
    arguments: tuple[str, ...], words: str, scenario: str
) -> None:
    ended = tune(scenario, *arguments)
    assert (ended.code, words in ended.err) == (2, True)


def test_a_missing_scenario_or_library_ends_with_its_code(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = tune("small-sit", "--over", "control.law")
    assert (ended.code, "small-site" in ended.err) == (2, True)
    monkeypatch.setitem(sys.modules, "optuna", None)
    ended = tune(scenario, "--over", "control.law")
    assert (ended.code, "pip install 'sharectl[lab]'" in ended.err) == (69, True)
