"""Jobs whose time comes later: cron, deferral, clauses on time, a START that opens at night.

A job that only clauses on time keep out is no demand until they are true, and `explain job` says
when that is. Each node has 8 cores, 80 HS06; the second one takes jobs at night alone.
"""

from __future__ import annotations

import time
from typing import NamedTuple, Optional

import pytest

from poolbox import BoxSpec, ExecutePoint
from sharectl.times import shown
from tests.pool.deployed import jobs, run, snippet
from tests.pool.sharectl_command import Sharectl

pytestmark = [pytest.mark.pool, pytest.mark.semantics]
ACCESS = "ap-1.example.org"
HOUR, DAY = 3600, 86_400
PREPARES = 300
"""Seconds before its time that HTCondor gives a deferred job to prepare (deferral_prep_time)."""


def in_hours(hours: int) -> int:
    return int(time.time()) // 60 * 60 + hours * HOUR


OPENS = in_hours(5)
NIGHT = f"""\
SinceOpening = (time() + {DAY - OPENS % DAY}) % {DAY}
IsNight = SinceOpening < {6 * HOUR}
LooksAtNight = True
STARTD_ATTRS = $(STARTD_ATTRS) SinceOpening IsNight LooksAtNight
START = $(START) && MY.IsNight && SinceOpening < 120
"""
SPEC = BoxSpec(
    (
        ExecutePoint("wn-001.example.org", 8, power_hs06=80.0, config=snippet()),
        ExecutePoint("wn-002.example.org", 8, power_hs06=80.0, config=snippet() + NIGHT),
    ),
    access_points=(ACCESS,),
)


class Case(NamedTuple):
    lines: str
    code: str = "not-yet"
    at: Optional[int] = None
    """Unix seconds from which it could start, of a deferred job its time."""
    prepares: Optional[int] = None
    """Seconds of a deferred job."""


def cases() -> dict[str, Case]:
    at = in_hours(3)
    hour, minute = time.gmtime(at)[3:5]
    minutes = hour * 60 + minute
    clock = f"TARGET.ClockMin >= {minutes} && TARGET.ClockMin < {minutes + 1}"
    return {
        "cron": Case(f"cron_minute = {minute}\ncron_hour = {hour}", at=at, prepares=PREPARES),
        "deferral": Case(f"deferral_time = {at}", at=at, prepares=PREPARES),
        "CurrentTime": Case(f"requirements = CurrentTime > {at}", at=at + 1),
        "minute": Case(f"requirements = {clock}", at=at),
        "night": Case("requirements = TARGET.LooksAtNight", at=OPENS),
        "past": Case(f"deferral_time = {at - 7 * DAY}", "no-time"),
        "never": Case("requirements = TARGET.HasFoo && time() > 5", "could-never"),
        "any time": Case("requirements = time() > 5", "not-now", OPENS),
    }


def test_a_job_before_its_time_is_no_demand_and_explain_says_when_that_is(
    sharectl: Sharectl,
) -> None:
    box = sharectl.box
    box.submit(jobs("atlas", 8, 1, 900, "requirements = TARGET.LooksAtNight =!= True"), ACCESS)
    run(box, 1)
    clusters = {
        box.submit(jobs("cms", 1, 1, 600, case.lines), ACCESS): (name, case)
        for name, case in cases().items()
    }
    seen = "JobStatus == 1 && AutoClusterId =!= undefined"
    box.wait_until(lambda: len(box.jobs(seen)) == len(clusters), "a negotiator has seen all jobs")
    taken = sharectl.json("snapshot")
    assert taken["untried"] is None
    closed = {node["name"]: [row["clause"] for row in node["closed"]] for node in taken["nodes"]}
    assert closed["wn-001"] == []
    assert "IsNight" in str(closed["wn-002"]), "it is closed to the jobs that could run by day"
    for name, at in (("wn-001", None), ("wn-002", OPENS)):
        node = sharectl.json("explain", "node", name, "--live")
        assert node["says"]["opens_at"] == at
    later = sum(case.code in ("not-yet", "no-time") for _, case in clusters.values())
    rows = {row["later"]: row["jobs"] for row in taken["unplaceable"]}
    assert rows == {True: later, False: 1}
    assert taken["groups"]["cms"]["unplaceable_by_cores"] == {"1": later + 1}
    for ad in box.jobs(seen, ("ClusterId", "ScheddInterval")):
        name, case = clusters[ad["ClusterId"]]
        at = case.at
        if case.prepares is not None:
            at = int(case.at or 0) - case.prepares - ad["ScheddInterval"]
        why = sharectl.json("explain", "job", f"{ad['ClusterId']}.0")
        assert (name, why["code"], why["nodes"]["opens_at"]) == (name, case.code, at)
        if case.code == "not-yet":
            screen = sharectl.run("explain", "job", f"{ad['ClusterId']}.0").stdout
            assert f"from {shown(int(at or 0))} on" in screen
            deferred = f"deferred to {shown(int(case.at or 0))}" in " ".join(screen.split())
            assert deferred is (case.prepares is not None)
    plan = sharectl.run("plan").stdout + sharectl.run("plan").stderr
    assert "their time has not come: they are no demand until then" in plan

    # The second that is named is the one from which HTCondor starts it.
    box.remove_jobs()
    soon = int(time.time()) + 20
    cluster = box.submit(jobs("cms", 1, 1, 600, f"requirements = time() >= {soon}"), ACCESS)
    box.wait_until(lambda: bool(box.jobs(seen)), "a negotiator has seen it")
    why = sharectl.json("explain", "job", f"{cluster}.0")
    assert (why["code"], why["nodes"]["opens_at"]) == ("not-yet", soon)
    run(box, 1)
    (ad,) = box.jobs("JobStatus == 2", ("JobStartDate",))
    assert ad["JobStartDate"] >= soon
