"""Documents with a schema fit it.

The state directory is that of a site, and no pool answers; documents of a pool that
answers are made by the same functions on ads made by hand, and seen whole by the pool tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import classad2
import htcondor2  # noqa: F401 - classad2 resolves names as the daemons do only once it is there
import pytest

from json_documents import schemas
from sharectl.cli.main import main
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
from tests.slot_status import status_of

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


CASES = {
    "snapshot": ("snapshot", 75),
    "errors --jobs AcctGroup_hs06.txt": ("errors", 0),
    "plan --jobs AcctGroup_hs06.txt": ("plan", 0),
    "cycle": ("cycle", 75),
    "status": ("status", 1),
    "check pool": ("pool", 1),
}
"""Command -> kind of its document, and exit code."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the files of a site."""
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(words: str, code: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Document that the command prints."""
    ended = main([*words.split(), "--json", "--config", "sharectl.yaml"])
    out, err = capsys.readouterr()
    assert ended == code, err
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.mark.parametrize("words", CASES)
@pytest.mark.usefixtures("folder")
def test_a_document_fits_its_schema(capsys: pytest.CaptureFixture[str], words: str) -> None:
    kind, code = CASES[words]
    document = printed(words, code, capsys)
    assert document["kind"] == kind
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
    contents = of_a_pool(folder, printed("status", 1, capsys))
    for kind, content in contents.items():
        assert problems(json.loads(as_json.dumps(kind, content))) == []
    # tests/unit/cli/test_nodes_command.py has the nodes.
    assert {kind for kind, _ in CASES.values()} | {*contents, "nodes"} == set(schemas())
