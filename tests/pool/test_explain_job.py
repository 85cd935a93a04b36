"""Jobs that each wait for another reason, explained on a real pool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.deployed import jobs, on, publish, snippet
from tests.pool.sharectl_command import Sharectl

ACCESS, OTHER_ACCESS = "ap-1.example.org", "ap-2.example.org"
TARGETED, FRESH, SITE = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
DEPLOYED = snippet(grace_seconds=3600, job_ctl_stale_seconds=300)
SITES_OWN = """\
START = SiteAdmits && (TARGET.JobUniverse == 5)
SiteAdmits = TARGET.IsSiteJob =?= True && (MY.Cpus > 0)
STARTD_ATTRS = $(STARTD_ATTRS) SiteAdmits
"""
SITE_CLAUSE = "TARGET.IsSiteJob is true"
ESCAPE = "\x1b[2J\x1b]0;owned\x07"


class Waiting(NamedTuple):
    """The pool, and its jobs by name."""

    box: Box
    jobs: dict[str, int]
    explained: dict[str, dict[str, Any]]
    """Answers so far: nothing changes while the tests look."""


def job(group: str, cores: int, *lines: str, memory_mib: int = 100) -> str:
    return jobs(group, cores, 1, 900, f"request_memory = {memory_mib}", *lines)


JOBS = {
    "single": job("lhcb", 1),
    "held back": job("alice", 1),
    "wrong size": job("cms", 4, on(TARGETED)),
    "memory": job("cms", 8, memory_mib=20000),
    "own": job("cms", 8, 'requirements = TARGET.NoSuchThing =?= 1 && (TARGET.Machine != "x")'),
    "site": job("cms", 2, on(SITE)),
    "limits": job("lhcb", 1, "concurrency_limits = sw_a", on(FRESH)),
    "held": job("cms", 8, "hold = True"),
    "gpus": job("cms", 8, "request_gpus = 2"),
    "an error": job("cms", 8, "requirements = error", "+RequestDisk = error"),
    "megabyte": job("cms", 8, f'+Junk = "{"x" * 2**20}"', "requirements = size(MY.Junk) < 5"),
    "escapes": job("cms", 8, f'requirements = TARGET.Foo == "{ESCAPE}"', f'+Remark = "{ESCAPE}"'),
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
        publish(box, "wn-001 alice 0 cms 8")
        clusters = {"running": box.submit(job("lhcb", 1, "+IsSiteJob = True"), ACCESS)}
        until(box, f"ClusterId == {clusters['running']} && JobStatus == 2", "a job runs")
        grace(box)
        clusters.update({name: box.submit(described, ACCESS) for name, described in JOBS.items()})
        clusters["gone"] = box.submit(job("cms", 1, "hold = True"), ACCESS)
        box.run(["condor_rm", str(clusters["gone"])], host=ACCESS)
        rejected = f"ClusterId == {clusters['limits']} && LastRejMatchTime > 0"
        until(box, rejected, "the negotiator has seen the jobs")
        yield Waiting(box, clusters, {})


def until(box: Box, constraint: str, event: str) -> None:
    box.wait_until(lambda: box.jobs(constraint), event)


def grace(box: Box) -> None:
    """A multicore job ends on one node; the other has its target."""

    def says(node: str, name: str, value: str, event: str) -> None:
        constraint = f'PartitionableSlot && Machine == "{node}"'
        look = ["condor_status", "-constraint", constraint, "-af", name]
        box.wait_until(lambda: box.run(look).stdout.strip() == value, event)

    multicore = box.submit(job("atlas", 8, on(FRESH)), ACCESS)
    until(box, f"ClusterId == {multicore} && JobStatus == 2", "a multicore job runs")
    says(FRESH, "t1_McRoomValue", "0", "the startd has seen it take its cores")
    box.run(["condor_rm", str(multicore)], host=ACCESS)
    says(FRESH, "MC_GRACE", "true", "its cores are in grace")
    says(TARGETED, "t1_TargetActive", "true", "the target is there")


@pytest.fixture
def sharectl(waiting: Waiting, tmp_path: Path) -> Sharectl:
    return Sharectl(waiting.box, tmp_path)


def explained(sharectl: Sharectl, waiting: Waiting, name: str) -> dict[str, Any]:
    if name not in waiting.explained:
        words = ("explain", "job", f"{ACCESS}#{waiting.jobs[name]}.0")
        waiting.explained[name] = sharectl.json(*words)
    return waiting.explained[name]


@pytest.mark.parametrize(
    ("name", "code", "obstacles"),
    [
        ("single", "not-now", {"target": (1, 1), "grace": (1, 1), "site-start": (1, 1)}),
        ("memory", "could-never", {"memory": (3, 2), "cpus": (1, 0), "site-start": (1, 0)}),
        ("own", "could-never", {"job-requirements": (3, 2)}),
        ("site", "could-never", {"site-start": (1, 1)}),
        ("gpus", "could-never", {"no-resource": (3, 2)}),
    ],
)
def test_each_obstacle_counts_its_nodes(
    sharectl: Sharectl,
    waiting: Waiting,
    name: str,
    code: str,
    obstacles: dict[str, tuple[int, int]],
) -> None:
    """Nodes that an obstacle stands on, and those of them where it stands alone."""
    why = explained(sharectl, waiting, name)
    rows = {row["code"]: (row["nodes"], row["alone"]) for row in why["nodes"]["obstacles"]}
    assert why["code"] == code
    assert rows.items() >= obstacles.items()
    if name in ("single", "memory"):
        assert rows == obstacles


def test_a_job_that_only_policies_keep_out_knows_until_when(
    sharectl: Sharectl, waiting: Waiting
) -> None:
    why = explained(sharectl, waiting, "single")
    nodes = why["nodes"]
    assert (nodes["fitting_nodes"], nodes["fitting_if_empty"]) == (0, 2)
    assert [row["clause"] for row in nodes["never"]] == [SITE_CLAUSE]
    assert nodes["targets"][0]["target"]["until"] > why["now"]
    assert why["now"] < nodes["grace_until"] <= why["now"] + 3600


def test_a_target_keeps_a_job_out_for_a_reason(sharectl: Sharectl, waiting: Waiting) -> None:
    reasons = {
        "single": ("others", "other"),
        "held back": ("cap", "other"),
        "wrong size": ("size", "cms"),
    }
    for name, (kind, group) in reasons.items():
        why = explained(sharectl, waiting, name)
        assert [row["target"]["kind"] for row in why["nodes"]["targets"]] == [kind]
        assert why["group"] == group


def test_a_number_that_two_access_points_have(sharectl: Sharectl, waiting: Waiting) -> None:
    other = waiting.box.submit(job("cms", 1, "hold = True"), OTHER_ACCESS)
    err = sharectl.run("explain", "job", f"{other}.0", expect=65).stderr
    assert ACCESS in err
    assert OTHER_ACCESS in err
    why = sharectl.json("explain", "job", f"{OTHER_ACCESS}#{other}.0")
    assert why["access_point"]["schedd"] == OTHER_ACCESS


@pytest.mark.parametrize("name", ["an error", "megabyte", "escapes"])
def test_hostile_jobs_are_explained_like_any_other(
    sharectl: Sharectl, waiting: Waiting, name: str
) -> None:
    why = explained(sharectl, waiting, name)
    assert why["code"] == "could-never"
    assert "job-requirements" in [row["code"] for row in why["nodes"]["obstacles"]]
    screen = sharectl.run("explain", "job", f"{ACCESS}#{waiting.jobs[name]}.0").stdout
    assert not {"\x1b", "\x07"} & set(screen)
    assert len(screen) < 20_000


ANALYSIS = {
    "refused_by_job": r"(\d+)(?: slots)? are rejected by your job's requirements",
    "refusing_job": r"(\d+)(?: slots)? reject your job because of their own requirements",
    "total": r"Of (\d+) (?:machines|slots)",
}


@pytest.mark.parametrize(
    "name", ["single", "wrong size", "memory", "own", "site", "gpus", "limits"]
)
def test_condor_q_counts_the_same(sharectl: Sharectl, waiting: Waiting, name: str) -> None:
    command = ["condor_q", "-better-analyze", "-mconstraint", 'SlotType =!= "Dynamic"']
    printed = waiting.box.run([*command, f"{waiting.jobs[name]}.0"], host=ACCESS).stdout
    matches = {key: re.search(text, printed) for key, text in ANALYSIS.items()}
    slots = explained(sharectl, waiting, name)["nodes"]["slots"]
    counts = {key: match and int(match[1]) for key, match in matches.items()}
    assert counts == {key: slots[key] for key in ANALYSIS}, printed
