"""`sharectl init` on a pool: what it writes passes the check, and a cycle observes with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.ledger.ledger import PLACE
from tests.pool.deployed import jobs, still
from tests.pool.sharectl_command import bare

ACCESS = "ap-1.example.org"
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint("wn-001.example.org", cores=16, power_hs06=160.0),
        ExecutePoint("wn-002.example.org", cores=8, power_hs06=None),
    ),
    access_points=(ACCESS,),
    groups={"cms": 0.5, "alice": 0.25},
)
HOSTILE = ("evil: {x\\n- y", "lock_wait_seconds: 1", "a#b", "-", "no\\x1b[31m", "x" * 50_000)
"""Groups that users write, as ClassAd strings."""


def sharectl(box: Box, *words: str) -> subprocess.CompletedProcess[str]:
    return bare(*words, **box.client_environment)


def test_a_pool_with_quotas(box: Box, tmp_path: Path) -> None:
    for group, cores, count in (("cms", 8, 1), ("lhcb.user", 1, 3), ("no", 1, 1)):
        box.submit(jobs(group, cores, count, 600), ACCESS)
    still(box, 5)
    never = "requirements = False"
    box.submit(jobs("cms.prod", 8, 4, 600, never), ACCESS)
    for name in HOSTILE:
        box.submit(jobs("", 1, 1, 600, never, f'+AccountingGroup = "{name}"'), ACCESS)
    path = tmp_path / "first.yaml"
    done = sharectl(box, "init", "-o", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: 2 groups; now: sharectl check config --config {path}\n"
    text = path.read_text()
    data = yaml.safe_load(text)
    # wn-001 has 16 cores of 10 HS06; wn-002 publishes no power, and counts as 400 HS06.
    assert data == {
        "mode": "observe",
        "groups": {"cms": {}, "alice": {}},
        "pledges": {"from": "negotiator"},
        "nodes": {"controlled": "*"},
        "control": {"multicore_cores": 8},
    }
    for line in (
        "# The collector knows 2 nodes with 24 cores, 560 HS06. 1 of 1 schedd answered.",
        "  # 8 cores in use; 8-core jobs: 1 run, 4 wait; quota 12 of 24 cores",
        "  # 0 cores in use; no jobs; quota 6 of 24 cores",
        "  # lhcb: {pledge_hs06: }",
        '  # "no": {pledge_hs06: }',
    ):
        assert line in text.splitlines(), text
    others = f"no valid name: 0 cores in use, {len(HOSTILE)} wait. They count as"
    assert f"# Jobs whose AccountingGroup begins with {others}" in text
    assert not [name for name in HOSTILE if len(name) > 1 and name[:7] in text]
    assert text.replace("\n", "").isprintable()
    again = sharectl(box, "init", "-o", str(path))
    assert (again.returncode, path.read_text()) == (74, text)
    assert "exists already" in again.stderr
    # A cycle observes with it.
    own, state = tmp_path / "own.yaml", tmp_path / "state"
    own.write_text(f"{text}state_directory: {state}\n")
    state.mkdir()
    checked = sharectl(box, "check", "config", "--config", str(own))
    assert checked.returncode == 0, checked.stderr
    done = sharectl(box, "cycle", "--config", str(own))
    assert done.returncode == 0, done.stderr
    assert "observe" in done.stdout + done.stderr
    assert (state / PLACE).exists()
    assert not (state / "sharectl.txt").exists()
