"""Documents with a schema fit it.

The state directory is that of a site, and no pool answers; documents of a pool that
answers are made by the same functions on ads made by hand, and seen whole by the pool tests.
"""

from __future__ import annotations

import json
from pathlib import Path

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
from tests.unit.explain.test_explain_job import job, slot

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


@pytest.mark.parametrize("words", CASES)
@pytest.mark.usefixtures("folder")
def test_a_document_has_its_kind(capsys: pytest.CaptureFixture[str], words: str) -> None:
    """Fixture `documents` of tests/conftest.py holds it against its schema."""
    kind, code = CASES[words]
    assert main([*words.split(), "--json", "--config", "sharectl.yaml"]) == code
    assert json.loads(capsys.readouterr().out)["kind"] == kind


def test_documents_of_a_pool_fit_their_schemas(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["status", "--json", "--config", "sharectl.yaml"])
    seen = slot()
    nodes = {**status_of([seen], NOW, 120), "problem": None}
    assert nodes["slots"] == 1
    waiting = job(RequestCpus="8", AccountingGroup='"cms.bob"')
    match, facts = verdict(findings(waiting, [seen], NOW)), facts_of(waiting, "ap-1")
    assert match["obstacles"]
    order = turn(NegotiatorFacts(), facts, match)
    why = JobReasons(match, None, "cms", order, prospect(None, "cms", 8, NOW))
    contents = {
        "snapshot": as_json.snapshot(busy(1), ("alice", "atlas", "cms")),
        "cycle": StateFile(folder / "state.json").last_cycle(),
        "status": {**json.loads(capsys.readouterr().out), "nodes": nodes},
        "explain_job": job_page("7.0", NOW, match["code"], facts, why).data,
    }
    for kind, content in contents.items():
        assert problems(json.loads(as_json.dumps(kind, content))) == []
    # tests/unit/cli/test_nodes_command.py has the nodes.
    assert {kind for kind, _ in CASES.values()} | {*contents, "nodes"} == set(schemas())
