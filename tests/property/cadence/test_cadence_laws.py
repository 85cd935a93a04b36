from __future__ import annotations

from math import exp, floor

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
from sharectl.cadence.run_times import (
    Load,
    RunTimes,
    constant,
    cycles_held,
    exponential,
    jobs_of_claim,
    loading_factor,
    log_normal,
    normal,
)

SECONDS = st.floats(1e-3, 1e7)
WHOLE = st.integers(1, 100_000)
SEEN = st.dictionaries(
    st.integers(1, 5000).map(float), st.floats(0.1, 100), min_size=1, max_size=12
).map(RunTimes)
LAWS: st.SearchStrategy[RunTimes] = st.one_of(
    SEEN,
    st.floats(1, 1e5).map(exponential),
    st.builds(normal, st.floats(1, 1e4), st.floats(0.5, 1e4)),
    st.builds(log_normal, st.floats(1, 1e4), st.floats(0.5, 3e4)),
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


@given(WHOLE, WHOLE)
def test_whole_numbers(run_time: int, cadence: int) -> None:
    """For whole seconds the cycles are those of integer arithmetic, exactly."""
    assert cycles_held(run_time, cadence) == -(-run_time // cadence)


@given(LAWS, CADENCES, st.integers(2, 20))
def test_a_cadence_that_divides_another_is_no_worse(
    run_times: RunTimes, cadence: float, times: int
) -> None:
    """Cycles that are among those of another cadence load no more: loading(C) >= loading(n C)."""
    assert run_times.loading(cadence) >= run_times.loading(times * cadence) - CLOSE


@given(SEEN, CADENCES)
def test_the_expectation_is_work_over_held_time(run_times: RunTimes, cadence: float) -> None:
    """Each run time by itself, combined by the work in it, is the expectation over them all."""
    parts = tuple((time * weight, constant(time)) for time, weight in run_times.weights.items())
    assert abs(Load("", parts).loading(cadence) - run_times.loading(cadence)) < 1e-9


@given(LAWS, st.integers(5, 2000).map(float), st.just(0.0) | st.integers(0, 1500).map(float))
def test_claims_bounds(run_times: RunTimes, cadence: float, worklife: float) -> None:
    """A claim lasts longer than W, and a job or more; then it idles for less than a cycle."""
    factor = run_times.loading(cadence, worklife)
    least = max(worklife, run_times.mean_seconds)
    assert 0 < factor <= 1
    assert factor >= least / (least + cadence) - CLOSE


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


@given(st.integers(1, 5000), st.integers(0, 20_000))
def test_jobs_of_a_claim(run_time: int, worklife: int) -> None:
    """A claim of equal jobs is older than its worklife after its last job, and not before."""
    jobs = jobs_of_claim(run_time, worklife)
    assert jobs * run_time > worklife >= (jobs - 1) * run_time


@given(
    st.dictionaries(st.integers(5, 3600).map(float), st.floats(0.01, 1), min_size=1, max_size=10),
    st.floats(0.5, 500),
    st.floats(0.01, 1),
    st.none() | st.integers(1, 10**6),
)
def test_the_choice_can_be_kept(
    loading: dict[float, float],
    duration: float,
    usual: float,
    cores: int | None,
) -> None:
    """Recommended intervals are offered, kept, leave the negotiator time and are worth it."""
    terms = Terms(tuple(loading), 0, cores, duration)
    period = Knobs().period_seconds(duration)
    default = IntervalCost(60, period, usual, usual, duration / period)
    offered = [
        IntervalCost(seconds, seconds, factor, factor, duration / seconds)
        for seconds, factor in sorted(loading.items())
    ]
    choice = choose(offered, default, terms)
    possible = [
        option for option in offered if duration <= MOST_NEGOTIATING * option.interval_seconds
    ]
    least = min((option.idle for option in possible), default=0.0)
    worthwhile = [
        option
        for option in possible
        if option.idle <= least + TOLERANCE
        and not beside(option, default, cores).costs_more_than_it_saves
    ]
    if choice is None:
        assert not worthwhile
        return
    interval = choice.option.interval_seconds
    assert interval == max(option.interval_seconds for option in worthwhile)
    assert terms.period_seconds(interval) == interval
    # Delays are whole seconds, so the period may be up to one longer.
    assert interval <= choice.knobs.period_seconds(duration) < interval + 1
    shortest = choice.knobs.shortest_period_seconds(duration)
    assert duration <= MOST_NEGOTIATING * shortest * (1 + 1e-9)
