"""The box of the pool tests, and `python -m poolbox`: no process or file is left behind."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, CommandError, DeadlineError, PoolboxError
from poolbox.root import htcondor_version
from poolbox.waiting import HANG_SECONDS, wait_for

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


def test_run_hands_over_input_environment_and_exit_code_and_keeps_its_deadline(box: Box) -> None:
    script = ["sh", "-c", "cat; echo $WORD; echo bad >&2; exit 3"]
    done = box.run(script, check=False, input="text\n", environment={"WORD": "word"})
    assert (done.returncode, done.stdout, done.stderr) == (3, "text\nword\n", "bad\n")
    with pytest.raises(PoolboxError, match="cannot run 'no-such-program'"):
        box.run(["no-such-program"])
    with pytest.raises(DeadlineError, match=r"sleep 4242 took longer than 0\.5 s"):
        box.run(["sh", "-c", "sleep 4242 & sleep 4242"], timeout_seconds=0.5)
    wait_for(lambda: not any("4242" in it.argv[-1] for it in box.processes()), "sleeps are gone")


def programs(box: Box) -> set[str]:
    return {process.program for process in box.processes()}


def test_stop_leaves_no_process_and_no_file(
    pool_suite: str, tmp_path: Path, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder whose name is longer than the address of a Unix socket."""
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with Box(dataclasses.replace(SPEC, suite=pool_suite)) as other:
        other.submit("executable = /bin/sleep\narguments = 300\nqueue\n")
        other.wait_until(lambda: "sleep" in programs(other), "a job runs")
    assert other.processes() == []
    assert not other.directory.exists()
    other.stop()
    assert box.complete()


def test_a_starter_killed_in_the_middle_takes_every_daemon_along(
    pool_suite: str, tmp_path: Path
) -> None:
    spec = f"access_points=('ap-1.example.org',), suite={pool_suite!r}"
    program = (
        "from poolbox import Box, BoxSpec; "
        f"Box(BoxSpec({spec}, execute_config='DAEMON_LIST = MASTER')).start()"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment) as starter:
        try:
            (control,) = wait_for(lambda: [*tmp_path.glob("*/control")], "it starts")
            box = Box.attach(control.parent)
            wait_for(lambda: "condor_schedd" in programs(box), "daemons run")
        finally:
            starter.kill()
        starter.wait()
        wait_for(lambda: not box.processes(), "the box's processes end")


def test_a_pool_that_cannot_come_up_shows_its_logs_and_is_gone(pool_suite: str) -> None:
    hopeless = Box(BoxSpec(suite=pool_suite, central_config="DAEMON_LIST = MASTER, NEGOTIATOR\n"))
    logs = r"(?s)the collector answers.*--- cm-1\.example\.org MasterLog"
    with pytest.raises(DeadlineError, match=logs):
        hopeless.start(timeout_seconds=4)
    assert hopeless.processes() == []
    assert not hopeless.directory.exists()


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
