"""Negotiation cycles that fill one slot with 1-core jobs: by policy, by splitting, by neither.

A pool of its own for each figure, with one slot of 16 cores; all jobs are known to the collector
before the first cycle. Cycles are counted in the negotiator's log, from the first that matches a
job to the last that does; seconds from the end of the first until all jobs run, as the schedds say.

Exit code 1 if a requirement is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from poolbox import Box, BoxSpec, ExecutePoint
from poolbox.root import htcondor_version
from poolbox.spec import SUITES
from tests.pool import consumption_pools as pools
from tests.pool.consumption_pools import SPLITTING, WHOLE, Jobs

CORES = 16
INTERVAL_SECONDS = 5
NODE = "wn-001"
POLICY, SPLIT, NEITHER = "consumption policy", "schedd splitting", "neither"
WAYS: Mapping[str, tuple[str, str]] = {
    # way: configuration of the node, of the access points
    POLICY: (pools.rendered_example("cpu-centric"), pools.NO_LEFTOVERS),
    SPLIT: ("", ""),
    NEITHER: ("", pools.NO_LEFTOVERS),
}
CENTRAL = f"{pools.NEGOTIATOR_LOGS_MATCHES}NEGOTIATOR_INTERVAL = {INTERVAL_SECONDS}\n"


@dataclass(frozen=True)
class Filled:
    """How one slot was filled."""

    cycles: int
    matches: list[int]
    """Of each of those cycles."""
    seconds: float


def main() -> int:
    """Exit code, 1 for a missed requirement."""
    missed = False
    for suite in SUITES:
        print(
            f"HTCondor {htcondor_version(suite)} ({suite}), a slot of {CORES} cores, {CORES} "
            "jobs of 1 core,"
        )
        print(f"  a cycle every {INTERVAL_SECONDS} s")
        print(
            f"  {'way':<20} {'schedds':>7} {'cycles':>7} {'/ policy':>9} {'seconds':>8}  "
            "matches by cycle"
        )
        for count in (1, 2):
            filled = {way: fill(suite, way, count) for way in WAYS}
            with_policy = filled[POLICY]
            for way, found in filled.items():
                print(
                    f"  {way:<20} {count:>7} {found.cycles:>7} "
                    f"{found.cycles / with_policy.cycles:>9.1f}"
                    f" {found.seconds:>8.1f}  {found.matches}"
                )
            missed = missed or with_policy.cycles != 1 or filled[NEITHER].cycles < CORES
    print(f"required: 1 cycle with policy, at least {CORES} with neither")
    return int(missed)


def fill(suite: str, way: str, schedds: int) -> Filled:
    """Fill the slot once, in a pool of its own."""
    node, access = WAYS[way]
    hosts = (SPLITTING, WHOLE)[:schedds]
    spec = BoxSpec(
        execute_points=(ExecutePoint(f"{NODE}.example.org", CORES, 2 * 1024 * CORES, None, node),),
        access_points=(SPLITTING, WHOLE),
        central_config=CENTRAL,
        access_config=access,
        suite=suite,
    )
    with Box(spec) as box:
        wanted = {host: [Jobs(NODE, CORES // schedds)] for host in hosts}
        with pools.submitted_together(box, wanted) as since:
            pass
        pools.first_cycle(box, since)
        begun = time.monotonic()
        box.wait_until(lambda: pools.running(box) == CORES, "every core is claimed", CORES * 30)
        seconds = time.monotonic() - begun
        pools.later_cycles(box, 1)
        matches = [sum(cycle.matches.values()) for cycle in pools.cycles(box, since)]
    last = max(number for number, count in enumerate(matches, 1) if count)
    first = min(number for number, count in enumerate(matches) if count)
    return Filled(last - first, matches[first:last], seconds)


if __name__ == "__main__":
    sys.exit(main())
