"""Domains, scores and the words of a search for settings."""

from __future__ import annotations

import pytest
import yaml

from sharectl_lab.study.tuning import (
    Objective,
    Parameter,
    Result,
    Score,
    Task,
    Tuning,
    candidate_of,
    lines_of,
    numbers,
)


def test_times_have_a_logarithmic_scale_from_one_second() -> None:
    assert numbers(0, 604_800, whole=False, is_time=True) == (1.0, 604_800, True)
    assert numbers(60, 86_400, whole=True, is_time=True) == (60, 86_400, True)


def test_wide_numbers_are_logarithmic_and_ratios_are_not() -> None:
    assert numbers(0, 100, whole=False, is_time=False) == (0.01, 100, True)
    assert numbers(0, 1, whole=False, is_time=False) == (0, 1, False)
    assert numbers(2, 64, whole=True, is_time=False) == (2, 64, False)
    assert numbers(0, 1e12, whole=False, is_time=False) is None


def test_a_number_is_rounded_and_stays_within_its_bounds() -> None:
    time = Parameter("control.give_up_seconds", low=60, high=604_800, log=True)
    assert [time.rounded(n) for n in (487.3456, 604_799.0, 60.04)] == [487.0, 604_800, 60.0]
    assert Parameter("k", low=1, high=9999, whole=True).rounded(123.456) == 123


def test_lines_are_yaml_of_the_settings() -> None:
    settings = (
        ("control.pid.gain", 0.5),
        ("validity_seconds", 3060),
        ("control.give_up_seconds", None),
        ("control.pid.integral_seconds", 3600.0),
        ("control.law", "pid"),
    )
    assert yaml.safe_load("\n".join(lines_of(settings))) == {
        "control": {
            "give_up_seconds": None,
            "law": "pid",
            "pid": {"gain": 0.5, "integral_seconds": 3600},
        },
        "validity_seconds": 3060,
    }


def test_an_objective_weighs_error_and_idle_cores() -> None:
    score = Score(shortfall_percent=3.0, idle_percent=2.0, idle_core_hours=40.0)
    values = [Objective(name, 0.5).value(score) for name in ("balanced", "shortfall", "idle")]
    assert values == [4.0, 3.0, 2.0]


def scored(error: float) -> Score:
    return Score(error, 0.0, 0.0)


def test_settings_win_on_seeds_of_the_confirmation_alone() -> None:
    settings = (("control.law", "pid"),)
    results: dict[Task, Result] = {Task((), seed): scored(5.0) for seed in range(5)}
    results |= {Task(settings, seed): scored(1.0) for seed in (0, 1)}
    results |= {Task(settings, 2): scored(4.0), Task(settings, 3): scored(6.0)}
    results[Task(settings, 4)] = scored(4.5)
    candidate = candidate_of(settings, results, ([0, 1], [2, 3, 4]), Objective())
    assert candidate.searched is not None
    assert candidate.searched.mean == 1.0
    assert candidate.gain is not None
    assert candidate.gain.mean == pytest.approx(0.5 / 3)
    assert candidate.wins == 2
    default = candidate_of((), results, ([0, 1], [2, 3, 4]), Objective())
    assert Tuning((), Objective(), default, (candidate,), 1).advised == candidate
    results[Task(settings, 4)] = scored(6.5)
    worse = candidate_of(settings, results, ([0, 1], [2, 3, 4]), Objective())
    assert Tuning((), Objective(), default, (worse,), 1).advised is None


def test_settings_with_a_seed_that_failed_have_no_score() -> None:
    results: dict[Task, Result] = {Task((), 0): scored(1.0), Task((), 1): "no memory"}
    candidate = candidate_of((), results, ([0, 1], []), Objective())
    assert candidate.searched is None
    assert candidate.problem == "no memory"
