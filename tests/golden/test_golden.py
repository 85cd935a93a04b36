from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main

CASES = sorted(
    path for path in Path(__file__).parent.iterdir() if (path / "AcctGroup_hs06.txt").exists()
)
COMMANDS = {
    "errors.txt": ("errors",),
    "errors.json": ("errors", "--json"),
    "plan.txt": ("plan",),
    "plan.json": ("plan", "--json"),
}


@pytest.mark.parametrize("expected", COMMANDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(
    case: Path, expected: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    arguments = [
        *COMMANDS[expected],
        "--config",
        str(case / "sharectl.yaml"),
        "--taken-at",
        "1627101243",
    ]
    assert main([*arguments, "--jobs", str(case / "AcctGroup_hs06.txt")]) == 0
    seen = capsys.readouterr().out
    if request.config.getoption("--update-golden"):
        (case / expected).write_text(seen, encoding="utf-8")
    assert seen == (case / expected).read_text(encoding="utf-8")
