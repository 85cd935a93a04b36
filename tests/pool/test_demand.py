"""Jobs that no node can run, half of the pending multicore jobs, hold no cores idle.

Pools alike, side by side. alice holds every core with jobs of one core; cms, far under its share,
waits with as many 8-core jobs that any node could run (`MATCHABLE`) as with jobs that no node can,
in one of the pools; in the other it has the former alone. With ``pool.demand: pending`` a third of
the pool stands idle.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Optional

from poolbox import Box, BoxSpec, ExecutePoint
from tests.pool.conftest import OpenBox
from tests.pool.deployed import SHORT_SECONDS, jobs, snippet
from tests.pool.sharectl_command import Sharectl

CYCLE_SECONDS, FIRST_CYCLES, CYCLES = 4.0, 10, 22
MOST_IDLE_RATIO = 0.05
DEMAND = "placeable"
"""``pool.demand``."""
LATER_SECONDS = 20.0
"""Two pools side by side on a busy machine differ by this."""

ACCESS = "ap-1.example.org"
NODES, NODE_CORES, MATCHABLE = 3, 16, 2
POOL_CORES = NODES * NODE_CORES
NOWHERE = "requirements = TARGET.HasFoo"
SPEC = BoxSpec(
    execute_points=tuple(
        ExecutePoint(f"wn-{number:03}.example.org", cores=NODE_CORES, config=snippet())
        for number in range(1, NODES + 1)
    ),
    access_points=(ACCESS,),
    groups={"alice": 0.25, "cms": 0.75},
    central_config="GROUP_AUTOREGROUP = True\nGROUP_ACCEPT_SURPLUS = False\n",
    config="MASTER_BACKOFF_CONSTANT = 2\n",
)


class Steered:
    """A pool that is steered for `CYCLES` cycles.

    Parameters
    ----------
    unmatchable
        8-core jobs that no node can run.
    """

    def __init__(self, box: Box, folder: Path, unmatchable: int, start: threading.Barrier) -> None:
        self.box, self.unmatchable, self.start = box, unmatchable, start
        self.sharectl = Sharectl(box, folder, imported=True)
        self.configuration: dict[str, Any] = {
            "groups": {"alice": {"pledge_hs06": 100}, "cms": {"pledge_hs06": 300}},
            "publish": [{"file": str(box.shared_directory / "sharectl.txt")}],
            "validity_seconds": 60,
            "pool": {
                "demand": DEMAND,
                "collector_deadline_seconds": 20.0,
                "schedd_deadline_seconds": 20.0,
            },
        }
        self.idle_cores: list[int] = []
        """Cores that stood idle under targets, cycle by cycle."""
        self.cycles: list[dict[str, Any]] = []
        self.all_started_seconds: Optional[float] = None
        """After the jobs of cms were submitted."""
        self.failure: list[BaseException] = []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._fill()
            self.start.wait(300)
            began = time.monotonic()
            self.box.submit(jobs("cms", 8, MATCHABLE, 600), ACCESS)
            if self.unmatchable:
                self.box.submit(jobs("cms", 8, self.unmatchable, 600, NOWHERE), ACCESS)
            while len(self.cycles) < CYCLES:
                self._cycle(began)
        except BaseException as failure:  # noqa: BLE001 - for the test to raise
            self.failure.append(failure)
            self.start.abort()

    def _cycle(self, began: float) -> None:
        at = time.monotonic()
        targets = {target["node"] for target in self._targets()}
        slots = self._slots()
        self.idle_cores.append(
            sum(
                int(cores)
                for machine, kind, cores, _ in slots
                if kind == "Partitionable" and machine.partition(".")[0] in targets
            )
        )
        running = [slot for slot in slots if slot[1:] == ["Dynamic", "8", "Claimed"]]
        if len(running) >= MATCHABLE and self.all_started_seconds is None:
            self.all_started_seconds = time.monotonic() - began
        done = self.sharectl.run("cycle", "--json", expect=None, **self.configuration)
        if done.stdout.startswith("{"):
            self.cycles.append(json.loads(done.stdout))
        time.sleep(max(0.0, CYCLE_SECONDS - (time.monotonic() - at)))

    def _targets(self) -> list[dict[str, Any]]:
        plan = self.cycles[-1]["plan"] if self.cycles else None
        return plan["targets"] if plan else []

    def _fill(self) -> None:
        self.box.submit(jobs("alice", 1, 1000, SHORT_SECONDS), ACCESS)
        self.box.wait_until(
            lambda: sum(slot[-1] == "Claimed" for slot in self._slots()) >= POOL_CORES - 4,
            120,
            "alice holds the pool",
        )

    def _slots(self) -> list[list[str]]:
        """Machine, SlotType, Cpus and State of each slot."""
        printed = self.box.run(
            ["condor_status", "-af", "Machine", "SlotType", "Cpus", "State"]
        ).stdout
        return [line.split() for line in printed.splitlines()]

    def idle_ratio(self) -> float:
        """Part of the pool that stood idle under targets after the first cycles, on average."""
        late = self.idle_cores[FIRST_CYCLES:]
        return sum(late) / len(late) / POOL_CORES


def test_jobs_that_no_node_can_run_hold_no_cores_idle(open_box: OpenBox, tmp_path: Path) -> None:
    kinds = {"with": MATCHABLE, "without": 0}
    with ExitStack() as opened:
        start = threading.Barrier(len(kinds))
        pools = {}
        for name, unmatchable in kinds.items():
            (tmp_path / name).mkdir()
            box = opened.enter_context(open_box(SPEC))
            pools[name] = Steered(box, tmp_path / name, unmatchable, start)
        for pool in pools.values():
            pool.thread.start()
        for pool in pools.values():
            pool.thread.join()
        failures = [failure for pool in pools.values() for failure in pool.failure]
        for failure in sorted(
            failures, key=lambda found: isinstance(found, threading.BrokenBarrierError)
        ):
            raise failure
    for name, pool in pools.items():
        print(
            f"{name}: idle under targets {pool.idle_cores}, after ten cycles "
            f"{pool.idle_ratio():.3f} of the pool; "
            f"all matchable jobs run after {pool.all_started_seconds}"
        )
    both, without = pools["with"], pools["without"]
    assert both.all_started_seconds is not None
    assert without.all_started_seconds is not None
    assert both.idle_ratio() <= MOST_IDLE_RATIO, both.idle_cores
    assert both.all_started_seconds <= without.all_started_seconds + LATER_SECONDS
    last = both.cycles[-1]
    assert last["plan"]["multicore_pending"] is False, "only jobs that no node can run wait"
    assert any("no node could run them" in warning for warning in last["warnings"]), last[
        "warnings"
    ]
