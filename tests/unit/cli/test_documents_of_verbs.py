"""Every verb with ``--json`` prints a document, and those with a schema fit it.

The state directory is that of a site, and no pool answers; documents of a pool that
answers are made by the same functions on ads made by hand, and seen whole by the pool tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from json_documents import schemas
from sharectl.cli.main import main
from sharectl.condor.node_ads import status_of
from sharectl.explain.job import verdict
from sharectl.explain.job_ads import facts_of, findings
from sharectl.explain.turn import NegotiatorFacts, prospect, turn
from sharectl.publish.state import StateFile
from sharectl.report import as_json
from sharectl.report.explain import JobReasons, job_page
from tests.fakes import NOW
from tests.files_of_a_site import make
from tests.ledgers import busy
from tests.schemas import problems
from tests.verbs import all_verbs

SCENARIO = """\
nodes: [{name: wn, count: 2, cores: 16}]
groups: {alice: {pledge_hs06: 200}, cms: {pledge_hs06: 120}}
jobs:
  - {group: alice, run_time: "exponential:900", keep_pending: 20}
  - {group: cms, cores: 8, run_time: "exponential:1800", keep_pending: 2}
warmup_hours: 0
days: 0.05
"""
SLOT = """\
Name = "slot1@wn-1"
Machine = "wn-1.example.org"
MyType = "Machine"
SlotType = "Partitionable"
PartitionableSlot = true
MachineResources = "Cpus Memory Disk"
State = "Unclaimed"
Cpus = 4
Memory = 4000
Disk = 100000
TotalSlotCpus = 8
SlotWeight = Cpus
Start = true
WithinResourceLimits = MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus
Requirements = START && (WithinResourceLimits)
"""
POLICIES = """\
SLOT_TYPE_1 = 100%
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1_PARTITIONABLE = True
CONSUMPTION_POLICY = True
CONSUMPTION_MEMORY = "many"
"""
JOB = """\
ClusterId = 7
ProcId = 0
JobStatus = 1
JobUniverse = 5
RequestCpus = 8
RequestMemory = 100
RequestDisk = 10
AccountingGroup = "cms.bob"
Requirements = true
"""


class Case(NamedTuple):
    """A command; words with a dot are files of the folder."""

    verb: str
    more: str
    kind: str
    code: int = 0


CASES = [
    Case("snapshot", "", "snapshot", 75),
    Case("errors", "--jobs AcctGroup_hs06.txt", "errors"),
    Case("plan", "--jobs AcctGroup_hs06.txt", "plan"),
    Case("plan", "--diff --jobs AcctGroup_hs06.txt", "plan_diff"),
    Case("cycle", "", "cycle", 75),
    Case("disable", "--reason cooling", "disabled"),
    Case("enable", "", "enabled"),
    Case("status", "", "status", 1),
    Case("pledges", "", "pledges"),
    Case("explain group", "cms", "explain_group"),
    Case("explain group", "cms --jobs AcctGroup_hs06.txt", "explain_group"),
    Case("explain node", "cn-00", "explain_node"),
    Case("explain cycle", "", "explain_cycle"),
    Case("explain codes", "", "codes"),
    Case("replay", "--set control.law=pid", "replay"),
    Case("report", "--from 2023-11-14 --to 2023-11-16 -o out", "report"),
    Case("ledger export", "-o ../out.csv", "ledger-export"),
    Case("ledger check", "", "ledger-check"),
    Case("check config", "", "config"),
    Case("check snippets", "snippets.d", "snippets", 1),
    Case("check pool", "", "pool", 1),
    Case("consumption check", "policies.conf", "consumption_check", 1),
    Case("simulate", "small.yaml --jobs 1 -o simulated", "simulation"),
    Case("simulate", "--list", "simulation_names"),
    Case(
        "learn",
        "small.yaml -o new.json --hours 1 --seeds 1 --generations 1 --jobs 1",
        "policy",
    ),
    Case(
        "tune",
        "small.yaml --over control.law --trials 2 --batch 2 --seeds 1 --cores 1",
        "tune",
    ),
    Case("cadence", "--run-time constant:255 --cycle-duration 5 --cores 100", "cadence"),
    Case("cadence", "--run-time constant:255 --cores 100", "cadence"),
]
WITHOUT_CONFIG = (
    "explain codes",
    "check snippets",
    "consumption",
    "simulate",
    "learn",
    "tune",
    "cadence",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the files of a site, policies and a scenario."""
    place = tmp_path / "here"
    place.mkdir()
    make(place)
    for name, content in {
        "small.yaml": SCENARIO,
        "policies.conf": POLICIES,
        "snippets.d/50.conf": "START = (Warm =?= True)\n",
    }.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(place)
    return place


def printed(case: Case, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Document that the command prints."""
    needs_config = not case.verb.startswith(WITHOUT_CONFIG)
    config = ["--config", "sharectl.yaml"] if needs_config else []
    code = main([*case.verb.split(), *case.more.split(), "--json", *config])
    out, err = capsys.readouterr()
    assert code == case.code, err
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.verb} {case.more}")
@pytest.mark.usefixtures("folder")
def test_a_document_fits_its_schema(capsys: pytest.CaptureFixture[str], case: Case) -> None:
    document = printed(case, capsys)
    assert document["kind"] == case.kind
    assert problems(document) == []


def ad_of(text: str) -> Any:
    return classad2.ClassAd(f"[{text.replace(chr(10), ';')}]")


def of_a_pool(folder: Path, status: dict[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Kind -> content that a verb would print of a pool that answers."""
    job, slot = ad_of(JOB), ad_of(SLOT)
    match = verdict(findings(job, [slot], NOW))
    assert match["obstacles"]
    facts = facts_of(job, "ap-1")
    order = turn(NegotiatorFacts(), facts, match)
    why = JobReasons(match, None, "cms", order, prospect(None, "cms", 8, NOW))
    page = job_page("7.0", NOW, match["code"], facts, why)
    nodes = {**status_of([slot], NOW, 120), "problem": None}
    assert nodes["slots"] == 1
    return {
        "snapshot": as_json.snapshot(busy(1), ("alice", "atlas", "cms")),
        "cycle": StateFile(folder / "state.json").last_cycle(),
        "status": {**status, "nodes": nodes},
        "explain_job": page.data,
    }


def test_documents_of_a_pool_fit_their_schemas(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = of_a_pool(folder, printed(Case("status", "", "status", 1), capsys))
    for kind, content in contents.items():
        assert problems(json.loads(as_json.dumps(kind, content))) == []
    assert {case.kind for case in CASES} | {*contents, "nodes"} >= set(schemas())


def test_every_verb_with_json_has_its_case() -> None:
    printing = {
        str(verb)
        for verb in all_verbs()
        if any("--json" in action.option_strings for action in verb.actions)
    }
    assert {case.verb for case in CASES} | {"consumption cost", "explain job", "nodes"} == printing


def test_a_configuration_that_is_refused_is_a_document(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "sharectl.yaml").write_text("groups: 5\n", encoding="utf-8")
    document = printed(Case("check config", "", "config", 78), capsys)
    assert (document["valid"], problems(document)) == (False, [])
