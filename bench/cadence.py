"""Cost of the loading factor of a large job log: ``zcat | awk`` against ``sharectl cadence``.

    bench/cadence.py [LOG]      a log in Standard Workload Format, packed by gzip; without one,
    500,000 jobs are made up

Terms of the comparison: awk splits the lines and sums D and C * ceil(D / C) for one interval;
sharectl does that for one interval (one job a claim), then for ten, then with claims that are
reused too. Wall time of fresh processes, in turn; each figure is the median of its runs. Memory is
the largest RSS, as the kernel noted it. MB are 10^6 bytes.

Exit code 1 if a requirement is missed or the two do not find the same loading factor.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
JOBS = 500_000
RUNS = 3
INTERVAL = 60
MB_PER_KIB = 1024 / 1e6
MOST_MEMORY_MB = 300.0
AWK = r"""zcat "$1" | awk -v c="$2" '!/^;/ && $4 > 0 && $11 !~ /^[234]$/ {
    n = $5 > 0 ? $5 : $8 > 0 ? $8 : 1
    work += n * $4; held += n * c * int(($4 + c - 1) / c) } END { printf "%.9f\n", work / held }'"""
TEN = "20,30,45,60,90,120,180,240,300,600"
CASES = (
    # name, options, least ratio of awk's time to sharectl's
    ("one interval", ["--interval", str(INTERVAL), "--claim-worklife", "0"], 0.05),
    ("ten intervals", ["--interval", TEN, "--claim-worklife", "0"], 0.05),
    ("ten intervals, claims reused", ["--interval", TEN], 0.03),
)


@dataclass(frozen=True)
class Ran:
    """One run of a command."""

    wall_seconds: float
    max_rss_mb: float
    printed: str


def main(argv: list[str]) -> int:
    """Print the table; 1 if a requirement is missed."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(argv[0]) if argv else made_up(Path(folder) / "log.swf.gz")
        return compare(log)


def compare(log: Path) -> int:
    """Run both on the log, in turn."""
    awk: list[Ran] = []
    ours: dict[str, list[Ran]] = {name: [] for name, _, _ in CASES}
    for _ in range(RUNS):
        awk.append(run(["/bin/sh", "-c", AWK, "awk", str(log), str(INTERVAL)]))
        for name, options, _ in CASES:
            ours[name].append(
                run(
                    [
                        sys.executable,
                        "-m",
                        "sharectl",
                        "cadence",
                        "--json",
                        "--swf",
                        str(log),
                        *options,
                    ]
                )
            )
    printed = json.loads(ours["one interval"][0].printed)
    factor = printed["intervals"][0]["loading_factor"]
    if abs(factor - float(awk[0].printed)) > 1e-6:  # noqa: PLR2004 - digits that awk prints
        print(
            f"not the same loading factor: awk {awk[0].printed.strip()}, sharectl {factor}",
            file=sys.stderr,
        )
        return 1
    print(
        f"{printed['run_times']['jobs']:,} jobs, loading factor {factor:.4f} at {INTERVAL} s, "
        "the same of both"
    )
    theirs = statistics.median(ran.wall_seconds for ran in awk)
    print(f"{'zcat | awk, one interval':<40}{theirs:>8.2f} s")
    missed = False
    for name, _, least in CASES:
        own = statistics.median(ran.wall_seconds for ran in ours[name])
        missed |= theirs / own < least
        print(f"{'sharectl, ' + name:<40}{own:>8.2f} s   ratio {theirs / own:.2f} (>= {least:g})")
    memory = max(ran.max_rss_mb for runs in ours.values() for ran in runs)
    missed |= memory > MOST_MEMORY_MB
    print(f"{'sharectl, memory':<40}{memory:>8.0f} MB  (<= {MOST_MEMORY_MB:g} MB)")
    return int(missed)


def run(command: list[str]) -> Ran:
    """Time and memory of a command, and its output."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "central")}
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        started = subprocess.Popen(command, env=environment, stdout=output)
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.monotonic() - began
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            raise SystemExit(f"{command[0]} left with {started.returncode}")
        output.seek(0)
        return Ran(wall, usage.ru_maxrss * MB_PER_KIB, output.read().decode())


def made_up(path: Path) -> Path:
    """A log of `JOBS` jobs of 20 groups, always the same."""
    draws = random.Random(1)
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("; Version: 2.2\n; Computer: none, the jobs are made up\n")
        for number in range(1, JOBS + 1):
            seconds = max(1, round(draws.lognormvariate(7, 1.8)))
            cores = draws.choice((1, 1, 1, 8))
            file.write(
                f"{number} {number} -1 {seconds} {cores} -1 -1 -1 -1 -1 1 1 "
                f"{draws.randint(1, 20)} -1 -1 -1 -1 -1\n"
            )
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
