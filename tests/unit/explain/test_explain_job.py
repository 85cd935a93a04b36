"""Match of a job with slots, by hand-written ads; its screen; jobs that would hang the machine."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from sharectl.condor.deadline import Question, ask_all
from sharectl.condor.expressions import alternatives
from sharectl.explain import job as law
from sharectl.explain.job import Obstacle, RefusingTarget, SlotFinding, verdict
from sharectl.explain.job_ads import MOST_MEMORY_BYTES, JobId, facts_of, findings, job_id, match
from sharectl.explain.turn import Prospect
from sharectl.model import WaitTimes
from sharectl.report.explain import JobReasons, Page, job_page
from tests.fakes import NOW

LIMITS = "(MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory)"
OURS = "MY.t1_GraceAdmits =!= False && MY.t1_TargetAdmits =!= False && MY.t1_CoolAdmits =!= False"


def slot(machine: str = "wn-1", **expressions: str) -> classad2.ClassAd:
    """Partitionable slot of 8 cores and 16 GiB of which half is free."""
    texts = {
        "Name": f'"slot1@{machine}"',
        "Machine": f'"{machine}"',
        "PartitionableSlot": "True",
        "State": '"Unclaimed"',
        "MachineResources": '"Cpus Memory Disk Swap"',
        "Cpus": "4",
        "Memory": "8192",
        "TotalSlotCpus": "8",
        "TotalSlotMemory": "16384",
        "ChildCpus": "{4}",
        "Requirements": "START && (WithinResourceLimits)",
        "Start": f"(True) && ({OURS})",
        "WithinResourceLimits": LIMITS,
        **expressions,
    }
    ad = classad2.ClassAd()
    for name, text in texts.items():
        ad[name] = classad2.ExprTree(text)
    return ad


def job(requirements: str = "True", **expressions: str) -> classad2.ClassAd:
    ad = classad2.ClassAd()
    texts = {
        "RequestCpus": "1",
        "RequestMemory": "100",
        "AccountingGroup": '"lhcb"',
        "Requirements": requirements,
    }
    for name, text in {**texts, **expressions}.items():
        ad[name] = classad2.ExprTree(text)
    return ad


def one(job_ad: Any, slot_ad: Any) -> SlotFinding:
    (finding,) = findings(job_ad, [slot_ad], NOW)
    return finding


MEMORY = Obstacle("memory", "RequestMemory = 31000 MiB")
CPUS = Obstacle("cpus", "RequestCpus = 8")
KEPT_OUT = Obstacle("target", "MY.t1_TargetAdmits isnt false")
TARGET = {
    "t1_TargetGroups": '{"alice", "cms"}',
    "t1_Targetcores": "{2, 8}",
    "t1_TargetUntil": str(NOW + 600),
    "t1_TargetActive": "t1_TargetUntil > 0",
    "t1_TargetAdmits": "MY.t1_TargetActive =!= True "
    "|| TARGET.AccountingGroup =?= MY.t1_TargetGroups[1]",
}


DRAINED = {"State": '"Drained"', "Draining": "True", "Requirements": "False"}
CHARGED = {
    "ConsumptionCpus": "5 + TARGET.RequestCpus",
    "WithinResourceLimits": "Cpus >= MY.ConsumptionCpus",
}
OBSTACLES = [
    (job(), {}, "", ""),
    (job(RequestCpus="6"), {}, "cpus", ""),
    (job(RequestCpus="9"), {}, "cpus", "cpus"),
    (job("TARGET.Cpus >= RequestCpus", RequestCpus="6"), {}, "cpus", ""),
    (job(RequestMemory="20000", RequestCpus="6"), {}, "cpus memory", "memory"),
    (job("TARGET.Arch == 1 && True"), {}, "job-requirements", "job-requirements"),
    *(
        (job("TARGET.GPUs >= RequestGPUs", RequestGPUs="1"), gpus, now, empty)
        for gpus, now, empty in (
            ({}, "no-resource", "no-resource"),
            ({"GPUs": "0", "TotalSlotGPUs": "0"}, "no-resource", "no-resource"),
            ({"GPUs": "0", "TotalSlotGPUs": "2", "MachineResources": '"Cpus GPUs"'}, "gpus", ""),
        )
    ),
    *(
        (job("TARGET.Licence >= RequestLicence", RequestLicence="2"), slot_has, code, code)
        for slot_has, code in (({"Licence": "1"}, "resource"), ({}, "no-resource"))
    ),
    (job(RequestCpus="True"), {}, "", ""),
    (job(RequestCpus="1 / 0"), {}, "bad-request", "bad-request"),
    (job(), {"Start": "MY.Warm && False", "Warm": "True"}, "site-start", "site-start"),
    (job(), {"Start": "Undefined && True"}, "site-start", "site-start"),
    (job(), {"Start": "ChildCpus[0] =!= 4"}, "site-start", ""),
    (job(), TARGET, "target", ""),
    (job(AccountingGroup='"cms"'), TARGET, "", ""),
    (job(), {"t1_GraceAdmits": "MY.MC_GRACE =!= True", "MC_GRACE": "1 > 0"}, "grace", ""),
    (job(), {"t1_CoolAdmits": "MY.t1_overheat =!= True", "t1_overheat": "True"}, "overheat", ""),
    (job(), DRAINED, "draining", ""),
    (job(RequestCpus="9"), DRAINED, "cpus draining", "cpus"),
    (job(), {"Requirements": "START && False"}, "slot-requirements", "slot-requirements"),
    (job(), {"PartitionableSlot": "undefined", "State": '"Claimed"'}, "claimed", ""),
    (job(), CHARGED, "cpus", ""),
    *(
        (job(requirements), {}, "job-requirements", "job-requirements")
        for requirements in ("undefined", "error", "1 / 0 == 1", '"yes"')
    ),
]
"""Job, attributes of the slot, obstacles of now, obstacles of an empty node."""


@pytest.mark.parametrize(("job_ad", "attributes", "now", "empty"), OBSTACLES)
def test_each_obstacle_is_named_and_no_other(
    job_ad: Any, attributes: dict[str, str], now: str, empty: str
) -> None:
    finding = one(job_ad, slot(**attributes))
    assert [obstacle.code for obstacle in finding.obstacles] == now.split()
    assert [obstacle.code for obstacle in finding.empty_obstacles] == empty.split()


def test_alternatives_are_those_of_the_loosest_operator() -> None:
    ways = {
        "A || B && C || (D || E)": ("A", "B && C", "(D || E)"),
        "(A || B)": ("A", "B"),
        'A && "x || y" == B': ('A && "x || y" == B',),
        "A || B ? C : D": ("A || B ? C : D",),
        "A": ("A",),
    }
    assert {text: alternatives(text) for text in ways} == ways


START = '(MY.Good && TARGET.IsSite) || Heat < 9 || TARGET.Owner == "x"'


def test_a_clause_is_shown_with_the_values_of_each_of_its_alternatives() -> None:
    """Through attributes that stand for others, and by node; nobody's attribute is undefined."""
    slots = [slot(f"wn-{k}", Start=START, Good="Foo > 3", Heat=f"{k}0") for k in range(1, 6)]
    (row,) = verdict(findings(job(Owner='"bob"'), slots, NOW))["obstacles"]
    values = [(v["way"], v["name"], v["value"], v["nodes"]) for v in row["values"]]
    assert values == [
        ("MY.Good", "Good", "undefined", 5),
        ("MY.Good", "Foo", "undefined", 5),
        ("TARGET.IsSite", "the job's IsSite", "undefined", 5),
        ("Heat < 9", "Heat", "10", 1),
        ("Heat < 9", "Heat", "20", 1),
        ("Heat < 9", "Heat", "one of 3 other values", 3),
        ('TARGET.Owner == "x"', "the job's Owner", '"bob"', 5),
    ]


def test_a_node_counts_by_its_nearest_slot() -> None:
    near, far = finding("a", [CPUS]), replace(finding("a", [CPUS, MEMORY]), job_accepts=False)
    free = SlotFinding("b", job_accepts=True, slot_accepts=True)
    why = verdict([far, near, free])
    assert (why["code"], why["total"]) == ("could-now", 2)
    assert (why["fitting_nodes"], why["fitting_if_empty"]) == (1, 2)
    (count,) = why["obstacles"]
    assert (count["code"], count["nodes"], count["alone"]) == ("cpus", 1, 1)
    assert why["slots"] == {"total": 3, "refused_by_job": 1, "refusing_job": 1, "matching": 1}


@pytest.mark.parametrize(
    "written", ["12", "", "a.b", "1.2 || true", "#1.2", "1.2.3", "12345678901.0", "x#"]
)
def test_other_words_than_condor_writes_are_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"write CLUSTER\.PROC"):
        job_id(written)
    assert job_id("bob@ap-1#12.3#1627101243") == JobId(12, 3, "bob@ap-1")


BOMB = {f"A{n}": f"strcat(MY.A{n - 1}, MY.A{n - 1})" for n in range(1, 48)}
"""An attribute of 2^53 characters."""
FORK = {f"B{n}": f"MY.B{n - 1} + MY.B{n - 1}" for n in range(1, 48)}
"""An expression that takes 2^47 steps."""


class Collector:
    """A collector of one slot, which takes memory to tell of it."""

    def __init__(self, taken_bytes: int = 0) -> None:
        self.taken_bytes = taken_bytes

    def query(self, *_: Any, **__: Any) -> list[Any]:
        bytes(self.taken_bytes)  # address space: nothing is written there
        return [slot()]


@pytest.mark.parametrize(
    "job_ad",
    [
        job("size(MY.A47) > 0", A0='"aaaaaaaaaaaaaaaa"', **BOMB),
        job("MY.B47 > 0", B0="1", **FORK),
        job("MY.Requirements"),
        job(f"{'(' * 50}True{')' * 50}"),
        job(f'size("{"x" * 2**20}") < 5'),
    ],
)
def test_no_job_hangs_the_command(job_ad: Any) -> None:
    look = partial(match, repr(job_ad), NOW, Collector())
    answer = ask_all({"job": Question(look, 1)})["job"]
    assert answer.source.seconds < 30
    assert answer.source.problem or answer.value


def test_a_job_is_matched_within_its_memory() -> None:
    for taken_bytes, problem in ((0, None), (2 * MOST_MEMORY_BYTES, "MemoryError: ")):
        look = partial(match, repr(job()), NOW, Collector(taken_bytes))
        assert ask_all({"job": Question(look, 30)})["job"].source.problem == problem


def test_requests_have_values_where_they_are_numbers_on_their_own() -> None:
    ad = classad2.ClassAd(
        "[RequestDisk = DiskUsage; DiskUsage = 75; RequestCpus = 8; RequestGPUs = TARGET.Gpus; "
        "RequestMemory = error]"
    )
    facts = facts_of(ad, "ap-1")
    assert facts["requests"]["RequestDisk"] == "DiskUsage"
    assert facts["request_values"] == {"RequestDisk": 75.0, "RequestCpus": 8.0}
    lying = classad2.ClassAd('[RequestDisk = real("INF"); RequestMemory = "1"; RequestCpus = true]')
    assert facts_of(lying, "ap-1")["request_values"] == {}


def test_a_group_without_acct_group_is_the_longest_that_is_configured() -> None:
    def parts(text: str, *configured: str) -> tuple[str, str]:
        facts = facts_of(classad2.ClassAd(f"[{text}]"), "ap-1", configured)
        return facts["accounting_group"], facts["accounting_user"]

    account = 'AccountingGroup = "cms.prod.ada.lovelace"'
    assert parts(account, "cms", "cms.prod") == ("cms.prod", "ada.lovelace")
    assert parts(account, "lhcb") == ("cms.prod.ada", "lovelace")
    named = f'{account}; AcctGroup = "cms.prod.ada"'
    assert parts(named, "cms.prod") == ("cms.prod.ada", "lovelace")


REQUESTS = {"RequestCpus": "8", "RequestMemory": "31000", "RequestDisk": "DiskUsage * 2"}
VALUES = {"RequestCpus": 8.0, "RequestMemory": 31000.0}
JOB = classad2.ClassAd(
    f'[JobStatus = 1; JobUniverse = 5; Owner = "bob"; AccountingGroup = "lhcb"; '
    f"EnteredCurrentStatus = {NOW - 60}]"
)
FACTS = {**facts_of(JOB, "ap-1"), "requests": REQUESTS, "request_values": VALUES}


def finding(node: str, now: Sequence[Obstacle], empty: Sequence[Obstacle] = ()) -> SlotFinding:
    target = RefusingTarget("others", "alice", 0, "cms", 8) if KEPT_OUT in now else None
    accepts, unread = (True, False), tuple[law.ClauseReading, ...]()
    obstacles, lasting = (dict.fromkeys(several, unread) for several in (now, empty))
    return SlotFinding(node, *accepts, obstacles, lasting, target, NOW + 600)


def page(*findings: SlotFinding, facts: law.Facts = FACTS, group: str = "lhcb") -> Page:
    why = verdict(findings)
    return job_page("6.1", NOW, why["code"], facts, JobReasons(why, None, group))


ORDER: dict[str, Any] = {
    **dict.fromkeys(("cause", "group", "submitter")),
    "before": [],
    "limits": [],
    "problems": [],
    "cycle_ended_at": NOW,
    "period_seconds": 60.0,
}
PROSPECT = Prospect(None, 7, NOW - 60, 500.0, 380.0, 120.0)
BLOCK = replace(
    PROSPECT, block_nodes=("wn-7", "wn-8"), block_seconds=720.0, started=WaitTimes(3, 300, 900)
)
AHEAD = {"name": "cms.zoe", "idle_jobs": 2, "priority": 500.0}
FULL = {"code": "at-limit", "text": "its concurrency limit: a, 1 of 1 in use", "remedy": "wait"}
FREE = SlotFinding("wn-1", job_accepts=True, slot_accepts=True)
BUSY = finding("wn-1", [CPUS])
CLOCK = Obstacle("clock", "x")
GRACE = Obstacle("grace", "MY.t1_GraceAdmits isnt false")
BEYOND = {
    "group": {"name": "cms", "used": 2.0, "quota": 2.0, "surplus": "byquota"},
    "before": [AHEAD],
    "period_seconds": 3.0,
}
REJECTED = {"rejected": "no match found", "rejected_at": NOW - 3}


NOTHING: Mapping[str, Any] = {}


class Waiting(NamedTuple):
    """Match of a waiting job, and what else is known of it."""

    slots: Sequence[SlotFinding]
    facts: law.Facts = NOTHING
    order: Mapping[str, Any] = NOTHING
    prospect: Prospect = PROSPECT


WAITING = {
    "no cycle since it was submitted": Waiting([FREE], {"since": NOW + 1}),
    "another submitter is first": Waiting([FREE], order={"before": [AHEAD]}),
    "with a limit": Waiting([FREE], {"limits": "a"}),
    "rejected": Waiting([FREE], {"rejected": "no match found"}),
    "nothing known": Waiting([FREE]),
    "a cause of the negotiator": Waiting([FREE], order={"cause": FULL}),
    "over its share": Waiting([BUSY]),
    "passed over for long": Waiting([FREE], {**REJECTED, "since": NOW - 720}, BEYOND, BLOCK),
    "passed over just now": Waiting([FREE], {**REJECTED, "since": NOW - 4}, BEYOND, BLOCK),
    "deferred": Waiting(
        [replace(finding("wn-1", [CLOCK], [CLOCK]), opens_at=NOW + 60)], {"deferred_to": NOW + 660}
    ),
    "grace beside full nodes": Waiting(
        [
            *(finding(f"full-{number}", [CPUS]) for number in "ab"),
            *(replace(finding(f"kept-{n}", [GRACE]), grace_until=NOW + 300) for n in "ab"),
        ]
    ),
    "a block is being freed": Waiting([BUSY], prospect=BLOCK),
}


def test_the_first_line_of_a_waiting_job_is_its_cause(golden: Callable[[str, str], None]) -> None:
    to = io.StringIO()
    for name, (slots, facts, order, known) in WAITING.items():
        match = verdict(slots)
        cause = order.get("cause")
        why = JobReasons(match, None, "lhcb", {**ORDER, **order}, known)
        code = cause["code"] if cause else match["code"]
        to.write(f"==== {name}\n")
        rows = job_page("6.1", NOW, code, {**FACTS, **facts}, why).rows
        kept = ("verdict", "when", "share", "change")
        to.writelines(f"{label}: {text}\n" for label, text in rows if label in kept)
    golden("explain/job-waits.txt", to.getvalue())


REMEDIES = [
    (job("TARGET.HasDocker"), {}, "never", "the job's requirements: condor_qedit"),
    (job(), {"Start": "MY.Well =?= True"}, "never", "the site's configuration"),
    (job("TARGET.GPUs >= RequestGPUs", RequestGPUs="1"), {}, "never", "a node that has it"),
    (job(), {"Cpus": "0"}, "obstacles", "jobs that end there"),
    (job(), {"Cpus": "0", "TotalSlotCpus": "0"}, "never", law.TOO_LARGE),
]
"""Job, attributes of the slots, list of obstacles, and the remedy of its one row."""


@pytest.mark.parametrize(("job_ad", "attributes", "key", "remedy"), REMEDIES)
def test_a_remedy_helps(job_ad: Any, attributes: dict[str, str], key: str, remedy: str) -> None:
    slots = [slot(name, **attributes) for name in ("wn-1", "wn-2")]
    (row,) = verdict(findings(job_ad, slots, NOW))[key]
    assert row["remedy"].startswith(remedy)


def test_a_request_that_shrinks_in_time_is_not_yet() -> None:
    now = int(time.time())

    def why(request: str) -> dict[str, Any]:
        own = job("TARGET.Cpus >= RequestCpus", RequestCpus=request, QDate=str(now))
        return verdict(findings(own, [slot()], now))

    shrinking = why("(time() - QDate > 7200) ? 1 : 64")
    assert (shrinking["code"], shrinking["opens_at"]) == ("not-yet", now + 7201)
    assert why("(time() - QDate > 7200) ? 48 : 64")["code"] == "no-time"
    assert why("QDate > 0 ? 64 : 1")["code"] == "could-never"


def test_the_screen_has_units_and_all_else(golden: Callable[[str, str], None]) -> None:
    long = "ifthenelse(MemoryUsage isnt undefined,MemoryUsage,( ImageSize + 1023 ) / 1024)"
    rejected = {
        **FACTS,
        "requests": {**REQUESTS, "RequestGPUs": "nowhere", "RequestMemory": long},
        "request_values": {**VALUES, "RequestDisk": 75.0},
        "rejected": "no match found",
        "rejected_at": NOW - 2,
        "limits": "sw_a",
    }
    states: dict[str, Any] = {
        law.HELD: {**FACTS, "hold_reason": "of bob", "hold_code": 1},
        law.RUNNING: {**FACTS, "host": "slot1_1@wn-1"},
        law.COMPLETED: {**FACTS, "exit_code": 0},
        law.REMOVED: {**FACTS, "remove_reason": "by bob"},
        law.UNKNOWN: None,
    }
    pages = [
        page(finding("wn-1", [MEMORY, KEPT_OUT])),
        page(
            *(finding("wn-1", [CPUS]), finding("wn-2", [MEMORY], [MEMORY])),
            facts=rejected,
            group="other",
        ),
        *(job_page("6.1", NOW, code, facts) for code, facts in states.items()),
    ]
    screens = [io.StringIO() for _ in pages]
    for shown, to in zip(pages, screens):
        shown.print(to, json=False)
    golden("explain/job.txt", "\n".join(to.getvalue() for to in screens))
