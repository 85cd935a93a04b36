"""Idle cores in grace while no multicore job waits, with and without looking who waits.

One real pool, two nodes of 8 cores, the same workload on both at the same time: single-core jobs in
plenty, and now and then an 8-core job ends after which none waits. One node reads a plan that says
so, the other a plan that does not say. Idle core-seconds are counted from the end of the 8-core job
to the start of each of the 8 single-core jobs that take its cores, by the jobs' event logs. Grace
is scaled from 480 s to ``GRACE_SECONDS``.

Usage: ``bench/grace_idle.py [SUITE]``, a Debian suite of `poolbox`. Exit code 1 if looking saves
less than half.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))
from poolbox import Box, event_log  # noqa: E402  # it is no installed package
from poolbox.event_log import EXECUTE, TERMINATED  # noqa: E402
from tests.pool.own_files import CORES, execute_point, known, log_of, pool_of, publish, submit  # noqa: E402

GRACE_SECONDS, ROUNDS, MOST_RATIO = 40, 2, 0.5
SITE_GRACE_SECONDS = 480
NODES = {"wn-001": "0", "wn-002": ""}
"""Node, and what its plan says of multicore jobs."""


def one_round(box: Box, number: int) -> dict[str, float]:
    """Idle core-seconds of every node after one 8-core job."""
    (box.shared_directory / "leave").unlink(missing_ok=True)
    for node in NODES:
        submit(box, node, f"multicore-{number}", CORES, "until told")
    box.wait_until(lambda: len(box.jobs("JobStatus == 2")) == len(NODES), "the nodes are full")
    for node in NODES:
        submit(box, node, f"single-{number}", 1, count=CORES)
    (box.shared_directory / "leave").touch()

    def starts(node: str) -> list[float]:
        return event_log.times(log_of(box, node, f"single-{number}"), EXECUTE)

    box.wait_until(
        lambda: all(len(starts(node)) == CORES for node in NODES),
        "all cores are taken",
        3 * GRACE_SECONDS,
    )
    idle = {}
    for node in NODES:
        (ended,) = event_log.times(log_of(box, node, f"multicore-{number}"), TERMINATED)
        idle[node] = sum(start - ended for start in starts(node))
    box.remove_jobs()
    return idle


def main(argv: list[str]) -> int:
    """Exit code: 0, or 1 if looking saves less than half."""
    points = tuple(execute_point(node, "live", "", GRACE_SECONDS) for node in NODES)
    with Box(dataclasses.replace(pool_of(points), suite=(argv or ["trixie"])[0])) as box:
        for node, pending in NODES.items():
            publish(box, node, int(time.time()) + 3600, pending=pending)
        box.wait_until(
            lambda: known(box, NODES, 't1_JobCtlReason == "no-line"'), "the plan is read"
        )
        rounds = [one_round(box, number) for number in range(ROUNDS)]
    looks, waits = (sum(idle[node] for idle in rounds) / ROUNDS for node in NODES)
    ratio = looks / waits
    print(
        f"idle core-seconds for each 8-core job that ends, grace {GRACE_SECONDS} s, {ROUNDS} rounds"
    )
    print(
        f"grace as long as it lasts {waits:8.0f}\nlooks whether anybody waits "
        f"{looks:6.0f}\nratio {ratio:.2f}"
    )
    saved = SITE_GRACE_SECONDS / GRACE_SECONDS * (waits - looks) / 3600
    print(
        f"at {SITE_GRACE_SECONDS} s of grace some {saved:.1f} idle core-hours less for each "
        "such job"
    )
    return 0 if ratio <= MOST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
