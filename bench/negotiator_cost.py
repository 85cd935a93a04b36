"""Cost of a negotiation cycle that fills an empty pool of 1,000 and of 10,000 slots.

    bench/negotiator_cost.py [CORES ...]        cores of the pool, default 1000 10000

Real daemons: partitionable slots of 100 cores, and as many idle jobs of one core as cores.
Ways are a consumption policy, an access point that splits slots (HTCondor's default), and neither,
where a cycle gives each slot once. Figures are of the first cycle that matches: wall time by the
negotiator's log, processor time of the negotiator by the kernel. The base is a cycle without jobs.
No shadow starts, because no machine here could run so many; limits that would end the cycle early
are lifted. All daemons share this machine: machines differ, measure your own.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.cycles_to_fill import NEITHER, POLICY, SPLIT
from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.root import htcondor_version
from tests.pool import consumption_pools as pools
from tests.pool.consumption_pools import NO_LEFTOVERS

SLOT_CORES = 100
NODE_SLOTS = 5
"""Partitionable slots of a node at most."""
ACCESS = "ap-1.example.org"
SUITE = "forky"
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
WAIT_SECONDS = 600
WAYS = {
    # way: configuration of the nodes, of the access point
    POLICY: (pools.rendered_example("cpu-centric"), NO_LEFTOVERS),
    SPLIT: ("", ""),
    NEITHER: ("", NO_LEFTOVERS),
}
CENTRAL = """\
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_DEBUG = D_SUB_SECOND
UPDATE_INTERVAL = 300
# 60 s by default: it would cut the cycle short.
NEGOTIATOR_MAX_TIME_PER_SUBMITTER = 600
NEGOTIATOR_MAX_TIME_PER_SCHEDD = 600
"""
QUIET = """\
UPDATE_INTERVAL = 300
MAX_JOBS_RUNNING = 1000000
# No shadow starts.
JOB_START_COUNT = 1
JOB_START_DELAY = 100000
# HTCondor 25 asks for at most 20 matches of a user a cycle; 0 for no limit.
MAX_CONCURRENT_UPLOADS_PER_USER = 0
"""
_EDGE = re.compile(r"^(\S+ \S+) .*(Started|Finished) Negotiation Cycle", re.MULTILINE)
_MATCH = "Successfully matched with"


@dataclass(frozen=True)
class Cycle:
    """A negotiation cycle."""

    wall_seconds: float
    matches: int


def main(argv: list[str]) -> int:
    """Print the table."""
    print(f"HTCondor {htcondor_version(SUITE)}, slots of {SLOT_CORES} cores, jobs of 1 core")
    print(
        f"{'cores':>7} {'way':<20} {'matches':>8} {'base s':>7} {'cycle s':>8} "
        f"{'processor s':>12} {'wall ms/match':>14}"
    )
    for cores in [int(word) for word in argv] or [1000, 10_000]:
        for way in WAYS:
            base, filling, processor_seconds = measure(way, cores)
            cost = (filling.wall_seconds - base.wall_seconds) / filling.matches
            print(
                f"{cores:>7} {way:<20} {filling.matches:>8} {base.wall_seconds:>7.2f} "
                f"{filling.wall_seconds:>8.2f} {processor_seconds:>12.2f} {1000 * cost:>14.2f}",
                flush=True,
            )
    return 0


def measure(way: str, cores: int) -> tuple[Cycle, Cycle, float]:
    """A cycle without jobs, the first with them, and the processor time between both."""
    node_config, access_config = WAYS[way]
    slots = cores // SLOT_CORES
    counts = [min(NODE_SLOTS, slots - first) for first in range(0, slots, NODE_SLOTS)]
    spec = BoxSpec(
        execute_points=tuple(
            ExecutePoint(
                f"wn-{number:03}.example.org",
                SLOT_CORES * count,
                2048 * SLOT_CORES * count,
                None,
                f"{QUIET}SLOT_TYPE_1 = cpus={SLOT_CORES}\nNUM_SLOTS_TYPE_1 = {count}\n"
                f"NUM_SLOTS = {count}\n{node_config}",
            )
            for number, count in enumerate(counts, 1)
        ),
        access_points=(ACCESS,),
        central_config=CENTRAL,
        access_config=f"{QUIET}{access_config}",
        suite=SUITE,
    )
    box = Box(spec)
    box.start(WAIT_SECONDS)
    with contextlib.ExitStack() as stack:
        stack.callback(box.stop)
        query = ["condor_status", "-af", "Name"]
        box.wait_until(
            lambda: len(box.run(query).stdout.split()) == slots, "all slots", WAIT_SECONDS
        )
        pools.later_cycles(box, 1)
        base = cycles(box)[-1]
        with pools.paused(box):
            box.submit(
                "executable = /bin/sleep\narguments = 600\ntransfer_executable = False\n"
                f"request_memory = 1\nrequest_disk = 8\nqueue {cores}\n"
            )
            box.wait_until(
                lambda: sum(pools.waiting(box).values()) == cores, "all jobs", WAIT_SECONDS
            )
            pid = box.daemon_pid(box.spec.central_point, "NEGOTIATOR")
            before = processor_seconds(pid)
        box.wait_until(
            lambda: any(cycle.matches for cycle in cycles(box)),
            "a cycle that matches",
            WAIT_SECONDS,
        )
        return base, next(c for c in cycles(box) if c.matches), processor_seconds(pid) - before


def cycles(box: Box) -> list[Cycle]:
    """Cycles that have ended."""
    text = pools.log_of(box)
    edges = list(_EDGE.finditer(text))
    return [
        Cycle(
            (_time(after[1]) - _time(edge[1])).total_seconds(),
            text.count(_MATCH, edge.end(), after.start()),
        )
        for edge, after in zip(edges, edges[1:])
        if (edge[2], after[2]) == ("Started", "Finished")
    ]


def _time(stamp: str) -> datetime:
    return datetime.strptime(stamp[:21], "%m/%d/%y %H:%M:%S.%f")  # noqa: DTZ007 - differences only


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_SECONDS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
