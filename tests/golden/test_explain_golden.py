"""Screens of `sharectl explain`, `plan --diff` and `replay`: byte for byte, within one screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main
from tests.fakes import NOW
from tests.ledgers import PERIOD_SECONDS, busy, law, write

FOLDER = Path(__file__).parent / "explain"
CONFIG = """
groups:
  alice: {{pledge_hs06: 71400}}
  atlas: {{pledge_hs06: 105300}}
  cms: {{pledge_hs06: 87100}}
# Cores stand free and no job comes: what is explained are other limits.
control: {{strategy: pair, max_nodes: 4, give_up_seconds: 604800, probe_blocks: 1000}}
state_directory: {folder}
"""
JOBS = [
    *["2 cn-00 alice 600 1 10.0"] * 40,
    *["2 cn-02 alice 600 1 10.0"] * 31,
    *["2 cn-40 alice 600 1 12.5"] * 60,
    *["1 PEND cms 0 8 10.0"] * 9,
]
SCREENS = {
    "group-over.txt": ("explain", "group", "alice", "--cycle", "3"),
    "group-under.txt": ("explain", "group", "CMS", "--at", str(NOW + PERIOD_SECONDS)),
    "group-idle.json": ("explain", "group", "atlas", "--cycle", "1", "--json"),
    "node-target.txt": ("explain", "node", "cn-01.example.org", "--cycle", "3"),
    "node-none.txt": ("explain", "node", "cn-05", "--cycle", "3"),
    "node-limit.txt": ("explain", "node", "cn-07", "--cycle", "3"),
    "node.json": ("explain", "node", "cn-01", "--cycle", "3", "--json"),
    "cycle.txt": ("explain", "cycle", "latest"),
    "cycle-all.txt": ("explain", "cycle", "2", "--all"),
    "cycle.json": ("explain", "cycle", str(NOW), "--json"),
    "plan-diff.txt": ("plan", "--jobs", "jobs", "--taken-at", str(NOW + 2500), "--diff"),
    "plan-diff.json": ("plan", "--jobs", "jobs", "--taken-at", str(NOW + 2500), "--diff", "--json"),
    "replay.txt": ("replay", "--set", "control.max_nodes=3", "--strategy", "pair"),
    "replay.csv": ("replay", "--csv", "--strategy", "pair", "--to", str(NOW + 9999)),
}


@pytest.mark.parametrize("expected", SCREENS)
def test_screen(
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobs").write_text("".join(f"{row}\n" for row in JOBS), encoding="utf-8")
    write(tmp_path, law(max_nodes=4), [busy(number) for number in range(3)])
    config = tmp_path / "sharectl.yaml"
    config.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    assert main([*SCREENS[expected], "--config", str(config)]) == 0
    seen = capsys.readouterr().out
    if request.config.getoption("--update-golden"):
        (FOLDER / expected).write_text(seen, encoding="utf-8")
    assert seen == (FOLDER / expected).read_text(encoding="utf-8")
    if expected.endswith(".txt") and "-all" not in expected:
        assert len(seen.splitlines()) <= 24
        assert max(map(len, seen.splitlines())) <= 80
