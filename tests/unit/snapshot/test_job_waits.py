"""Waiting times by group and size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharectl.shares.demand import JobWait, job_waits

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
def test_each_kind_has_the_longest_and_the_median_of_its_own_jobs(drawn: list[JobWait]) -> None:
    """At most half of the jobs stood for wait longer than the median."""
    rows = {(row.group, row.cores): row for row in job_waits(drawn)}
    assert rows.keys() == {(job.group, job.cores) for job in drawn}
    for kind, row in rows.items():
        for started, times in ((False, row.pending), (True, row.started)):
            same = [job for job in drawn if (job.group, job.cores, job.started) == (*kind, started)]
            assert (times is None) == (not same)
            if times is None:
                continue
            assert times.longest_seconds == max(job.seconds for job in same)
            assert (times.jobs, times.sampled) == (len(same), any(job.jobs > 1 for job in same))
            longer = sum(job.jobs for job in same if job.seconds > times.median_seconds)
            shorter = sum(job.jobs for job in same if job.seconds < times.median_seconds)
            assert 2 * max(longer, shorter) <= sum(job.jobs for job in same)
