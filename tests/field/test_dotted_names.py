"""Groups and users with dots, six levels deep, in capitals, and with names that begin alike."""

from __future__ import annotations

from collections import Counter
from typing import Any, Optional

import pytest

from poolbox import BoxSpec
from sharectl.shares.groups import group_and_user
from tests.pool.deployed import jobs
from tests.pool.sharectl_command import Sharectl
from tests.pool.test_init import sharectl as command

ACCESS = "ap-1.example.org"
DEEP = "cms.prod.mc.run3.heavy.tail"
GROUPS: dict[str, Any] = {
    "cms": {
        "pledge_hs06": 100.0,
        "groups": {
            "prod": {
                "share": 0.5,
                "groups": {
                    "mc": {
                        "share": 0.5,
                        "groups": {
                            "run3": {
                                "share": 0.5,
                                "groups": {
                                    "heavy": {"share": 0.5, "groups": {"tail": {"share": 1}}}
                                },
                            }
                        },
                    }
                },
            }
        },
    },
    "cmsprod": {"pledge_hs06": 50.0},
    "ada": {"pledge_hs06": 50.0},
}
SPEC = BoxSpec.of_equal_nodes(
    2,
    access_points=(ACCESS,),
    central_config="GROUP_NAMES = CMS, CMS.Prod, cmsprod, ada\n"
    "GROUP_QUOTA_DYNAMIC_CMS = 0.5\nGROUP_QUOTA_DYNAMIC_CMS.Prod = 0.5\n"
    "GROUP_QUOTA_DYNAMIC_cmsprod = 0.25\nGROUP_QUOTA_DYNAMIC_ada = 0.25\n"
    "GROUP_ACCEPT_SURPLUS = True\n",
)
JOBS = {
    # accounting_group, accounting_group_user: group that HTCondor charges, of those configured.
    ("cms.prod", "ada.lovelace"): "cms.prod",
    ("CMS.Prod", "Ada"): "cms.prod",
    ("cmsprod", "bob"): "cmsprod",
    ("cms.production", "bob"): "cms",
    (DEEP.upper(), "x.y.z"): DEEP,
    ("ada", "cms"): "ada",
    ("cms", "ada"): "cms",
}
"""A job each; those of a group are of all groups above it, too."""


@pytest.mark.parametrize(
    ("account", "acct_group", "parts"),
    [
        ("cms.prod.ada.lovelace", "cms.prod", ("cms.prod", "ada.lovelace")),
        ("CMS.Prod.Ada", "cms.prod", ("CMS.Prod", "Ada")),
        ("cms.prod.ada.lovelace", None, ("cms.prod.ada", "lovelace")),
        # AcctGroup is another group: what HTCondor charges is AccountingGroup.
        ("atlas.ada", "cms", ("atlas", "ada")),
        ("cmsprod.ada", "cms", ("cmsprod", "ada")),
        ("cms.bob@site.org", "cms", ("cms", "bob@site.org")),
        ("cms", "cms", ("cms", None)),
        ("", None, (None, None)),
        (None, "cms", (None, None)),
    ],
)
def test_group_and_user_of_an_account(
    account: Optional[str], acct_group: Optional[str], parts: tuple[Optional[str], Optional[str]]
) -> None:
    assert group_and_user(account, acct_group) == parts


@pytest.mark.pool
@pytest.mark.semantics
def test_every_command_has_the_group_that_is_charged(sharectl: Sharectl) -> None:
    box = sharectl.box
    steering: dict[str, Any] = {"groups": GROUPS, "nodes": {"controlled": ["wn-*"]}}
    clusters = {
        words: box.submit(
            jobs(
                "",
                1,
                1,
                600,
                f"accounting_group = {words[0]}",
                f"accounting_group_user = {words[1]}",
            ),
            ACCESS,
        )
        for words in JOBS
    }
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == len(JOBS), "all run")
    box.submit(jobs(DEEP, 64, 2, 600), ACCESS)
    # HTCondor 23.9.6 starts no job of such a user.
    user = "accounting_group_user = bob@site.org"
    box.submit(jobs("", 64, 1, 600, "accounting_group = cms", user), ACCESS)
    levels = {".".join(DEEP.split(".")[:n]) for n in range(1, 7)}

    def cores(group: str) -> int:
        return sum(name == group or name.startswith(f"{group}.") for name in JOBS.values())

    wanted = {group: cores(group) for group in (*levels, "cmsprod", "ada")}
    assert wanted["cms"] == 5

    def rows(verb: str, **more: Any) -> dict[str, Any]:
        answer = sharectl.json(verb, **steering, **more)
        groups = answer["groups"]
        return groups if isinstance(groups, dict) else {row["group"]: row for row in groups}

    def seen(*words: str, **more: Any) -> dict[str, int]:
        found = rows(*words, **more)
        return {name: found[name]["single_cores"] for name in wanted}

    box.wait_until(lambda: seen("errors") == wanted, "the collector knows them")
    assert seen("snapshot") == wanted
    listed = rows("snapshot", pool={"mode": "jobs"})
    assert {name: listed[name]["single_cores"] for name in wanted} == wanted
    parts = rows("snapshot")
    assert (parts["other"]["single_cores"], parts["cms"]["power_hs06"]) == (0, 50.0)
    assert {name: parts[name]["pending_multi_jobs"] for name in levels} == {
        **dict.fromkeys(levels, 2),
        "cms": 3,
    }
    table = sharectl.run("snapshot", **steering).stdout.splitlines()
    assert [line.split()[2] for line in table if line.startswith("cms ")][:1] == ["5"]

    why = sharectl.json("explain", "job", f"{clusters['cms.prod', 'ada.lovelace']}.0", **steering)
    facts = why["access_point"]
    assert (why["group"], facts["accounting_group"]) == (None, "cms.prod")  # it runs
    assert (facts["account"], facts["accounting_user"]) == ("cms.prod.ada.lovelace", "ada.lovelace")
    page = sharectl.run("explain", "job", f"{clusters['ada', 'cms']}.0", **steering).stdout
    assert page.splitlines()[0].endswith(", pool, ada (user cms)")

    record = sharectl.json("cycle", **steering)
    held = {row["group"]: row for row in record["errors"]}
    assert {name: held[name]["single_cores"] for name in wanted} == wanted
    first = command(box, "init").stdout
    assert [name for name in ("cms", "cmsprod", "ada") if f"\n  {name}: {{}}" in first] == [
        *("cms", "cmsprod", "ada"),
    ]
    by_quota: Counter[str] = Counter()
    for row in sharectl.json("consumption", "capacity", "--pending")["jobs"]:
        by_quota[row["quota_group"]] += row["count"]
    assert by_quota == {"CMS": 1, "CMS.Prod": 2}
