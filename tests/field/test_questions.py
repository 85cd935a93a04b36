"""The questions that people ask most of an idle job, each answered in the first line.

Its quota, its concurrency limit, its submitter's ceiling and priority, START, its own requirements,
and an attribute that condor_submit takes for a request. Other cores are free all the time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.deployed import CONSUMPTION_POLICY, jobs, on, run
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS, FULL = "ap-1.example.org", "ap-2.example.org"
PLAIN, HEALTH, EITHER, POLICY = (f"wn-00{number}.example.org" for number in range(1, 5))
CENTRAL = """\
GROUP_NAMES = cms, atlas, atlas.prod, atlas.user, lhcb, alice, small
GROUP_QUOTA_cms = 2
GROUP_QUOTA_atlas = 2
GROUP_QUOTA_DYNAMIC_atlas.prod = 0.5
GROUP_QUOTA_DYNAMIC_atlas.user = 0.5
GROUP_ACCEPT_SURPLUS_atlas.prod = True
GROUP_ACCEPT_SURPLUS_atlas.user = True
GROUP_QUOTA_DYNAMIC_lhcb = 0.9
GROUP_ACCEPT_SURPLUS_lhcb = True
GROUP_QUOTA_alice = 1
GROUP_AUTOREGROUP_alice = True
GROUP_QUOTA_DYNAMIC_small = 0.01
GROUP_ACCEPT_SURPLUS = False
LICENCE_LIMIT = 1
CONCURRENCY_LIMIT_DEFAULT = 3
CONCURRENCY_LIMIT_DEFAULT_sw = 2
"""
ATTRS = "STARTD_ATTRS = $(STARTD_ATTRS)"
IS_SITE_OR_SPARE = "TARGET.IsSite =?= True || (MY.Spare > 4 && TARGET.RequestCpus < 9)"
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(PLAIN, 16, config=f'SiteLimit = "licence"\n{ATTRS} SiteLimit\n'),
        ExecutePoint(HEALTH, 16, config="START = (NODE_IS_HEALTHY =?= True)\n"),
        ExecutePoint(EITHER, 16, config=f"Spare = 2\n{ATTRS} Spare\nSTART = {IS_SITE_OR_SPARE}\n"),
        # A job is charged what it asks for, so no leftovers pass a quota.
        ExecutePoint(POLICY, 16, config=CONSUMPTION_POLICY),
    ),
    access_points=(ACCESS, FULL),
    access_config=f'MAX_JOBS_RUNNING = ifThenElse("$(FULL_HOSTNAME)" == "{FULL}", 1, 99)\n',
    central_config=CENTRAL,
)


def job(group: str, count: int, *lines: str, node: str = POLICY, cores: int = 1) -> str:
    return jobs(group, cores, count, 900, on(node), *lines)


RUNNING = {
    "cms": job("cms", 2),
    "prod": job("atlas.prod", 2),
    "alice": job("alice", 2),
    "licence": job("lhcb", 1, "concurrency_limits = Licence"),
    "scoped": job("lhcb", 1, "concurrency_limits = sw.fast"),
    "priority": job("lhcb", 1, "accounting_group_user = zoe"),
}
WAITING = {
    "quota": job("cms", 1),
    "above": job("atlas.user", 1),
    "no-quota": job("small", 1),
    "limit": job("lhcb", 1, "concurrency_limits = LICENCE", node=PLAIN),
    "increments": job("lhcb", 1, "concurrency_limits = sw.fast:2, other", node=PLAIN),
    "by-slot": job("lhcb", 1, "concurrency_limits_expr = TARGET.SiteLimit", node=PLAIN),
    "over": job("lhcb", 1, "concurrency_limits = LICENCE:2", node=PLAIN),
    "gpu": job("lhcb", 1, "request_gpus = 1", node=PLAIN),
    "to-die": jobs("lhcb", 1, 1, 900, "requirements = (TARGET.GLIDEIN_ToDie - CurrentTime) > 60"),
    "cvmfs": jobs("lhcb", 1, 1, 900, "requirements = HAS_CVMFS_cms_cern_ch =?= True"),
    "ceiling": job("lhcb", 1, "accounting_group_user = capped"),
    "health": job("lhcb", 1, node=HEALTH),
    "either": job("lhcb", 1, node=EITHER),
    "wish": job("lhcb", 1, "My.RequestWish = 4"),
    "unknown": job("lhcb", 1, "request_wish = 1"),
    "own": jobs("lhcb", 1, 1, 900, "requirements = TARGET.Memory < 9 || TARGET.Tape is 3"),
    "share": job("lhcb", 1, cores=14),
    "regroup": job("alice", 1, cores=14),
    "first": job("lhcb", 1, "accounting_group_user = zoe", cores=14),
}


class Answers(NamedTuple):
    explained: dict[str, dict[str, Any]]
    screens: dict[str, str]
    explain: Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def answers(pool: Box, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    pool.run(["condor_userprio", "-setceil", "lhcb.capped@example.org", "0"])
    for described in RUNNING.values():
        pool.submit(described, ACCESS)
    pool.submit(job("lhcb", 1, node=PLAIN), FULL)
    run(pool, 10)
    clusters = {name: f"{ACCESS}#{pool.submit(text, ACCESS)}.0" for name, text in WAITING.items()}
    clusters["full"] = f"{FULL}#{pool.submit(job('lhcb', 1, node=PLAIN), FULL)}.0"
    sharectl = Sharectl(pool, tmp_path_factory.mktemp("state"))
    site: dict[str, Any] = {"groups": {"lhcb": {"pledge_hs06": 1}, "cms": {"pledge_hs06": 900}}}
    submitted = time.time()

    def explain(name: str) -> dict[str, Any]:
        return sharectl.json("explain", "job", clusters[name], **site)

    def negotiated() -> bool:
        return bool(explain("quota")["negotiator"]["cycle_ended_at"] > submitted + 10)

    pool.wait_until(negotiated, "the negotiator has seen them")
    sharectl.run("cycle", **site)
    screens = {
        name: sharectl.run("explain", "job", number, **site).stdout
        for name, number in clusters.items()
    }
    return Answers({name: explain(name) for name in clusters}, screens, explain)


FIRST_LINES = {
    "quota": "at-quota: group cms uses 2 of its quota of 2 weighted slots and takes no surplus",
    "above": "at-quota: group atlas, which atlas.user is within, uses 2 of its quota of 2 weighted "
    "slots with the groups within it and takes no surplus",
    "no-quota": "which the negotiator cuts to 0, and takes no surplus",
    "limit": "at-limit: its concurrency limit: licence, 1 of 1 in use",
    "increments": "at-limit: its concurrency limit: sw.fast, 1 of 2 in use, and it takes 2",
    "by-slot": "at-limit: its concurrency limit: licence, 1 of 1 in use",
    "over": "at-limit: its concurrency limit: licence, 1 of 1 in use, and it takes 2",
    "gpu": "the node has no resource of that name on 4 of 4 nodes: RequestGPUs = 1",
    "to-die": "requirements on 4 of 4 nodes: GLIDEIN_ToDie is undefined on 4 nodes",
    "cvmfs": "requirements on 4 of 4 nodes: HAS_CVMFS_cms_cern_ch is undefined on 4 nodes",
    "ceiling": "at-ceiling: submitter lhcb.capped uses 0 of its ceiling of 0 weighted slots",
    "health": "the site's START on 1 of 4 nodes: NODE_IS_HEALTHY is undefined on 1 node",
    "either": "the site's START on 1 of 4 nodes: the job's IsSite is undefined on 1 node, in "
    "TARGET.IsSite is true; and Spare is 2 on 1 node, in MY.Spare > 4",
    "wish": "the node has no resource of that name on 4 of 4 nodes: RequestWish = 4",
    "unknown": "the node has no resource of that name on 4 of 4 nodes: Requestwish = 1",
    "own": "the job's own requirements on 4 of 4 nodes: Memory is",
    "share": "too few free cores on 1 of 4 nodes: RequestCpus = 14; its group is",
    "regroup": "not-now: it cannot run now, and could on an empty node: too few free cores",
    "first": "not-now: it cannot run now, and could on an empty node: too few free cores",
    "full": "at-access-point: access point ap-2.example.org runs 1 jobs: MAX_JOBS_RUNNING is 1",
}


@pytest.mark.parametrize("name", FIRST_LINES)
def test_the_first_line_says_why(answers: Answers, name: str) -> None:
    # Texts are wrapped to the screen.
    first = " ".join(answers.screens[name].partition("\nwaits")[0].split())
    assert FIRST_LINES[name].lower() in first.lower(), answers.screens[name]


def test_who_is_served_first(answers: Answers) -> None:
    """Not those whose group is at its quota, or who are at their ceiling."""
    ahead = answers.explained["share"]["negotiator"]["before"]
    assert [other["name"] for other in ahead] == ["lhcb.zoe"]
    assert answers.explained["first"]["negotiator"]["before"] == []


def test_no_remedy_is_a_smaller_request_for_a_group_over_its_share(answers: Answers) -> None:
    over = answers.explained["share"]
    (cpus,) = (row for row in over["nodes"]["obstacles"] if row["code"] == "cpus")
    assert re.search(r"but its group is \d+ HS06 over its share of \d+", cpus["remedy"])
    (cpus,) = (r for r in answers.explained["regroup"]["nodes"]["obstacles"] if r["code"] == "cpus")
    assert "but its group is 1 weighted slots over its quota of 1:" in cpus["remedy"]


def test_without_a_negotiator_its_facts_are_not_known(pool: Box, answers: Answers) -> None:
    """Quotas are the collector's copy; the size of a limit is nowhere else."""
    pool.run(["condor_off", "-fast", "-daemon", "negotiator"], host=SPEC.central_point)

    def silent() -> bool:
        return bool(answers.explain("limit")["negotiator"]["problems"])

    pool.wait_until(silent, "the negotiator is gone")
    limited = answers.explain("limit")
    assert limited["code"] == "could-now"
    assert [(row["used"], row["most"]) for row in limited["negotiator"]["limits"]] == [(1, None)]
    assert answers.explain("quota")["code"] == "at-quota"
