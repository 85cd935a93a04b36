"""The screens of `sharectl explain` and `plan --diff`, byte for byte, each on one screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main
from tests.fakes import NOW
from tests.ledgers import PERIOD_SECONDS, busy, law, write

FOLDER = Path(__file__).parent / "explain"
CONFIG = """
groups: {{alice: {{pledge_hs06: 71400}}, atlas: {{pledge_hs06: 105300}}, cms: {{pledge_hs06: 87100}}}}
control: {{strategy: pair, max_nodes: 4}}
state_directory: {folder}
"""
SCREENS = {
    "group-over.txt": ("group", "alice", "--cycle", "3"),
    "group-under.txt": ("group", "CMS", "--at", str(NOW + PERIOD_SECONDS)),
    "group-idle.json": ("group", "atlas", "--cycle", "1", "--json"),
    "node-target.txt": ("node", "cn-01.example.org", "--cycle", "3"),
    "node-none.txt": ("node", "cn-05", "--cycle", "3"),
    "node-limit.txt": ("node", "cn-07", "--cycle", "3"),
    "node.json": ("node", "cn-01", "--cycle", "3", "--json"),
    "cycle.txt": ("cycle", "latest"),
    "cycle-all.txt": ("cycle", "2", "--all"),
    "cycle.json": ("cycle", str(NOW), "--json"),
}


@pytest.mark.parametrize("expected", SCREENS)
def test_screen(
    expected: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    write(tmp_path, law(max_nodes=4), [busy(number) for number in range(3)])
    config = tmp_path / "sharectl.yaml"
    config.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    assert main(["explain", *SCREENS[expected], "--config", str(config)]) == 0
    seen = capsys.readouterr().out
    if request.config.getoption("--update-golden"):
        (FOLDER / expected).write_text(seen, encoding="utf-8")
    assert seen == (FOLDER / expected).read_text(encoding="utf-8")
    if expected.endswith(".txt") and "-all" not in expected:
        assert len(seen.splitlines()) <= 24
        assert max(map(len, seen.splitlines())) <= 80
