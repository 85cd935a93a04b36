"""Two central managers: cycles run where the negotiator runs, and condor_had decides where."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from poolbox import Box, BoxSpec
from poolbox.box import free_port
from poolbox.waiting import wait_for
from sharectl.errors import PoolUnavailableError
from tests.pool.deployed import CHECKOUT, jobs, snippet, still
from tests.pool.sharectl_command import Sharectl

FIRST, SECOND = "cm-1.example.org", "cm-2.example.org"
HOSTS = (FIRST, SECOND)
NODES = ("wn-001.example.org", "wn-002.example.org")
TARGET_SECONDS = 120.0

CENTRAL = """\
DAEMON_LIST = $(DAEMON_LIST), COLLECTOR, NEGOTIATOR, HAD
COLLECTOR_HOST = 127.0.0.1:{own}, 127.0.0.1:{other}
COLLECTOR_ARGS = -p {own}
HAD_LIST = 127.0.0.1:{had[0]}, 127.0.0.1:{had[1]}
HAD_ARGS = -f -p {own_had}
HAD_CONNECTION_TIMEOUT = 2
HAD_USE_PRIMARY = True
HAD_USE_REPLICATION = False
MASTER_NEGOTIATOR_CONTROLLER = HAD
NEGOTIATOR_INTERVAL = 3
NEGOTIATOR_UPDATE_INTERVAL = 5
"""
SPEC = BoxSpec.of_equal_nodes(len(NODES), access_points=(SECOND,), execute_config=snippet())
"""A pool whose access point is its second central manager."""


def prepare(box: Box) -> None:
    second, *had = (free_port() for _ in range(3))
    ports = (box.port, second)
    for host, own, other, own_had in zip(HOSTS, ports, reversed(ports), had):
        box.write_config(host, CENTRAL.format(own=own, other=other, had=had, own_had=own_had))
    for node in NODES:
        box.write_config(node, f"COLLECTOR_HOST = 127.0.0.1:{box.port}, 127.0.0.1:{second}\n")
    for host in (*HOSTS, *NODES):
        box.stop_host(host)
        box.start_host(host)


def condition() -> str:
    """The shell's part of the drop-in, as systemd hands it over."""
    drop_in = (CHECKOUT / "systemd" / "sharectl.negotiator.conf").read_text()
    line = next(line for line in drop_in.splitlines() if line.startswith("ExecCondition=/bin/sh"))
    return line.partition(" -c ")[2].strip("'").replace("$$", "$")


class Timers:
    """Periods of both hosts' timers, with one state directory."""

    def __init__(self, box: Box, sharectl: Sharectl) -> None:
        self.box = box
        self.sharectl = sharectl
        self.down: set[str] = set()
        self._targets = box.shared_directory / "sharectl.txt"

    def leaders(self) -> list[str]:
        return [host for host in HOSTS if host not in self.down and self._leads(host) == 0]

    def period(self) -> list[int]:
        published = []
        for host in self.leaders():
            way = [{"file": str(self._targets)}]
            done = self.sharectl.run("cycle", expect=None, publish=way)
            print(host, done.stdout, done.stderr)
            if done.returncode == PoolUnavailableError.exit_code:
                continue  # a collector that has just lost the other one may be slow
            assert done.returncode == 0, done.stderr
            text = self._targets.read_text()
            published.append(int(text.split("# sequence: ")[1].split()[0]))
        return published

    def target(self) -> int:
        """Sequence of a plan with a target; 0 if no host, or both, published one in a period."""
        published = self.period()
        is_there = "\nwn-" in self._targets.read_text()
        return published[0] if len(published) == 1 and is_there else 0

    def node_has(self, sequence: int, host: str) -> None:
        """Wait until the node has the plan, as the collector of ``host`` knows."""
        query = ["condor_status", "-af", "t1_TargetSequence"]
        self.box.wait_until(
            lambda: str(sequence) in self.box.run(query, host=host).stdout.split(),
            f"the node has plan {sequence}",
        )

    def _leads(self, host: str) -> int:
        return self.box.run(["sh", "-c", condition()], host=host, check=False).returncode


def test_one_publishes_and_the_other_takes_over(pool: Box, tmp_path: Path) -> None:
    collectors = pool.run(["condor_config_val", "COLLECTOR_HOST"], host=FIRST).stdout.strip()
    timers = Timers(pool, Sharectl(pool, tmp_path, {"_CONDOR_COLLECTOR_HOST": collectors}))

    wait_for(lambda: timers.leaders() == [FIRST], "the first one leads")
    pool.submit(jobs("atlas", 1, 16, 900))
    still(pool, 16)
    pool.submit(jobs("cms", 8, 2, 900))
    before = wait_for(timers.target, "a plan with a target", TARGET_SECONDS)
    timers.node_has(before, FIRST)

    for process in pool.daemons()[FIRST]:  # its master first
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    timers.down.add(FIRST)
    assert timers.period() == [], "the dead one's ad is still there: nobody takes over at once"
    wait_for(lambda: timers.leaders() == [SECOND], "the second one leads")
    during = wait_for(timers.target, "a plan with a target", TARGET_SECONDS)
    assert during > before
    timers.node_has(during, SECOND)

    pool.start_host(FIRST)
    timers.down.clear()
    wait_for(lambda: timers.leaders() == [FIRST], "the first one leads again")
    after = wait_for(timers.target, "a plan with a target", TARGET_SECONDS)
    assert after > during
    timers.node_has(after, FIRST)
