"""The access point's snippet: jobs carry their node's power, users cannot choose a group.

The first access point has the snippet, the second has not: what it forbids there is possible here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Callable

import pytest

from poolbox import Box, BoxSpec, ExecutePoint

OpenBox = Callable[[BoxSpec], AbstractContextManager[Box]]

CHECKOUT = Path(__file__).parents[2]
GUARDED, OPEN = "ap-1.example.org", "ap-2.example.org"
STRONG, PLAIN = "wn-001.example.org", "wn-002.example.org"
MAP = """\
* pool cms,atlas,alice
* alice cms
* bob atlas,cms.analysis
"""
WITHOUT_MAP = f"""\
include : {CHECKOUT}/config.d/60-sharectl-access-point.conf
QUEUE_SUPER_USERS = root, condor, pool
"""
SNIPPET = "SHARECTL_GROUP_MAP = $(LOCAL_DIR)/../../shared/groups.map\n" + WITHOUT_MAP
SEEDS_POWER = "((int(MATCH_t1_wn_hs06 ?: 400) + 0.0)/(MATCH_TotalSlotCpus ?: 40))"
ATTRIBUTES = (
    "AcctGroup",
    "AccountingGroup",
    "AcctGroupUser",
    "MATCH_t1_wn_hs06",
    "MATCH_TotalSlotCpus",
)

# Run as any user the pool is told of: one question a process, since a refused edit spoils those
# after it.
CLIENT = """
import json, sys
import classad2, htcondor2
asked = json.loads(sys.argv[1])
location = htcondor2.Collector().locate(htcondor2.DaemonType.Schedd, asked["access_point"])
schedd = htcondor2.Schedd(location)
try:
    if "submit" in asked:
        cluster = schedd.submit(htcondor2.Submit(asked["submit"])).cluster()
    else:
        cluster = asked["cluster"]
        if "edit" in asked:
            schedd.edit(f"{cluster}.0", asked["edit"], asked["value"])
except htcondor2.HTCondorException as refusal:
    print(json.dumps({"refused": str(refusal)}))
else:
    (job,) = schedd.query(f"ClusterId == {cluster}", asked["attributes"])
    seen = {name: job.eval(name) for name in asked["attributes"] if name in job}
    known = {name: value for name, value in seen.items() if not isinstance(value, classad2.Value)}
    print(json.dumps({"cluster": cluster, "job": known}))
"""


@pytest.fixture(scope="module")
def box(open_box: OpenBox) -> Iterator[Box]:
    spec = BoxSpec(
        execute_points=(
            ExecutePoint(STRONG, cores=8, power_hs06=80.0),
            ExecutePoint(PLAIN, cores=4, power_hs06=None),
        ),
        access_points=(GUARDED, OPEN),
    )
    with open_box(spec) as running:
        (running.shared_directory / "groups.map").write_text(MAP)
        running.write_config(GUARDED, SNIPPET)
        running.reconfig(GUARDED)
        running.wait_until(
            lambda: (
                "SharectlPower"
                in running.run(
                    ["condor_config_val", "-schedd", "JOB_TRANSFORM_NAMES"], host=GUARDED
                ).stdout
            ),
            30,
            "the access point has read the snippet",
        )
        yield running


def asked(box: Box, user: str, access_point: str, **question: object) -> dict[str, Any]:
    """What an access point answers a user: the job, or why it is refused."""
    question = {"access_point": access_point, "attributes": ATTRIBUTES, **question}
    environment = {**os.environ, **box.client_environment, "_CONDOR_SEC_CLAIMTOBE_USER": user}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, json.dumps(question)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def submitted(box: Box, user: str, access_point: str = GUARDED, **more: str) -> dict[str, Any]:
    """A job that no node takes."""
    description = {
        "executable": "/bin/true",
        "transfer_executable": "False",
        "requirements": "False",
        **more,
    }
    return asked(box, user, access_point, submit=description)


def edited(
    box: Box, user: str, cluster: int, name: str, value: str, access_point: str = GUARDED
) -> dict[str, Any]:
    return asked(box, user, access_point, cluster=cluster, edit=name, value=value)


def running_on(box: Box, cluster: int, node: str) -> Mapping[str, str]:
    """Attributes of the job once it runs on that node, as ``condor_q`` prints them."""
    names = ("MATCH_t1_wn_hs06", "MATCH_TotalSlotCpus", SEEDS_POWER)
    where = f'ClusterId == {cluster} && JobStatus == 2 && regexp("{node}", RemoteHost)'
    text = box.wait_until(
        lambda: (
            box.run(
                ["condor_q", "-allusers", "-constraint", where, "-af:V", *names], host=GUARDED
            ).stdout
        ),
        60,
        f"the job runs on {node}",
    )
    return dict(zip(("power", "cores", "per core"), text.split(maxsplit=2)))


def test_a_job_carries_the_power_of_its_node_anew_at_every_start(box: Box) -> None:
    """On a node without power too; and the seed's own expression gives the power of a core."""
    cluster = box.submit(
        "executable = /bin/sleep\narguments = 600\ntransfer_executable = False\nrequest_cpus = "
        "2\nrequest_memory = 8\n"
        f'request_disk = 8\nrequirements = TARGET.Machine == "{STRONG}"\naccounting_group = cms\n'
        "+MATCH_t1_wn_hs06 = 9999999\n+MATCH_TotalSlotCpus = 1\n+MATCH_TotalCpus = "
        "1\n+t1_NodePower = 1\nqueue\n",
        GUARDED,
    )
    try:
        first = running_on(box, cluster, STRONG)
        to_bindings = asked(box, "pool", GUARDED, cluster=cluster)["job"]
        box.run(["condor_hold", str(cluster)], host=GUARDED)
        box.run(
            ["condor_qedit", str(cluster), "Requirements", f'TARGET.Machine == "{PLAIN}"'],
            host=GUARDED,
        )
        box.run(["condor_release", str(cluster)], host=GUARDED)
        second = running_on(box, cluster, PLAIN)
    finally:
        box.run(["condor_rm", str(cluster)], host=GUARDED)
    assert (float(first["power"]), int(first["cores"]), float(first["per core"])) == (80, 8, 10)
    assert (to_bindings["MATCH_t1_wn_hs06"], to_bindings["MATCH_TotalSlotCpus"]) == (80, 8)
    assert (second["power"].strip('"'), int(second["cores"]), float(second["per core"])) == (
        "400",
        4,
        100,
    )


def test_without_the_snippet_a_job_carries_nothing(box: Box) -> None:
    assert "MATCH_TotalSlotCpus" not in submitted(box, "alice", OPEN)["job"]


@pytest.mark.parametrize(
    "name", ["MATCH_t1_wn_hs06", "MATCH_TotalSlotCpus", "MATCH_TotalCpus", "t1_NodePower"]
)
def test_a_user_cannot_change_what_his_job_counts_for(box: Box, name: str) -> None:
    guarded, unguarded = (
        submitted(box, "alice")["cluster"],
        submitted(box, "alice", OPEN)["cluster"],
    )
    assert "protected" in edited(box, "alice", guarded, name, "1")["refused"]
    assert "refused" not in edited(box, "alice", unguarded, name, "1", OPEN)


def test_what_a_user_writes_there_when_he_submits_is_thrown_away(box: Box) -> None:
    forged = {
        "My.MATCH_t1_wn_hs06": "9999999",
        "My.MATCH_TotalCpus": "1",
        "My.MATCH_TotalSlotCpus": "1",
    }
    job = submitted(box, "alice", **forged)["job"]
    assert not {"MATCH_t1_wn_hs06", "MATCH_TotalSlotCpus"} & job.keys()


@pytest.mark.parametrize(
    ("user", "asks_for", "group"),
    [
        ("alice", {}, "cms"),
        ("bob", {}, "atlas"),
        ("bob", {"accounting_group": "cms.analysis"}, "cms.analysis"),
        ("alice", {"My.AccountingGroup": '"atlas.bob"'}, "cms"),
        ("alice", {"My.AcctGroupUser": '"bob"', "accounting_group_user": "bob"}, "cms"),
    ],
)
def test_a_user_gets_his_group(box: Box, user: str, asks_for: dict[str, str], group: str) -> None:
    job = submitted(box, user, **asks_for)["job"]
    assert (job["AcctGroup"], job["AccountingGroup"], job["AcctGroupUser"]) == (
        group,
        f"{group}.{user}",
        user,
    )


@pytest.mark.parametrize(
    ("user", "asks_for"),
    [
        ("alice", {"accounting_group": "atlas"}),
        ("alice", {"accounting_group": "cms.analysis"}),
        ("alice", {"My.AcctGroup": '"atlas"'}),
        ("alice", {"My.AcctGroup": 'strcat("at", "las")'}),
        ("carol", {}),
        ("carol", {"accounting_group": "cms"}),
    ],
)
def test_a_user_cannot_have_another(box: Box, user: str, asks_for: dict[str, str]) -> None:
    assert "refused" in submitted(box, user, **asks_for)
    assert "refused" not in submitted(box, user, OPEN, **asks_for)


@pytest.mark.parametrize("name", ["AcctGroup", "AccountingGroup", "AcctGroupUser"])
def test_nor_change_it_later(box: Box, name: str) -> None:
    guarded, unguarded = (
        submitted(box, "alice")["cluster"],
        submitted(box, "alice", OPEN)["cluster"],
    )
    assert "immutable" in edited(box, "alice", guarded, name, '"atlas"')["refused"]
    assert "refused" not in edited(box, "alice", unguarded, name, '"atlas"', OPEN)


def test_the_example_map_says_what_its_comments_say(box: Box) -> None:
    example = (CHECKOUT / "config.d" / "examples" / "accounting-groups.map").read_text()
    (box.shared_directory / "example.map").write_text(example)
    try:
        box.write_config(GUARDED, SNIPPET.replace("groups.map", "example.map"))
        box.reconfig(GUARDED)
        expected = {"alice": "cms", "bob": "atlas", "cmsplt042": "cms.pilot", "atlasprd": "atlas"}
        box.wait_until(lambda: "job" in submitted(box, "cmsplt042"), 30, "the map is read")
        assert {user: submitted(box, user)["job"]["AcctGroup"] for user in expected} == expected
        assert (
            submitted(box, "cmsplt1", accounting_group="cms.production")["job"]["AcctGroup"]
            == "cms.production"
        )
        assert "refused" in submitted(box, "cmsplt")
        assert "refused" in submitted(box, "mallory")
    finally:
        box.write_config(GUARDED, SNIPPET)
        box.reconfig(GUARDED)


def test_without_a_map_groups_are_as_without_the_snippet(box: Box) -> None:
    """Installing it refuses no job: a job's group is what it asks for, and can be changed."""
    asks: tuple[tuple[str, dict[str, str]], ...] = (
        ("carol", {}),
        ("carol", {"accounting_group": "cms"}),
        ("alice", {"accounting_group": "atlas", "accounting_group_user": "bob"}),
        ("alice", {"My.AcctGroup": 'strcat("at", "las")'}),
    )
    names = ("AcctGroup", "AccountingGroup", "AcctGroupUser")
    try:
        box.write_config(GUARDED, WITHOUT_MAP)
        box.reconfig(GUARDED)
        box.wait_until(lambda: "job" in submitted(box, "carol"), 30, "the map is forgotten")
        for user, more in asks:
            guarded, unguarded = (submitted(box, user, where, **more) for where in (GUARDED, OPEN))
            seen = [
                {name: asked["job"].get(name) for name in names} for asked in (guarded, unguarded)
            ]
            assert seen[0] == seen[1]
        assert "refused" not in edited(box, "alice", guarded["cluster"], "AcctGroup", '"cms"')
    finally:
        box.write_config(GUARDED, SNIPPET)
        box.reconfig(GUARDED)
        box.wait_until(lambda: "refused" in submitted(box, "carol"), 30, "the map is read")
