"""Jobs that a computing element routes into the pool: their groups, requests and power.

The first access point stands for the CE: a job router with HTCondor-CE's own rules on requests and
groups. The second is the batch system's, with the access point's snippet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.waiting import wait_for
from tests.pool.deployed import CHECKOUT, configure

pytestmark = pytest.mark.semantics
ELEMENT, BATCH = "ap-1.example.org", "ap-2.example.org"
SPEC = BoxSpec(
    (ExecutePoint("wn-001.example.org", 8, power_hs06=80.0),),
    # A computing element's own jobs are in no negotiator's sight.
    central_config=f'NEGOTIATOR_SUBMITTER_CONSTRAINT = ScheddName =!= "{ELEMENT}"\n',
)
ROUTER = """\
DAEMON_LIST = $(DAEMON_LIST) JOB_ROUTER
JOB_ROUTER_NAME = htcondor-ce
JOB_ROUTER_POLLING_PERIOD = 1
JOB_ROUTER_SOURCE_JOB_CONSTRAINT = JobUniverse =?= 5
JOB_ROUTER_SCHEDD2_NAME = ap-2.example.org
JOB_ROUTER_SCHEDD2_POOL = $(COLLECTOR_HOST)
JOB_ROUTER_SCHEDD2_SPOOL = $(LOCAL_DIR)/../ap-2.example.org/spool
JOB_ROUTER_ROUTE_NAMES = Batch
JOB_ROUTER_ROUTE_Batch @=end
  TargetUniverse = 5
@end
JOB_ROUTER_PRE_ROUTE_TRANSFORM_NAMES = Group
JOB_ROUTER_POST_ROUTE_TRANSFORM_NAMES = Size
CLASSAD_USER_MAPFILE_Group = $(LOCAL_DIR)/../../shared/element.map
JOB_ROUTER_CLASSAD_USER_MAP_NAMES = Group
# A user whom the map lacks keeps the group that his job names.
JOB_ROUTER_TRANSFORM_Group @=end
  EVALMACRO groups userMap("Group", Owner) ?: ""
  if defined groups
    EVALSET AcctGroup userMap("Group", Owner, AcctGroup)
    EVALSET AccountingGroup join(".", AcctGroup, Owner)
  endif
@end
JOB_ROUTER_TRANSFORM_Size @=end
  EVALSET RequestCpus xcount ?: 1
  EVALSET RequestMemory maxMemory ?: 2000
@end
"""
SNIPPET = f"""\
QUEUE_SUPER_USER_MAY_IMPERSONATE = .*
include : {CHECKOUT}/config.d/60-sharectl-access-point.conf
"""
WITH_MAP = "SHARECTL_GROUP_MAP = $(LOCAL_DIR)/../../shared/batch.map\n" + SNIPPET
ATTRIBUTES = (
    *("JobStatus", "AcctGroup", "AccountingGroup", "RoutedBy", "RequestCpus", "RequestMemory"),
    *("MATCH_t1_wn_hs06", "MATCH_TotalSlotCpus"),
)


def prepare(box: Box) -> None:
    (box.shared_directory / "batch.map").write_text("* pool cms,atlas.production\n")
    configure(box, BATCH, SNIPPET)
    map_element(box, "* pool cms,cms.production\n")


@pytest.fixture
def box(pool: Box) -> Iterator[Box]:
    yield pool
    # First those of the element: a router sends a job that is lost again.
    pool.run(["condor_rm", "-all"], host=ELEMENT, check=False)
    pool.wait_until(lambda: not pool.jobs(access_point=ELEMENT), "its queue is empty")
    pool.remove_jobs()


def map_element(box: Box, text: str) -> None:
    """Let the element give users the groups of a map."""
    (box.shared_directory / "element.map").write_text(text)
    configure(box, ELEMENT, ROUTER)


def description(*lines: str) -> str:
    program = ("executable = /bin/sleep", "arguments = 600", "transfer_executable = False")
    return "\n".join((*lines, *program, "queue", ""))


def routed(box: Box, *lines: str) -> dict[str, Any]:
    """The batch system's job, once it is there, of a job of the element with these lines."""
    where = f'RoutedFromJobId == "{box.submit(description(*lines), ELEMENT)}.0"'
    return box.wait_until(lambda: box.jobs(where, ATTRIBUTES, BATCH), "the job is routed")[0]


def running(box: Box, cores: int) -> dict[str, Any]:
    where = f"JobStatus == 2 && RequestCpus == {cores}"
    return box.wait_until(lambda: box.jobs(where, ATTRIBUTES, BATCH), "the routed job runs")[0]


def test_a_routed_job_has_the_groups_of_the_map_and_the_power_of_its_node(box: Box) -> None:
    job = routed(box, "+xcount = 4", "+maxMemory = 1500", '+AcctGroup = "atlas"')
    assert (job["AcctGroup"], job["AccountingGroup"]) == ("cms", "cms.pool")
    assert (job["RoutedBy"], job["RequestCpus"], job["RequestMemory"]) == ("htcondor-ce", 4, 1500)
    assert running(box, 4)["MATCH_t1_wn_hs06"] == 80
    assert routed(box, '+AcctGroup = "cms.production"')["AcctGroup"] == "cms.production"


def test_a_user_whom_the_element_does_not_map_has_what_the_batch_system_maps(box: Box) -> None:
    map_element(box, "* nobody cms\n")
    try:
        wait_for(
            lambda: routed(box, '+AcctGroup = "lhcb"').get("AcctGroup") == "lhcb",
            "the element has read its map, and the group is what the job says",
        )
        configure(box, BATCH, WITH_MAP)
        wait_for(lambda: routed(box)["AcctGroup"] == "cms", "the batch system has read its map")
        allowed = routed(box, '+AcctGroup = "atlas.production"')
        assert allowed["AccountingGroup"] == "atlas.production.pool"
        refused = box.submit(description('+AcctGroup = "lhcb"'), ELEMENT)
        log = "Permission denied setting accounting_group to lhcb"
        box.wait_until(lambda: log in box.log_text(ELEMENT, "JOB_ROUTER"), "it is refused")
        assert not box.jobs(f'RoutedFromJobId == "{refused}.0"', access_point=BATCH)
    finally:
        configure(box, BATCH, SNIPPET)
        map_element(box, "* pool cms,cms.production\n")
