"""What a request counts as: sizes of jobs that wait, in few enough kinds to count."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

LEAST_GRAIN_MIB = 128
"""What HTCondor itself rounds a request for memory up to (MODIFY_REQUEST_EXPR_REQUESTMEMORY)."""


def counted_memory_mib(requested_mib: int) -> int:
    """``requested_mib`` rounded up by at most an eighth, or to a multiple of 128 MiB if that is more; 0 if unknown."""
    if requested_mib <= 0:
        return 0
    grain = max(LEAST_GRAIN_MIB, 1 << max(0, (requested_mib - 1).bit_length() - 4))
    return -(-requested_mib // grain) * grain


def shared_out(jobs: int, sample: Mapping[int, int]) -> dict[int, int]:
    """``jobs`` in the proportions of a sample: value -> jobs, whole numbers that sum to ``jobs``; none are value 0."""
    sizes = sorted(size for size, count in sample.items() if count > 0)
    total = sum(sample[size] for size in sizes)
    if not total:
        return {0: jobs} if jobs > 0 else {}
    bounds = [0, *(jobs * seen // total for seen in accumulate(sample[size] for size in sizes))]
    return {size: high - low for size, low, high in zip(sizes, bounds, bounds[1:]) if high > low}
