"""START's clauses as a table of cases: the pool's own HTCondor evaluates each with each job.

The slots are the ads of two deployed nodes, one that acts live and one by cron, with sharectl's
attributes changed as the cases want them. Two more nodes get the snippet while they run.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.check.snippet_rules import CRON, LIVE, PUBLISHED
from tests.pool.deployed import configure
from tests.pool.sharectl_command import CHECKOUT
from tests.pool.start_cases import (
    CASES,
    CORES,
    FORGED,
    GRACES,
    JOBS,
    LATCH_ATTRIBUTES,
    Attributes,
    Job,
    let_in,
    slots_in,
)

pytestmark = pytest.mark.semantics

NODES = {LIVE: "wn-001.example.org", CRON: "wn-002.example.org"}
LATCHED, MIXED_UP = "wn-003.example.org", "wn-004.example.org"
CHILD = CHECKOUT / "central" / "sharectl" / "condor" / "child.py"
# The box's own bindings; where the pool is this machine's HTCondor it may have none, and those here
# do.
INTERPRETER = 'python3 -Ic "import classad2" 2>/dev/null && exec python3 -I "$0"; exec "$1" -I "$0"'
SNIPPET = f"""\
include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf
STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py
STARTD_CRON_MC_GRACE_EXECUTABLE = {CHECKOUT}/startd_cron/mc_grace.py
SHARECTL_DISABLED_FILE = $(LOCAL_DIR)/disabled
SHARECTL_DISABLED_PERIOD_SECONDS = 1
"""
BROKEN = """\
STARTD_CRON_JOB_CTL_EXECUTABLE = /nonexistent/job_ctl.py
STARTD_CRON_MC_GRACE_EXECUTABLE = /nonexistent/mc_grace.py
Broken = True
STARTD_ATTRS = $(STARTD_ATTRS) Broken
"""
SITES_LATCH = "STARTD_LATCH_EXPRS = FreeCores\nFreeCores = MY.Cpus\n"
CHANGED = {
    LIVE: (*PUBLISHED["job_ctl.py"], *PUBLISHED["SHARECTL_OFF"], *LATCH_ATTRIBUTES),
    CRON: tuple(itertools.chain(*PUBLISHED.values())),
}
"""What the cases bring themselves."""
SPEC = BoxSpec(
    (
        *(
            ExecutePoint(name, CORES, config=f"{SNIPPET}SHARECTL_ACTUATION = {way}\n")
            for way, name in NODES.items()
        ),
        ExecutePoint(LATCHED, CORES, config=SITES_LATCH),
        ExecutePoint(MIXED_UP, CORES, config=SITES_LATCH),
    ),
    access_points=("ap-1.example.org",),
)
"""A node for each way to act, and two that do not have the snippet yet."""


@pytest.fixture(scope="module", params=[LIVE, CRON])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def slot_ad(box: Box, name: str) -> dict[str, str]:
    """Attributes of the node's partitionable slot, as its startd tells them."""
    text = box.run(["condor_status", "-direct", name, "-long", f"slot1@{name}"]).stdout
    return dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)


@pytest.fixture(scope="module")
def deployed(pool: Box, way: str) -> Mapping[str, str]:
    """Attributes of the deployed node's slot, once its STARTD_CRON jobs have run."""
    wanted = {"t1_JobCtlTime", "t1_Disabled"}
    wanted.update(("t1_McGraceTime",) if way == CRON else LATCH_ATTRIBUTES)
    pool.wait_until(lambda: wanted <= slot_ad(pool, NODES[way]).keys(), "jobs have run")
    return slot_ad(pool, NODES[way])


@dataclass(frozen=True)
class Started:
    """Evaluates START in many slots for many jobs, by the pool's own HTCondor."""

    box: Box
    deployed: Attributes
    way: str

    def __call__(
        self, slots: Sequence[Attributes], jobs: Sequence[Attributes]
    ) -> list[list[object]]:
        """Value of START in each slot, for each job."""
        own = {key: text for key, text in self.deployed.items() if key not in CHANGED[self.way]}
        question = {
            "expressions": ["MY.Start"],
            "slots": [{**own, "MyCurrentTime": "time()", **slot} for slot in slots],
            "jobs": [{"MyType": '"Job"', "JobUniverse": "5", **job} for job in jobs],
        }
        command = ["sh", "-c", INTERPRETER, str(CHILD), sys.executable]
        done = self.box.run(command, timeout_seconds=200, input=json.dumps(question) + "\n")
        values: list[list[object]] = json.loads(done.stdout)["values"][0]
        return values


@pytest.fixture(scope="module")
def started(pool: Box, deployed: Mapping[str, str], way: str) -> Started:
    return Started(pool, deployed, way)


def _job_ad(job: Job) -> Attributes:
    ad = {"RequestCpus": job.request, "AccountingGroup": job.accounting_group}
    return {name: text for name, text in ad.items() if text is not None}


ALONE = _job_ad(JOBS["no group asking for 1"])


def test_start_lets_in_whom_the_method_lets_in(started: Started, way: str) -> None:
    seen = started(slots_in(way), [_job_ad(job) for job in JOBS.values()])
    wrong = [
        f"{case}: {name}: START is {start}, and the method says {expected}"
        for (case, target, grace, slot), row in zip(CASES[way], seen)
        for (name, job), start in zip(JOBS.items(), row)
        for expected in [let_in(job, target, grace, slot, way)]
        if start is not expected
    ]
    assert not wrong, f"{len(wrong)} of {len(CASES[way]) * len(JOBS)}:\n" + "\n".join(wrong[:20])


def test_what_is_written_in_a_job_gains_it_nothing(started: Started, way: str) -> None:
    """Neither under a target, nor in grace, nor before the first run of the cron jobs."""
    slots = [*slots_in(way), {"t1_overheat": "True"}]
    jobs = [_job_ad(JOBS[name]) for name in JOBS if name.endswith(("asking for 1", "asking for 8"))]
    forged = [{**FORGED, **job} for job in jobs]
    assert started(slots, forged) == started(slots, jobs)


def test_an_overheated_node_takes_nothing_and_too_few_free_cores_need_no_grace(
    started: Started,
) -> None:
    """The slot's own cores count, whatever was last seen of them."""
    hot = [{"t1_overheat": value} for value in ("True", "False", "undefined", "error", '"hot"')]
    assert started(hot, [ALONE]) == [[False], *[[True]] * 4]
    grace = GRACES[started.way]["grace" if started.way == LIVE else "an expression"].attributes
    slots = [{**grace, "Cpus": cores} for cores in ("8", "7", "0", "undefined", "error")]
    assert started(slots, [ALONE]) == [[False], *[[True]] * 4]


@pytest.mark.parametrize(
    ("line", "in_force"),
    [("SHARECTL_ENABLED = False", "false == false"), ("SHARECTL_ACTUATION = other", "")],
)
def test_switched_off_start_is_the_sites_own(pool: Box, way: str, line: str, in_force: str) -> None:
    """An unknown way to act too, but slots of multicore jobs are then kept for such."""
    name = NODES[way]
    configure(pool, name, f"{line}\nOff = True\nSTARTD_ATTRS = $(STARTD_ATTRS) Off\n")
    try:
        pool.wait_until(lambda: "Off" in slot_ad(pool, name), "the node has read that it is off")
        off = slot_ad(pool, name)
    finally:
        configure(pool, name)
    assert in_force in off["t1_TargetAdmits"]
    slots = [slot for slot in slots_in(way) if in_force or "DynamicSlot" not in slot]
    kinds = ('"lhcb" asking for 1', '"cms" asking for 8', '"alice" asking for 8')
    off.pop("MC_GRACE", None)
    seen = Started(pool, off, way)(slots, [_job_ad(JOBS[kind]) for kind in kinds])
    assert {start for row in seen for start in row} == {True}
    normally = {let_in(JOBS[kinds[0]], *case[1:], way) for case in CASES[way]}
    assert normally == {True, False}


def test_a_file_on_the_node_switches_it_off(
    pool: Box, way: str, deployed: Mapping[str, str]
) -> None:
    """With the scripts broken: a line of shell looks for it. START with it is in the table."""
    assert deployed["t1_Disabled"] == "false"
    name = NODES[way]
    path = pool.local_directory(name) / "disabled"

    def becomes(attribute: str, value: str) -> None:
        pool.wait_until(lambda: slot_ad(pool, name).get(attribute) == value, attribute)

    try:
        configure(pool, name, BROKEN)
        becomes("Broken", "true")
        path.touch()
        becomes("t1_Disabled", "true")
        path.unlink()
        becomes("t1_Disabled", "false")
    finally:
        path.unlink(missing_ok=True)
        configure(pool, name)


def test_a_startd_that_runs_gets_the_latches_by_reconfig(pool: Box) -> None:
    """With NumDynamicSlots before them; without it they are mixed up. Booleans become 1 and 0."""
    never = "Never = MY.Cpus > 100000\nSTARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) Never\n"
    pool.write_config(LATCHED, SNIPPET + never)
    pool.write_config(MIXED_UP, f"{SNIPPET}t1_latches_live = t1_McRoom t1_Watched\n{never}")
    before = slot_ad(pool, LATCHED)
    nodes = (LATCHED, MIXED_UP)
    for name in nodes:
        pool.reconfig(name)
    pool.wait_until(lambda: all("NeverTime" in slot_ad(pool, n) for n in nodes), "latches are read")
    after, mixed_up = slot_ad(pool, LATCHED), slot_ad(pool, MIXED_UP)
    assert not before.keys() & set(LATCH_ATTRIBUTES)
    values = [after[name] for name in ("t1_McRoomValue", "t1_WatchedValue", "NeverValue")]
    assert values == ["1", "1", "0"]
    assert after["t1_McRoomTime"] == after["t1_WatchedTime"]
    for name in ("FreeCoresTime", "NumDynamicSlotsTime"):
        assert after[name] == before[name]
    assert ("t1_WatchedTime" in mixed_up, "t1_McRoomTime" in mixed_up) == (True, False)
