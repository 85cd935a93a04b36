from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from poolbox import Box

CHECKOUT = Path(__file__).parents[2]
JOB = (
    "executable = /bin/sleep\narguments = 300\naccounting_group = cms\naccounting_group_user "
    "= alice\nqueue 2\n"
)
Poolbox = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runtime")


@pytest.fixture(scope="module")
def poolbox(runtime: Path, pool_suite: str, box: Box) -> Poolbox:  # noqa: ARG001  # the box shows that one can be had
    def command(*arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:  # noqa: A002
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(runtime)}
        suite = ("--suite", pool_suite) if arguments[0] == "up" else ()
        argv = [sys.executable, "-m", "poolbox", arguments[0], *suite, *arguments[1:]]
        return subprocess.run(
            argv,
            env=environment,
            cwd=CHECKOUT,
            input=input,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return command


@pytest.fixture(scope="module")
def up(poolbox: Poolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `up` printed; its pool runs as long as the tests of this module."""
    extra = tmp_path_factory.mktemp("extra")
    (extra / "all.config").write_text('STARTD_ATTRS = $(STARTD_ATTRS) Colour\nColour = "blue"\n')
    for whose in ("central", "access", "execute"):
        (extra / f"{whose}.config").write_text(f"WHOSE = {whose}\n")
    options = (
        "--nodes",
        "1",
        "--cores",
        "3",
        "--access-points",
        "1",
        "--group",
        "cms=3",
        "--config",
        str(extra / "all.config"),
        *(f"--{whose}-config={extra}/{whose}.config" for whose in ("central", "access", "execute")),
    )
    done = poolbox("up", *options)
    assert done.returncode == 0, done.stderr
    yield done.stdout
    poolbox("down")


def test_up_shows_hosts_daemons_and_slots_as_status_does(up: str, poolbox: Poolbox) -> None:
    for line in (
        "ap-1.example.org         master procd schedd",
        "wn-001.example.org       master procd startd",
    ):
        assert line in up.splitlines()
    assert "slot1@wn-001.example.org" in up
    assert "slot1@wn-001.example.org" in poolbox("status").stdout


def test_options_of_up_shape_the_pool(up: str, poolbox: Poolbox) -> None:  # noqa: ARG001
    done = poolbox("run", "condor_status", "-af", "TotalSlotCpus", "Colour", "t1_wn_hs06")
    assert done.stdout.split() == ["3", "blue", "80.0"]
    assert poolbox("run", "condor_config_val", "GROUP_QUOTA_cms").stdout == "3\n"
    hosts = {"cm-1": "central", "ap-1": "access", "wn-001": "execute"}
    for host, whose in hosts.items():
        told = poolbox("run", "--host", f"{host}.example.org", "condor_config_val", "WHOSE").stdout
        assert told == f"{whose}\n"


def test_submit_takes_a_description_and_prints_the_cluster(up: str, poolbox: Poolbox) -> None:  # noqa: ARG001
    assert poolbox("submit", "-", input=JOB).stdout == "1\n"
    listing = poolbox("run", "condor_q", "-allusers", "-af", "AccountingGroup")
    assert listing.stdout.splitlines() == ["cms.alice"] * 2


def test_run_joins_the_streams_and_exits_as_the_command_does(up: str, poolbox: Poolbox) -> None:  # noqa: ARG001
    done = poolbox("run", "sh", "-c", "cat; echo bad >&2; exit 7", input="text")
    assert (done.returncode, done.stdout, done.stderr) == (7, "text", "bad\n")
    assert poolbox("run", "sh", "-c", "kill -TERM $$").returncode == 128 + 15


def test_a_second_pool_needs_a_name_of_its_own(up: str, poolbox: Poolbox) -> None:  # noqa: ARG001
    done = poolbox("up")
    assert done.returncode == 1
    assert (
        "a pool named 'default' runs already; end it (python -m poolbox down --name default)"
        in done.stderr
    )


def test_a_pool_not_there_is_an_error_that_says_what_to_do(up: str, poolbox: Poolbox) -> None:  # noqa: ARG001
    for verb in (("status",), ("down",), ("run", "true"), ("submit", "-")):
        done = poolbox(verb[0], "--name", "other", *verb[1:])
        assert (done.returncode, done.stdout) == (1, "")
        assert (
            "no pool named 'other' (there is: default); start it: python -m poolbox up --name other"
            in done.stderr
        )


def test_down_leaves_nothing(poolbox: Poolbox, runtime: Path) -> None:
    assert poolbox("up", "--name", "brief", "--nodes", "1").returncode == 0
    directory = (runtime / "poolbox" / "brief").readlink()
    attached = Box.attach(directory)
    assert attached.processes()
    assert poolbox("down", "--name", "brief").returncode == 0
    assert attached.processes() == []
    assert not directory.exists()
    assert not (runtime / "poolbox" / "brief").is_symlink()


def test_the_name_of_a_pool_that_died_can_be_used_again(poolbox: Poolbox, runtime: Path) -> None:
    link = runtime / "poolbox" / "gone"
    dead = runtime / "poolbox-dead"
    for path in (dead, link.parent):
        path.mkdir(exist_ok=True)
    (dead / "box.json").write_text("{}")
    link.symlink_to(dead)
    try:
        assert "no pool runs in" in poolbox("status", "--name", "gone").stderr
        assert poolbox("up", "--name", "gone", "--nodes", "1").returncode == 0
        assert link.readlink() != dead
        assert not dead.exists()
    finally:
        poolbox("down", "--name", "gone")
        shutil.rmtree(dead, ignore_errors=True)
