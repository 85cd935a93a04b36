"""Figures of the control laws on the simulated plant of ``bench/controllers.py``."""

from __future__ import annotations

import re
from pathlib import Path

from bench.controllers import LAWS, SCENARIOS, Figures, Scenario, figures_of, simulate
from sharectl.control.laws import Control

NOISY = "\u2013"
"""What the page has where no settling time is told."""


def figures(law: str, scenario: Scenario) -> Figures:
    moments = tuple(simulate(LAWS.get(law, Control()), scenario, steered=law in LAWS))
    return figures_of(moments, scenario.event_hours)


def test_the_page_has_the_figures_of_now() -> None:
    page = (Path(__file__).parents[3] / "docs" / "measurements.md").read_text(encoding="utf-8")
    printed = re.findall(r"(\d[\d.]* h|\u2013), ([\d.]+) %, ([\d.]+) %", page)
    made = [
        (
            NOISY if scenario.noise else f"{row.settling_hours:.1f} h",
            f"{100 * row.overshoot_ratio:.1f}",
            f"{100 * row.steady_ratio:.1f}",
        )
        for scenario in SCENARIOS.values()
        for row in (figures(law, scenario) for law in ("none", *LAWS))
    ]
    assert printed == made
