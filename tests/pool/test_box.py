from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolbox import (
    Box,
    BoxSpec,
    CommandError,
    DeadlineError,
    PoolboxError,
)
from poolbox.root import find_root, htcondor_version
from poolbox.sandbox import expose
from poolbox.waiting import wait_for

CHECKOUT = Path(__file__).parents[2]
CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
BIG, SMALL = "wn-001.example.org", "wn-002.example.org"
ONE_NODE = BoxSpec(access_points=(FIRST,))


def slots(box: Box, *attributes: str) -> list[list[str]]:
    found = box.run(["condor_status", "-af:t", *attributes]).stdout
    return sorted(line.split("\t") for line in found.splitlines())


# ---- what is in it


def test_each_host_has_its_own_master_and_daemons(box: Box) -> None:
    programs = {host: {each.program for each in family} for host, family in box.daemons().items()}
    assert programs == {
        CENTRAL: {"condor_master", "condor_procd", "condor_collector", "condor_negotiator"},
        FIRST: {"condor_master", "condor_procd", "condor_schedd"},
        SECOND: {"condor_master", "condor_procd", "condor_schedd"},
        BIG: {"condor_master", "condor_procd", "condor_startd"},
        SMALL: {"condor_master", "condor_procd", "condor_startd"},
    }


def test_runs_the_version_of_the_suite(box: Box, pool_suite: str) -> None:
    assert f"CondorVersion: {htcondor_version(pool_suite)} " in box.run(["condor_version"]).stdout


def test_everything_listens_on_the_loopback_only(box: Box) -> None:
    addresses = box.run(["condor_status", "-any", "-af", "MyAddress"]).stdout.split()
    assert {address.split(":")[0] for address in addresses if address != "undefined"} == {
        "<127.0.0.1"
    }


def test_values_that_are_not_an_interval_are_htcondors_own(box: Box) -> None:
    defaults = {
        "CLAIM_WORKLIFE": "1200",
        "JOB_START_COUNT": "1",
        "POLLING_INTERVAL": "5",
        "MAX_CLAIM_ALIVES_MISSED": "6",
    }
    assert box.run(["condor_config_val", *defaults], host=BIG).stdout.split() == list(
        defaults.values()
    )


def test_the_pool_user_is_not_root_and_owns_its_jobs(box: Box) -> None:
    assert box.run(["id", "-un"]).stdout == "pool\n"
    box.submit("executable = /bin/sleep\narguments = 300\naccounting_group = cms\nqueue\n")
    owner = {"Owner": "pool", "User": "pool@example.org"}
    assert box.jobs(attributes=["Owner", "User"]) == [owner]
    box.remove_jobs()


def test_the_checkout_is_seen_inside_and_cannot_be_written(box: Box) -> None:
    assert box.run(["cat", __file__]).stdout == Path(__file__).read_text()
    with pytest.raises(CommandError, match="Read-only"):
        box.run(["touch", str(CHECKOUT / "README.md")])


# ---- commands inside


def test_run_hands_over_input_environment_and_exit_code(box: Box) -> None:
    script = ["sh", "-c", "cat; echo $WORD; echo bad >&2; exit 3"]
    done = box.run(script, check=False, input="text\n", environment={"WORD": "word"})
    assert (done.returncode, done.stdout, done.stderr) == (3, "text\nword\n", "bad\n")
    with pytest.raises(CommandError, match="exited with 3: bad") as raised:
        box.run(script)
    assert raised.value.stdout == "\n"


def test_run_kills_a_command_at_its_deadline(box: Box) -> None:
    with pytest.raises(DeadlineError, match=r"sleep 4242 took longer than 0\.5 s"):
        box.run(["sh", "-c", "sleep 4242 & sleep 4242"], timeout_seconds=0.5)
    wait_for(
        lambda: not any("4242" in each.argv[-1] for each in box.processes()),
        10,
        "the sleeps are gone",
    )


def test_run_refuses_what_is_not_there(box: Box) -> None:
    with pytest.raises(PoolboxError, match="cannot run 'no-such-program'"):
        box.run(["no-such-program"])
    with pytest.raises(PoolboxError, match="no host 'nowhere'"):
        box.run(["true"], host="nowhere")


# ---- configuration, daemons, waiting


def test_a_host_goes_and_comes_back(box: Box) -> None:
    box.stop_host(SMALL)
    assert box.daemons()[SMALL] == []
    box.wait_until(lambda: slots(box, "Machine") == [[BIG]], 20, "the node left the collector")
    with pytest.raises(PoolboxError, match="runs no condor_startd"):
        box.daemon_pid(SMALL, "STARTD")
    box.start_host(SMALL)
    box.wait_until(box.complete, 20, "the node is back")


def test_a_deadline_shows_what_was_awaited_and_every_log(box: Box) -> None:
    with pytest.raises(DeadlineError) as raised:
        box.wait_until(lambda: False, 0.3, "pigs fly")
    said = str(raised.value)
    assert said.startswith("waited 0.3 s in vain: pigs fly\n")
    for heading in (
        f"--- {CENTRAL} NegotiatorLog",
        f"--- {FIRST} SchedLog",
        f"--- {SMALL} StartLog",
    ):
        assert heading in said


# ---- life and death


def test_stop_leaves_no_process_and_no_file(
    pool_suite: str, tmp_path: Path, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder whose name is longer than the address of a Unix socket."""
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with Box(dataclasses.replace(ONE_NODE, suite=pool_suite)) as other:
        other.submit("executable = /bin/sleep\narguments = 300\nqueue\n")
        other.wait_until(
            lambda: "sleep" in {each.program for each in other.processes()}, 30, "a job runs"
        )
    assert other.processes() == []
    assert not other.directory.exists()
    other.stop()
    assert box.complete()


@pytest.mark.parametrize("complete", [True, False])
def test_a_starter_killed_by_sigkill_takes_every_daemon_along(
    pool_suite: str, tmp_path: Path, box: Box, *, complete: bool
) -> None:
    """Also in the middle of the start."""
    never_complete = (
        "box.spec = dataclasses.replace(box.spec, execute_config='DAEMON_LIST = MASTER')"
    )
    program = f"import dataclasses, time; {'' if complete else never_complete + '; '}box.start()"
    with _elsewhere(pool_suite, tmp_path, f"{program}; time.sleep(600)") as starter:
        seen = wait_for(
            lambda: [Box.attach(path.parent) for path in tmp_path.glob("*/control")],
            30,
            "it starts",
        )[0]
        last = "condor_startd" if complete else "condor_schedd"
        wait_for(lambda: last in {each.program for each in seen.processes()}, 30, "daemons run")
        starter.kill()
        starter.wait()
        wait_for(lambda: not seen.processes(), 10, "the box's processes end")
    assert box.complete()


def test_a_pool_that_cannot_come_up_shows_its_logs_and_is_gone(pool_suite: str) -> None:
    hopeless = Box(BoxSpec(suite=pool_suite, central_config="DAEMON_LIST = MASTER, NEGOTIATOR\n"))
    with pytest.raises(
        DeadlineError, match=r"(?s)the collector answers.*--- cm-1\.example\.org MasterLog"
    ):
        hopeless.start(timeout_seconds=4)
    assert hopeless.processes() == []
    assert not hopeless.directory.exists()


def test_an_htcondor_on_path_is_used_and_no_root_is_built(pool_suite: str, tmp_path: Path) -> None:
    """Inside the cached root condor_master is on PATH, as on a machine that has HTCondor."""
    root = find_root(pool_suite).path
    if root == Path("/"):
        pytest.skip("every test here runs the HTCondor on PATH")
    program = f"""
        from poolbox import Box, BoxSpec
        with Box(BoxSpec(access_points=({FIRST!r},))) as box:
            box.submit("executable = /bin/sleep\\narguments = 300\\nqueue\\n")
            box.wait_until(lambda: box.jobs("JobStatus == 2"), 60, "a job runs")
            slots = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine"]
            print(box.run(slots).stdout.strip())
    """
    (tmp_path / "tmp").mkdir()
    _take_bubblewrap_along(tmp_path / "bin")
    machine = [
        *("bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000"),
        *(part for entry in expose(root, Path("/"), [CHECKOUT, tmp_path]) for part in entry),
        *("--bind", "/proc", "/proc", "--dev", "/dev", "--setenv", "TMPDIR", str(tmp_path / "tmp")),
        *("--ro-bind", str(CHECKOUT), str(CHECKOUT), "--bind", str(tmp_path), str(tmp_path)),
        *(
            "--setenv",
            "PATH",
            f"{tmp_path / 'bin'}:/usr/bin:/usr/sbin",
            "--setenv",
            "PYTHONPATH",
            str(CHECKOUT),
        ),
        *("--setenv", "XDG_CACHE_HOME", str(tmp_path / "cache"), "--chdir", str(tmp_path)),
        *("python3", "-c", textwrap.dedent(program)),
    ]
    done = subprocess.run(machine, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{BIG}\n"
    assert not (tmp_path / "cache").exists()


def _take_bubblewrap_along(folder: Path) -> None:
    """Put a ``bwrap`` into the folder that runs in another root, with its libraries."""
    folder.mkdir()
    program = shutil.which("bwrap") or ""
    listing = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    loader = ""
    for line in listing.splitlines():
        name, arrow, path = line.partition("=>")
        if arrow and "libc.so" not in name:
            shutil.copy(path.split()[0], folder)
        elif "ld-linux" in name:
            loader = name.split()[0]
    shutil.copy(program, folder / "bwrap.real")
    (folder / "bwrap").write_text(
        f'#!/bin/sh\nexec {loader} --library-path {folder} {folder}/bwrap.real "$@"\n'
    )
    (folder / "bwrap").chmod(0o755)


@contextlib.contextmanager
def _elsewhere(suite: str, folder: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program in another process, with ``box``."""
    prologue = (
        f"from poolbox import Box, BoxSpec; "
        f"box = Box(BoxSpec(access_points=({FIRST!r},), suite={suite!r})); "
    )
    argv = [sys.executable, "-c", prologue + program]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(folder)}
    with subprocess.Popen(argv, env=environment, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
