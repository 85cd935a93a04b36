"""Jobs that each wait for another reason, as ``sharectl explain job`` tells them on a real pool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.sharectl_command import CHECKOUT, Sharectl

ACCESS, OTHER_ACCESS = "ap-1.example.org", "ap-2.example.org"
TARGETED, FRESH, SITE = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
DEPLOYED = f"""\
include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf
SHARECTL_SOURCE = file:$(LOCAL_DIR)/../../shared/sharectl.txt
STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py
SHARECTL_GRACE_SECONDS = 3600
SHARECTL_JOB_CTL_PERIOD_SECONDS = 3
SHARECTL_JOB_CTL_STALE_SECONDS = 300
"""
SITES_OWN = """\
START = SiteAdmits && (TARGET.JobUniverse == 5)
SiteAdmits = TARGET.IsSiteJob =?= True && (MY.Cpus > 0)
STARTD_ATTRS = $(STARTD_ATTRS) SiteAdmits
"""
SITE_CLAUSE = "TARGET.IsSiteJob is true"
ESCAPE = "\x1b[2J\x1b]0;owned\x07"


@dataclass(frozen=True)
class Waiting:
    """The pool, and its jobs by what keeps them."""

    box: Box
    jobs: dict[str, int]
    explained: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What was told of them: nothing changes while the tests look."""


def job(group: str, cores: int, *lines: str, memory_mib: int = 100, queue: str = "queue") -> str:
    return "\n".join(
        (
            "executable = /bin/sleep",
            "arguments = 900",
            "transfer_executable = False",
            f"request_cpus = {cores}",
            f"request_memory = {memory_mib}",
            "request_disk = 8",
            f"accounting_group = {group}",
            "accounting_group_user = bob",
            *lines,
            f"{queue}\n",
        )
    )


JOBS = {
    "single": job("lhcb", 1),
    "held back": job("alice", 1),
    "wrong size": job("cms", 4, f'requirements = TARGET.Machine == "{TARGETED}"'),
    "memory": job("cms", 8, memory_mib=20000),
    "own": job("cms", 8, 'requirements = TARGET.NoSuchThing =?= 1 && (TARGET.Machine != "x")'),
    "site": job("cms", 2, f'requirements = TARGET.Machine == "{SITE}"'),
    "limits": job(
        "lhcb", 1, "concurrency_limits = sw_a", f'requirements = TARGET.Machine == "{FRESH}"'
    ),
    "alike": job(
        "lhcb", 1, "concurrency_limits = sw_a", f'requirements = TARGET.Machine == "{FRESH}"'
    ),
    "held": job("cms", 8, "hold = True"),
    "gpus": job("cms", 8, "request_gpus = 2"),
    "divides by zero": job("cms", 1, "requirements = 1 / 0 == 1", "rank = 1 / 0"),
    "an error": job("cms", 1, "requirements = error", "+RequestDisk = error"),
    "megabyte": job("cms", 8, f'+Junk = "{"x" * 2**20}"', "requirements = size(MY.Junk) < 5"),
    "escapes": job("cms", 1, f'requirements = TARGET.Foo == "{ESCAPE}"', f'+Remark = "{ESCAPE}"'),
}


@pytest.fixture(scope="module")
def waiting(open_box: OpenBox) -> Iterator[Waiting]:
    """A node with a target, one in grace, one with its own START; a job for each reason to wait."""
    spec = BoxSpec(
        execute_points=(
            ExecutePoint(TARGETED, 8, config=DEPLOYED),
            ExecutePoint(FRESH, 8, config=DEPLOYED),
            ExecutePoint(SITE, 4, config=SITES_OWN),
        ),
        access_points=(ACCESS, OTHER_ACCESS),
        groups={"alice": 0.5, "cms": 0.5},
    )
    with open_box(spec) as box:
        (box.shared_directory / "sharectl.txt").write_text("wn-001 alice 0 cms 8\n")
        jobs = {"running": box.submit(job("lhcb", 1, "+IsSiteJob = True"), ACCESS)}
        box.wait_until(
            lambda: box.jobs(f"ClusterId == {jobs['running']} && JobStatus == 2"), 60, "a job runs"
        )
        grace(box)
        jobs.update({name: box.submit(described, ACCESS) for name, described in JOBS.items()})
        jobs["gone"] = box.submit(job("cms", 1, "hold = True"), ACCESS)
        box.run(["condor_rm", str(jobs["gone"])], host=ACCESS)
        box.wait_until(
            lambda: rejected(box, jobs["limits"]), 60, "the negotiator has seen the jobs"
        )
        box.wait_until(
            lambda: clustered(box, jobs["alike"]), 60, "the schedd knows which jobs are alike"
        )
        yield Waiting(box, jobs)


def grace(box: Box) -> None:
    """A multicore job ends on one node; the other has its target."""
    multicore = box.submit(job("atlas", 8, f'requirements = TARGET.Machine == "{FRESH}"'), ACCESS)
    box.wait_until(
        lambda: box.jobs(f"ClusterId == {multicore} && JobStatus == 2"), 60, "a multicore job runs"
    )
    box.wait_until(
        lambda: says(box, FRESH, "t1_McRoomValue") == "0",
        30,
        "the startd has seen it take its cores",
    )
    box.run(["condor_rm", str(multicore)], host=ACCESS)
    box.wait_until(lambda: says(box, FRESH, "MC_GRACE") == "true", 60, "its cores are in grace")
    box.wait_until(
        lambda: says(box, TARGETED, "t1_TargetActive") == "true", 60, "the target is there"
    )


def says(box: Box, node: str, name: str) -> str:
    constraint = f'PartitionableSlot && Machine == "{node}"'
    return box.run(["condor_status", "-constraint", constraint, "-af", name]).stdout.strip()


def rejected(box: Box, cluster: int) -> bool:
    return bool(box.jobs(f"ClusterId == {cluster} && LastRejMatchTime > 0"))


def clustered(box: Box, cluster: int) -> bool:
    return bool(box.jobs(f"ClusterId == {cluster} && AutoClusterId >= 0"))


@pytest.fixture
def sharectl(waiting: Waiting, tmp_path: Path) -> Sharectl:
    return Sharectl(waiting.box, tmp_path, imported=True)


def explained(sharectl: Sharectl, waiting: Waiting, name: str) -> dict[str, Any]:
    if name not in waiting.explained:
        said = sharectl.json("explain", "job", f"{waiting.jobs[name]}.0", "--schedd", ACCESS)
        waiting.explained[name] = said
    return waiting.explained[name]


def by_code(found: dict[str, Any], where: str = "obstacles") -> dict[str, list[tuple[int, int]]]:
    """Code -> nodes, and nodes by that alone, of each of its clauses."""
    codes: dict[str, list[tuple[int, int]]] = {}
    for row in found["nodes"][where]:
        codes.setdefault(row["code"], []).append((row["nodes"], row["alone"]))
    return codes


def test_a_job_that_only_policies_keep_out(sharectl: Sharectl, waiting: Waiting) -> None:
    found = explained(sharectl, waiting, "single")
    assert (found["code"], found["nodes"]["fitting_nodes"], found["nodes"]["fitting_if_empty"]) == (
        "not-now",
        0,
        2,
    )
    assert by_code(found) == {"target": [(1, 1)], "grace": [(1, 1)], "site-start": [(1, 1)]}
    assert [row["clause"] for row in found["nodes"]["never"]] == [SITE_CLAUSE]
    (target,) = found["nodes"]["targets"]
    assert (target["target"]["kind"], target["target"]["helped"], target["nodes"]) == (
        "others",
        "cms",
        1,
    )
    assert target["target"]["until"] > found["now"]
    ends = found["nodes"]["grace_ends"]
    assert found["now"] < ends["first"] == ends["last"] <= found["now"] + 3600
    screen = sharectl.run("explain", "job", f"{ACCESS}#{waiting.jobs['single']}.0").stdout
    assert len(screen.splitlines()) <= 24
    for words in (
        "sharectl's target",
        "sharectl's grace",
        "the site's START",
        SITE_CLAUSE,
        "priority",
    ):
        assert words in screen


@pytest.mark.parametrize(("name", "kind"), [("held back", "cap"), ("wrong size", "size")])
def test_a_target_says_whom_it_keeps_out(
    sharectl: Sharectl, waiting: Waiting, name: str, kind: str
) -> None:
    found = explained(sharectl, waiting, name)
    assert [row["target"]["kind"] for row in found["nodes"]["targets"]] == [kind]
    assert found["group"]["group"] == ("cms" if kind == "size" else "other")


def test_a_job_that_is_too_large_for_every_node(sharectl: Sharectl, waiting: Waiting) -> None:
    found = explained(sharectl, waiting, "memory")
    assert found["code"] == "could-never"
    assert by_code(found) == {"memory": [(3, 2)], "cpus": [(1, 0)], "site-start": [(1, 0)]}
    (memory,) = (row for row in found["nodes"]["shortages"] if row["resource"] == "Memory")
    assert (memory["requested"], memory["most"], memory["nodes"]) == (20000, 16384, 3)
    assert all(
        "smaller request: none" in row["remedy"]
        for row in found["nodes"]["obstacles"]
        if row["code"] == "memory"
    )


def test_a_job_that_nothing_meets(sharectl: Sharectl, waiting: Waiting) -> None:
    found = explained(sharectl, waiting, "own")
    assert found["code"] == "could-never"
    (own,) = (row for row in found["nodes"]["obstacles"] if row["code"] == "job-requirements")
    assert (own["clause"], own["nodes"], own["alone"]) == ("TARGET.NoSuchThing is 1", 3, 2)


def test_the_sites_own_clause_is_named_through_its_attribute(
    sharectl: Sharectl, waiting: Waiting
) -> None:
    found = explained(sharectl, waiting, "site")
    (site,) = (row for row in found["nodes"]["obstacles"] if row["code"] == "site-start")
    assert (site["clause"], site["nodes"], site["alone"], site["ours"]) == (
        SITE_CLAUSE,
        1,
        1,
        False,
    )
    assert found["code"] == "could-never"


def test_what_the_negotiator_and_its_quotas_say(sharectl: Sharectl, waiting: Waiting) -> None:
    found = explained(sharectl, waiting, "limits")
    assert found["access_point"]["limits"] == "sw_a"
    assert found["access_point"]["rejected"]
    found = explained(sharectl, waiting, "wrong size")
    assert found["group"]["pledge_hs06"] == 300.0
    assert [quota["name"] for quota in found["group"]["quotas"]] == ["cms"]


def test_what_the_negotiator_said_of_a_job_alike(sharectl: Sharectl, waiting: Waiting) -> None:
    assert not rejected(waiting.box, waiting.jobs["alike"])
    found = explained(sharectl, waiting, "alike")["access_point"]
    assert found["rejected"]
    assert found["rejected_at"] > 0
    assert found["rejected_job"] == f"{waiting.jobs['limits']}.0"
    assert explained(sharectl, waiting, "limits")["access_point"]["rejected_job"] is None


def test_gpus_that_no_node_has(sharectl: Sharectl, waiting: Waiting) -> None:
    found = explained(sharectl, waiting, "gpus")
    assert found["code"] == "could-never"
    assert by_code(found)["gpus"] == [(3, 2)]
    assert "job-requirements" not in by_code(found)


def test_jobs_that_do_not_wait(sharectl: Sharectl, waiting: Waiting) -> None:
    held = explained(sharectl, waiting, "held")
    assert (held["code"], held["nodes"]["fitting_nodes"]) == ("held", 2)
    assert "submitted on hold" in held["access_point"]["hold_reason"]
    running = explained(sharectl, waiting, "running")
    assert (running["code"], running["nodes"]) == ("running", None)
    assert running["access_point"]["host"].endswith(SITE)
    assert explained(sharectl, waiting, "gone")["code"] == "removed"
    unknown = sharectl.run("explain", "job", "999999.0", expect=1).stdout
    assert "unknown" in unknown
    for wrong in ("12", "x.y", "1.0;rm", "#1.0"):
        assert "write CLUSTER.PROC" in sharectl.run("explain", "job", wrong, expect=2).stderr
    assert (
        "knows no schedd"
        in sharectl.run("explain", "job", "1.0", "--schedd", "nope", expect=75).stderr
    )


def test_a_number_that_two_access_points_have(sharectl: Sharectl, waiting: Waiting) -> None:
    box = waiting.box
    other = box.submit(job("cms", 1, "hold = True"), OTHER_ACCESS)
    said = sharectl.run("explain", "job", f"{other}.0", expect=65).stderr
    assert ACCESS in said
    assert OTHER_ACCESS in said
    found = sharectl.json("explain", "job", f"{OTHER_ACCESS}#{other}.0")
    assert found["access_point"]["schedd"] == OTHER_ACCESS


@pytest.mark.parametrize("name", ["divides by zero", "an error", "megabyte", "escapes"])
def test_hostile_jobs_are_explained_like_any_other(
    sharectl: Sharectl, waiting: Waiting, name: str
) -> None:
    found = explained(sharectl, waiting, name)
    assert found["code"] == "could-never"
    assert "job-requirements" in by_code(found)
    done = sharectl.run("explain", "job", f"{waiting.jobs[name]}.0", "--schedd", ACCESS, "--all")
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert len(done.stdout) < 20_000


ANALYSIS = {
    "refused_by_job": r"(\d+)(?: slots)? are rejected by your job's requirements",
    "refusing_job": r"(\d+)(?: slots)? reject your job because of their own requirements",
    "total": r"Of (\d+) (?:machines|slots)",
}


@pytest.mark.parametrize(
    "name", ["single", "wrong size", "memory", "own", "site", "gpus", "limits"]
)
def test_condor_q_counts_the_same(sharectl: Sharectl, waiting: Waiting, name: str) -> None:
    command = [
        "condor_q",
        "-better-analyze",
        "-mconstraint",
        'SlotType =!= "Dynamic"',
        f"{waiting.jobs[name]}.0",
    ]
    printed = waiting.box.run(command, host=ACCESS).stdout
    told = {
        what: int(found[1])
        for what, text in ANALYSIS.items()
        for found in [re.search(text, printed)]
        if found
    }
    slots = explained(sharectl, waiting, name)["nodes"]["slots"]
    assert told == {what: slots[what] for what in ANALYSIS}, printed
