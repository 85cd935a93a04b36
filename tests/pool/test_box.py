from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Callable

import pytest

from poolbox import (
    Box,
    BoxFailedError,
    BoxSpec,
    CommandError,
    DeadlineError,
    ExecutePoint,
    PoolboxError,
    SpecError,
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


def test_nodes_are_as_specified(box: Box) -> None:
    assert slots(
        box, "Machine", "TotalSlotCpus", "TotalMemory", "t1_wn_hs06", "PartitionableSlot"
    ) == [
        [BIG, "8", "16384", "80.0", "true"],
        [SMALL, "4", "8000", "undefined", "true"],
    ]


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


# ---- jobs


def test_jobs_of_both_access_points_run_in_their_groups(queues: Box) -> None:
    queues.submit(SLEEPS.format(cores=8, group="cms", user="u1", count=1))
    queues.submit(SLEEPS.format(cores=2, group="atlas", user="u2", count=2), SECOND)
    queues.wait_until(running(queues, 3), 30, "three jobs run")
    # -global passes over a schedd whose ad does not tell yet of jobs.
    listing = [
        "condor_q",
        "-global",
        "-allusers",
        "-af",
        "AcctGroup",
        "RequestCpus",
        "AccountingGroup",
    ]
    expected = ["atlas 2 atlas.u2", "atlas 2 atlas.u2", "cms 8 cms.u1"]
    queues.wait_until(
        lambda: sorted(queues.run(listing).stdout.splitlines()) == expected, 20, "all are listed"
    )
    assert [job["RemoteHost"].split("@")[1] for job in queues.jobs('AcctGroup == "cms"')] == [BIG]


def test_condor_q_on_the_central_point_means_the_first_access_point(queues: Box) -> None:
    queues.submit(SLEEPS.format(cores=1, group="cms", user="u1", count=1))
    assert queues.run(["condor_q", "-af", "ClusterId"]).stdout.strip().isdigit()


def test_quotas_are_configured(box: Box) -> None:
    knobs = ["GROUP_NAMES", "GROUP_QUOTA_DYNAMIC_alice", "GROUP_ACCEPT_SURPLUS"]
    assert box.run(["condor_config_val", *knobs]).stdout.split("\n")[:3] == [
        "alice, atlas, cms",
        "0.4",
        "True",
    ]


# ---- from outside


def test_bindings_outside_query_and_advertise_as_the_pool_user(queues: Box) -> None:
    queues.submit(SLEEPS.format(cores=1, group="cms", user="u1", count=3), SECOND)
    program = """
        import classad2, htcondor2
        collector = htcondor2.Collector()
        collector.advertise([classad2.ClassAd({"MyType": "Target", "Name": "a"})], "UPDATE_AD_GENERIC", True)
        while not (found := collector.query(htcondor2.AdType.Any, 'MyType == "Target"')):
            pass  # an update is taken up after the answer to its sender
        print(found[0]["AuthenticatedIdentity"])
        schedds = collector.locateAll(htcondor2.DaemonType.Schedd)
        print(sorted(len(htcondor2.Schedd(schedd).query()) for schedd in schedds))
    """
    assert _outside(queues, program) == "pool@example.org\n[0, 3]\n"


def test_an_ad_from_nobody_is_told_apart(box: Box) -> None:
    program = """
        import classad2, htcondor2
        htcondor2.param["SEC_CLIENT_AUTHENTICATION"] = "NEVER"
        collector = htcondor2.Collector()
        collector.advertise([classad2.ClassAd({"MyType": "Stray", "Name": "a"})], "UPDATE_AD_GENERIC", True)
        while not (found := collector.query(htcondor2.AdType.Any, 'MyType == "Stray"')):
            pass  # an update is taken up after the answer to its sender
        print(found[0]["AuthenticatedIdentity"])
    """
    assert _outside(box, program) == "unauthenticated@unmapped\n"


def _outside(box: Box, program: str) -> str:
    environment = {**os.environ, **box.client_environment}
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(
        argv, env=environment, check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_the_checkout_is_seen_inside_and_cannot_be_written(box: Box) -> None:
    assert box.run(["cat", __file__]).stdout == Path(__file__).read_text()
    with pytest.raises(CommandError, match="Read-only"):
        box.run(["touch", str(CHECKOUT / "README.md")])


def test_a_node_job_reads_the_shared_folder(box: Box) -> None:
    (box.shared_directory / "words.txt").write_text("from outside")
    job = box.shared_directory / "job.py"
    job.write_text(
        "#!/usr/bin/python3 -IS\n"
        "from pathlib import Path\n"
        "words = Path(__file__).with_name('words.txt').read_text()\n"
        "print(f'Words = \"{words}\"')\n"
    )
    job.chmod(0o755)
    knobs = f"EXECUTABLE = {job}", "MODE = Periodic", "PERIOD = 1s"
    text = "STARTD_CRON_JOBLIST = WORDS\n" + "".join(
        f"STARTD_CRON_WORDS_{knob}\n" for knob in knobs
    )
    box.write_config(BIG, text)
    box.reconfig(BIG)
    try:
        box.wait_until(
            lambda: slots(box, "Words")[0] == ["from outside"], 30, "the node publishes the words"
        )
    finally:
        box.write_config(BIG, "")
        box.reconfig(BIG)


# ---- commands inside


def test_run_hands_over_input_environment_and_exit_code(box: Box) -> None:
    script = ["sh", "-c", "cat; echo $WORD; echo bad >&2; exit 3"]
    done = box.run(script, check=False, input="text\n", environment={"WORD": "word"})
    assert (done.returncode, done.stdout, done.stderr) == (3, "text\nword\n", "bad\n")
    with pytest.raises(CommandError, match="exited with 3: bad") as raised:
        box.run(script)
    assert raised.value.stdout == "\n"


def test_run_takes_input_and_gives_output_of_any_length(box: Box) -> None:
    text = "x" * 3_000_000
    assert box.run(["cat"], input=text).stdout == text
    assert box.run(["echo", "y" * 100_000]).stdout == "y" * 100_000 + "\n"


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


def test_written_configuration_takes_effect_at_a_reconfig(box: Box) -> None:
    box.write_config(SMALL, 'Colour = "blue"\nSTARTD_ATTRS = $(STARTD_ATTRS) Colour\n')
    box.reconfig(SMALL)
    box.wait_until(lambda: ["blue"] in slots(box, "Colour"), 20, "the node is blue")
    box.write_config(SMALL, "")
    box.reconfig(SMALL)
    box.wait_until(
        lambda: ["blue"] not in slots(box, "Colour"), 20, "the node is not blue any more"
    )


def test_a_host_goes_and_comes_back(box: Box) -> None:
    box.stop_host(SMALL)
    assert box.daemons()[SMALL] == []
    box.wait_until(lambda: slots(box, "Machine") == [[BIG]], 20, "the node left the collector")
    with pytest.raises(PoolboxError, match="runs no condor_startd"):
        box.daemon_pid(SMALL, "STARTD")
    box.start_host(SMALL)
    box.wait_until(box.complete, 20, "the node is back")


def test_a_stopped_schedd_hangs_until_it_continues(box: Box) -> None:
    pid = box.daemon_pid(SECOND, "SCHEDD")
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeadlineError):
            box.run(["condor_q", "-name", SECOND], timeout_seconds=2)
        box.run(["condor_q", "-name", FIRST], timeout_seconds=10)
    finally:
        os.kill(pid, signal.SIGCONT)
    box.run(["condor_q", "-name", SECOND], timeout_seconds=20)


def test_a_killed_daemon_is_started_again_by_its_master(box: Box) -> None:
    killed = box.daemon_pid(SMALL, "STARTD")
    os.kill(killed, signal.SIGKILL)
    box.wait_until(
        lambda: box.daemon_pid(SMALL, "STARTD") != killed, 60, "the master starts another startd"
    )
    box.wait_until(lambda: "restarting" in box.log_text(SMALL, "MASTER"), 10, "the master says so")


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


def test_two_boxes_side_by_side_know_nothing_of_each_other(box: Box, open_box: OpenBox) -> None:
    with open_box(
        BoxSpec((ExecutePoint("wn-777.example.org", cores=1),), access_points=(FIRST,))
    ) as other:
        assert slots(other, "Machine", "TotalSlotCpus") == [["wn-777.example.org", "1"]]
        assert [row[0] for row in slots(box, "Machine")] == [BIG, SMALL]
        other.submit("executable = /bin/sleep\narguments = 300\nqueue\n")
        other.wait_until(running(other, 1), 30, "the job runs")
        assert box.jobs() == []


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


def test_a_box_outlives_the_thread_that_started_it(open_box: OpenBox) -> None:
    with contextlib.ExitStack() as stack:
        opened: list[Box] = []
        starter = threading.Thread(
            target=lambda: opened.append(stack.enter_context(open_box(ONE_NODE)))
        )
        starter.start()
        starter.join()
        assert opened[0].complete()


def test_a_detached_box_is_found_by_its_directory_and_stopped(
    pool_suite: str, tmp_path: Path
) -> None:
    with _elsewhere(pool_suite, tmp_path, "box.start(); box.detach(); say()") as starter:
        directory = Path(starter.communicate(timeout=60)[0].strip())
    attached = Box.attach(directory)
    try:
        assert attached.complete()
        assert attached.spec == BoxSpec(access_points=(FIRST,), suite=pool_suite)
    finally:
        attached.stop()
    assert attached.processes() == []
    with pytest.raises(BoxFailedError, match="no pool runs in"):
        Box.attach(directory)


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


def test_a_spec_that_cannot_be_a_pool_says_all_that_is_wrong() -> None:
    with pytest.raises(SpecError) as raised:
        Box(BoxSpec(access_points=(), suite="sid"))
    assert len(raised.value.problems) == 2


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
            print(box.run(["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine"]).stdout.strip())
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
    """Put a ``bwrap`` into the folder that runs in another root, with all libraries of this one but libc."""
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
    """Run a program in another process, with ``box`` ready to start and ``say()`` printing its directory."""
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
