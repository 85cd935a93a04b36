"""The access point's snippet: jobs carry their node's power, users cannot choose a group.

The first access point has the snippet, the second has not: what it forbids there is possible here.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import CHECKOUT, configure, jobs, on, reads
from tests.pool.sharectl_command import with_bindings

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
GROUP = ("AcctGroup", "AccountingGroup", "AcctGroupUser")
ATTRIBUTES = (*GROUP, "MATCH_t1_wn_hs06", "MATCH_TotalSlotCpus")

# Run as any user the pool is told of: one question a process, because a refused edit spoils those
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
SPEC = BoxSpec(
    (ExecutePoint(STRONG, 8, power_hs06=80.0), ExecutePoint(PLAIN, 4, power_hs06=None)),
    groups={"alice": 0.4, "atlas": 0.3, "cms": 0.3},
)


def prepare(box: Box) -> None:
    (box.shared_directory / "groups.map").write_text(MAP)
    configure(box, GUARDED, SNIPPET)
    reads(box, GUARDED, "JOB_TRANSFORM_NAMES", "SharectlPower")


def asked(box: Box, user: str, access_point: str, **question: object) -> dict[str, Any]:
    """What an access point answers a user: the job, or why it is refused."""
    question = {"access_point": access_point, "attributes": ATTRIBUTES, **question}
    environment = {**box.client_environment, "_CONDOR_SEC_CLAIMTOBE_USER": user}
    done = with_bindings(CLIENT, question, environment)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def submitted(box: Box, user: str, access_point: str = GUARDED, **more: str) -> dict[str, Any]:
    never = {"executable": "/bin/true", "transfer_executable": "False", "requirements": "False"}
    return asked(box, user, access_point, submit={**never, **more})


def edited(
    box: Box, user: str, cluster: int, name: str, value: str, access_point: str = GUARDED
) -> dict[str, Any]:
    return asked(box, user, access_point, cluster=cluster, edit=name, value=value)


def running_on(box: Box, cluster: int, node: str) -> list[float]:
    """Power and cores of the node and power of a core, as ``condor_q`` prints them of its job."""
    names = ("MATCH_t1_wn_hs06", "MATCH_TotalSlotCpus", SEEDS_POWER)
    where = f'ClusterId == {cluster} && JobStatus == 2 && regexp("{node}", RemoteHost)'
    query = ["condor_q", "-allusers", "-constraint", where, "-af", *names]

    def seen() -> list[float]:
        return [float(number) for number in box.run(query, host=GUARDED).stdout.split()]

    return box.wait_until(seen, f"it runs on {node}")


def test_a_job_carries_the_power_of_its_node_anew_at_every_start(pool: Box) -> None:
    """On a node without power too; and the seed's own expression gives the power of a core."""
    forged = ("MATCH_t1_wn_hs06 = 9999999", "MATCH_TotalSlotCpus = 1", "t1_NodePower = 1")
    lines = [on(STRONG), *(f"+{line}" for line in forged)]
    cluster = pool.submit(jobs("cms", 2, 1, 600, *lines), GUARDED)
    first = running_on(pool, cluster, STRONG)
    to_bindings = asked(pool, "pool", GUARDED, cluster=cluster)["job"]
    for command in (
        ["condor_hold", str(cluster)],
        ["condor_qedit", str(cluster), "Requirements", f'TARGET.Machine == "{PLAIN}"'],
        ["condor_release", str(cluster)],
    ):
        pool.run(command, host=GUARDED)
    assert first == [80, 8, 10]
    assert (to_bindings["MATCH_t1_wn_hs06"], to_bindings["MATCH_TotalSlotCpus"]) == (80, 8)
    assert running_on(pool, cluster, PLAIN) == [400, 4, 100]
    names = ("MATCH_t1_wn_hs06", "MATCH_TotalCpus", "MATCH_TotalSlotCpus")
    written = submitted(pool, "alice", **{f"My.{name}": "1" for name in names})
    assert not {*names} & written["job"].keys(), "what a user writes there is thrown away"
    without_snippet = submitted(pool, "alice", OPEN)
    assert "MATCH_TotalSlotCpus" not in without_snippet["job"]


POWER = ("MATCH_t1_wn_hs06", "MATCH_TotalSlotCpus", "MATCH_TotalCpus", "t1_NodePower")


@pytest.mark.parametrize("name", [*POWER, *GROUP])
def test_a_user_cannot_change_what_his_job_counts_for(pool: Box, name: str) -> None:
    value, refusal = ("1", "protected") if name in POWER else ('"atlas"', "immutable")
    # HTCondor 23.9.6 drops later edits of a job without a word once one was refused.
    guarded, unguarded = (submitted(pool, "alice", place)["cluster"] for place in (GUARDED, OPEN))
    assert refusal in edited(pool, "alice", guarded, name, value)["refused"]
    assert "refused" not in edited(pool, "alice", unguarded, name, value, OPEN)


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
def test_a_user_gets_his_group(pool: Box, user: str, asks_for: dict[str, str], group: str) -> None:
    job = submitted(pool, user, **asks_for)["job"]
    assert [job[name] for name in GROUP] == [group, f"{group}.{user}", user]


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
def test_a_user_cannot_have_another(pool: Box, user: str, asks_for: dict[str, str]) -> None:
    assert "refused" in submitted(pool, user, **asks_for)
    assert "refused" not in submitted(pool, user, OPEN, **asks_for)


def test_the_example_map_says_what_its_comments_say(pool: Box) -> None:
    example = (CHECKOUT / "config.d" / "examples" / "accounting-groups.map").read_text()
    (pool.shared_directory / "example.map").write_text(example)
    try:
        configure(pool, GUARDED, SNIPPET.replace("groups.map", "example.map"))
        expected = {"alice": "cms", "bob": "atlas", "cmsplt042": "cms.pilot", "atlasprd": "atlas"}
        pool.wait_until(lambda: "job" in submitted(pool, "cmsplt042"), "the map is read")
        assert {user: submitted(pool, user)["job"]["AcctGroup"] for user in expected} == expected
        of_his = submitted(pool, "cmsplt1", accounting_group="cms.production")
        assert of_his["job"]["AcctGroup"] == "cms.production"
        for user in ("cmsplt", "mallory"):
            assert "refused" in submitted(pool, user)
    finally:
        configure(pool, GUARDED, SNIPPET)


def test_without_a_map_groups_are_as_without_the_snippet(pool: Box) -> None:
    """Installing it refuses no job: a job's group is what it asks for, and can be changed."""
    asks: tuple[tuple[str, dict[str, str]], ...] = (
        ("carol", {}),
        ("carol", {"accounting_group": "cms"}),
        ("alice", {"accounting_group": "atlas", "accounting_group_user": "bob"}),
        ("alice", {"My.AcctGroup": 'strcat("at", "las")'}),
    )
    try:
        configure(pool, GUARDED, WITHOUT_MAP)
        pool.wait_until(lambda: "job" in submitted(pool, "carol"), "the map is forgotten")
        for user, more in asks:
            guarded, unguarded = (submitted(pool, user, where, **more) for where in (GUARDED, OPEN))
            for name in GROUP:
                assert guarded["job"].get(name) == unguarded["job"].get(name)
        assert "refused" not in edited(pool, "alice", guarded["cluster"], "AcctGroup", '"cms"')
    finally:
        configure(pool, GUARDED, SNIPPET)
        pool.wait_until(lambda: "refused" in submitted(pool, "carol"), "the map is read")
