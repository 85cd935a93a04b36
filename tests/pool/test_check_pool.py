"""`sharectl check pool` on a pool in order, and with one daemon broken after the other.

Faults of files, of the timer and of clocks are in unit/check/test_pool_checks.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.waiting import wait_for
from tests.pool.deployed import CHECKOUT, configure, snippet
from tests.pool.sharectl_command import Sharectl

CENTRAL, FIRST = "cm-1.example.org", "ap-1.example.org"
NODE, OTHER_NODE, BARE = (f"wn-{number:03}.example.org" for number in (1, 2, 3))
MAP = "SHARECTL_GROUP_MAP = $(LOCAL_DIR)/../../shared/groups.map\n"
DEFRAG = f"""\
DAEMON_LIST = $(DAEMON_LIST) DEFRAG
DEFRAG_INTERVAL = 3600
DEFRAG_REQUIREMENTS = PartitionableSlot && t1_TargetActive =!= True
include : {CHECKOUT}/config.d/60-sharectl-defrag.conf
"""
SPEC = BoxSpec(
    (
        ExecutePoint(NODE, config=snippet()),
        ExecutePoint(OTHER_NODE, config=snippet()),
        ExecutePoint(BARE),
    ),
    access_points=(FIRST,),
    central_config=DEFRAG,
    access_config=f"{MAP}include : {CHECKOUT}/config.d/60-sharectl-access-point.conf\n",
)


def prepare(box: Box) -> None:
    box.directory.chmod(0o755)
    (box.shared_directory / "groups.map").write_text("* pool cms,atlas\n")


@pytest.fixture(scope="module")
def sharectl(pool: Box) -> Sharectl:
    """The command, after a cycle, on a pool in order."""
    command = Sharectl(pool, pool.shared_directory)
    command.run("cycle", **configured(command))
    becomes(command, {})
    return command


def configured(sharectl: Sharectl) -> dict[str, Any]:
    metrics = {"textfile": str(sharectl.folder / "sharectl.prom")}
    return {"nodes": {"controlled": ["wn-001", "wn-002"]}, "metrics": metrics}


def becomes(sharectl: Sharectl, expected: Mapping[str, str], *words: str) -> str:
    """Wait until exactly these checks are not ok, for these words; returns their findings."""
    last: dict[str, Any] = {}

    def seen() -> bool:
        done = sharectl.run("check", "pool", "--json", expect=None, **configured(sharectl))
        last.update(json.loads(done.stdout))
        faulty = {check: state for check, state in last["states"].items() if state != "ok"}
        assert (done.returncode, done.stderr) == (int("fail" in faulty.values()), "")
        return faulty == expected and all(word in done.stdout for word in words)

    try:
        wait_for(seen, f"the checks that are not ok: {expected}")
    except Exception as error:
        raise AssertionError(json.dumps(last.get("findings"), indent=1)) from error
    return json.dumps(last["findings"])


def test_a_pool_in_order_is_ok(sharectl: Sharectl) -> None:
    out = sharectl.run("check", "pool", **configured(sharectl)).stdout
    assert out.splitlines()[-1] == "14 ok"
    assert "asked 2 of 2 slots under control with the snippet" in out


def test_faults_of_nodes(sharectl: Sharectl) -> None:
    box = sharectl.box
    hidden = 'MachineSecret = "\\x1b[2J"\nSTARTD_ATTRS = t1_Enabled MachineSecret\n'
    configure(box, NODE, "STARTD_CRON_JOB_CTL_KILL = 1\n")
    configure(box, OTHER_NODE, "START = True\n")
    text = becomes(sharectl, {"cron": "fail", "start": "fail"})
    for words in (f"{NODE} STARTD_CRON_JOB_CTL_KILL", f'"{OTHER_NODE}"', "START has no t1_Grace"):
        assert words in text
    old = "SHARECTL_JOB_CTL_STALE_SECONDS = 4\nSTARTD_CRON_JOB_CTL_EXECUTABLE = /bin/true\n"
    configure(box, NODE, old)
    configure(box, OTHER_NODE, "SHARECTL_SOURCE_OPTIONS = --key-file /nowhere/keys\n")
    states = (f"1 slot under control: {state}" for state in ("stale", "no-key"))
    becomes(sharectl, {"nodes": "fail"}, *states)
    configure(box, NODE, hidden)
    configure(box, OTHER_NODE, "STARTD_CRON_JOBLIST = SHARECTL_OFF\n")
    # With the job goes what it has published.
    text = becomes(sharectl, {"start": "fail", "nodes": "fail"})
    assert "publishes no t1_GraceAdmits" in text
    for node in (NODE, OTHER_NODE):
        configure(box, node)
    becomes(sharectl, {})


def test_faults_of_access_points_and_the_central_manager(sharectl: Sharectl) -> None:
    box = sharectl.box
    configure(box, FIRST, "JOB_TRANSFORM_NAMES =\nSUBMIT_REQUIREMENT_NAMES =\n")
    assert f'"schedd {FIRST}"' in becomes(sharectl, {"groups": "warn"})
    configure(box, FIRST)
    configure(box, CENTRAL, "DEFRAG_REQUIREMENTS = Cpus < 4\n")
    becomes(sharectl, {"defrag": "warn"})
    configure(box, CENTRAL, "DEFRAG_DRAINING_START_EXPR = True\n")
    assert "DEFRAG_DRAINING_START_EXPR has no t1_Grace" in becomes(sharectl, {"defrag": "fail"})
    configure(box, CENTRAL)
    becomes(sharectl, {})
