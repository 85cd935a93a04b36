"""The twin's loading factor, beside the formula of `sharectl cadence`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable

import pytest

from sharectl.cadence.diagram import DISTRIBUTIONS, simulated
from sharectl.cadence.laws import RunTimeLaw, constant, exponential, log_normal
from sharectl.cadence.run_times import times_of
from sharectl.sim.loading import loading_factor

MARGIN = 0.01
"""Share of the slots' time by which formula and twin may differ: the error of some 2,000 draws."""
INTERVAL_SECONDS = 60.0
HOLDINGS = 50
LAWS: Mapping[str, Callable[[float], RunTimeLaw]] = {
    "constant": constant,
    "exponential": exponential,
    "narrow": lambda mean: log_normal(mean, mean / 4),
    "wide": lambda mean: log_normal(mean, mean),
}


def pair(
    law: RunTimeLaw, worklife_seconds: float = 0.0, start_seconds: float = 0.0
) -> tuple[float, float]:
    """Loading factors of the twin and of the formula."""
    terms = (INTERVAL_SECONDS, worklife_seconds, start_seconds)
    return loading_factor(law, *terms, holdings=HOLDINGS), times_of(law).loading(*terms)


@pytest.mark.parametrize("start_seconds", [0.0, 5.0])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 1.5, 4.25])
@pytest.mark.parametrize("name", LAWS)
def test_the_formula_is_the_twin(name: str, ratio: float, start_seconds: float) -> None:
    """Jobs that fill a cycle exactly need another one if they start after its begin."""
    twin, formula = pair(LAWS[name](ratio * INTERVAL_SECONDS), 0.0, start_seconds)
    assert twin == pytest.approx(formula, abs=MARGIN)


@pytest.mark.parametrize("start_seconds", [0.0, 5.0])
@pytest.mark.parametrize("ratio", [0.7, 2.25])
@pytest.mark.parametrize("name", LAWS)
def test_so_it_is_where_claims_are_reused(name: str, ratio: float, start_seconds: float) -> None:
    """Six jobs of 42 s leave a claim just as old as its worklife, not older: it runs a seventh."""
    twin, formula = pair(LAWS[name](ratio * INTERVAL_SECONDS), 252.0, start_seconds)
    assert twin == pytest.approx(formula, abs=MARGIN)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_dots_of_the_diagram_lie_on_its_lines(name: str) -> None:
    law_of = DISTRIBUTIONS[name]
    for cycles, factor in simulated(law_of, loading_factor):
        assert factor == pytest.approx(times_of(law_of(cycles)).loading(1.0), abs=MARGIN)


def test_the_start_of_a_cycle_counts() -> None:
    """Margins hold a difference that is there: half of the time is lost by a late start."""
    law = constant(INTERVAL_SECONDS)
    assert pair(law) == (1.0, 1.0)
    assert pair(law, 0.0, 5.0) == (0.5, 0.5)
