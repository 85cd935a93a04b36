"""Domains and scores of a search for settings."""

from __future__ import annotations

import pytest

from sharectl_lab.study.tuning import Parameter, Result, Score, Task, Tuning, candidate_of

SEEDS = ([0, 1], [2, 3, 4])


def test_a_number_is_rounded_and_stays_within_its_bounds() -> None:
    time = Parameter("control.give_up_seconds", low=60, high=604_800)
    assert [time.rounded(n) for n in (487.3456, 604_799.0, 60.04)] == [487.0, 604_800, 60.0]
    assert Parameter("k", low=1, high=9999, whole=True).rounded(123.456) == 123
    assert [Parameter("k", low=low, high=64).log for low in (0, 1, 32)] == [False, True, False]


def scored(error: float) -> Score:
    return Score(error - 1.0, 1.0, 0.0)


def test_settings_win_on_seeds_of_the_confirmation_alone() -> None:
    settings = (("control.law", "pid"),)
    results: dict[Task, Result] = {Task((), seed): scored(5.0) for seed in range(5)}
    results |= {Task(settings, seed): scored(1.0) for seed in (0, 1)}
    results |= {Task(settings, 2): scored(4.0), Task(settings, 3): scored(6.0)}
    results[Task(settings, 4)] = scored(4.5)
    candidate = candidate_of(settings, results, SEEDS)
    assert candidate.searched is not None
    assert candidate.searched.mean == 1.0
    assert candidate.gain is not None
    assert candidate.gain.mean == pytest.approx(0.5 / 3)
    assert candidate.wins == 2
    default = candidate_of((), results, SEEDS)
    assert Tuning((), default, (candidate,), 1).advised == candidate
    results[Task(settings, 4)] = scored(6.5)
    assert Tuning((), default, (candidate_of(settings, results, SEEDS),), 1).advised is None
    del results[Task(settings, 3)]
    assert candidate_of(settings, results, SEEDS).gain is None


def test_settings_with_a_seed_that_failed_have_no_score() -> None:
    results: dict[Task, Result] = {Task((), 0): scored(1.0), Task((), 1): "no memory"}
    candidate = candidate_of((), results, ([0, 1], []))
    assert candidate.searched is None
    assert candidate.problem == "no memory"
