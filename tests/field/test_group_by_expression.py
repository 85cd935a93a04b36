"""AccountingGroup by expression, as transforms SET it: jobs are of the group that is charged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from poolbox import Box, BoxSpec
from sharectl.condor.accounts import charged
from tests.pool.deployed import CHECKOUT, configure, jobs, reads, run, snippet
from tests.pool.sharectl_command import Sharectl, with_bindings

OF_SITE, OF_OURS = "ap-1.example.org", "ap-2.example.org"
SITE = """\
JOB_TRANSFORM_NAMES = ByOwner
JOB_TRANSFORM_ByOwner @=end
  REQUIREMENTS WantGroup isnt undefined
  SET AccountingGroup strcat(WantGroup, ".", Owner)
@end
"""
OURS = f"include : {CHECKOUT}/config.d/60-sharectl-access-point.conf\n"
GROUPS = {
    "cms": {"pledge_hs06": 100.0, "groups": {"prod": {"share": 0.5}}},
    "atlas": {"pledge_hs06": 100.0},
}
SUBMIT = """
import json, sys
import htcondor2
asked = json.loads(sys.argv[1])
location = htcondor2.Collector().locate(htcondor2.DaemonType.Schedd, "ap-1.example.org")
htcondor2.Schedd(location).submit(htcondor2.Submit(asked["submit"]), count=asked["count"])
"""
SPEC = BoxSpec.of_equal_nodes(
    2, access_points=(OF_SITE, OF_OURS), access_config=SITE, execute_config=snippet()
)
BOMB = {
    "A0": '"aaaaaaaaaaaaaaaa"',
    **{f"A{n}": f"strcat(A{n - 1}, A{n - 1})" for n in range(1, 60)},
}
LOOP = {f"A{n}": f"strcat(A{n - 1}, A{n - 1}, A{n - 1}) == A{n - 1}" for n in range(1, 60)}


@pytest.mark.parametrize(
    ("written", "more", "account"),
    [
        ('strcat("cms.", Owner)', {}, "cms.bob"),
        ('strcat(Foo, ".", Owner)', {"Foo": 'toLower(strcat("CM", B))', "B": '"S.x"'}, "cms.x.bob"),
        ('Owner == "bob" ? "cms.bob" : "atlas.x"', {}, "cms.bob"),
        ('"cms.plain"', {}, "cms.plain"),
        # HTCondor charges no group by these, or none that can be told here.
        ('TARGET.Cpus > 0 ? "cms.x" : "atlas.x"', {}, None),
        *((text, {}, None) for text in ("undefined", "17", "1 / 0", "Owner =?= 1", '{"cms"}')),
        ('strcat("cms.", random(5))', {}, None),
        ('strcat("cms.", Foo)', {"Foo": "string(time())"}, None),
        ('userMap("map", Owner)', {}, None),
        # Each would take hours, or all memory.
        ('strcat("cms.", A59)', BOMB, None),
        ('strcat("cms.", A59)', {**LOOP, "A0": "True"}, None),
        (f'strcat("cms.", {"Owner, " * 2000} "")', {}, None),
    ],
)  # fmt: skip
def test_value_of_an_expression_is_its_own_schedds(
    written: str, more: Mapping[str, str], account: Optional[str]
) -> None:
    """And what one user writes changes nothing for the others."""
    expressions = ({"AccountingGroup": written, **more}, {"AccountingGroup": 'strcat("a.", Owner)'})
    ads = [classad2.ClassAd(), *(classad2.ClassAd({"Owner": "bob"}) for _ in expressions)]
    for ad, texts in zip(ads[1:], expressions):
        for name, text in texts.items():
            ad[name] = classad2.ExprTree(text)
    none, value, other = (ad.get("AccountingGroup") for ad in charged(ads))
    assert (none, other) == (None, "a.bob")
    assert (value if isinstance(value, str) else None) == account


def test_each_user_has_a_value() -> None:
    ads, count = [], 3000
    for number in range(count):
        ad = classad2.ClassAd({"Owner": f"u{number % 100}", "ProcId": number})
        ad["AccountingGroup"] = classad2.ExprTree('strcat("cms.", Owner)')
        ads.append(ad)
    accounts = [ad["AccountingGroup"] for ad in charged(ads)]
    assert accounts == [f"cms.u{number % 100}" for number in range(count)]


def submit(box: Box, user: str, count: int, expression: str, cores: int = 1) -> None:
    submitted = dict(
        line.split(" = ", 1) for line in jobs("", cores, 1, 600).splitlines() if " = " in line
    )
    question = {"submit": {**submitted, "My.AccountingGroup": expression}, "count": count}
    environment = {**box.client_environment, "_CONDOR_SEC_CLAIMTOBE_USER": user}
    done = with_bindings(SUBMIT, question, environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.pool
@pytest.mark.semantics
def test_pending_and_running_jobs_are_of_one_group(sharectl: Sharectl) -> None:
    box = sharectl.box
    steering: dict[str, Any] = {"groups": GROUPS}
    box.submit(jobs("atlas", 1, 16, 600), OF_SITE)
    run(box, 16)
    by_transform = jobs("", 8, 2, 600, '+WantGroup = strcat("cms", ".prod")')
    box.submit(by_transform, OF_SITE)
    for user in ("alice", "bob"):
        submit(box, user, 5, 'strcat("cms.", Owner)')
    submit(box, "bob", 3, 'strcat("cms.", random(5))')

    def waiting() -> dict[str, tuple[int, int]]:
        groups = sharectl.json("snapshot", **steering)["groups"]
        sizes = ("pending_single_jobs", "pending_multi_jobs")
        return {name: (row[sizes[0]], row[sizes[1]]) for name, row in groups.items()}

    expected = {"cms": (10, 2), "cms.prod": (0, 2), "atlas": (0, 0), "other": (3, 0)}
    assert waiting() == expected
    (job, *_) = box.jobs("JobStatus == 1 && RequestCpus == 8", ("ClusterId",), OF_SITE)
    why = sharectl.json("explain", "job", f"{OF_SITE}#{job['ClusterId']}.0", **steering)
    facts = why["access_point"]
    assert (why["group"], facts["accounting_group"]) == ("cms.prod", "cms.prod")
    assert (facts["account"], facts["accounting_user"]) == ("cms.prod.pool", "pool")

    def closed_to() -> set[tuple[str, int]]:
        """Kinds of jobs that START of the nodes would not know under a target."""
        nodes = sharectl.json("snapshot", **steering)["nodes"]
        rows = [{(row["group"], s) for row in n["closed"] for s in row["sizes"]} for n in nodes]
        return set.intersection(*rows)

    kinds = {("cms", 1), ("cms.prod", 8)}
    box.wait_until(lambda: closed_to() == kinds, "the negotiator has seen them")
    assert sharectl.json("cycle", **steering)["plan"]["targets"] == []
    # The same by an access point with the snippet: the group is written out.
    configure(box, OF_OURS, SITE + OURS)
    reads(box, OF_OURS, "JOB_TRANSFORM_NAMES", "SharectlGroup")
    box.submit(by_transform, OF_OURS)
    (job, *_) = box.jobs("JobStatus == 1", ("AccountingGroup",), OF_OURS)
    assert job["AccountingGroup"] == "cms.prod.pool"
    box.wait_until(lambda: closed_to() == {("cms", 1)}, "START knows their group")
    box.run(["condor_rm", "-constraint", 'regexp("^atlas", AccountingGroup)'], host=OF_SITE)

    def held() -> set[str]:
        nodes = sharectl.json("snapshot", **steering)["nodes"]
        return {group for node in nodes for group in node["cores_by_group"]}

    box.wait_until(lambda: {"cms", "cms.prod"} & held(), "they run, and are of the group")
