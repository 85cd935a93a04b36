"""The box of the pool tests, and `python -m poolbox`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, CommandError
from poolbox.root import htcondor_version
from poolbox.waiting import HANG_SECONDS
from tests.pool.deployed import jobs

CHECKOUT = Path(__file__).parents[2]
SPEC = BoxSpec(access_points=("ap-1.example.org",))


def test_a_box_is_of_its_suite_on_the_loopback_and_sees_the_checkout(
    box: Box, pool_suite: str
) -> None:
    assert f"CondorVersion: {htcondor_version(pool_suite)} " in box.run(["condor_version"]).stdout
    addresses = box.run(["condor_status", "-any", "-af", "MyAddress"]).stdout.split()
    hosts = {address.split(":")[0] for address in addresses if address != "undefined"}
    assert hosts == {"<127.0.0.1"}
    assert box.run(["cat", __file__]).stdout == Path(__file__).read_text()
    with pytest.raises(CommandError, match="Read-only"):
        box.run(["touch", str(CHECKOUT / "README.md")])


@pytest.mark.semantics
def test_no_claim_stays_when_the_jobs_are_removed(box: Box) -> None:
    """One that nobody uses would keep its cores for half an hour."""
    box.submit(jobs("cms", 1, 1, 1, "keep_claim_idle = 1800"))
    query = ["condor_status", "-af", "State", "Activity"]

    def unused() -> bool:
        return not box.jobs() and "Claimed Idle" in box.run(query).stdout

    box.wait_until(unused, "a claim without a job")
    box.remove_jobs()
    assert "Claimed" not in box.run(query).stdout


def test_the_command_shapes_a_pool_runs_commands_and_takes_it_down(
    pool_suite: str,
    tmp_path: Path,
    box: Box,  # noqa: ARG001 - a pool can be had
) -> None:
    """Under a name that a pool has which died."""

    def poolbox(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "poolbox", *arguments],
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": str(tmp_path)},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    link, dead, extra = tmp_path / "poolbox/default", tmp_path / "poolbox-dead", tmp_path / "extra"
    for path in (dead, link.parent):
        path.mkdir(exist_ok=True)
    (dead / "box.json").write_text("{}")
    link.symlink_to(dead)
    extra.write_text('STARTD_ATTRS = $(STARTD_ATTRS) Colour\nColour = "blue"\n')
    options = "--nodes 1 --cores 3 --access-points 1 --group cms=3 --config"
    up = poolbox("up", "--suite", pool_suite, *options.split(), str(extra)).splitlines()
    attached = Box.attach(link.readlink())
    try:
        status = poolbox("status").splitlines()
        for host, daemons in (("ap-1", "master procd schedd"), ("wn-001", "master procd startd")):
            assert {f"{host + '.example.org':<25}{daemons}"} <= {*up} & {*status}
        shown = poolbox("run", "condor_status", "-af", "TotalSlotCpus", "Colour", "t1_wn_hs06")
        assert shown.split() == ["3", "blue", "80.0"]
        assert poolbox("run", "condor_config_val", "GROUP_QUOTA_cms") == "3\n"
    finally:
        poolbox("down")
    assert attached.processes() == []
    assert not [path for path in (dead, attached.directory) if path.exists()]
    assert not link.is_symlink()
