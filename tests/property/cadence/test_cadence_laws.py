from __future__ import annotations

from math import ceil, floor

from hypothesis import given
from hypothesis import strategies as st

from sharectl.cadence.choice import MOST_NEGOTIATING, TOLERANCE, IntervalCost, choose, knobs_of
from sharectl.cadence.laws import constant, cycles_held

SECONDS = st.floats(1e-3, 1e7)


@given(SECONDS, SECONDS, st.integers(1, 1000))
def test_bounds(run_time: float, cadence: float, cycles: int) -> None:
    """The factor is 1 at whole cycles, and from q / (q + 1) to 1 with q whole cycles in a job."""
    whole = floor(run_time / cadence)
    factor = constant(run_time).loading(cadence)
    assert 0 < factor <= 1
    assert factor >= whole / (whole + 1) - 1e-8
    assert factor >= run_time / (run_time + cadence) * (1 - 1e-8)
    assert cycles_held(cadence * cycles, cadence) == cycles
    seconds, interval = ceil(run_time), ceil(cadence)
    assert cycles_held(seconds, interval) == -(-seconds // interval), "exact for whole seconds"


@given(
    st.dictionaries(st.integers(5, 3600).map(float), st.floats(0.01, 1), min_size=1, max_size=10),
    st.floats(0.5, 500),
    st.floats(0.01, 1),
)
def test_the_choice_can_be_kept(loading: dict[float, float], duration: float, usual: float) -> None:
    """Recommended intervals are the longest that lose hardly more than the best or the default."""

    def cost(seconds: float, factor: float) -> IntervalCost:
        return IntervalCost(seconds, factor, factor, None)

    default = cost(60, usual)
    choice = choose(list(map(cost, loading, loading.values())), default)
    most = min(1 - max(loading.values()) + TOLERANCE, default.idle) + 1e-9
    longest = max((at for at, factor in loading.items() if 1 - factor <= most), default=None)
    assert (choice and choice.interval_seconds) == longest
    if choice is None or duration > MOST_NEGOTIATING * choice.interval_seconds:
        return
    interval, delay, least = knobs_of(choice.interval_seconds, duration).values()
    called = max(least, duration + delay)
    # Delays are whole seconds, so the period may be up to one longer.
    assert interval == choice.interval_seconds <= max(interval, called) < interval + 1
    assert duration <= MOST_NEGOTIATING * called * (1 + 1e-9)
