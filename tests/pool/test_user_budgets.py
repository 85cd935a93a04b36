"""A stranger fills the trials of an access point; jobs of another user are judged as before."""

from __future__ import annotations

from collections import Counter

import pytest

from poolbox import BoxSpec, ExecutePoint
from sharectl.snapshot.job_shapes import MOST_ROWS
from tests.pool.deployed import jobs, still
from tests.pool.sharectl_command import Sharectl, with_bindings

ACCESS = "ap-1.example.org"
SPEC = BoxSpec(execute_points=(ExecutePoint("wn-001.example.org", 8, power_hs06=80.0),),
               access_points=(ACCESS,))  # fmt: skip
CLIENT = """
import json, sys
import htcondor2
location = htcondor2.Collector().locate(htcondor2.DaemonType.Schedd, "ap-1.example.org")
for description, count in json.loads(sys.argv[1])["submit"]:
    htcondor2.Schedd(location).submit(htcondor2.Submit(description), count=count)
"""
HOSTILE = {
    "executable": "/bin/true",
    "transfer_executable": "False",
    "accounting_group": "cms",
    "accounting_group_user": "bob",
    "request_cpus": "8",
    "request_memory": "8",
    "request_disk": "8",
}
MANY = {**HOSTILE, "requirements": "TARGET.HasFoo =?= $(Process)"}
SLOW = {
    **HOSTILE,
    "requirements": 'size(regexps("(a*)*b", A12, "x")) != $(Process) && TARGET.HasFoo',
    "My.A0": '"aaaaaaaaaaaaaaaa"',
    **{f"My.A{n}": f"strcat(A{n - 1}, A{n - 1})" for n in range(1, 13)},
}
SHAPES, SLOW_SHAPES = MOST_ROWS + 100, 30


@pytest.mark.semantics
def test_a_stranger_with_thousands_of_shapes_changes_no_verdict_on_another(
    sharectl: Sharectl,
) -> None:
    box = sharectl.box
    box.submit(jobs("atlas", 8, 1, 900), ACCESS)
    still(box, 1)
    submission = {"submit": [(MANY, SHAPES), (SLOW, SLOW_SHAPES)]}
    stranger = {**box.client_environment, "_CONDOR_SEC_CLAIMTOBE_USER": "mallory"}
    done = with_bindings(CLIENT, submission, stranger)
    assert done.returncode == 0, done.stderr
    box.submit(jobs("atlas", 8, 3, 600), ACCESS)
    box.submit(jobs("atlas", 4, 2, 600, "requirements = TARGET.HasFoo"), ACCESS)
    unseen = "JobStatus == 1 && AutoClusterId =?= undefined"
    box.wait_until(lambda: not box.jobs(unseen), "the access point has made autoclusters of all")
    seen = sharectl.json("snapshot")
    assert (seen["complete"], seen["untried"]) == (True, None)
    pending = Counter[tuple[str, int, bool]]()
    for row in seen["pending"]:
        pending[row["group"], row["cores"], row["placeable"]] += row["jobs"]
    # Requirements that are an error count as demand, as far as the user's budget goes.
    errors = pending.pop(("cms", 8, True), 0)
    assert errors < SLOW_SHAPES
    assert pending == {
        ("atlas", 8, True): 3,
        ("atlas", 4, False): 2,
        ("cms", 8, False): SHAPES + SLOW_SHAPES - errors,
    }
    named = {(row["group"], row["cores"]): row["jobs"] for row in seen["unplaceable"]}
    assert named["atlas", 4] == 2
    assert "of 1 user (such as " in seen["over_budget"]
