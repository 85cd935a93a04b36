from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharectl.condor.schedds import LEAST_GRAIN_MIB, counted_memory_mib, shared_out

MIB = st.integers(1, 2**50)
SAMPLES = st.dictionaries(MIB, st.integers(0, 10_000), max_size=30)


@given(MIB)
def test_memory_is_rounded_up_a_little(requested: int) -> None:
    """A request counts as at least itself, and at most an eighth or 128 MiB more."""
    counted = counted_memory_mib(requested)
    assert requested <= counted <= requested + max(LEAST_GRAIN_MIB, requested / 8)


@given(MIB)
def test_what_is_rounded_stays(requested: int) -> None:
    """A request that has been rounded counts as itself."""
    counted = counted_memory_mib(requested)
    assert counted_memory_mib(counted) == counted


@given(MIB, MIB)
def test_larger_requests_never_count_as_less(one: int, other: int) -> None:
    """Rounding keeps the order of requests."""
    assert counted_memory_mib(min(one, other)) <= counted_memory_mib(max(one, other))


def test_there_are_few_kinds_of_memory() -> None:
    """All requests up to a terabyte are fewer than 150 kinds."""
    assert len({counted_memory_mib(mib) for mib in range(1, 2**20, 61)}) < 150


@given(st.integers(0, 10**9), SAMPLES)
def test_no_job_is_lost_by_sharing_out(jobs: int, sample: dict[int, int]) -> None:
    """What is shared out sums to the jobs, each kind within one job of its part of the sample."""
    shared = shared_out(jobs, sample)
    assert sum(shared.values()) == jobs
    total = sum(sample.values())
    for kind, count in sample.items() if total else ():
        assert abs(shared.get(kind, 0) - jobs * count / total) <= 1
