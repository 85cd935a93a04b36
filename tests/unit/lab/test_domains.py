"""``--over``: domains from the settings of the configuration, and problems of what is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sharectl.config.model import ControlConfig
from sharectl.errors import SettingError
from sharectl.plan.settings import GiveUp
from sharectl_lab.study.domains import parameters, split
from sharectl_lab.study.tuning import Parameter
from sharectl_lab.twin.settings import Loop

RECORDS = {"control": ControlConfig(), "loop": Loop(), "defrag": None}


def of(*texts: str) -> tuple[Parameter, ...]:
    return parameters(split(texts), RECORDS, {"latest"})


def problems(*texts: str) -> tuple[str, ...]:
    with pytest.raises(SettingError) as caught:
        of(*texts)
    assert all(problem.startswith("--over ") for problem in caught.value.problems)
    return tuple(problem[len("--over ") :] for problem in caught.value.problems)


def test_a_key_alone_has_all_values_of_the_configuration() -> None:
    give_up, law = of("control.give_up_seconds, control.law")
    assert give_up == Parameter(
        "control.give_up_seconds", None, (), 1, 604_800, log=True, nullable=True
    )
    assert law == Parameter("control.law", "latest", ("latest", "ewma", "pid"))
    (period,) = of("loop.period_seconds")
    assert (period.low, period.high, period.log, period.default) == (1, 86_400, True, 300.0)
    (share,) = of("control.max_target_share=0.1..0.5")
    assert (share.low, share.high, share.log) == (0.1, 0.5, False)
    assert share.rounded(0.12345) == "12.3%"
    (shares,) = of("control.max_target_share=0.1|0.5")
    assert shares.choices == ("10%", "50%")


def test_the_default_is_that_of_the_scenario() -> None:
    control = replace(ControlConfig(), give_up=GiveUp(seconds=300.0))
    (give_up,) = parameters(["control.give_up_seconds"], {"control": control})
    assert give_up.default == 300.0


def test_a_domain_is_narrowed_by_bounds_or_values() -> None:
    (narrow,) = of("control.give_up_seconds=60..3600")
    assert (narrow.low, narrow.high, narrow.log, narrow.nullable) == (60, 3600, True, False)
    (both,) = of("control.give_up_seconds=null|60..3600")
    assert both.nullable
    (law,) = of("control.law=pid|latest")
    assert law.choices == ("pid", "latest")
    (values,) = of("control.give_up_seconds=null|60|600")
    assert values.choices == (None, 60.0, 600.0)
    (zero,) = of("control.deadband_hs06=0..500")
    assert (zero.low, zero.high, zero.log) == (0, 500, False)


def test_the_words_of_a_parameter_are_read_as_the_same_parameter() -> None:
    for text in ("control.give_up_seconds", "control.law", "control.max_nodes=1..64"):
        (parameter,) = of(text)
        assert of(parameter.words) == (parameter,)


def test_all_problems_are_named_at_once_with_a_remedy() -> None:
    assert problems(
        "control.give_up_second",
        "give_up_seconds",
        "control.law=pidd",
        "control.give_up_seconds=60..9999999",
        "control.dwell_seconds=600..60",
        "control.max_nodes=1.5..3",
        "control.deadband_hs06",
        "control.strategy=",
        "control.dwell_seconds=null|60..600",
    ) == (
        '"control.give_up_second": is no key; did you mean control.give_up_seconds?',
        '"give_up_seconds": is no key; did you mean control.give_up_seconds?',
        '"control.law": "pidd" is no value of it; did you mean pid?',
        (
            '"control.give_up_seconds": "9999999" is no value of it; write a number, above 0 to '
            "604800 seconds"
        ),
        '"control.dwell_seconds": 600..60 is empty; write the lower number first',
        '"control.max_nodes": "1.5" is no value of it; write a whole number, 1 to 1000000',
        (
            '"control.deadband_hs06": may be up to 1e+12, which is no domain; write such as '
            "control.deadband_hs06=0..1000"
        ),
        '"control.strategy": a domain has values; write LOW..HIGH, or VALUE|VALUE',
        '"control.dwell_seconds": null is no value of it; leave null out',
    )


def test_keys_without_effect_in_the_twin_are_refused() -> None:
    assert problems(
        "control.incomplete",
        "ledger.keep_days",
        "defrag.max_whole",
        "control.pid.gain",
        "control.law=latest|ewma",
    ) == (
        (
            '"control.incomplete": has no effect here: every look of the twin at its pool is '
            "complete; leave it out"
        ),
        ('"ledger.keep_days": has no effect on a simulated pool; write keys of control.…, loop.…'),
        ('"defrag.max_whole": has no effect here: the strategy has no defrag; name another one'),
        (
            '"control.pid.gain": has no effect, because no group is controlled by it; add '
            "control.law=pid, or remove it"
        ),
    )
    assert len(of("control.law", "control.pid.gain")) == 2


def test_no_key_and_a_key_twice_are_problems() -> None:
    assert problems() == (
        "there is no key; write KEY[=LOW..HIGH|=VALUE|VALUE…], such as control.law",
    )
    assert problems("control.law", "control.law=pid") == (
        '"control.law": stands there twice; keep one of them',
    )
