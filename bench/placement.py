"""Cost of trying pending jobs: 2,000 kinds of jobs on 2,000 nodes of 20 kinds.

A real collector holds 2,000 slots made of the ad of a real slot with sharectl's START; they differ
in name and disk, and by kind in cores, memory and a custom attribute. A real schedd has 2,000
autoclusters. ``sharectl snapshot`` is run in turn with ``pool.demand: placeable`` and ``pending``;
a figure is the median of the differences of neighbours. CPU is user + system time of the command
and all its processes, without the daemons. Memory is, at the worst moment, the RSS of the first
process plus what its children do not share with anybody, in runs that are not timed. Wall time
counts on an idle machine only: on a busy one read the ratio of neighbours, and CPU.

Exit code 1 if a requirement is missed, or not the right jobs are found.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from bench.snapshot import most_memory_mb  # noqa: E402 - a script finds the checkout by itself
from poolbox import Box, BoxSpec, ExecutePoint  # noqa: E402
from poolbox.waiting import wait_for  # noqa: E402

ACCESS, NODES, NODE_KINDS, RUNS = "ap-1.example.org", 2000, 20, 7
GROUPS, MEMORIES, WANTS, CORES = 10, 10, 5, (1, 2, 4, 8)
JOB_KINDS = GROUPS * MEMORIES * WANTS * len(CORES)
MOST_SECONDS, MOST_MIB = 0.5, 30.0
MIB_PER_MB = 1e6 / 2**20
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(
            config=f"include : {CHECKOUT}/config.d/60-sharectl-execute-point.conf\n"
            f"STARTD_CRON_JOB_CTL_EXECUTABLE = {CHECKOUT}/startd_cron/job_ctl.py\n"
        ),
    ),
    access_points=(ACCESS,),
    access_config="MAX_JOBS_PER_OWNER = 1000000\nMAX_JOBS_PER_SUBMISSION = 1000000\n"
    "MAX_JOBS_SUBMITTED = 1000000\n",
    central_config="COLLECTOR_HASH_TABLE_SIZE = 4000\n",
    config="STARTER_INITIAL_UPDATE_INTERVAL = 3600\n",
)
ADVERTISE = f"""\
import classad2, htcondor2
pool = htcondor2.Collector()
slot = repr(pool.query(htcondor2.AdType.Slot)[0])
ads = []
for number in range({NODES} - 1):
    kind = number % {NODE_KINDS}
    ad = classad2.ClassAd(slot)
    ad["Machine"] = f"copy-{{number:04}}.example.org"
    ad["Name"] = f"slot1@copy-{{number:04}}.example.org"
    ad["MyAddress"] = ad["StartdIpAddr"] = f"<127.0.0.1:{{10000 + number}}>"
    ad["TotalSlotCpus"], ad["Cpus"] = 16 + kind, number % (16 + kind)
    ad["TotalSlotMemory"], ad["Memory"] = 40000 + 4000 * kind, 17 * number
    ad["TotalSlotDisk"] = ad["Disk"] = 10**8 + 1000 * number
    ad[f"HasThing{{kind % {WANTS - 1}}}"] = True
    ads.append(ad)
pool.advertise(ads, "UPDATE_STARTD_AD", True)
"""


def main() -> int:
    """Print the figures; 1 if a requirement is missed."""
    with tempfile.TemporaryDirectory() as folder, Box(SPEC) as box:
        environment = {
            **os.environ,
            **box.client_environment,
            "PYTHONPATH": str(CHECKOUT / "central"),
        }
        subprocess.run([sys.executable, "-c", ADVERTISE], env=environment, check=True)
        box.run(["condor_submit", "-terse", "-"], 300, ACCESS, input=jobs())
        # Autoclusters are made of jobs that a negotiator has seen.
        wait_for(partial(are_seen, box), "a negotiator to see all jobs")
        # Nothing is to run while the looks are compared.
        box.run(["condor_off", "-daemon", "negotiator"], 60)
        tried, counted = (command(Path(folder), demand) for demand in ("placeable", "pending"))
        runs = [(measured(tried, environment), measured(counted, environment)) for _ in range(RUNS)]
        memory = [
            statistics.median(most_memory_mb(asked, environment) for _ in range(RUNS)) * MIB_PER_MB
            for asked in (tried, counted)
        ]
    found = {with_trial[2] for with_trial, _ in runs}
    # The last of WANTS is of no node.
    if found != {JOB_KINDS // WANTS}:
        print(f"{found} jobs are said to be unplaceable, not {JOB_KINDS // WANTS}", file=sys.stderr)
        return 1
    wall, cpu = (
        statistics.median(with_trial[place] - without[place] for with_trial, without in runs)
        for place in (0, 1)
    )
    base = statistics.median(without[0] for _, without in runs)
    ratio = statistics.median(with_trial[0] / without[0] for with_trial, without in runs)
    added = memory[0] - memory[1]
    print(
        f"{JOB_KINDS} kinds of jobs on {NODES} nodes of {NODE_KINDS} kinds; without the trial "
        f"{base:.2f} s"
    )
    print(f"wall time added  {wall:.2f} s, required <= {MOST_SECONDS} s; ratio {ratio:.2f}")
    print(f"CPU added        {cpu:.2f} s, required <= {MOST_SECONDS} s")
    print(
        f"memory added     {added:.1f} MiB, required <= {MOST_MIB:g} MiB; without "
        f"{memory[1]:.1f} MiB"
    )
    return 0 if max(wall, cpu) <= MOST_SECONDS and added <= MOST_MIB else 1


def are_seen(box: Box) -> bool:
    """Return whether every job has an autocluster."""
    done = box.run(["condor_q", "-all", "-af", "AutoClusterId"], host=ACCESS)
    return [word.isdecimal() for word in done.stdout.split()].count(True) == JOB_KINDS


def jobs() -> str:
    """Submit description of so many autoclusters, a job each."""
    lines = ["executable = /bin/true", "accounting_group_user = alice", "request_disk = 1000"]
    for number in range(JOB_KINDS):
        rest, group = divmod(number, GROUPS)
        rest, memory = divmod(rest, MEMORIES)
        cores, want = divmod(rest, WANTS)
        lines += [
            f"accounting_group = group{group}",
            f"request_memory = {1000 + 300 * memory}",
            f"request_cpus = {CORES[cores]}",
            f"requirements = TARGET.HasThing{want}",
            "queue",
        ]
    return "\n".join(lines) + "\n"


def command(folder: Path, demand: str) -> list[str]:
    """The snapshot with this ``pool.demand``."""
    config = folder / f"{demand}.yaml"
    groups = "".join(f"  group{number}: {{pledge_hs06: 1}}\n" for number in range(GROUPS))
    config.write_text(f"groups:\n{groups}pool: {{demand: {demand}}}\n")
    return [sys.executable, "-m", "sharectl", "snapshot", "--json", "--config", str(config)]


def measured(asked: list[str], environment: dict[str, str]) -> tuple[float, float, int]:
    """Wall time, CPU of all processes, and jobs that no node could run."""
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        started = subprocess.Popen(asked, env=environment, stdout=output)
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.monotonic() - began
        started.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        content: dict[str, Any] = json.load(output)
    if started.returncode or content["untried"]:
        raise SystemExit(
            f"sharectl left with {started.returncode}; not tried: {content['untried']}"
        )
    return wall, usage.ru_utime + usage.ru_stime, sum(row["jobs"] for row in content["unplaceable"])


if __name__ == "__main__":
    sys.exit(main())
