from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Callable

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

OpenBox = Callable[[BoxSpec], AbstractContextManager[Box]]

CHECKOUT = Path(__file__).parents[2]
CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
BIG, SMALL = "wn-001.example.org", "wn-002.example.org"
ONE_NODE = BoxSpec(access_points=(FIRST,))
SLEEPS = """\
executable = /bin/sleep
arguments = 300
request_cpus = {cores}
accounting_group = {group}
accounting_group_user = {user}
queue {count}
"""


@pytest.fixture
def queues(box: Box) -> Iterator[Box]:
    """The session's box, its queues empty again afterwards."""
    yield box
    box.remove_jobs()


def running(box: Box, count: int) -> Callable[[], bool]:
    return lambda: len(box.jobs("JobStatus == 2")) == count


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


def test_the_pool_user_is_not_root_and_owns_its_jobs(queues: Box) -> None:
    assert queues.run(["id", "-un"]).stdout == "pool\n"
    queues.submit(SLEEPS.format(cores=1, group="cms", user="alice", count=1))
    assert queues.jobs(attributes=["Owner", "User"]) == [
        {"Owner": "pool", "User": "pool@example.org"}
    ]


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


def test_stop_leaves_no_process_and_no_file(pool_suite: str, box: Box) -> None:
    with Box(BoxSpec(access_points=(FIRST,), suite=pool_suite)) as other:
        other.submit("executable = /bin/sleep\narguments = 300\nqueue\n")
        other.wait_until(
            lambda: "sleep" in {each.program for each in other.processes()}, 30, "a job runs"
        )
    assert other.processes() == []
    assert not other.directory.exists()
    other.stop()
    assert box.complete()


def test_a_starter_killed_by_sigkill_takes_every_daemon_along(
    pool_suite: str, tmp_path: Path, box: Box
) -> None:
    with _elsewhere(
        pool_suite, tmp_path, "import time; box.start(); say(); time.sleep(600)"
    ) as starter:
        seen = _attached_to_what_it_said(starter)
        assert {"condor_startd", "condor_schedd", "condor_collector"} <= {
            each.program for each in seen.processes()
        }
        starter.kill()
        starter.wait()
        wait_for(lambda: not seen.processes(), 10, "the box's processes end")
    assert box.complete()


def test_a_starter_killed_in_the_middle_of_the_start_leaves_no_daemon(
    pool_suite: str, tmp_path: Path
) -> None:
    never_complete = (
        "import dataclasses; box.spec = dataclasses.replace(box.spec, "
        "execute_config='DAEMON_LIST = MASTER')"
    )
    with _elsewhere(pool_suite, tmp_path, f"{never_complete}; box.start()") as starter:
        seen = wait_for(
            lambda: [Box.attach(path.parent) for path in tmp_path.glob("*/control")],
            30,
            "it starts",
        )[0]
        wait_for(
            lambda: "condor_schedd" in {each.program for each in seen.processes()},
            30,
            "daemons run",
        )
        starter.kill()
        starter.wait()
        wait_for(lambda: not seen.processes(), 10, "the box's processes end")


def test_a_pool_that_cannot_come_up_shows_its_logs_and_is_gone(pool_suite: str) -> None:
    hopeless = Box(BoxSpec(suite=pool_suite, central_config="DAEMON_LIST = MASTER, NEGOTIATOR\n"))
    with pytest.raises(
        DeadlineError, match=r"(?s)the collector answers.*--- cm-1\.example\.org MasterLog"
    ):
        hopeless.start(timeout_seconds=4)
    assert hopeless.processes() == []
    assert not hopeless.directory.exists()


def test_a_temporary_folder_with_a_long_name_will_do(
    open_box: OpenBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with open_box(ONE_NODE) as box:
        assert len(str(box.directory)) > 108  # more than the address of a Unix socket holds
        box.submit("executable = /bin/sleep\narguments = 300\nqueue\n")
        box.wait_until(running(box, 1), 30, "a job runs")


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
    """Run a program in another process, with ``box`` and ``say()``, which prints its folder."""
    prologue = f"""
        from poolbox import Box, BoxSpec
        box = Box(BoxSpec(access_points=({FIRST!r},), suite={suite!r}))
        def say():
            print(box.directory, flush=True)
    """
    argv = [sys.executable, "-c", textwrap.dedent(prologue) + program]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(folder)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _attached_to_what_it_said(starter: subprocess.Popen[str]) -> Box:
    assert starter.stdout is not None
    return Box.attach(Path(starter.stdout.readline().strip()))
