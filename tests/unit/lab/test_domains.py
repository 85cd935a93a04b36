"""``--over``: domains from the settings of the configuration, and problems of what is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.config.model import ControlConfig
from sharectl.errors import SettingError
from sharectl.plan.settings import GiveUp
from sharectl_lab.study.tuning import Parameter, parameters
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
    assert [p for p, remedy in zip(made, remedies.values()) if remedy not in p] == []


def test_no_key_is_a_problem() -> None:
    assert problems() == ["there is no key; write KEY=LOW..HIGH|=VALUE|VALUE…, or control.law"]
