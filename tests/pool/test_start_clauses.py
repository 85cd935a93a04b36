"""START's clauses as a table of cases, on the snippet as deployed, evaluated by the pool's own HTCondor.

The slots are the ad of a deployed node with sharectl's attributes changed as the cases want them, the jobs are
ads, and the library of the pool's own HTCondor, in the box, evaluates START in each slot with each job.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.core.groups import group_of
from sharectl.core.trial_ads import FORGED

OpenBox = Callable[[BoxSpec], AbstractContextManager[Box]]
Attributes = Mapping[str, str]

CHECKOUT = Path(__file__).parents[2]
NODE = "wn-001.example.org"
CORES = 24
CHILD = CHECKOUT / "central" / "sharectl" / "adapters" / "condor_child.py"
MULTICORE = 8
# The box's own bindings; where the pool is this machine's HTCondor it may have none, and those here do.
INTERPRETER = 'python3 -Ic "import classad2" 2>/dev/null && exec python3 -I "$0"; exec "$1" -I "$0"'
DEPLOYED = f"""\
include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf
STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py
STARTD_CRON_MC_GRACE_EXECUTABLE = {CHECKOUT}/startd_cron/mc_grace.py
SHARECTL_OVERHEAT_ENABLED = True
"""
OURS = (
    "MC_GRACE",
    "t1_McGraceReason",
    "t1_McGraceTime",
    "t1_CurrentJobs",
    "t1_TargetGroups",
    "t1_Targetcores",
    "t1_TargetUntil",
    "t1_JobCtlReason",
    "t1_JobCtlTime",
)
LONG_AGO, SOON = "time() - 100000", "time() + 600"


@dataclass(frozen=True)
class Target:
    """A node's target, and what it means."""

    attributes: Attributes
    cap: Optional[int] = None
    """Most cores of the held-back group; None if it is no target."""
    held: int = 0
    """Cores that the held-back group has."""
    held_back: str = "alice"


@dataclass(frozen=True)
class Grace:
    attributes: Attributes
    active: bool = False


@dataclass(frozen=True)
class Slot:
    attributes: Attributes
    cores: int
    dynamic: bool = False


@dataclass(frozen=True)
class Job:
    accounting_group: Optional[str]
    """As an expression."""
    group: str
    """Name of the group that it counts for."""
    request: Optional[str]
    """RequestCpus as an expression."""
    cores: float
    """What that means."""


def target(cap: str, jobs: str, size: str = "8", held_back: str = "alice", **others: str) -> Attributes:
    return {
        "t1_CurrentJobs": f'"{jobs}"',
        "t1_TargetGroups": f'{{"{held_back}","cms"}}',
        "t1_Targetcores": f"{{{cap},{size}}}",
        "t1_TargetUntil": SOON,
        "t1_JobCtlReason": '"ok"',
        "t1_JobCtlTime": "time() - 5",
        **others,
    }


def without(attributes: Attributes, name: str) -> Attributes:
    return {key: text for key, text in attributes.items() if key != name}


OVER = target("56", "alice:64:lhcb:3:atlas:5")
TARGETS: Mapping[str, Target] = {
    "nothing published": Target({}),
    "no target": Target(
        target(
            "0",
            "none:0",
            "0",
            t1_TargetGroups='{"none","none"}',
            t1_TargetUntil="0",
            t1_JobCtlReason='"no-line"',
        )
    ),
    "over the cap": Target(OVER, 56, 64),
    "at the cap": Target(target("64", "lhcb:3:alice:64"), 64, 64),
    "one below": Target(target("65", "lhcb:3:alice:64:atlas:5"), 65, 64),
    "eight below": Target(target("72", "atlas:5:alice:64"), 72, 64),
    "a cap of nothing": Target(target("0", "lhcb:3"), 0, 0),
    "an empty node": Target(target("8", "none:0"), 8, 0),
    "a name within names": Target(target("8", "malice:64:alice-2:64:alice:8:alice_b:9"), 8, 8),
    "capitals": Target(target("8", "ALICE:8", t1_TargetGroups='{"Alice","Cms"}'), 8, 8),
    "a name that is a number": Target(target("8", "lhcb:3:5:6:3:8", held_back="3"), 8, 8, "3"),
    "known by its slots only": Target(
        {**target("8", "none:0"), "Childt1_HeldBackCores": "{1,8,undefined,0}"}, 8, 9
    ),
    "by its slots less": Target({**target("8", "alice:8"), "Childt1_HeldBackCores": "{1,0}"}, 8, 8),
    "run out": Target({**OVER, "t1_TargetUntil": "time() - 1"}),
    "job_ctl has stopped": Target({**OVER, "t1_JobCtlTime": LONG_AGO}),
    "text instead of lists": Target({**OVER, "t1_Targetcores": '"56,8"', "t1_TargetGroups": '"alice,cms"'}),
    "lists too short": Target({**OVER, "t1_Targetcores": "{56}"}),
    "negative": Target({**OVER, "t1_Targetcores": "{-1,8}"}),
    "all errors": Target(dict.fromkeys(OVER, "error")),
    **{f"no {name}": Target(without(OVER, name)) for name in OVER if name != "t1_JobCtlReason"},
    **{f"{name} an error": Target({**OVER, name: "error"}) for name in OVER if name != "t1_JobCtlReason"},
}
GRACES: Mapping[str, Grace] = {
    "none": Grace({"MC_GRACE": "False", "t1_McGraceTime": "time() - 5"}),
    "grace": Grace({"MC_GRACE": "True", "t1_McGraceTime": "time() - 5"}, active=True),
    "an expression": Grace(
        {"MC_GRACE": f"MY.Cpus >= 8 && time() < {SOON}", "t1_McGraceTime": "time()"}, active=True
    ),
    "an expression that ended": Grace({"MC_GRACE": "time() < time() - 1", "t1_McGraceTime": "time()"}),
    "mc_grace has stopped": Grace({"MC_GRACE": "True", "t1_McGraceTime": LONG_AGO}),
    "never published": Grace({}),
    "an error": Grace({"MC_GRACE": "error", "t1_McGraceTime": "error"}),
}
PARTITIONABLE = Slot({}, CORES)
DYNAMIC: Attributes = {"PartitionableSlot": "undefined", "DynamicSlot": "True", "SlotType": '"Dynamic"'}
SLOTS: Mapping[str, Slot] = {
    "partitionable": PARTITIONABLE,
    "static": Slot({"PartitionableSlot": "undefined", "SlotType": '"Static"'}, CORES, dynamic=False),
    **{
        f"dynamic of {cores}": Slot({**DYNAMIC, "Cpus": str(cores)}, cores, dynamic=True)
        for cores in (1, 7, 8, 16)
    },
}
GROUPS: Mapping[str, str] = {
    # AcctGroup as an expression: the group
    '"alice"': "alice",
    '"alice.production"': "alice",
    '"ALICE.x.y"': "alice",
    '"3"': "3",
    '"cms"': "cms",
    '"cms.pilot"': "cms",
    '"Cms"': "cms",
    '"lhcb"': "lhcb",
    '"alice2"': "",
    '"alic"': "",
    '"cms-2.cms"': "",
    '".cms"': "",
    '""': "",
    '"cms alice"': "",
    f'"{"cms" * 5000}"': "",
    "7": "",
    "error": "",
    '{"cms"}': "",
}
REQUESTS: Mapping[str, float] = {
    "1": 1,
    "2": 2,
    "7": 7,
    "8": 8,
    "16": 16,
    "8.0": 8,
    "0": 1,
    "-64": 1,
    "9223372036854775807": 2**63,
    '"8"': 1,
    "error": 1,
    "True": 1,
    "ifThenElse(JobUniverse == 5, 8, 1)": 8,
}
JOBS: Mapping[str, Job] = {
    **{
        f"{group[:30]} asking for {request}": Job(group, GROUPS[group], request, REQUESTS[request])
        for group, request in itertools.product(GROUPS, ("1", "8"))
    },
    **{
        f"{group} asking for {request}": Job(group, GROUPS[group], request, cores)
        for group, (request, cores) in itertools.product(('"alice"', '"cms"', '"lhcb"'), REQUESTS.items())
    },
    "cms asking for nothing": Job('"cms"', "cms", None, 1),
    "no group asking for 1": Job(None, "", "1", 1),
    "no group asking for 8": Job(None, "", "8", 8),
}


def let_in(job: Job, target: Target, grace: Grace, slot: Slot) -> bool:
    """Whether the method lets the job in: what START is held against."""
    partitionable = slot is PARTITIONABLE
    if job.cores <= 1 and ((partitionable and grace.active) or (slot.dynamic and slot.cores >= MULTICORE)):
        return False
    if not (partitionable and target.cap is not None):
        return True
    if job.group == "cms":
        return job.cores == MULTICORE
    return job.group == target.held_back and target.held + job.cores <= target.cap


@pytest.fixture(scope="module")
def node(open_box: OpenBox) -> Iterator[Box]:
    """A pool whose one node has the snippet."""
    spec = BoxSpec(
        execute_points=(ExecutePoint(NODE, CORES),),
        access_points=("ap-1.example.org",),
        execute_config=DEPLOYED,
    )
    with open_box(spec) as box:
        yield box


def slot_ad(box: Box) -> dict[str, str]:
    """Attributes of the node's partitionable slot, as its startd tells them."""
    text = box.run(["condor_status", "-direct", NODE, "-long", f"slot1@{NODE}"]).stdout
    return dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)


@pytest.fixture(scope="module")
def deployed(node: Box) -> Mapping[str, str]:
    """Attributes of the deployed node's slot, as its startd publishes them, once both jobs have run."""
    return node.wait_until(
        lambda: ad if {"t1_JobCtlTime", "t1_McGraceTime"} <= (ad := slot_ad(node)).keys() else {},
        30,
        "both STARTD_CRON jobs have published",
    )


class Started:
    """Evaluates START in many slots for many jobs, in the pool's own HTCondor."""

    def __init__(self, box: Box, deployed: Attributes) -> None:
        self.box = box
        self.deployed = {key: text for key, text in deployed.items() if key not in OURS}

    def __call__(self, slots: Sequence[Attributes], jobs: Sequence[Attributes]) -> list[list[object]]:
        """For each slot, what START is for each job."""
        question = {
            "expressions": ["MY.Start"],
            "slots": [{**self.deployed, **slot} for slot in slots],
            "jobs": [{"MyType": '"Job"', "JobUniverse": "5", **job} for job in jobs],
        }
        done = self.box.run(
            ["sh", "-c", INTERPRETER, str(CHILD), sys.executable],
            timeout_seconds=200,
            input=json.dumps(question) + "\n",
        )
        values: list[list[object]] = json.loads(done.stdout)["values"][0]
        return values


@pytest.fixture(scope="module")
def started(node: Box, deployed: Mapping[str, str]) -> Started:
    return Started(node, deployed)


def _job_ad(job: Job) -> Attributes:
    request = {"RequestCpus": job.request} if job.request is not None else {}
    group = {"AcctGroup": job.accounting_group} if job.accounting_group is not None else {}
    return {**request, **group}


CASES = [
    (f"{aim}; grace: {guard}; {kind}", TARGETS[aim], GRACES[guard], SLOTS[kind])
    for aim, guard, kind in itertools.product(TARGETS, GRACES, SLOTS)
    # Every target in every slot, every grace in every slot, and where both act both together.
    if guard == "none" or aim in ("no target", "over the cap", "eight below")
]


def test_groups_are_those_that_the_central_manager_counts() -> None:
    for text, group in GROUPS.items():
        name = text.strip('"') if text.startswith('"') else None
        assert group_of(name, {"alice", "cms", "lhcb", "3"}) == (group or "other")


def test_start_lets_in_whom_the_method_lets_in(started: Started) -> None:
    slots = [{**target.attributes, **grace.attributes, **slot.attributes} for _, target, grace, slot in CASES]
    seen = started(slots, [_job_ad(job) for job in JOBS.values()])
    wrong = [
        f"{case}: {name}: START is {start}, and the method says {expected}"
        for (case, target, grace, slot), row in zip(CASES, seen)
        for (name, job), start in zip(JOBS.items(), row)
        for expected in [let_in(job, target, grace, slot)]
        if start is not expected
    ]
    assert not wrong, f"{len(wrong)} of {len(CASES) * len(JOBS)}:\n" + "\n".join(wrong[:20])


def test_what_is_written_in_a_job_gains_it_nothing(started: Started) -> None:
    """Neither under a target, nor in grace, nor before the first run of the cron jobs."""
    slots = [{**target.attributes, **grace.attributes, **slot.attributes} for _, target, grace, slot in CASES]
    slots.append({"t1_overheat": "True"})
    jobs = [_job_ad(JOBS[name]) for name in JOBS if name.endswith(("asking for 1", "asking for 8"))]
    forged = [{**FORGED, **job} for job in jobs]
    assert started(slots, forged) == started(slots, jobs)


def test_the_seeds_start_is_forged(started: Started) -> None:
    """The test above can fail: without MY. a job gets in that brings its own target, before the first run."""
    unscoped = (
        '(t1_Targetcores[0] == 0) || (split(AcctGroup, ".")[0] == t1_TargetGroups[1] && RequestCpus == '
        "t1_Targetcores[1])"
    )
    seeds = Started(started.box, {**started.deployed, "Start": unscoped})
    honest = _job_ad(JOBS["no group asking for 1"])
    assert seeds([{}], [honest, {**honest, "t1_Targetcores": "{0,0}"}]) == [["error", True]]


def test_overheated_nodes_take_nothing(started: Started) -> None:
    jobs = [_job_ad(JOBS["no group asking for 1"]), _job_ad(JOBS['"cms" asking for 8'])]
    values = ("True", "False", "undefined", "error", '"hot"')
    seen = started([{"t1_overheat": value} for value in values], jobs)
    assert seen == [[False] * 2, *[[True] * 2] * 4]


def test_switched_off_start_is_the_sites_own(node: Box) -> None:
    node.write_config(NODE, "SHARECTL_ENABLED = False\n")
    node.reconfig(NODE)
    try:
        off = node.wait_until(
            lambda: ad if "false == false" in (ad := slot_ad(node)).get("Start", "") else {},
            20,
            "the node has read that it is off",
        )
    finally:
        node.write_config(NODE, "")
        node.reconfig(NODE)
    slots = [{**target.attributes, **grace.attributes, **slot.attributes} for _, target, grace, slot in CASES]
    seen = Started(node, off)(
        slots, [_job_ad(JOBS[name]) for name in ('"lhcb" asking for 1', '"cms" asking for 8')]
    )
    assert {start for row in seen for start in row} == {True}
    assert {let_in(JOBS['"lhcb" asking for 1'], *case[1:]) for case in CASES} == {True, False}
