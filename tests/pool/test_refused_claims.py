"""What becomes of a job whose claim a node refuses: docs/method.md counts on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox

pytestmark = pytest.mark.semantics

ACCESS = "ap-1.example.org"
# The negotiator puts this attribute into the job's ad for as long as it matches: the node never
# sees it.
ADMITS_IN_THE_NEGOTIATOR_ONLY = "START = TARGET.SubmitterUserPrio isnt undefined\n"
JOB = (
    "executable = /bin/sleep\ntransfer_executable = False\narguments = 600\nrequest_memory = "
    "8\nrequest_disk = 8\nqueue\n"
)


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    node = ExecutePoint("wn-001.example.org", 4, config=ADMITS_IN_THE_NEGOTIATOR_ONLY)
    with open_box(BoxSpec(execute_points=(node,), access_points=(ACCESS,))) as running:
        yield running
        running.remove_jobs()


def test_a_job_whose_claim_was_refused_is_offered_again_in_the_next_cycles(box: Box) -> None:
    box.submit(JOB)
    box.wait_until(lambda: refused(box) >= 3, 90, "the node refuses the job again and again")


def refused(box: Box) -> int:
    return box.log_text(ACCESS, "SCHEDD").count("Request was NOT accepted for claim")
