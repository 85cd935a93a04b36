from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharectl.cli.main import main

CASES = sorted(
    path for path in Path(__file__).parent.iterdir() if (path / "AcctGroup_hs06.txt").exists()
)
TAKEN_AT = 1627101243
COMMANDS = {
    "errors.txt": ("errors",),
    "errors.json": ("errors", "--json"),
    "plan.txt": ("plan",),
    "plan.json": ("plan", "--json"),
}


@pytest.mark.parametrize("expected", COMMANDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(
    case: Path,
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    jobs = tmp_path / "jobs"
    jobs.write_bytes((case / "AcctGroup_hs06.txt").read_bytes())
    os.utime(jobs, (TAKEN_AT, TAKEN_AT))
    arguments = [*COMMANDS[expected], "--config", str(case / "sharectl.yaml")]
    assert main([*arguments, "--jobs", str(jobs)]) == 0
    seen = capsys.readouterr().out
    if request.config.getoption("--update-golden"):
        (case / expected).write_text(seen, encoding="utf-8")
    assert seen == (case / expected).read_text(encoding="utf-8")
