"""Start-up time of a pool of eight nodes, and memory of a node, on both versions.

The root is in the cache before anything is measured. Time runs from the call of ``Box.start`` until
the collector knows the negotiator, both schedds and all eight startds. Each figure is the median of
its runs. A node's memory is its condor_master with all it started (startd, procd), no job running:
RSS, and PSS, which counts a page shared by n processes as 1/n.

Exit code 1 if a requirement is missed.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from poolbox import Box, BoxSpec
from poolbox.root import find_root, htcondor_version
from poolbox.spec import SUITES

NODES = 8
RUNS = 5
MOST_SECONDS = 15.0


@dataclasses.dataclass(frozen=True)
class Cost:
    """One start: seconds until the pool stood and was gone, memory of the median node."""

    start_seconds: float
    stop_seconds: float
    node_rss_kib: float
    node_pss_kib: float


def main() -> int:
    """Exit code, 1 for a missed requirement."""
    slowest = 0.0
    for suite in SUITES:
        find_root(suite)
        costs = [one_start(suite) for _ in range(RUNS)]
        median = Cost(
            *(statistics.median(values) for values in zip(*map(dataclasses.astuple, costs)))
        )
        print(f"HTCondor {htcondor_version(suite)} ({suite}), {NODES} nodes, {RUNS} starts")
        print(f"  start, seconds            {median.start_seconds:6.2f}")
        print(
            f"  start / {MOST_SECONDS:g} s, ratio       "
            f"{median.start_seconds / MOST_SECONDS:6.2f}  required <= 1"
        )
        print(f"  stop, seconds             {median.stop_seconds:6.2f}")
        print(f"  memory of a node, RSS MiB {median.node_rss_kib / 1024:6.1f}")
        print(f"  memory of a node, PSS MiB {median.node_pss_kib / 1024:6.1f}")
        slowest = max(slowest, median.start_seconds)
    return int(slowest > MOST_SECONDS)


def one_start(suite: str) -> Cost:
    """Cost of starting and stopping a pool."""
    box = Box(BoxSpec.of_equal_nodes(NODES, suite=suite))
    begun = time.monotonic()
    box.start()
    stood = time.monotonic()
    try:
        families = box.daemons()
        nodes = [[each.pid for each in families[node.name]] for node in box.spec.execute_points]
        rss = statistics.median(sum(memory_kib(pid, "Rss") for pid in pids) for pids in nodes)
        pss = statistics.median(sum(memory_kib(pid, "Pss") for pid in pids) for pids in nodes)
    finally:
        ending = time.monotonic()
        box.stop()
    return Cost(stood - begun, time.monotonic() - ending, rss, pss)


def memory_kib(pid: int, kind: str) -> int:
    """Memory of one kind that a process has, KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


if __name__ == "__main__":
    sys.exit(main())
