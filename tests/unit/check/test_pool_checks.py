"""Checks of a pool by ads and answers that are made here: each finds its fault, and no other."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional

import classad2
import htcondor2
import pytest

from sharectl.check.pool import (
    CHECKS,
    OF_COLLECTOR,
    PoolReport,
    PoolSubject,
    timer_of,
    to_ask,
    why_chosen,
)
from sharectl.check.snippet_rules import CLAUSES
from sharectl.condor.deadline import Answer
from sharectl.condor.node_ads import Awaited
from sharectl.condor.pool_look import (
    MOST_ASKED,
    ROUTED_BY,
    PoolLook,
    look_at_pool,
    missing_clauses,
)
from sharectl.config.load import parse
from sharectl.model import Source
from sharectl.plan.nodes import ControlledHosts, NodesConfig
from sharectl.plan.plan import State

NODES = NodesConfig(job_ctl_stale_seconds=120)
NOW = int(time.time())
OURS = " && ".join(f"MY.{name} isnt false" for name in CLAUSES)
VERSION = "$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1 $"
GOOD_GROUPS = {
    "job_transform_names": "AssignAccountingGroup",
    "immutable_job_attrs": "AcctGroup AcctGroupUser, AccountingGroup",
    "job_transform_assignaccountinggroup": "COPY Owner = AcctGroupUser\nSET AcctGroup = x",
}
GOOD_CRON = {
    "startd_cron_joblist": " SITE JOB_CTL SHARECTL_OFF",
    "startd_cron_job_ctl_executable": "/usr/libexec/sharectl/job_ctl.py",
    "startd_cron_job_ctl_kill": "True",
    "startd_cron_job_ctl_period": "30s",
    "startd_cron_sharectl_off_executable": "/bin/sh",
    "startd_cron_sharectl_off_kill": "True",
}
GOOD_DEFRAG = {"defrag_requirements": "t1_TargetActive =!= True"}


def slot(name: str = "wn-1", start: Optional[str] = None, **more: Any) -> dict[str, Any]:
    machine = f"{name}.example.org"
    return {
        "Machine": machine,
        "Name": f"slot1@{machine}",
        "PartitionableSlot": True,
        "MyAddress": "<127.0.0.1:1>",
        "CondorVersion": VERSION,
        "MyCurrentTime": NOW,
        "LastHeardFrom": NOW,
        "Start": classad2.ExprTree(start or f"(true) && ({OURS})"),
        "Cpus": 8,
        "t1_Enabled": True,
        "t1_JobCtlReason": "ok",
        "t1_JobCtlTime": NOW - 10,
        "t1_JobCtlStaleSeconds": 120,
        **dict.fromkeys(CLAUSES, True),
        **more,
    }


def without(ad: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in ad.items() if not name.startswith(names)}


def daemon(name: str, **more: Any) -> dict[str, Any]:
    times = {"MyCurrentTime": NOW, "LastHeardFrom": NOW}
    return {"Name": name, "MyAddress": "<127.0.0.1:1>", "CondorVersion": VERSION, **times, **more}


@dataclass
class FakeCollector:
    """A collector with these ads, whose clock is ahead."""

    ads: Mapping[Any, Sequence[Mapping[str, Any]]]
    ahead_seconds: int = 0

    def query(self, ad_type: Any, constraint: Optional[str], projection: list[str]) -> list[Any]:
        del projection
        if constraint and "time()" in constraint:
            clock = str(int(time.time()) + self.ahead_seconds)
            met = classad2.ExprTree(constraint.replace("time()", clock)).eval()
            return [classad2.ClassAd()] if met else []
        ads = (classad2.ClassAd(dict(ad)) for ad in self.ads.get(ad_type, ()))
        return [
            ad for ad in ads if not constraint or classad2.ExprTree(constraint).eval(ad) is True
        ]


def look_at(
    *slots: Mapping[str, Any],
    ahead_seconds: int = 0,
    nodes: NodesConfig = NODES,
    observes: bool = False,
    **more: Any,
) -> PoolLook:
    ads: dict[Any, Sequence[Mapping[str, Any]]] = {
        htcondor2.AdType.Slot: slots,
        htcondor2.AdType.Schedd: [daemon("ap-1")],
        htcondor2.AdType.Negotiator: [daemon("cm")],
        htcondor2.AdType.Defrag: [daemon("df")],
        **{getattr(htcondor2.AdType, kind): rows for kind, rows in more.items()},
    }
    collector = FakeCollector(ads, ahead_seconds)
    seen = look_at_pool(collector, NOW, Awaited(), nodes, observes=observes, clauses=CLAUSES)
    look: PoolLook = seen["look"]
    return look


def answers_of(**more: Optional[Mapping[str, str]]) -> dict[str, Answer]:
    """Answers of daemons in order, but for those of ``more``; None of one that is silent."""
    knobs: dict[str, Optional[Mapping[str, str]]] = {
        "schedd ap-1": GOOD_GROUPS,
        "negotiator cm": {},
        "defrag df": GOOD_DEFRAG,
        "startd slot1@wn-1.example.org": GOOD_CRON,
    }
    answers = {name: more.get(name.split()[0], own) for name, own in knobs.items()}
    return {
        name: Answer(Source(name, 0.1, "no answer within 3 s" if own is None else None), own)
        for name, own in answers.items()
    }


@pytest.fixture
def subject(tmp_path: Path) -> PoolSubject:
    """A pool in order; its files are another test's business."""
    folder = tmp_path / "state"
    folder.mkdir()
    text = f"groups: {{cms: {{pledge_hs06: 1}}}}\nstate_directory: {folder}\n"
    config = parse(f"{text}publish: [{{collector: {{identity: 'a@b'}}}}]\n", "F")
    status = {"last_cycle": {"taken_at": NOW}, "nodes": {"problem": None}}
    return PoolSubject(
        NOW, config, tmp_path / "F", status, {}, look_at(slot()), answers=answers_of()
    )


Change = Callable[[PoolSubject], PoolSubject]


def with_slots(*slots: Mapping[str, Any], **more: Any) -> Change:
    return lambda subject: replace(subject, look=look_at(*slots, **more))


def with_controlled(nodes: str) -> Change:
    text = f"groups: {{cms: {{pledge_hs06: 1}}}}\nnodes: {{controlled: {nodes}}}\n"
    nodes_config = parse(text, "F").nodes
    look = look_at(slot(), nodes=nodes_config)

    def change(subject: PoolSubject) -> PoolSubject:
        return replace(subject, look=look, config=replace(subject.config, nodes=nodes_config))

    return change


def with_answers(**more: Optional[Mapping[str, str]]) -> Change:
    return lambda subject: replace(subject, answers=answers_of(**more))


NAMED = replace(NODES, controlled=ControlledHosts(("wn-1", "bare")))
ONE = replace(NODES, controlled=ControlledHosts(("wn-1",)))
BARE = without(slot("bare", start="true"), "t1_")
OLD = VERSION.replace("25.14.1 2026", "10.0.9 2023")
ODD = (
    slot("odd-1", start="true", CondorVersion=OLD),
    slot("odd-2", t1_JobCtlTime=NOW - 500, MyCurrentTime=NOW),
    slot("odd-3", MyCurrentTime=NOW - 999, t1_JobCtlTime=NOW - 999),
    without(slot("odd-4"), "t1_JobCtlR"),
    slot("odd-5", t1_JobCtlReason="no-key"),
    BARE,
)
DRAINED = {"defrag_requirements": "true", "defrag_draining_start_expr": "TARGET.Short"}
UNHEEDING = State(unheeding={"wn-1": NOW})
TOLD = {"place": ["x: expired 3 s ago: no node has it"]}


def with_config(of: Change, **changes: Any) -> Change:
    def change(subject: PoolSubject) -> PoolSubject:
        subject = of(subject)
        return replace(subject, config=replace(subject.config, **changes))

    return change


CASES: dict[str, Change] = {
    "in order": lambda subject: subject,
    "old": with_slots(slot(CondorVersion=OLD)),
    "silent negotiator": with_answers(negotiator=None),
    "silent access point": with_answers(schedd=None),
    "no nodes": with_slots(),
    "none controlled": with_controlled("[nope-*]"),
    "none controlled while observing": with_config(with_controlled("[nope-*]"), mode="observe"),
    "no folder": with_config(lambda subject: subject, state_directory=Path("/nowhere/sharectl")),
    "none wanted": with_controlled('"0%"'),
    "ahead": with_slots(slot(MyCurrentTime=NOW + 61)),
    "collector ahead": with_slots(slot(), ahead_seconds=61),
    "groups": with_answers(schedd={}),
    "routed": with_answers(schedd={ROUTED_BY: "AcctGroup"}),
    "kill": with_answers(startd={**GOOD_CRON, "startd_cron_job_ctl_kill": "1"}),
    "silent node": with_answers(startd=None),
    "no clauses": with_slots(slot(start="true")),
    "a way past": with_slots(slot(start=f"TARGET.Vip || ({OURS})")),
    "not published": with_slots(without(slot(), "t1_CoolAdmits")),
    "drains": with_slots(slot(start="false", Draining=True)),
    "stale": with_slots(slot(t1_JobCtlTime=NOW - 500)),
    "never ran": with_slots(without(slot(), "t1_JobCtlR")),
    "refuses": with_slots(slot(t1_JobCtlReason="no-key")),
    "strange code": with_slots(slot(t1_JobCtlReason="\x1b[2J")),
    "no snippet": with_slots(slot(), BARE),
    "no snippet where it is named": with_slots(slot(), BARE, nodes=NAMED),
    "no snippet while observing": with_slots(slot(), BARE, nodes=NAMED, observes=True),
    "no snippet at all": with_slots(BARE),
    "faults of nodes that are not under control": with_slots(slot(), *ODD, nodes=ONE),
    "does not obey": lambda subject: replace(subject, state=UNHEEDING),
    "defrag": with_answers(defrag=DRAINED),
    "defrag silent": with_answers(defrag=None),
    "a time to come": lambda subject: replace(subject, problems={"future": ["tomorrow; mend it"]}),
    "late": lambda subject: replace(subject, now=NOW + 1000),
    "very late": lambda subject: replace(subject, now=NOW + 9999),
    "stopped": lambda subject: replace(subject, timer={"ActiveState": "inactive"}),
    "told by status": lambda subject: replace(subject, problems=TOLD),
}


def test_each_fault_is_found_and_nothing_else(
    subject: PoolSubject, golden: Callable[[str, str], None]
) -> None:
    lines = []
    for name, change in CASES.items():
        results = CHECKS.findings(change(subject))
        lines += [f"> {name}", *(f"{result.level.value}: {result}" for result in results)]
    assert "\x1b" not in str(lines)
    golden("check/pool.txt", "\n".join((*lines, "")))


def test_states_are_those_of_the_worst_finding(subject: PoolSubject) -> None:
    report = PoolReport(tuple(CHECKS.findings(CASES["defrag"](subject))))
    states = {name: state for name, state in report.states.items() if state != "ok"}
    assert (states, set(OF_COLLECTOR) < set(report.states)) == ({"defrag": "fail"}, True)


def test_many_nodes_are_one_finding_with_the_first_names(subject: PoolSubject) -> None:
    slots = [slot(f"wn-{number}", start="true") for number in range(500)]
    (result,) = CHECKS.findings(with_slots(*slots)(subject))
    names = "wn-0.example.org, wn-1.example.org, wn-2.example.org, and 497 more"
    assert (result.place, result.fault[:10]) == (names, "500 slots:")


def test_nodes_of_each_kind_are_asked_and_not_too_many() -> None:
    alike = [slot(f"wn-{number}") for number in range(50)]
    odd = slot("odd", start="true")
    bare = without(slot("bare"), "t1_")
    chosen = [daemon.name for daemon in to_ask(look_at(*alike, odd, bare).slots)]
    assert len(chosen) == MOST_ASKED
    assert "slot1@odd.example.org" in chosen
    assert "slot1@bare.example.org" not in chosen


def test_an_access_point_with_rules_of_its_own_is_in_order() -> None:
    own = {**GOOD_GROUPS, "job_transform_names": "", "submit_requirement_ours": "AcctGroup is x"}
    del own["job_transform_assignaccountinggroup"]
    assert why_chosen(own) == ""
    assert "no job transform" in why_chosen({**own, "submit_requirement_ours": "true"})
    assert "AccountingGroup" in why_chosen({**own, "immutable_job_attrs": "AcctGroup"})


@pytest.mark.parametrize(
    ("start", "missing"),
    [
        (f"(true) && ({OURS})", ()),
        (f"({OURS.replace('isnt', '=!=')}) && a", ()),
        (f"({OURS}) || true", CLAUSES),
        (f"!({OURS})", CLAUSES),
        ("MY.t1_GraceAdmits && MY.t1_TargetAdmits isnt false", ("t1_GraceAdmits", "t1_CoolAdmits")),
        ("(" * 70_000, CLAUSES),
        ("", CLAUSES),
    ],
)
def test_clauses_that_start_lacks(start: str, missing: tuple[str, ...]) -> None:
    assert missing_clauses(start, CLAUSES) == missing


def test_each_pool_has_its_timer() -> None:
    names = {"sharectl": "sharectl.timer", "east": "sharectl@east.timer"}
    assert {name: timer_of(Path(f"/etc/sharectl/{name}.yaml")) for name in names} == names
    assert timer_of(Path("/srv/east.yaml")) == "sharectl.timer"


def test_the_docs_have_the_table_of_checks() -> None:
    text = (Path(__file__).parents[3] / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("\n## Check the pool\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(check.id, check.holds) for check in CHECKS]
