from __future__ import annotations

import itertools
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.cadence.laws import LoggedJob, RunTimeLaw, constant, parse, weighted
from sharectl_lab.workload.draw import Arrival, DrawnWorkload, JobStream, Phase
from sharectl_lab.workload.logged import Multicore, as_multicore

SECONDS = st.floats(1e-3, 1e6)
NAMED: st.SearchStrategy[RunTimeLaw] = st.one_of(
    st.builds(constant, SECONDS),
    SECONDS.map(lambda mean: RunTimeLaw("exponential", (mean,))),
    st.tuples(st.floats(1, 1e5), st.floats(0.5, 1e5)).map(
        lambda parameters: RunTimeLaw("log-normal", parameters)
    ),
)
LAWS = st.one_of(
    NAMED, st.dictionaries(SECONDS, st.floats(0.1, 100), min_size=1, max_size=8).map(weighted)
)
PHASES = st.builds(
    Phase,
    length_hours=st.floats(0.1, 3),
    begin_hours=st.floats(0, 10),
    every_hours=st.one_of(st.none(), st.floats(3.1, 9)),
    factor=st.sampled_from([0.0, 0.5, 4.0]),
)
STREAMS = st.builds(
    JobStream,
    group=st.sampled_from(["cms", "atlas.prod"]),
    run_time=LAWS,
    per_hour=st.floats(0.1, 60),
    at_start=st.one_of(st.none(), st.integers(1, 5)),
    phases=st.lists(PHASES, max_size=3).map(tuple),
    users=st.integers(1, 3),
)
END_SECONDS = 12 * 3600.0
JOBS = st.lists(
    st.builds(
        LoggedJob,
        submitted_at=st.integers(0, 1000),
        run_seconds=st.integers(1, 100_000),
        cores=st.sampled_from([1, 1, 1, 4, 8]),
        memory_mib=st.integers(0, 4000),
        user=st.sampled_from("ab"),
        group=st.sampled_from(["cms", "atlas"]),
        queue=st.just("q"),
    ),
    max_size=60,
)


def _jobs(streams: list[JobStream]) -> list[Arrival]:
    return list(DrawnWorkload(streams, 1, END_SECONDS).arrivals())


@given(NAMED)
def test_a_law_is_read_as_it_is_written(law: RunTimeLaw) -> None:
    """The text of a law that has a name is that law."""
    assert parse(law.text) == law


@given(LAWS.filter(lambda law: law.name != "exponential"))
@settings(max_examples=30)
def test_weights_have_the_mean_of_their_law(law: RunTimeLaw) -> None:
    """Shares sum to 1, and the sum of run times times shares is the mean."""
    mean = sum(seconds * share for seconds, share in law.shares.items())
    assert isclose(mean, law.mean_seconds, rel_tol=1e-6)
    assert isclose(sum(law.shares.values()), 1)


@given(LAWS, st.integers(0, 2**53 - 1).map(lambda number: number / 2**53))
def test_every_draw_is_a_run_time(law: RunTimeLaw, uniform: float) -> None:
    """Whatever number is drawn, the run time is above 0 and finite."""
    assert 0 < law.drawing(lambda: uniform)() < float("inf")


@given(st.lists(STREAMS, max_size=4))
@settings(max_examples=50)
def test_jobs_come_in_order_and_before_the_end(streams: list[JobStream]) -> None:
    """Times ascend from 0 and end before the end of the simulation."""
    times = [job.at for job in _jobs(streams)]
    assert times == sorted(times)
    assert all(0 <= at < END_SECONDS for at in times)


@given(STREAMS)
@settings(max_examples=50)
def test_no_job_comes_in_an_outage(stream: JobStream) -> None:
    """While a phase of factor 0 holds, nothing is submitted but the jobs of the start."""
    outages = [phase for phase in stream.phases if phase.factor == 0]
    for job in _jobs([stream]):
        assert job.at == 0 or not any(phase.holds_at(job.at) for phase in outages)


@given(STREAMS, STREAMS)
@settings(max_examples=30)
def test_a_stream_does_not_change_another(first: JobStream, second: JobStream) -> None:
    """Jobs of the first stream are the same with a second one behind it."""
    alone = _jobs([first])
    kinds = len(DrawnWorkload([first], 1, END_SECONDS).kinds)
    assert [job for job in _jobs([first, second]) if job.kind < kinds] == alone


@given(JOBS, st.floats(0, 1), st.integers(2, 8), st.integers(0, 5))
def test_the_multicore_rule_keeps_work(
    jobs: list[LoggedJob], ratio: float, cores: int, seed: int
) -> None:
    """Core-seconds of each user and group, and jobs that had several cores, stay."""
    made = list(as_multicore(iter(jobs), Multicore(ratio, cores), seed))
    assert made == list(as_multicore(iter(jobs), Multicore(ratio, cores), seed))
    for name in itertools.product(("cms", "atlas"), "ab"):
        before, after = (
            sum(job.cores * job.run_seconds for job in of if (job.group, job.user) == name)
            for of in (jobs, made)
        )
        assert isclose(before, after, rel_tol=1e-9)
    assert all(job in made for job in jobs if job.cores > 1)
    singles = sum(job.cores == 1 for job in jobs) - sum(job.cores == 1 for job in made)
    assert singles == cores * (len(made) - len(jobs) + singles)
