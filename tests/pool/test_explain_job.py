"""Jobs that each wait for another reason, explained on a real pool as HTCondor explains them.

Each obstacle by itself is in unit/explain/test_explain_job.py; causes of the negotiator are in
field/test_questions.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import jobs, on, publish, run, shown, snippet
from tests.pool.sharectl_command import Sharectl

ACCESS, OTHER_ACCESS = "ap-1.example.org", "ap-2.example.org"
TARGETED, FRESH, SITE = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
DEPLOYED = snippet(grace_seconds=3600, job_ctl_stale_seconds=300)
SITES_OWN = """\
START = SiteAdmits && (TARGET.JobUniverse == 5)
SiteAdmits = TARGET.IsSiteJob =?= True && (MY.Cpus > 0)
STARTD_ATTRS = $(STARTD_ATTRS) SiteAdmits
"""
ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def job(group: str, cores: int, *lines: str, memory_mib: int = 100) -> str:
    return jobs(group, cores, 1, 900, f"request_memory = {memory_mib}", *lines)


JOBS = {
    "single": job("lhcb", 1),
    "wrong size": job("cms", 4, on(TARGETED)),
    "memory": job("cms", 8, memory_mib=20000),
    "own": job("cms", 8, 'requirements = TARGET.NoSuchThing =?= 1 && (TARGET.Machine != "x")'),
    "site": job("cms", 2, on(SITE)),
    "limits": job("lhcb", 1, "concurrency_limits = sw_a", on(FRESH)),
    "gpus": job("cms", 8, "request_gpus = 2"),
    "megabyte": job("cms", 8, f'+Junk = "{"x" * 2**20}"', "requirements = size(MY.Junk) < 5"),
    "escapes": job("cms", 8, f'requirements = TARGET.Foo == "{ESCAPE}"', f'+Remark = "{ESCAPE}"'),
}
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(TARGETED, 8, config=DEPLOYED),
        ExecutePoint(FRESH, 8, config=DEPLOYED),
        ExecutePoint(SITE, 4, config=SITES_OWN),
    ),
    access_points=(ACCESS, OTHER_ACCESS),
    groups={"alice": 0.5, "cms": 0.5},
)
"""A node for a target, one for a grace, and one with its own START."""


def becomes(box: Box, node: str, name: str, value: str) -> None:
    where = f'PartitionableSlot && Machine == "{node}"'
    box.wait_until(lambda: shown(box, "-constraint", where, "-af", name) == [[value]], name)


@pytest.fixture(scope="module")
def waiting(pool: Box) -> dict[str, int]:
    """Cluster of each job, once the negotiator has seen all."""
    publish(pool, "wn-001 alice 0 cms 8")
    pool.submit(job("lhcb", 1, "+IsSiteJob = True"), ACCESS)
    run(pool, 1)
    multicore = pool.submit(job("atlas", 8, on(FRESH)), ACCESS)
    run(pool, 2)
    becomes(pool, FRESH, "t1_McRoomValue", "0")
    pool.run(["condor_rm", str(multicore)], host=ACCESS)
    becomes(pool, FRESH, "MC_GRACE", "true")
    becomes(pool, TARGETED, "t1_TargetActive", "true")
    clusters = {name: pool.submit(described, ACCESS) for name, described in JOBS.items()}
    rejected = f"ClusterId == {clusters['limits']} && LastRejMatchTime > 0"
    pool.wait_until(lambda: pool.jobs(rejected), "the negotiator has seen the jobs")
    return clusters


@pytest.fixture
def sharectl(pool: Box, tmp_path: Path) -> Sharectl:
    return Sharectl(pool, tmp_path)


def explained(sharectl: Sharectl, cluster: int) -> dict[str, Any]:
    return sharectl.json("explain", "job", f"{ACCESS}#{cluster}.0")


@pytest.mark.usefixtures("waiting")
def test_a_number_that_two_access_points_have(sharectl: Sharectl) -> None:
    other = sharectl.box.submit(job("cms", 1, "hold = True"), OTHER_ACCESS)
    err = sharectl.run("explain", "job", f"{other}.0", expect=65).stderr
    assert ACCESS in err
    assert OTHER_ACCESS in err
    why = sharectl.json("explain", "job", f"{OTHER_ACCESS}#{other}.0")
    assert why["access_point"]["schedd"] == OTHER_ACCESS


@pytest.mark.parametrize("name", ["megabyte", "escapes"])
def test_hostile_jobs_are_explained_like_any_other(
    sharectl: Sharectl, waiting: dict[str, int], name: str
) -> None:
    why = explained(sharectl, waiting[name])
    assert why["code"] == "could-never"
    assert "job-requirements" in [row["code"] for row in why["nodes"]["obstacles"]]
    screen = sharectl.run("explain", "job", f"{ACCESS}#{waiting[name]}.0").stdout
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
def test_condor_q_counts_the_same(sharectl: Sharectl, waiting: dict[str, int], name: str) -> None:
    command = ["condor_q", "-better-analyze", "-mconstraint", 'SlotType =!= "Dynamic"']
    printed = sharectl.box.run([*command, f"{waiting[name]}.0"], host=ACCESS).stdout
    matches = {key: re.search(text, printed) for key, text in ANALYSIS.items()}
    slots = explained(sharectl, waiting[name])["nodes"]["slots"]
    counts = {key: match and int(match[1]) for key, match in matches.items()}
    assert counts == {key: slots[key] for key in ANALYSIS}, printed
