"""The box of the pool tests: commands inside, and no process or file left behind."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, CommandError, DeadlineError, PoolboxError
from poolbox.root import htcondor_version
from poolbox.waiting import wait_for

CHECKOUT = Path(__file__).parents[2]
SPEC = BoxSpec(access_points=("ap-1.example.org",))


def test_runs_the_version_of_the_suite(box: Box, pool_suite: str) -> None:
    assert f"CondorVersion: {htcondor_version(pool_suite)} " in box.run(["condor_version"]).stdout


def test_everything_listens_on_the_loopback_only(box: Box) -> None:
    addresses = box.run(["condor_status", "-any", "-af", "MyAddress"]).stdout.split()
    assert {address.split(":")[0] for address in addresses if address != "undefined"} == {
        "<127.0.0.1"
    }


def test_the_checkout_is_seen_inside_and_cannot_be_written(box: Box) -> None:
    assert box.run(["cat", __file__]).stdout == Path(__file__).read_text()
    with pytest.raises(CommandError, match="Read-only"):
        box.run(["touch", str(CHECKOUT / "README.md")])


def test_run_hands_over_input_environment_and_exit_code(box: Box) -> None:
    script = ["sh", "-c", "cat; echo $WORD; echo bad >&2; exit 3"]
    done = box.run(script, check=False, input="text\n", environment={"WORD": "word"})
    assert (done.returncode, done.stdout, done.stderr) == (3, "text\nword\n", "bad\n")
    with pytest.raises(CommandError, match="exited with 3: bad") as raised:
        box.run(script)
    assert raised.value.stdout == "\n"
    with pytest.raises(PoolboxError, match="cannot run 'no-such-program'"):
        box.run(["no-such-program"])


def test_run_kills_a_command_at_its_deadline(box: Box) -> None:
    with pytest.raises(DeadlineError, match=r"sleep 4242 took longer than 0\.5 s"):
        box.run(["sh", "-c", "sleep 4242 & sleep 4242"], timeout_seconds=0.5)
    wait_for(
        lambda: not any("4242" in each.argv[-1] for each in box.processes()),
        "the sleeps are gone",
    )


def test_stop_leaves_no_process_and_no_file(
    pool_suite: str, tmp_path: Path, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder whose name is longer than the address of a Unix socket."""
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with Box(dataclasses.replace(SPEC, suite=pool_suite)) as other:
        other.submit("executable = /bin/sleep\narguments = 300\nqueue\n")
        other.wait_until(
            lambda: "sleep" in {each.program for each in other.processes()}, "a job runs"
        )
    assert other.processes() == []
    assert not other.directory.exists()
    other.stop()
    assert box.complete()


def test_a_starter_killed_by_sigkill_takes_every_daemon_along(
    pool_suite: str, tmp_path: Path
) -> None:
    """In the middle of the start: it waits for a startd."""
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
            wait_for(
                lambda: "condor_schedd" in {each.program for each in box.processes()},
                "daemons run",
            )
        finally:
            starter.kill()
        starter.wait()
        wait_for(lambda: not box.processes(), "the box's processes end")


def test_a_pool_that_cannot_come_up_shows_its_logs_and_is_gone(pool_suite: str) -> None:
    hopeless = Box(BoxSpec(suite=pool_suite, central_config="DAEMON_LIST = MASTER, NEGOTIATOR\n"))
    with pytest.raises(
        DeadlineError, match=r"(?s)the collector answers.*--- cm-1\.example\.org MasterLog"
    ):
        hopeless.start(timeout_seconds=4)
    assert hopeless.processes() == []
    assert not hopeless.directory.exists()
