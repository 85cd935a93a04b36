"""Waiting times by group and size."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sharectl.cycle.record import record_of
from sharectl.model import JobWaits, WaitTimes
from sharectl.plan.plan import State, decide
from sharectl.shares.demand import JobWait, job_waits
from tests.fakes import NOW
from tests.ledgers import busy, law

jobs = st.lists(
    st.builds(
        JobWait,
        st.sampled_from(("alice", "cms")),
        st.sampled_from((1, 8)),
        st.booleans(),
        st.integers(0, 10**6),
        st.integers(1, 50),
    )
)


@given(jobs)
def test_each_kind_has_the_longest_and_the_median_of_its_own_jobs(found: list[JobWait]) -> None:
    """At most half of the jobs stood for wait longer than the median."""
    waits = job_waits(found)
    assert {(each.group, each.cores) for each in waits} == {(job.group, job.cores) for job in found}
    for each in waits:
        for started, times in ((False, each.pending), (True, each.started)):
            same = [
                job
                for job in found
                if (job.group, job.cores, job.started) == (each.group, each.cores, started)
            ]
            assert (times is None) == (not same)
            if times is None:
                continue
            assert times.longest_seconds == max(job.seconds for job in same)
            assert times.jobs == len(same)
            assert times.sampled == any(job.jobs > 1 for job in same)
            stood_for = sum(job.jobs for job in same)
            assert (
                2 * sum(job.jobs for job in same if job.seconds > times.median_seconds) <= stood_for
            )
            assert (
                2 * sum(job.jobs for job in same if job.seconds < times.median_seconds) <= stood_for
            )


WAITS = (
    JobWaits("cms", 1, WaitTimes(3, 3600, 7200), None),
    JobWaits("cms", 8, WaitTimes(40, 200_000, 300_000, sampled=True), WaitTimes(1, 60, 60)),
)


def test_the_record_has_those_of_configured_groups() -> None:
    taken = replace(busy(0), waits=(*WAITS, JobWaits("other", 1, WaitTimes(1, 1, 1))))
    decision = decide(law(), State(), taken, NOW)
    assert record_of(law(), taken, decision, decision.plan, ("fake",)).waits == WAITS
