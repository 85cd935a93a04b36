"""Cost of the waiting times of 100,000 queued jobs beside that of counting them.

One real schedd, and questions to it in turn in one process; the figure is the median of the ratios,
each of two questions that follow each other. Terms: counting is the schedd's own, as `sharectl
snapshot` asks for it; waiting times are those of a bounded sample, and of jobs that have just
started.

Exit code 1 if the requirement is missed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from poolbox import Box, BoxSpec, ExecutePoint  # noqa: E402 - a script finds the checkout by itself

ACCESS = "ap-1.example.org"
SPEC = BoxSpec(
    execute_points=(ExecutePoint(config="START = False\n"),),
    access_points=(ACCESS,),
    access_config="MAX_JOBS_PER_OWNER = 1000000\nMAX_JOBS_PER_SUBMISSION = 1000000\n"
    "MAX_JOBS_SUBMITTED = 1000000\n",
    central_config="NEGOTIATOR_INTERVAL = 3600\n",
)
JOBS = """\
executable = /bin/true
accounting_group = {group}
accounting_group_user = alice
request_cpus = {cores}
request_memory = 1000
request_disk = 1000
queue {count}
"""
MIX = (("cms", 8, 40_000), ("atlas", 1, 59_900), ("lhcb", 4, 100))
RUNS = 9
MOST_RATIO = 1.0
"""Waiting times may take as long as counting does."""
ASK = """\
import json, sys, time
from sharectl.condor import daemons
from sharectl.snapshot import schedd_jobs
(place,) = daemons.locations(daemons.collector(None), "Schedd")
schedd, most_cores = daemons.schedd(place), 64
keys = schedd_jobs.COUNTED_KEYS
for _ in range(int(sys.argv[1])):
    began = time.monotonic()
    rows = daemons.grouped(schedd, schedd_jobs.IS_PENDING, keys, schedd_jobs.MOST_ROWS)
    counted, kinds = time.monotonic(), schedd_jobs.counted_kinds(rows, most_cores)
    sample = list(schedd_jobs.sampled_waits(schedd, kinds, most_cores))
    ended = time.monotonic()
    print(json.dumps([sum(kinds.values()), counted - began, ended - counted, len(sample)]))
"""


def main() -> int:
    """Print the figures; 1 if the requirement is missed."""
    with Box(SPEC) as box:
        for group, cores, count in MIX:
            text = JOBS.format(group=group, cores=cores, count=count)
            box.run(["condor_submit", "-terse", "-"], 300, ACCESS, input=text)
        environment = {
            **os.environ,
            **box.client_environment,
            "PYTHONPATH": str(CHECKOUT / "central"),
        }
        done = subprocess.run(
            [sys.executable, "-c", ASK, str(RUNS)],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    if {run[0] for run in runs} != {sum(count for _, _, count in MIX)}:
        raise SystemExit(f"not all jobs were counted: {runs}")
    counting, waiting, sampled = (
        statistics.median(run[place] for run in runs) for place in (1, 2, 3)
    )
    ratio = statistics.median(run[2] / run[1] for run in runs)
    print(f"counting {counting:.3f} s, waiting times {waiting:.3f} s of {sampled} jobs")
    print(f"ratio {ratio:.2f}, required <= {MOST_RATIO}")
    return 0 if ratio <= MOST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
