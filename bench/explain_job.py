"""Time of ``sharectl explain job`` on 2,000 nodes, against ``condor_q -better-analyze``.

A real collector holds 2,000 copies of the ad of a real slot with sharectl's START, and a real
schedd the job. Both commands run in turn; each figure is the median of its runs.

Exit code 1 if a requirement is missed, or the two do not count the same slots.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from poolbox import Box, BoxSpec, ExecutePoint  # noqa: E402 - a script finds the checkout by itself

ACCESS, NODES, RUNS = "ap-1.example.org", 2000, 5
MOST_RATIO = 8.0
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(
            config=f"include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf\n"
            f"STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py\n"
        ),
    ),
    access_points=(ACCESS,),
)
JOB = """\
executable = /bin/true
accounting_group = cms
accounting_group_user = alice
requirements = TARGET.NoSuchThing =?= 1
queue
"""
ADVERTISE = f"""\
import classad2, htcondor2
pool = htcondor2.Collector()
slot = repr(pool.query(htcondor2.AdType.Slot)[0])
ads = []
for number in range({NODES} - 1):
    ad = classad2.ClassAd(slot)
    ad["Machine"] = f"copy-{{number:04}}.example.org"
    ad["Name"] = f"slot1@copy-{{number:04}}.example.org"
    ad["MyAddress"] = ad["StartdIpAddr"] = f"<127.0.0.1:{{10000 + number}}>"
    ads.append(ad)
pool.advertise(ads, "UPDATE_STARTD_AD", True)
"""


def main() -> int:
    """Print the table; 1 if a requirement is missed."""
    with tempfile.TemporaryDirectory() as folder, Box(SPEC) as box:
        config = Path(folder) / "sharectl.yaml"
        config.write_text("groups: {cms: {pledge_hs06: 1}}\npool: {schedd_deadline_seconds: 300}\n")
        environment = {
            **os.environ,
            **box.client_environment,
            "PYTHONPATH": str(CHECKOUT / "central"),
        }
        job = f"{box.submit(JOB, ACCESS)}.0"
        subprocess.run([sys.executable, "-c", ADVERTISE], env=environment, check=True)
        words = ("explain", "job", job, "--json", "--config", str(config))
        explain = [sys.executable, "-m", "sharectl", *words]

        def ours() -> int:
            done = subprocess.run(explain, env=environment, stdout=subprocess.PIPE, check=True)
            return int(json.loads(done.stdout)["nodes"]["slots"]["refused_by_job"])

        def theirs() -> int:
            printed = box.run(["condor_q", "-better-analyze", job], 120, ACCESS).stdout
            found = re.search(r"(\d+)(?: slots)? are rejected by your job's requirements", printed)
            return int(found[1]) if found else -1

        pairs = [(measured(ours), measured(theirs)) for _ in range(RUNS)]
    own, other = zip(*pairs)
    if {count for count, *_ in (*own, *other)} != {NODES}:
        print(f"not the same slots: {own} {other}", file=sys.stderr)
        return 1
    wall, cpu, theirs_wall = (
        statistics.median(values) for values in zip(*((*a[1:], b[1]) for a, b in zip(own, other)))
    )
    print(f"sharectl explain job on {NODES} nodes  {wall:.2f} s, {cpu:.2f} s of CPU")
    print(f"condor_q -better-analyze           {theirs_wall:.2f} s")
    print(f"ratio {wall / theirs_wall:.1f}, required <= {MOST_RATIO}")
    return 0 if wall / theirs_wall <= MOST_RATIO else 1


def measured(command: Callable[[], int]) -> tuple[int, float, float]:
    """Count of a command, its wall time, and the CPU of this process's children, seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    count = command()
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return count, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
