"""Requests that have one value alone and another on a slot, on nodes of 8 and of 16 cores.

Computing elements and pilots write them: HTCondor evaluates a request with the slot as TARGET.
"""

from __future__ import annotations

from typing import Any

import pytest

from poolbox import BoxSpec, ExecutePoint
from tests.pool.deployed import (
    SHORT_SECONDS,
    jobs,
    list_idle_jobs_again,
    partitionable,
    publish,
    run,
    snippet,
)
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS, SMALL, LARGE = "ap-1.example.org", "wn-001.example.org", "wn-002.example.org"
CONFIG = """\
MACHINE_RESOURCE_Tokens = 6
SiteCores = 2
STARTD_ATTRS = $(STARTD_ATTRS) SiteCores
"""
SPEC = BoxSpec(
    tuple(
        ExecutePoint(name, cores, power_hs06=10.0 * cores, config=CONFIG + snippet())
        for name, cores in ((SMALL, 8), (LARGE, 16))
    ),
    access_points=(ACCESS,),
)
WHOLE = {"8": 2, "16": 2}
ROUTED = "WantWholeNode =?= True ? (!isUndefined(TotalCpus) ? TotalCpus : JobCpus) : OriginalCpus"
TOKENS = "My.RequestTokens = TARGET.TotalSlotTokens ?: 99"
CASES: dict[str, tuple[str, dict[str, int], tuple[str, ...]]] = {
    "alone1": ("isUndefined(TotalCpus) ? 1 : TotalCpus", WHOLE, ()),
    "elvis": ("TARGET.TotalCpus ?: JobCpus", WHOLE, ("My.JobCpus = 4",)),
    "scoped": ("ifThenElse(isUndefined(TARGET.TotalSlotCpus), 1, TARGET.TotalSlotCpus)", WHOLE, ()),
    "routed": (ROUTED, WHOLE, ("My.WantWholeNode = True", "My.JobCpus = 4", "My.OriginalCpus = 3")),
    "small": (ROUTED, {"3": 4}, ("My.WantWholeNode = False", "My.OriginalCpus = 3")),
    "capped": ("min({TotalCpus, 8})", {"8": 4}, ()),
    "ranging": ("max({4, min({8, TARGET.Cpus})})", {"8": 4}, ()),
    "partly": ("TARGET.TotalCpus * 0.45", {"4": 2, "8": 2}, ()),
    "sites": ("isUndefined(TARGET.SiteCores) ? 1 : TARGET.SiteCores", {"2": 4}, ()),
    "absent": ("TARGET.Nowhere ?: 5", {"5": 4}, ()),
    "tokens": (
        "TARGET.TotalCpus ?: 1",
        WHOLE,
        ("My.RequestTokens = TARGET.TotalSlotTokens ?: 99",),
    ),
    "bound": ("TARGET.TotalCpus ?: 1", {"16": 4}, (f'requirements = TARGET.Machine == "{LARGE}"',)),
}
"""Group -> cores that its four jobs request, their jobs by size, further lines."""
GROUPS = {name: {"pledge_hs06": 10.0} for name in (*CASES, "atlas", "cms")}


def counted(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {name: used["pending_by_cores"] for name, used in snapshot["groups"].items()}


def test_a_request_counts_as_it_comes_to_on_the_slots(sharectl: Sharectl) -> None:
    box = sharectl.box
    box.submit(jobs("atlas", 1, 24, 600), ACCESS)
    run(box, 24)
    clusters = [
        box.submit(jobs(group, cores, 4, 600, *lines), ACCESS)
        for group, (cores, _, lines) in CASES.items()
    ]
    total = 4 * len(CASES)
    idle = "AutoClusterId >= 0 && JobStatus == 1"
    box.wait_until(lambda: len(box.jobs(idle)) == total, "a negotiator has seen the jobs")
    snapshot = sharectl.json("snapshot", groups=GROUPS)
    sizes = counted(snapshot)
    assert {group: sizes[group] for group in CASES} == {g: case[1] for g, case in CASES.items()}
    assert snapshot["unplaceable"] == []
    assert {row["cores"] for row in snapshot["waits"] if row["group"] == "alone1"} <= {8, 16}
    closed = {
        node["name"]: {row["sizes"][0] for row in node["closed"] if row["group"] == "alone1"}
        for node in snapshot["nodes"]
    }
    assert closed == {"wn-001": {16}, "wn-002": {8}}
    why = sharectl.run("explain", "job", f"{clusters[0]}.0", groups=GROUPS).stdout
    assert f"RequestCpus = 8 to 16 on the nodes ({CASES['alone1'][0]})" in " ".join(why.split())
    box.remove_jobs()


def provisioned(sharectl: Sharectl, cluster: int) -> dict[str, int]:
    """Host -> cores of a running job of the cluster."""
    shown = ("RemoteHost", "CpusProvisioned")
    running = sharectl.box.jobs(f"ClusterId == {cluster} && JobStatus == 2", shown)
    return {
        job["RemoteHost"].partition("@")[2]: job["CpusProvisioned"]
        for job in running
        if len(job) == len(shown)
    }


def test_the_block_has_the_size_that_the_job_has_there(sharectl: Sharectl) -> None:
    """Whole nodes are asked for while single-core jobs hold all cores: the pilots start in them."""
    box = sharectl.box
    box.submit(jobs("atlas", 1, 1200, SHORT_SECONDS), ACCESS)  # for ten minutes
    run(box, 24)
    pilot = ("My.JobMemory = 100", "request_memory = TARGET.TotalMemory * 95 / 100 ?: JobMemory")
    cluster = box.submit(jobs("cms", CASES["alone1"][0], 4, 1200, *pilot), ACCESS)
    sizes: dict[str, set[int]] = {}
    claimed: dict[str, int] = {}

    def both_run() -> bool:
        groups = {"cms": {"pledge_hs06": 1e6}, "atlas": {"pledge_hs06": 1e-3}}
        published = [{"file": str(box.shared_directory / "sharectl.txt")}]
        cycle = sharectl.json("cycle", groups=groups, publish=published)
        for target in cycle["plan"]["targets"]:
            assert target["helped"] == "cms"
            sizes.setdefault(target["node"], set()).add(target["request_cores"])
        claimed.update(provisioned(sharectl, cluster))
        list_idle_jobs_again(box, ACCESS)
        return len(claimed) == 2

    box.wait_until(both_run, "a pilot runs on each node")
    assert claimed == {SMALL: 8, LARGE: 16}
    assert sizes == {"wn-001": {8}, "wn-002": {16}}
    box.remove_jobs()
    if "Version: 23." in box.run(["condor_version"]).stdout:
        return  # it cuts 3.6 cores to 3, which are too few for the job
    # HTCondor rounds a request up, and so does START: 3.6 and 7.2 cores.
    publish(box, "wn-001 atlas 0 partly 4", "wn-002 atlas 0 partly 8")

    def targets() -> list[object]:
        return [partitionable(box, node).get("t1_Targetcores") for node in (SMALL, LARGE)]

    box.wait_until(lambda: targets() == [[0, 4], [0, 8]], "the nodes have their targets")
    cluster = box.submit(jobs("partly", CASES["partly"][0], 4, 1200), ACCESS)
    box.wait_until(lambda: len(provisioned(sharectl, cluster)) == 2, "a job runs on each node")
    assert provisioned(sharectl, cluster) == {SMALL: 4, LARGE: 8}
    publish(box)
    box.remove_jobs()


def test_jobs_that_are_not_materialised_count_if_they_could_be_soon(sharectl: Sharectl) -> None:
    """More jobs come as soon as others start, by max_idle, or not before others end."""
    box = sharectl.box
    box.submit(jobs("atlas", 1, 24, 600), ACCESS)
    run(box, 24)
    whole = CASES["alone1"][0]
    box.submit(jobs("cms", whole, 10, 600, "max_idle = 2"), ACCESS)
    box.submit(jobs("elvis", 4, 10, 600, "max_materialize = 2"), ACCESS)
    box.wait_until(lambda: len(box.jobs("JobStatus == 1")) == 4, "the first jobs are there")
    snapshot = sharectl.json("snapshot", groups=GROUPS)
    sizes = counted(snapshot)
    assert (sizes["cms"], sizes["elvis"]) == ({"8": 5, "16": 5}, {"4": 2})
    box.remove_jobs()
