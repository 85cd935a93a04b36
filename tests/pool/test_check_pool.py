"""`sharectl check pool` on a pool in order, and with one thing broken after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.waiting import wait_for
from sharectl.model import Standing, Target
from sharectl.plan.blocks import BlockMemory, OpenBlock
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.pool import clocks
from tests.pool.conftest import OpenBox
from tests.pool.deployed import CHECKOUT, snippet
from tests.pool.sharectl_command import Sharectl

CENTRAL, FIRST, SECOND = "cm-1.example.org", "ap-1.example.org", "ap-2.example.org"
NODE, OTHER_NODE, BARE = (f"wn-{number:03}.example.org" for number in (1, 2, 3))
MAP = "SHARECTL_GROUP_MAP = $(LOCAL_DIR)/../../shared/groups.map\n"
DEFRAG = f"""\
DAEMON_LIST = $(DAEMON_LIST) DEFRAG
DEFRAG_INTERVAL = 3600
DEFRAG_REQUIREMENTS = PartitionableSlot && t1_TargetActive =!= True
include : {CHECKOUT}/config.d/60-sharectl-defrag.conf
"""
DENIED = "\n".join(
    f"SCHEDD.ALLOW_{level} = nobody@nowhere.invalid"
    for level in ("READ", "WRITE", "DAEMON", "NEGOTIATOR", "ADMINISTRATOR", "CONFIG")
)
CONFIGURATION: dict[str, Any] = {"nodes": {"controlled": ["wn-001", "wn-002"]}}
SPEC = BoxSpec(
    (
        ExecutePoint(NODE, config=snippet()),
        ExecutePoint(OTHER_NODE, config=snippet()),
        ExecutePoint(BARE),
    ),
    access_points=(FIRST, SECOND),
    central_config=DEFRAG,
    access_config=f"{MAP}include : {CHECKOUT}/config.d/60-sharectl-access-point.conf\n",
)


@pytest.fixture(scope="module")
def pool(open_box: OpenBox) -> Iterator[Box]:
    with open_box(SPEC) as box:
        box.directory.chmod(0o755)
        (box.shared_directory / "groups.map").write_text("* pool cms,atlas\n")
        yield box


@pytest.fixture(scope="module")
def sharectl(pool: Box) -> Sharectl:
    """The command, after a cycle, on a pool in order."""
    command = Sharectl(pool, pool.shared_directory)
    cycle(command)
    becomes(command, {})
    return command


def metrics_of(sharectl: Sharectl) -> Path:
    return sharectl.folder / "sharectl.prom"


def cycle(sharectl: Sharectl) -> None:
    sharectl.run("cycle", **configured(sharectl))


def configured(sharectl: Sharectl, **more: Any) -> dict[str, Any]:
    return {**CONFIGURATION, "metrics": {"textfile": str(metrics_of(sharectl))}, **more}


def report(sharectl: Sharectl, **more: Any) -> dict[str, Any]:
    done = sharectl.run("check", "pool", "--json", expect=None, **configured(sharectl, **more))
    printed: dict[str, Any] = json.loads(done.stdout)
    has_failed = "fail" in printed["states"].values()
    assert (done.returncode, done.stderr) == (int(has_failed), "")
    return printed


def faulty(printed: Mapping[str, Any]) -> dict[str, str]:
    """Checks that are not ok."""
    return {check: state for check, state in printed["states"].items() if state != "ok"}


def becomes(sharectl: Sharectl, expected: Mapping[str, str], **more: Any) -> str:
    """Wait until exactly these checks are not ok; returns the text of their findings."""
    last: dict[str, Any] = {}

    def seen() -> bool:
        last.update(report(sharectl, **more))
        return faulty(last) == expected

    try:
        wait_for(seen, f"the checks that are not ok: {expected}")
    except Exception as error:
        raise AssertionError(json.dumps(last.get("findings"), indent=1)) from error
    return json.dumps(last["findings"])


def written(box: Box, texts: Mapping[str, str]) -> None:
    """Give hosts a last file of configuration, and have them read it."""
    for host, text in texts.items():
        box.write_config(host, text)
        box.reconfig(host)


# ---- faults that need no daemon's help


def test_a_pool_in_order_is_ok_for_people_and_for_monitoring(sharectl: Sharectl) -> None:
    out = sharectl.run("check", "pool", **configured(sharectl)).stdout
    assert out.splitlines()[-1] == "16 ok"
    assert "asked 2 of 2 slots under control with the snippet" in out
    line = sharectl.run("check", "pool", "--nagios", **configured(sharectl)).stdout
    assert line.startswith("SHARECTL OK - 16 checks ok | ok=16 warn=0 fail=0 unknown=0 ")
    assert (line.count("\n"), " slots=3 " in line) == (1, True)


def test_without_a_collector_that_is_said_and_all_else_is_unknown(sharectl: Sharectl) -> None:
    nowhere = {"collector": "127.0.0.1:1"}
    of_pool = ("clocks", "groups", "cron", "start", "fresh", "nodes", "cores", "defrag")
    expected = {"reach": "fail", **dict.fromkeys(of_pool, "unknown")}
    assert "nobody listens at 127.0.0.1:1" in becomes(sharectl, expected, pool=nowhere)
    settings = configured(sharectl, pool=nowhere)
    line = sharectl.run("check", "pool", "--nagios", expect=2, **settings).stdout
    assert line.startswith("SHARECTL CRITICAL - reach: collector: 127.0.0.1:1: nobody listens")
    assert sharectl.run("check", "pool", "--nagios", expect=3, pool={"none": 1}).stdout.startswith(
        "SHARECTL UNKNOWN - "
    )


def test_faults_of_the_machine_of_the_cycles(sharectl: Sharectl, tmp_path: Path) -> None:
    metrics, targets = metrics_of(sharectl), sharectl.targets
    metrics.chmod(0o600)
    becomes(sharectl, {"files": "warn"})
    line = sharectl.run("check", "pool", "--nagios", expect=1, **configured(sharectl)).stdout
    assert line.startswith(f"SHARECTL WARNING - files: {metrics}: mode 0600 ")
    metrics.chmod(0o644)
    becomes(sharectl, {"nodes": "fail"}, nodes={"controlled": "wn-*"})

    store = store_of(sharectl)
    last, state = store.last_cycle(), store.load()
    store.note_cycle({**last, "taken_at": last["taken_at"] - 7200})
    becomes(sharectl, {"timer": "fail"})
    store.note_cycle(last)
    now, stands = int(time.time()), with_target(state)
    block = OpenBlock("wn-001", "cms", 8, now - 7200, free_since=now - 7200)
    store.save(replace(stands, blocks=BlockMemory(open=(block,))))
    becomes(sharectl, {"cores": "fail"})
    store.save(replace(stands, unheeding={"wn-001": now}))
    becomes(sharectl, {"nodes": "warn"})
    store.save(state)

    content = targets.read_bytes()
    targets.unlink()
    becomes(sharectl, {"targets": "fail"})
    targets.write_bytes(content)
    sharectl.run("cycle", expect=75, **configured(sharectl, pool={"collector": "127.0.0.1:1"}))
    becomes(sharectl, {"cycles": "fail"})
    cycle(sharectl)
    shift = replace(sharectl, environment=clocks.shifted(tmp_path / "shift", 200))
    becomes(shift, {"clocks": "fail"})

    folder, main = tmp_path / "config.d", tmp_path / "condor_config"
    folder.mkdir()
    (folder / "50-site.conf.bak").write_text("START = False\n")
    (folder / "60-node.conf").write_text(snippet("STARTD_CRON_JOB_CTL_KILL = 1"))
    client = Path(sharectl.box.client_environment["CONDOR_CONFIG"]).read_text()
    main.write_text(f"{client}LOCAL_CONFIG_DIR = {folder}\n")
    own = replace(sharectl, environment={"CONDOR_CONFIG": str(main)})
    text = becomes(own, {"configuration": "fail", "cron": "fail"})
    assert "50-site.conf.bak" in text
    assert "60-node.conf:" in text, "this machine is a node"
    becomes(sharectl, {})


def store_of(sharectl: Sharectl) -> StateFile:
    return StateFile(sharectl.folder / "state.json")


def with_target(state: State) -> State:
    """State of a cycle that has put the node under a target."""
    now = int(time.time())
    target = Standing(Target("wn-001", "atlas", 0, "cms", 8), now)
    return replace(state, standing=(target,), standing_until=now + 600)


# ---- faults of daemons and nodes


def test_faults_of_nodes(sharectl: Sharectl) -> None:
    box = sharectl.box
    hidden = 'MachineSecret = "\\x1b[2J"\nSTARTD_ATTRS = t1_Enabled MachineSecret\n'
    written(box, {NODE: "STARTD_CRON_JOB_CTL_KILL = 1\n", OTHER_NODE: "START = True\n"})
    text = becomes(sharectl, {"cron": "fail", "start": "fail"})
    for words in (f"{NODE} STARTD_CRON_JOB_CTL_KILL", f'"{OTHER_NODE}"', "START has no t1_Grace"):
        assert words in text
    old = "SHARECTL_JOB_CTL_STALE_SECONDS = 4\nSTARTD_CRON_JOB_CTL_EXECUTABLE = /bin/true\n"
    key = "SHARECTL_SOURCE_OPTIONS = --key-file /nowhere/keys\n"
    written(box, {NODE: old, OTHER_NODE: key})
    text = becomes(sharectl, {"fresh": "fail", "nodes": "fail"})
    assert "1 slot: stale" in text
    assert "1 slot: no-key" in text
    written(box, {NODE: hidden, OTHER_NODE: "STARTD_CRON_JOBLIST = SHARECTL_OFF\n"})
    # With the job goes what it has published.
    text = becomes(sharectl, {"start": "fail", "fresh": "fail"})
    assert "publishes no t1_GraceAdmits" in text
    written(box, {NODE: "", OTHER_NODE: ""})
    becomes(sharectl, {})


def test_faults_of_access_points_and_the_central_manager(sharectl: Sharectl) -> None:
    box = sharectl.box
    written(box, {FIRST: "JOB_TRANSFORM_NAMES =\nSUBMIT_REQUIREMENT_NAMES =\n"})
    text = becomes(sharectl, {"groups": "warn"})
    assert f'"schedd {FIRST}"' in text
    written(box, {FIRST: "", SECOND: DENIED})
    text = becomes(sharectl, {"reach": "fail", "groups": "unknown"})
    assert "READ is denied to pool@example.org (by CLAIMTOBE)" in text
    assert "write SCHEDD.ALLOW_READ = " in text
    written(box, {SECOND: "", CENTRAL: "DEFRAG_REQUIREMENTS = Cpus < 4\n"})
    becomes(sharectl, {"defrag": "warn"})
    written(box, {CENTRAL: "DEFRAG_DRAINING_START_EXPR = True\n"})
    assert "DEFRAG_DRAINING_START_EXPR has no t1_Grace" in becomes(sharectl, {"defrag": "fail"})
    written(box, {CENTRAL: ""})
    becomes(sharectl, {})
    store = store_of(sharectl)
    state = store.load()
    store.save(with_target(state))
    box.run(["condor_drain", NODE])
    assert "1 slot under a target drain" in becomes(sharectl, {"defrag": "warn"})
    box.run(["condor_drain", "-cancel", NODE])
    store.save(state)
    becomes(sharectl, {})
