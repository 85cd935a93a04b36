"""A pool of any size for the bench of scale: queued jobs in real schedds, nodes as advertised ads.

Jobs are submitted to all schedds at once, and whole: a schedd that materializes them late takes the
longer for each, the more it has. The negotiator sees all once, so that they have autoclusters, and
is stopped. Nodes are the ad of a partitionable slot of a real startd with sharectl's snippet, with
another name, size and other jobs each.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))

from poolbox import Box, BoxSpec, ExecutePoint  # noqa: E402 - a script finds the checkout by itself
from tests.pool.deployed import snippet  # noqa: E402

CENTRAL, MODEL = "cm-1.example.org", "wn-model.example.org"
CORES, MIB_PER_CORE = 64, 4096
POWERS = (9.5, 10.0, 11.2, 12.8, 14.1, 16.0)
"""HS06 per core."""
GROUPS = tuple(f"group{number:02}" for number in range(12))
PLEDGE_HS06 = 1000.0
KINDS = ((1, 2000, 0.4), (8, 16000, 0.35), (1, 4000, 0.15), (4, 8000, 0.05), (8, 24000, 0.05))
"""Cores and MiB of a job, and which part of a group's jobs is such."""
SUBMIT_SECONDS = 900
_LIMITS = ("MAX_JOBS_PER_OWNER", "MAX_JOBS_PER_SUBMISSION", "MAX_JOBS_SUBMITTED")
JOBS = """\
executable = /bin/true
accounting_group = {group}.prod
accounting_group_user = {group}
request_cpus = {cores}
request_memory = {memory_mib}
request_disk = 1000
queue {count}
"""
ADVERTISE = """\
import sys, classad2, htcondor2
ads = list(classad2.parseAds(sys.stdin.read()))
collector = htcondor2.Collector(htcondor2.param["COLLECTOR_HOST"])
for begin in range(0, len(ads), 100):
    collector.advertise(ads[begin : begin + 100], "UPDATE_STARTD_AD", True)
"""
"""Done by a process that has nothing else to do with HTCondor."""


def spec(schedds: int) -> BoxSpec:
    """Pool with one startd, which no job fits on."""
    return BoxSpec(
        execute_points=(ExecutePoint(MODEL, CORES, 8, 640.0, snippet()),),
        access_points=tuple(f"ap-{number}.example.org" for number in range(1, schedds + 1)),
        suite="forky",
        # A box's schedds count all their jobs every 3 s, others every 5 minutes.
        access_config="SCHEDD_INTERVAL = 300\n"
        + "".join(f"{name} = 10000000\n" for name in _LIMITS),
        # The ads of nodes are sent once.
        central_config="CLASSAD_LIFETIME = 86400\n",
    )


def submit(box: Box, jobs: int) -> None:
    """Queue so many jobs, spread evenly over schedds and groups."""
    box.run(["condor_off", "-negotiator"], host=CENTRAL)
    places = box.spec.access_points
    counts = {
        (group, kind): round(jobs * kind[2] / len(GROUPS) / len(places))
        for group in GROUPS
        for kind in KINDS
    }

    def fill(place: str) -> None:
        for (group, (cores, memory_mib, _)), count in counts.items():
            text = JOBS.format(group=group, cores=cores, memory_mib=memory_mib, count=count)
            box.run(["condor_submit", "-terse", "-"], SUBMIT_SECONDS, place, input=text)

    with ThreadPoolExecutor() as threads:
        list(threads.map(fill, places))


def queued(box: Box) -> int:
    """Jobs that wait in all schedds."""
    query = ["condor_q", "-totals", "-allusers", "-name"]
    totals = [box.run([*query, name], 120).stdout for name in box.spec.access_points]
    counts = (re.search(r"all users: (\d+) jobs", text) for text in totals)
    return sum(int(count[1]) for count in counts if count)


def negotiate(box: Box) -> None:
    """Have the negotiator see all jobs once, and stop it again."""
    box.run(["condor_on", "-negotiator"], host=CENTRAL)
    unseen = ["condor_q", "-constraint", "AutoClusterId =?= undefined", "-limit", "1"]
    unseen += ["-allusers", "-af", "ClusterId", "-name"]
    box.wait_until(
        lambda: not any(box.run([*unseen, name], 120).stdout for name in box.spec.access_points),
        "the negotiator has seen all jobs",
        SUBMIT_SECONDS,
    )
    box.run(["condor_off", "-negotiator"], host=CENTRAL)


def advertise(box: Box, first: int, last: int) -> None:
    """Advertise nodes by their numbers, as their startds would."""
    model = box.run(["condor_status", MODEL, "-long"], host=CENTRAL).stdout
    draw = Random(first)
    text = "\n".join(node_ad(model, number, draw) for number in range(first, last))
    subprocess.run(
        [sys.executable, "-c", ADVERTISE],
        input=text,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], **box.client_environment},
    )


def node_ad(model: str, number: int, draw: Random) -> str:
    """Ad of a partitionable slot that is full of jobs but for a few cores, as ``-long`` prints."""
    name, now = f"wn-{number:05}.example.org", int(time.time())
    free, jobs = CORES - draw.choice((0, 0, 0, 1, 3)), list[tuple[str, int, int]]()
    # Some groups hold more than others, and of one node only a few.
    groups = draw.choices(GROUPS, [2 + place % 5 for place in range(len(GROUPS))], k=6)
    idle = CORES - free
    while free > 0:
        cores = min(free, draw.choice((1, 1, 1, 1, 2, 4, 8, 8)))
        jobs.append((draw.choice(groups), cores, now - int(draw.expovariate(1 / 20000)) - 1))
        free -= cores
    memory = [cores * MIB_PER_CORE // 2 for _, cores, _ in jobs]
    rows = {
        "AccountingGroup": [f'"{group}.prod.{group}@example.org"' for group, _, _ in jobs],
        "Cpus": [str(cores) for _, cores, _ in jobs],
        "Memory": [str(mib) for mib in memory],
        "JobStart": [str(start) for _, _, start in jobs],
        "EnteredCurrentState": [str(start) for _, _, start in jobs],
        "State": ['"Claimed"' for _ in jobs],
        "Name": [f'"slot1_{place}@{name}"' for place, _ in enumerate(jobs, 1)],
        "DSlotId": [str(place) for place, _ in enumerate(jobs, 1)],
        "t1_HeldBackCores": ["0" for _ in jobs],
    }
    own: dict[str, Any] = {
        "Cpus": idle,
        "Memory": CORES * MIB_PER_CORE - sum(memory),
        "TotalMemory": CORES * MIB_PER_CORE,
        "TotalSlotMemory": CORES * MIB_PER_CORE,
        "t1_wn_hs06": CORES * draw.choice(POWERS),
        "NumDynamicSlots": len(jobs),
        **{f"Child{key}": f"{{ {', '.join(row)} }}" for key, row in rows.items()},
    }
    lines = dict(
        line.split(" = ", 1) for line in model.replace(MODEL, name).splitlines() if " = " in line
    )
    lines.update({key: str(value) for key, value in own.items()})
    return "".join(f"{key} = {value}\n" for key, value in lines.items())


def configuration(folder: Path) -> str:
    """Configuration of sharectl as JSON, which is YAML: all nodes are steered, by file and ads."""
    content = {
        "groups": {name: {"pledge_hs06": PLEDGE_HS06} for name in GROUPS},
        "nodes": {"controlled": "*"},
        "publish": [{"file": str(folder / "sharectl.txt")}, {"collector": {}}],
        # On a busy machine, too, the cycle is to be complete.
        "pool": {"collector_deadline_seconds": 120.0, "schedd_deadline_seconds": 300.0},
        "state_directory": str(folder / "state"),
        "history": {
            "jobs_file": str(folder / "state" / "AcctGroup_hs06.txt"),
            "errors_log": str(folder / "state" / "shares_Error.log"),
        },
    }
    return json.dumps(content)
