"""Grace as the negotiator sees it, which folds constants of a slot's ad before it matches jobs."""

from __future__ import annotations

import time

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, partitionable, publish, refusals, snippet

NODE, CORES = "wn-001.example.org", 16
SPEC = BoxSpec(
    (ExecutePoint(NODE, cores=CORES),),
    access_points=("ap-1.example.org",),
    execute_config=snippet(grace_seconds=3600),
)
CYCLES = 5
"""Negotiation cycles without a match."""


def cycles(box: Box) -> int:
    """Negotiation cycles that ended so far."""
    log = box.log_text(box.spec.central_point, "NEGOTIATOR")
    return log.count("Finished Negotiation Cycle")


@pytest.mark.semantics
def test_no_job_is_matched_in_grace_while_no_plan_knows_whether_jobs_wait(box: Box) -> None:
    now = int(time.time())
    until = now + 3000
    head = (f"# sequence: {now}", f"# generated: {now}", f"# valid_until: {until}")
    publish(box, "# sharectl: 1", *head, "# groups: alice,cms", "# targets: 0")

    def knows() -> bool:
        return bool(partitionable(box, NODE).get("t1_MulticorePendingUntil") == until)

    box.wait_until(knows, "the node has read it")
    box.submit(jobs("alice", 1, CORES, 15))
    box.wait_until(lambda: partitionable(box, NODE)["Cpus"] == 0, "its cores are taken")
    box.submit(jobs("lhcb", 1, 3, 600))
    box.wait_until(lambda: partitionable(box, NODE)["Cpus"] == CORES, "its cores are free")
    # A cycle that began when the last core came free may have the slot's ad of before.
    begun = cycles(box)
    box.wait_until(lambda: cycles(box) > begun, "that cycle is over")
    before, refused = cycles(box), refusals(box, NODE)
    assert partitionable(box, NODE)["t1_GraceAdmits"] is not True
    box.wait_until(lambda: cycles(box) >= before + CYCLES, "the negotiator has come again")
    assert refusals(box, NODE) == refused
    assert not box.jobs("JobStatus == 2"), "grace keeps single-core jobs out"
