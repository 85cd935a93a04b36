"""Cost of the memory of 100,000 queued jobs, by their number of different requests.

One real schedd, and questions to it in processes of their own, in turn; each figure is the median
of its runs, and a ratio compares runs of the same minutes on the same machine. The yardstick is
`pool.mode: jobs`, one plain query for every job, as the original's ``condor_q -af`` is. Time is
wall time of the question, memory the largest RSS of its process.

Exit code 1 if a requirement is missed or a count is wrong.
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
accounting_group = cms
accounting_group_user = alice
request_cpus = 1
request_memory = {memory}
request_disk = 1000
queue {count}
"""
HALF = 50_000
RUNS = 5
MOST_RATIO, MOST_MB = 1.5, 70.0
"""Part of the time of `pool.mode: jobs`, and of memory, where every second job differs."""
ASK = """\
import json, resource, sys, time
import htcondor2
from sharectl.condor import daemons, schedd_jobs
(place,) = daemons.locations(daemons.collector(None), "Schedd")
began = time.monotonic()
counted = getattr(schedd_jobs, sys.argv[1])(daemons.schedd(place), "", 8)
seconds, jobs = time.monotonic() - began, sum(counted.pending.values())
mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
print(json.dumps({"seconds": seconds, "jobs": jobs, "kinds": len(counted.pending), "mb": mb}))
"""


def main() -> int:
    """Print the table; 1 if a requirement is missed."""
    with Box(SPEC) as box:
        submit(box, "1000")
        few = look(box, "count_pending", HALF)
        submit(box, "1000 + $(Process)")
        many = look(box, "count_pending", 2 * HALF)
        every = look(box, "list_jobs", 2 * HALF)
    ratio = many[0] / every[0]
    for name, (seconds, mb, kinds) in (
        (f"counted, {HALF} jobs of one kind", few),
        (f"counted, {2 * HALF} jobs, half of them with a request of its own each", many),
        ("the same by pool.mode: jobs", every),
    ):
        print(f"{name:<75}{seconds:7.3f} s {mb:6.1f} MB {kinds:5} kinds")
    print(f"time, ratio {ratio:.2f}, required <= {MOST_RATIO}; memory required <= {MOST_MB} MB")
    return 0 if ratio <= MOST_RATIO and many[1] <= MOST_MB else 1


def submit(box: Box, memory: str) -> None:
    """Queue half of the jobs."""
    text = JOBS.format(memory=memory, count=HALF)
    box.run(["condor_submit", "-terse", "-"], 300, ACCESS, input=text)


def look(box: Box, function: str, jobs: int) -> tuple[float, float, int]:
    """Medians of seconds and MB of so many runs, and how many kinds of jobs were told."""
    environment = {**os.environ, **box.client_environment, "PYTHONPATH": str(CHECKOUT / "central")}
    runs = []
    for _ in range(RUNS):
        done = subprocess.run(
            [sys.executable, "-c", ASK, function],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        runs.append(json.loads(done.stdout))
        if runs[-1]["jobs"] != jobs:
            raise SystemExit(f"{function} counted {runs[-1]['jobs']} of {jobs} jobs")
    seconds, mb = (statistics.median(run[what] for run in runs) for what in ("seconds", "mb"))
    return seconds, mb, runs[-1]["kinds"]


if __name__ == "__main__":
    sys.exit(main())
