"""The simulated plant of ``bench/controllers.py``, and that the laws do on it what they are for."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from bench.controllers import LAWS, SCENARIOS, Figures, Moment, figures_of, simulate
from sharectl.control.laws import REMEMBERING, Control

STEP = "step in demand"
STOPS = "a group stops"
NOISY = "\u2013"
"""What the page has where no settling time is told."""


@cache
def moments(law: str, scenario: str) -> tuple[Moment, ...]:
    return tuple(simulate(LAWS.get(law, Control()), SCENARIOS[scenario], steered=law in LAWS))


def figures(law: str, scenario: str) -> Figures:
    return figures_of(moments(law, scenario), SCENARIOS[scenario].event_hours)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("law", LAWS)
def test_every_law_leaves_less_than_half_of_the_error(law: str, scenario: str) -> None:
    row = figures(law, scenario)
    assert row.steady_ratio < 0.5 * figures("none", scenario).steady_ratio
    assert row.overshoot_ratio < 0.05
    assert row.idle_ratio < 0.005
    assert SCENARIOS[scenario].noise or row.settling_hours < 24


@pytest.mark.parametrize("scenario", [STEP, STOPS])
@pytest.mark.parametrize("law", sorted(REMEMBERING))
def test_a_group_without_work_collects_nothing(law: str, scenario: str) -> None:
    """A day without use is not made up for: with all errors kept it goes 1.3 to 1.8 % over."""
    assert figures(law, scenario).overshoot_ratio < 0.01


def test_the_page_has_the_figures_of_now() -> None:
    page = (Path(__file__).parents[3] / "docs" / "measurements.md").read_text(encoding="utf-8")
    printed = re.findall(r"(\d[\d.]* h|\u2013), ([\d.]+) %, ([\d.]+) %", page)
    made = [
        (
            NOISY if scenario.noise else f"{row.settling_hours:.1f} h",
            f"{100 * row.overshoot_ratio:.1f}",
            f"{100 * row.steady_ratio:.1f}",
        )
        for name, scenario in SCENARIOS.items()
        for row in (figures(law, name) for law in ("none", *LAWS))
    ]
    assert printed == made
