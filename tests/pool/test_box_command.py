"""`python -m poolbox`: up, status, run, submit, down."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from poolbox import Box, BoxSpec
from poolbox.waiting import HANG_SECONDS

CHECKOUT = Path(__file__).parents[2]
SPEC = BoxSpec()
Poolbox = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runtime")


@pytest.fixture(scope="module")
def poolbox(runtime: Path, pool_suite: str, pool: Box) -> Poolbox:  # noqa: ARG001  # it shows that one can be had
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
            timeout=HANG_SECONDS,
            check=False,
        )

    return command


@pytest.fixture(scope="module")
def up(poolbox: Poolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `up` printed; its pool runs as long as the tests of this module."""
    extra = tmp_path_factory.mktemp("extra") / "config"
    extra.write_text('STARTD_ATTRS = $(STARTD_ATTRS) Colour\nColour = "blue"\n')
    options = ["--nodes", "1", "--cores", "3", "--access-points", "1", "--group", "cms=3"]
    options += ["--config", str(extra)]
    done = poolbox("up", *options)
    assert done.returncode == 0, done.stderr
    yield done.stdout
    poolbox("down")


def test_options_of_up_shape_the_pool_and_status_shows_it(up: str, poolbox: Poolbox) -> None:
    for line in (
        "ap-1.example.org         master procd schedd",
        "wn-001.example.org       master procd startd",
    ):
        assert line in up.splitlines()
        assert line in poolbox("status").stdout.splitlines()
    assert "slot1@wn-001.example.org" in up
    done = poolbox("run", "condor_status", "-af", "TotalSlotCpus", "Colour", "t1_wn_hs06")
    assert done.stdout.split() == ["3", "blue", "80.0"]
    assert poolbox("run", "condor_config_val", "GROUP_QUOTA_cms").stdout == "3\n"


def test_the_name_of_a_pool_that_died_can_be_used_again_and_down_leaves_nothing(
    poolbox: Poolbox, runtime: Path
) -> None:
    link, dead = runtime / "poolbox" / "gone", runtime / "poolbox-dead"
    for path in (dead, link.parent):
        path.mkdir(exist_ok=True)
    (dead / "box.json").write_text("{}")
    link.symlink_to(dead)
    assert poolbox("up", "--name", "gone", "--nodes", "1").returncode == 0
    attached = Box.attach(link.readlink())
    assert attached.processes()
    assert poolbox("down", "--name", "gone").returncode == 0
    assert attached.processes() == []
    assert [path for path in (dead, attached.directory) if path.exists()] == []
    assert not link.is_symlink()
