"""NEGOTIATOR_NUM_THREADS > 1 beside a policy that takes less than a job requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool import consumption_pools as pools
from tests.pool.conftest import OpenBox
from tests.pool.consumption_pools import WHOLE, Jobs, rendered_example

pytestmark = pytest.mark.semantics

CENTRAL, NODE = "cm-1.example.org", "shared"
CORES, MEMORY_MIB = 8, 8000
# Four claims of 2000 MiB. No two jobs are alike: what is alike is matched from a list, without
# threads.
JOBS = [Jobs(NODE, 1, memory_mib=5000 + number) for number in range(4)]


def threads(number: int) -> str:
    return f"NEGOTIATOR_NUM_THREADS = {number}\n"


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=(
            ExecutePoint(
                f"{NODE}.example.org", CORES, MEMORY_MIB, None, rendered_example("fixed-claims")
            ),
        ),
        access_points=(WHOLE,),
        access_config=pools.NO_LEFTOVERS,
    )
    with open_box(spec) as running:
        running.write_config(CENTRAL, threads(2))
        running.reconfig(CENTRAL)
        yield running


def test_with_threads_jobs_are_asked_for_what_they_request_and_not_for_what_they_take(
    box: Box,
) -> None:
    """Four jobs fit by the policy, two by what they request; without threads all run."""
    with pools.submitted_together(box, {WHOLE: JOBS}):
        pass
    box.wait_until(lambda: pools.running(box) == 2, 60, "two jobs run")
    pools.later_cycles(box, 2)
    assert pools.running(box) == 2
    box.write_config(CENTRAL, threads(1))
    box.reconfig(CENTRAL)
    box.wait_until(lambda: pools.running(box) == 4, 60, "all four run")
