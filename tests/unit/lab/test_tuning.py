"""``--over``: domains, and problems of what is written; scores of a search for settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.config.model import ControlConfig
from sharectl.errors import SettingError
from sharectl.plan.settings import GiveUp
from sharectl_lab.study.tuning import (
    Parameter,
    Result,
    Score,
    Task,
    Tuning,
    candidate_of,
    parameters,
)
from sharectl_lab.twin.settings import Loop

GIVE_UP = replace(ControlConfig(), give_up=GiveUp(seconds=300.0))
RECORDS = {"control": GIVE_UP, "loop": Loop(), "defrag": None}


def of(*texts: str) -> tuple[Parameter, ...]:
    return parameters(texts, RECORDS)


def problems(*texts: str) -> list[str]:
    with pytest.raises(SettingError) as caught:
        of(*texts)
    assert all(problem.startswith("--over ") for problem in caught.value.problems)
    return [problem[len("--over ") :] for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("control.law", Parameter("control.law", "latest", ("latest", "ewma", "pid"))),
        ("control.law=pid|latest", Parameter("control.law", "latest", ("pid", "latest"))),
        (
            "control.give_up_seconds=60..3600",
            Parameter("control.give_up_seconds", 300.0, (), 60, 3600),
        ),
        (
            "control.give_up_seconds=null|60|600",
            Parameter("control.give_up_seconds", 300.0, (None, 60.0, 600.0)),
        ),
        ("control.max_nodes=1..64", Parameter("control.max_nodes", None, (), 1, 64, whole=True)),
        ("loop.period_seconds=60..600", Parameter("loop.period_seconds", 300.0, (), 60, 600)),
    ],
)
def test_a_domain_has_choices_or_bounds_and_the_default_of_the_scenario(
    text: str, parameter: Parameter
) -> None:
    (made,) = of(text)
    expected = replace(parameter, default=made.default) if parameter.default is None else parameter
    assert made == expected
    assert of(made.words) == (made,)


def test_all_problems_are_named_at_once_with_a_remedy() -> None:
    made = problems(
        "control.give_up_second,give_up_seconds,control.law=pidd,control.incomplete",
        "control.give_up_seconds=60..9999999,control.dwell_seconds=600..60",
        "control.max_nodes=1.5..3,control.deadband_hs06,control.strategy=",
        "control.retry_seconds=null|60",
        "ledger.keep_days,defrag.max_whole,loop.deaf_ratio=0|0.5",
        "loop.deaf_ratio=0..0.5",
    )
    remedies = {
        '"control.give_up_second"': "did you mean control.give_up_seconds?",
        '"give_up_seconds"': "did you mean control.give_up_seconds?",
        '"control.law"': "did you mean pid?",
        '"control.incomplete"': "is no key of a simulated pool",
        '"control.give_up_seconds"': "write a number, above 0 to 604800 seconds",
        '"control.dwell_seconds"': "write the lower number first",
        '"control.max_nodes"': "write a whole number, 1 to 1000000",
        '"control.deadband_hs06"': "write control.deadband_hs06=LOW..HIGH",
        '"control.strategy"': "or values with | between them",
        '"control.retry_seconds"': "is no key of a simulated pool",
        '"ledger.keep_days"': "write keys of control.…, loop.…",
        '"defrag.max_whole"': "the strategy has no defrag",
        '"loop.deaf_ratio"': "stands there twice",
    }
    assert [problem.partition(": ")[0] for problem in made] == [*remedies]
    assert problems() == ["there is no key; write KEY=LOW..HIGH|=VALUE|VALUE…, or control.law"]
    assert [p for p, remedy in zip(made, remedies.values()) if remedy not in p] == []


# ---- scores

SEEDS = ([0, 1], [2, 3, 4])


def test_a_number_is_rounded_and_stays_within_its_bounds() -> None:
    time = Parameter("control.give_up_seconds", low=60, high=604_800)
    assert [time.rounded(n) for n in (487.3456, 604_799.0, 60.04)] == [487.0, 604_800, 60.0]
    assert Parameter("k", low=1, high=9999, whole=True).rounded(123.456) == 123
    assert [Parameter("k", low=low, high=64).log for low in (0, 1, 32)] == [False, True, False]


def scored(error: float) -> Score:
    return Score(error - 1.0, 1.0)


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
