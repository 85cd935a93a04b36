"""Waiting times by group and size."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl.condor.schedds import (
    MOST_SAMPLED,
    SAMPLE_JOBS,
    Kind,
    SampledJob,
    Sizes,
    sampled_waits,
    steps_of,
)
from sharectl.cycle.record import record_of
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import JobWaits, WaitTimes
from sharectl.plan.plan import State, decide
from sharectl.report import as_json
from sharectl.report.explain import wait_rows
from sharectl.report.pool import waits_table
from sharectl.shares.job_waits import JobWait, job_waits
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
    """The longest is that of a job of the kind; at most half of the jobs stood for wait longer than the median."""
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


@given(st.dictionaries(st.integers(1, 64), st.integers(1, 10**6), min_size=1))
def test_a_sample_is_bounded_and_has_every_job_of_a_short_queue(pending: dict[int, int]) -> None:
    """Of each size that is told apart at most a share is asked for, and at least a job of each such size."""
    steps = steps_of(pending)
    if sum(pending.values()) <= SAMPLE_JOBS:
        assert steps == {0: 1}
        return
    sizes = [cores for cores in steps if cores]
    assert sum(pending[cores] // steps[cores] for cores in sizes) <= SAMPLE_JOBS
    assert all(1 <= steps[cores] <= pending[cores] for cores in sizes)
    rest = sum(number for cores, number in pending.items() if cores not in steps)
    assert rest // steps[0] <= SAMPLE_JOBS


class FakeSchedd:
    """A schedd that answers with these jobs, or not at all."""

    def __init__(self, ads: Optional[Sequence[dict[str, Any]]]) -> None:
        self.ads = ads
        self.constraints: list[str] = []

    def query(self, constraint: str, projection: Iterable[str], limit: int) -> list[dict[str, Any]]:
        self.constraints.append(constraint)
        if self.ads is None:
            raise RuntimeError(constraint, projection)
        return list(self.ads[:limit])


def ad(status: int, cores: int = 8, **others: object) -> dict[str, object]:
    return {
        "JobStatus": status,
        "AccountingGroup": "cms",
        "RequestCpus": cores,
        "QDate": NOW - 900,
        "ServerTime": NOW,
        **others,
    }


def sampled(schedd: FakeSchedd, pending: dict[int, int], most_cores: int = 64) -> list[SampledJob]:
    counted: dict[Kind, int] = {("cms", cores, 0): jobs for cores, jobs in pending.items()}
    return list(sampled_waits(schedd, counted, Sizes(most_cores)))


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        (ad(1), [900]),
        (ad(1, QDate=NOW + 60), [0]),
        (ad(1, QDate="yesterday"), []),
        (ad(1, QDate=-7), []),
        (ad(2, JobStartDate=NOW - 100), [800]),
        (ad(2, JobStartDate=NOW - 1000), [0]),
        (ad(2, JobStartDate=NOW - 7200), []),
        (ad(2), []),
    ],
)
def test_a_job_tells_how_long_it_waits_or_did(job: dict[str, object], seconds: list[int]) -> None:
    jobs = sampled(FakeSchedd([job]), {8: 1})
    assert [sample.seconds for sample in jobs] == seconds
    assert {sample.started for sample in jobs} <= {job["JobStatus"] == 2}


def test_a_request_that_counts_as_less_stands_for_as_many_as_its_own_size() -> None:
    jobs = sampled(FakeSchedd([ad(1), ad(1, 4)]), {1: 100_000, 4: 30}, most_cores=4)
    assert [(sample.cores, sample.jobs) for sample in jobs] == [(4, 201), (4, 1)]


def test_a_long_queue_is_sampled_size_by_size() -> None:
    schedd = FakeSchedd([ad(1), ad(1, 1), ad(1, 3)])
    jobs = sampled(schedd, {1: 100_000, 8: 30})
    # 30 jobs of eight cores are all asked for, of one core one in two hundred.
    assert [(sample.cores, sample.jobs) for sample in jobs] == [(8, 1), (1, 200), (3, 201)]
    steps = "ifThenElse(RequestCpus =?= 8, 1, ifThenElse(RequestCpus =?= 1, 200, 201))"
    assert steps in schedd.constraints[0]


@pytest.mark.parametrize("ads", [None, [ad(1)] * MOST_SAMPLED])
def test_waits_that_are_unknown_are_not_zero(ads: Optional[list[dict[str, object]]]) -> None:
    assert sampled(FakeSchedd(ads), {8: 1}) == []


WAITS = (
    JobWaits("cms", 1, WaitTimes(3, 3600, 7200), None),
    JobWaits("cms", 8, WaitTimes(40, 200_000, 300_000, sampled=True), WaitTimes(1, 60, 60)),
)


def test_the_ledger_keeps_them(tmp_path: Any) -> None:
    taken = replace(busy(0), waits=(*WAITS, JobWaits("other", 1, WaitTimes(1, 1, 1))))
    decision = decide(law(), State(), taken, NOW)
    ledger = Ledger(tmp_path / PLACE)
    made = record_of(law(), taken, decision, decision.plan, ("fake",))
    assert made.waits == WAITS
    ledger.record(made, taken)
    (read,) = ledger.cycles(0, 2**40)
    assert read.waits == WAITS
    assert read.group_reasons == made.group_reasons


def test_the_table_begins_with_those_that_wait_longest() -> None:
    to = io.StringIO()
    waits_table("waits", as_json.waits(WAITS), to)
    _title, _heading, first, second = to.getvalue().splitlines()
    assert " ".join(first.split()) == "cms 8 >= 3 d 11 h 2 d 7 h 40 (sample) 1 min 1 min 1"
    assert " ".join(second.split()) == "cms 1 2 h 1 h 3 ? ? -"


LONG = (
    "longest at least 3 d 11 h, median 2 d 7 h; of those started in the last hour longest 1 "
    "min, median 1 min"
)


def test_the_words_of_a_group() -> None:
    assert [f"{label} {text}" for label, text, _ in wait_rows(WAITS)] == [
        "waits 1-core jobs: longest 2 h, median 1 h",
        f"waits 8-core jobs: {LONG}",
    ]
