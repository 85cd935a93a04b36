"""Documents with a schema fit it: the state directory is that of a site, and no pool answers.

Documents of a pool that answers are held against their schemas by `json` of
tests/pool/sharectl_command.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.cli.main import main
from tests.files_of_a_site import make

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
