"""A day of cycles, 85 at the period of 17 minutes, as fast as they go on a pool that is troubled.

Every third cycle or so runs while something fails: a schedd hangs or dies, collector, negotiator,
startd or a whole node dies, the disk of the state is full, the place of targets cannot be written,
the clock is wrong, the cycle is killed. Jobs come and go, nodes run job_ctl, and take targets from
a file and from ads. After each fault cycles go on until one is complete. The clocks of the daemons
are right: it is the number of cycles that is a day's.

A trend is the median of the first third of the cycles (of a daemon's life) and that of the last
third. Exit code 1 if something grows by more than a tenth, is beyond its bound, or is left over.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":  # a script finds the checkout by itself
    sys.path[:0] = [str(CHECKOUT / name) for name in ("", "central", "startd_cron", "packaging")]

from bench import long_run  # noqa: E402
from bench.long_run import LongRun, Trend  # noqa: E402
from poolbox import Box  # noqa: E402

CYCLES = 85
MOST_GROWTH = 1.1
MOST_DAEMON_GROWTH = 1.2
"""HTCondor's daemons: a startd keeps some MiB of the jobs that it has had."""


def main(argv: Sequence[str]) -> int:
    """Print the figures; 1 if one is beyond its bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cycles", type=int, default=CYCLES, help="default: %(default)s")
    cycles, began = parser.parse_args(argv).cycles, time.monotonic()
    spec = replace(long_run.SPEC, suite="forky")
    with (
        tempfile.TemporaryDirectory() as folder,
        Box(spec) as box,
        long_run.long_run(box, Path(folder)) as run,
    ):
        run.go(cycles)
        box.wait_until(run.acts, "nodes act on targets as before")
        last = run.cycles[-1]
        print(f"after the last fault: exit code {last.exit_code}, {last.targets} target(s)")
        print(f"{len(run.cycles)} cycles in {time.monotonic() - began:.0f} s", end="; ")
        print(f"{len(run.job_ctl_times)} runs of job_ctl were seen; load {os.getloadavg()[0]:.1f}")
        print_faults(run)
        sound = last.exit_code == 0 and last.targets > 0
        sound &= print_trends(long_run.of_cycles(run), MOST_GROWTH)
        for what, rows in (("descriptors", run.descriptors), ("KiB", run.resident_kib)):
            trends = long_run.of_daemons(rows)
            named = {f"{name.rpartition(' ')[0]}, {what}": row for name, row in trends.items()}
            sound &= print_trends(named, MOST_DAEMON_GROWTH)
        print("files:", ", ".join(f"{name} {size}" for name, size in run.sizes().items()))
        wrong = [*long_run.too_large(run), *run.leftovers()]
        print(f"beyond their bounds or left over: {wrong or 'none'}")
        print(f"switched off: jobs hold all cores after {run.end():.0f} s")
    return 0 if sound and not wrong else 1


def print_faults(run: LongRun) -> None:
    """Print the exit codes of cycles during each fault, and cycles until one was complete."""
    print(f"{'fault':24}{'exit codes meanwhile':32}cycles until one was complete")
    for fault, codes in long_run.exit_codes(run).items():
        if fault:
            meanwhile = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
            print(f"{fault:24}{meanwhile:32}{', '.join(map(str, run.after[fault]))}")


def print_trends(trends: Mapping[str, Trend], most_growth: float) -> bool:
    """Print a row for each trend; tell if none grows by more."""
    for name, trend in trends.items():
        verdict = "" if trend.growth <= most_growth else "  GROWS"
        print(
            f"{name:52}{trend.first:10.0f}{trend.last:10.0f}{trend.most:10.0f}"
            f"{trend.growth:7.2f}{verdict}"
        )
    return all(trend.growth <= most_growth for trend in trends.values()) and bool(trends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
