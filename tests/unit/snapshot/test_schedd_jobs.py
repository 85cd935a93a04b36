"""Pending jobs of a schedd by kind, and samples of their waiting times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharectl.shares.demand import JobWait, shared_out
from sharectl.snapshot import schedd_jobs
from sharectl.snapshot.schedd_jobs import JobKind
from tests.fakes import NOW


def job(cpus: str, memory: str = "1000", **attributes: Any) -> classad2.ClassAd:
    ad = classad2.ClassAd(
        {"AccountingGroup": "cms.bob", "JobUniverse": 5, "JobCount": 1, **attributes}
    )
    ad["RequestCpus"], ad["RequestMemory"] = classad2.ExprTree(cpus), classad2.ExprTree(memory)
    return ad


@pytest.mark.parametrize(
    ("cpus", "counted"),
    [
        *[("16", 16), ("100", 64), ("2 * MY.Half", 4), ("3.2", 4), ("4.0", 4)],
        *[("TARGET.TotalSlotCpus", 1), ("TotalCpus ?: Half", 2)],
        *[("1 / 0", 1), ('"many"', 1), ("-3", 1), ("real(1) / 0.0", 1)],
    ],
)
def test_cores_that_a_job_asks_for(cpus: str, counted: int) -> None:
    ((_, cores, _, _),) = schedd_jobs.counted_kinds([job(cpus, Half=2)], 64)
    assert cores == counted


@pytest.mark.parametrize(
    ("memory", "counted"),
    [*[("1000", 1024), ("3 * 1000", 3072), ("undefined", 0), ('"8G"', 0), ("-1", 0)], ("1e30", 0)],
)
def test_memory_that_a_job_asks_for(memory: str, counted: int) -> None:
    ((_, _, memory_mib, _),) = schedd_jobs.counted_kinds([job("1", memory)], 8)
    assert memory_mib == counted


MIB = st.integers(1, 2**50)


@given(st.integers(0, 10**9), st.dictionaries(MIB, st.integers(0, 10_000), max_size=30))
def test_no_job_is_lost_by_sharing_out(jobs: int, sample: dict[int, int]) -> None:
    """What is shared out sums to the jobs, each kind within one job of its part of the sample."""
    shared, total = shared_out(jobs, sample), sum(sample.values())
    assert sum(shared.values()) == jobs
    for kind, count in sample.items() if total else ():
        assert abs(shared.get(kind, 0) - jobs * count / total) <= 1


def test_beyond_so_many_kinds_memory_is_that_of_a_sample() -> None:
    counted = {JobKind("cms", 1, 0): 101, JobKind("atlas", 8, 0): 3, JobKind("lhcb", 1, 0): 5}
    sample = {JobKind("cms", 1, 1024): 2, JobKind("cms", 1, 2048): 2, JobKind("atlas", 8, 16384): 1}
    assert schedd_jobs.with_memory(counted, sample) == {
        JobKind("cms", 1, 1024): 50,
        JobKind("cms", 1, 2048): 51,
        JobKind("atlas", 8, 16384): 3,
        JobKind("lhcb", 1, 0): 5,
    }


@given(st.dictionaries(st.integers(1, 64), st.integers(1, 10**6), min_size=1))
def test_a_sample_is_bounded_and_has_every_job_of_a_short_queue(pending: dict[int, int]) -> None:
    """At least a job of one core is asked for, and at least a larger one."""
    steps = schedd_jobs.steps_of({JobKind("cms", size, 0): n for size, n in pending.items()})
    if sum(pending.values()) <= schedd_jobs.ALL_TELL_JOBS:
        assert steps == (1, 1)
        return
    single = pending.get(1, 0)
    for jobs, step in zip((single, sum(pending.values()) - single), steps):
        assert jobs // step <= schedd_jobs.SAMPLE_JOBS
        assert 1 <= step <= max(1, jobs)


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


def sampled(schedd: FakeSchedd, pending: dict[int, int]) -> list[JobWait]:
    counted: dict[JobKind, int] = {JobKind("cms", size, 0): jobs for size, jobs in pending.items()}
    return [*schedd_jobs.sampled_waits(schedd, counted, 64)]


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


def test_jobs_of_one_core_hide_no_larger_ones_in_a_long_queue() -> None:
    schedd = FakeSchedd([ad(1), ad(1, 1)])
    jobs = sampled(schedd, {1: 100_000, 8: 30})
    # 30 jobs of eight cores are all asked for, of one core one in 667.
    assert [(sample.cores, sample.jobs) for sample in jobs] == [(8, 1), (1, 667)]
    assert "ifThenElse(RequestCpus =?= 1, 667, 1)" in schedd.constraints[0]


@pytest.mark.parametrize("ads", [None, [ad(1)] * schedd_jobs.MOST_SAMPLED])
def test_waits_that_are_unknown_are_not_zero(ads: Optional[list[dict[str, object]]]) -> None:
    assert sampled(FakeSchedd(ads), {8: 1}) == []
