from __future__ import annotations

from dataclasses import replace
from math import ceil, exp, floor

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sharectl.cadence.choice import (
    MOST_NEGOTIATING,
    TOLERANCE,
    IntervalCost,
    Knobs,
    Terms,
    beside,
    choose,
)
from sharectl.cadence.laws import RunTimeLaw, constant, cycles_held, loading_factor, weighted
from sharectl.cadence.run_times import Load


def exponential(mean_seconds: float) -> RunTimeLaw:
    return RunTimeLaw("exponential", (mean_seconds,))


SECONDS = st.floats(1e-3, 1e7)
SEEN = st.dictionaries(
    st.integers(1, 5000).map(float), st.floats(0.1, 100), min_size=1, max_size=12
).map(weighted)
LAWS: st.SearchStrategy[RunTimeLaw] = st.one_of(
    SEEN,
    st.floats(1, 1e5).map(exponential),
    st.tuples(st.floats(1, 1e4), st.floats(0.5, 3e4)).map(
        lambda parameters: RunTimeLaw("log-normal", parameters)
    ),
)
CADENCES = st.integers(1, 2000).map(float)
# Terms of a law's sum that are left out or taken together.
CLOSE = 1e-3


@given(SECONDS, SECONDS, st.integers(1, 1000))
def test_bounds(run_time: float, cadence: float, cycles: int) -> None:
    """The factor is 1 at whole cycles, and from q / (q + 1) to 1 with q whole cycles in a job."""
    whole = floor(run_time / cadence)
    factor = loading_factor(run_time, cadence)
    assert 0 < factor <= 1
    assert factor >= whole / (whole + 1) - 1e-8
    assert factor >= run_time / (run_time + cadence) * (1 - 1e-8)
    assert cycles_held(cadence * cycles, cadence) == cycles
    seconds, interval = ceil(run_time), ceil(cadence)
    assert cycles_held(seconds, interval) == -(-seconds // interval), "exact for whole seconds"


@given(LAWS, CADENCES, st.integers(2, 20))
def test_a_cadence_that_divides_another_is_no_worse(
    run_times: RunTimeLaw, cadence: float, times: int
) -> None:
    """Cycles that are among those of another cadence load no more: loading(C) >= loading(n C)."""
    assert run_times.loading(cadence) >= run_times.loading(times * cadence) - CLOSE


@given(SEEN, CADENCES)
def test_the_expectation_is_work_over_held_time(run_times: RunTimeLaw, cadence: float) -> None:
    """Each run time by itself, combined by the work in it, is the expectation over them all."""
    parts = tuple((time * weight, constant(time)) for time, weight in run_times.shares.items())
    assert abs(Load("", parts).loading(cadence) - run_times.loading(cadence)) < 1e-9


@settings(max_examples=25)  # each takes a tenth of a second
@given(st.floats(5, 2000), st.integers(5, 600), st.integers(1, 6000))
def test_claims_of_exponential_jobs(mean: float, cadence: int, worklife: int) -> None:
    """An exponential law forgets: a claim lasts for W and one more job, a geometric sum."""
    assume(mean > worklife / 200)
    step = worklife / 2000
    sure = floor(worklife / cadence) + 1
    held = cadence * (sure + exp(-(sure * cadence - worklife) / mean) / (1 - exp(-cadence / mean)))
    closed = (worklife + mean) / held
    # A cycle that begins soon after W is met or missed by a step.
    error = abs(exponential(mean).loading(cadence, worklife) - closed)
    assert error < CLOSE + 0.25 * step / mean


@given(
    st.dictionaries(st.integers(5, 3600).map(float), st.floats(0.01, 1), min_size=1, max_size=10),
    st.floats(0.5, 500),
    st.floats(0.01, 1),
    st.none() | st.integers(1, 10**6),
)
def test_the_choice_can_be_kept(
    loading: dict[float, float], duration: float, usual: float, cores: int | None
) -> None:
    """Recommended intervals are the longest that are offered, kept, affordable and worth it."""
    terms = Terms(tuple(sorted(loading)), 0, cores, duration)

    def cost(seconds: float, period: float, factor: float) -> IntervalCost:
        return IntervalCost(seconds, factor, factor, duration / period)

    default = cost(60, Knobs().period_seconds(duration), usual)
    possible = [
        cost(at, at, loading[at]) for at in terms.intervals if duration <= MOST_NEGOTIATING * at
    ]
    choice = choose(possible, default, terms)
    least = min((at.idle for at in possible), default=0.0)
    worthwhile = [
        at.interval_seconds
        for at in possible
        if at.idle <= least + TOLERANCE and not beside(at, default, cores).costs_more_than_it_saves
    ]
    interval = choice.option.interval_seconds if choice else None
    assert interval == max(worthwhile, default=None)
    if choice is None or interval is None:
        return
    assert terms.allows(interval)
    # Delays are whole seconds, so the period may be up to one longer.
    assert interval <= choice.knobs.period_seconds(duration) < interval + 1
    called = replace(choice.knobs, interval_seconds=0.0).period_seconds(duration)
    assert duration <= MOST_NEGOTIATING * called * (1 + 1e-9)
