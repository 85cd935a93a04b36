"""A pool to look at: its nodes, its jobs, and what a look finds."""

from __future__ import annotations

from typing import Any

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, on
from tests.pool.sharectl_command import CHECKOUT, Sharectl

FIRST, SECOND = "ap-1.example.org", "ap-2.example.org"
STRONG, MIDDLE, SILENT = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
SNIPPET = (CHECKOUT / "config.d" / "60-sharectl-access-point.conf").read_text()
# The site maps users to groups already, so the snippet leaves that alone: here jobs choose, and
# lie.
POWER_IN_JOBS = f"CLASSAD_USER_MAPFILE_AssignAccountingGroup = /dev/null\n{SNIPPET}"
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(STRONG, cores=12, power_hs06=240.0),
        ExecutePoint(MIDDLE, cores=8, power_hs06=88.0),
        ExecutePoint(SILENT, cores=8, power_hs06=None),
    ),
    access_points=(FIRST, SECOND),
    access_config=POWER_IN_JOBS,
)
SEED_COMMAND = r"""condor_q -global -all -cons 'Member(JobStatus,{1,2}) && (JobUniverse != 7)' \
-af JobStatus 'split((RemoteHost ?: "u@PEND.t1"),"@.")[1]' \
'split(AcctGroup,".")[0]' 'time() - (JobStartDate ?: time())' \
'CpusProvisioned ?: min({RequestCpus ?: 1,8})' \
'((int(MATCH_t1_wn_hs06 ?: 400) + 0.0)/(MATCH_TotalSlotCpus ?: 40))'
"""
MODES = ("jobs", "counted")


at = on


def described(group: str, cores: int, count: int, seconds: int, *lines: str) -> str:
    user = ("accounting_group_user = alice",) if group else ()
    more = ("request_memory = 1", f"+Bench = {seconds}", *user, *lines)
    return jobs(group, cores, count, seconds, *more)


def still(box: Box, running: int) -> None:
    """Wait until so many jobs run, and the collector knows each of them."""

    def seen() -> bool:
        slots = box.run(
            ["condor_status", "-constraint", "PartitionableSlot", "-af", "size(ChildCpus)"]
        ).stdout.split()
        wanted = len(box.jobs("JobStatus == 2 && JobUniverse == 5"))
        return wanted == running == sum(int(count) for count in slots)

    box.wait_until(seen, 60, f"{running} jobs run and the collector knows them")


def table(sharectl: Sharectl, mode: str, **configuration: Any) -> dict[str, Any]:
    """A look but for its time: usage by group, others, nodes, and pending jobs."""
    seen = sharectl.json("snapshot", pool={"mode": mode}, **configuration)
    assert seen["complete"]
    return {name: seen[name] for name in ("groups", "others", "nodes", "pending")}
