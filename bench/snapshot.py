"""Cost of a look at 100,000 queued jobs: ``condor_q … -af | awk`` and ``sharectl snapshot``.

Two real schedds, 50,000 jobs each, none of which runs and each of which a negotiator has seen once,
as in any pool after a cycle. Both commands are run in turn, and each figure is the median of its
runs; a ratio compares runs of the same minutes on the same machine.

Terms of the comparison: ``condor_q`` and awk run inside the box, where HTCondor is installed,
sharectl outside it, where the wheel of the bindings is; both talk to the same daemons over
loopback. Wall time begins in the shell that starts the pipeline, or where the Python interpreter is
started. CPU is user + system time of the whole tree of processes on the client's side; the schedds'
own is not in it. Memory is, at the worst moment, the RSS of sharectl's first process plus what its
children do not share with anybody (USS), read every few milliseconds in runs of their own, and the
largest RSS of any one of them, as the kernel noted it. MB are 10^6 bytes.

Exit code 1 if a requirement is missed or the two do not count the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from poolbox import Box, BoxSpec, ExecutePoint  # noqa: E402 - a script finds the checkout by itself

CENTRAL = "cm-1.example.org"
ACCESS_POINTS = ("ap-1.example.org", "ap-2.example.org")
SPEC = BoxSpec(
    execute_points=(ExecutePoint(config="START = False\n"),),
    access_points=ACCESS_POINTS,
    access_config="MAX_JOBS_PER_OWNER = 1000000\nMAX_JOBS_PER_SUBMISSION = 1000000\n"
    "MAX_JOBS_SUBMITTED = 1000000\n",
)
CONFIG = """\
groups:
  cms: {pledge_hs06: 87100}
  atlas: {pledge_hs06: 105300}
  alice: {pledge_hs06: 71400}
"""
# accounting group, cores, share of a schedd's jobs
MIX = (
    ("cms.prod", 8, 0.4),
    ("atlas", 1, 0.2),
    ("atlas.user", 8, 0.1),
    ("alice", 1, 0.2),
    ("lhcb", 16, 0.1),
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
SEED_PIPELINE = r"""condor_q -global -all -cons 'Member(JobStatus,{1,2}) && (JobUniverse != 7)' \
-af JobStatus 'split((RemoteHost ?: "u@PEND.t1"),"@.")[1]' \
'split(AcctGroup,".")[0]' 'time() - (JobStartDate ?: time())' \
'CpusProvisioned ?: min({RequestCpus ?: 1,8})' \
'((int(MATCH_t1_wn_hs06 ?: 400) + 0.0)/(MATCH_TotalSlotCpus ?: 40))' |
awk '$1 == 2 { cores[$3] += $5; hs06[$3] += $5 * $6 } $1 == 1 { waiting[$3 " " $5]++ }
     END { for (group in cores) print "held", group, cores[group], hs06[group]
           for (kind in waiting) print "waiting", kind, waiting[kind] }'
"""
# The shell prints its own and its children's times; dash and bash alike.
TIMED = f"began=$(date +%s.%N)\n{SEED_PIPELINE}\necho took $began $(date +%s.%N)\ntimes\n"
FEW_JOBS, MANY_JOBS = 1_000, 100_000
RUNS = 7
POLL_SECONDS = 0.003
MB_PER_KIB = 1024 / 1e6
TIMES = (
    ("wall time", "wall_seconds", 8.0, "5.1 on 2026-11-20 without a trial of jobs, 2.4 with one"),
    ("CPU of the client", "cpu_seconds", 12.0, "8.5 and 7.5"),
)
"""Name, field of `Cost`, least ratio, the ratio before."""
MOST_MEMORY_MB = 70.0
# Growth with jobs would be many times this; two runs differ by a page here and there.
MOST_GROWTH_RATIO = 1.05

Waiting = Counter[tuple[str, int]]


@dataclass(frozen=True)
class Cost:
    """Time and memory of a run."""

    wall_seconds: float
    cpu_seconds: float
    max_rss_mb: float = 0.0


@dataclass(frozen=True)
class Figure:
    """A line of the table."""

    name: str
    measured: str
    required: str
    ok: bool


def main() -> int:
    """Print the table; 1 if a requirement is missed."""
    with tempfile.TemporaryDirectory() as folder, Box(SPEC) as box:
        config = Path(folder) / "sharectl.yaml"
        config.write_text(CONFIG)
        command = [sys.executable, "-m", "sharectl", "snapshot", "--json", "--config", str(config)]
        environment = {
            **os.environ,
            **box.client_environment,
            "PYTHONPATH": str(CHECKOUT / "central"),
        }
        # As it is installed, with bytecode: without, half of the time is spent on compiling.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        submit(box, FEW_JOBS)
        few = memory_mb(command, environment)
        submit(box, MANY_JOBS - FEW_JOBS)
        negotiate(box)
        seed, ours = [], []
        for _ in range(RUNS):
            cost, seed_waiting = run_seed(box)
            seed.append(cost)
            cost, our_waiting = run_sharectl(command, environment)
            ours.append(cost)
            if seed_waiting != our_waiting or sum(our_waiting.values()) != MANY_JOBS:
                print(
                    f"not the same jobs: condor_q {seed_waiting}, sharectl {our_waiting}",
                    file=sys.stderr,
                )
                return 1
        many = memory_mb(command, environment)
    figures = list(judged(seed, ours, few, many))
    print_table(figures)
    return 0 if all(figure.ok for figure in figures) else 1


def submit(box: Box, jobs: int) -> None:
    """Queue so many jobs more, spread evenly."""
    for access_point in ACCESS_POINTS:
        for group, cores, share in MIX:
            count = round(jobs / len(ACCESS_POINTS) * share)
            description = JOBS.format(group=group, cores=cores, count=count)
            box.run(["condor_submit", "-terse", "-"], 300, access_point, input=description)


def negotiate(box: Box) -> None:
    """Wait until all jobs have an autocluster, then stop the negotiator: nothing can match."""
    unseen = ["condor_q", "-global", "-all", "-constraint", "AutoClusterId =?= undefined"]
    unseen += ["-limit", "1", "-af", "ClusterId"]
    box.wait_until(lambda: not box.run(unseen).stdout.strip(), "the negotiator has seen all")
    box.run(["condor_off", "-negotiator"], host=CENTRAL)


def run_seed(box: Box) -> tuple[Cost, Waiting]:
    """Cost of the seed's pipeline, and the jobs that it counted."""
    lines = [line.split() for line in box.run(["/bin/sh", "-c", TIMED], 300).stdout.splitlines()]
    (took,) = (line for line in lines if line[0] == "took")
    waiting: Waiting = Counter()
    for line in lines:
        if line[0] == "waiting":
            waiting[known(line[1]), int(line[2])] += int(line[3])
    cpu = sum(minutes_and_seconds(field) for field in lines[-1])
    return Cost(float(took[2]) - float(took[1]), cpu), waiting


def minutes_and_seconds(field: str) -> float:
    """Seconds that the shell writes as ``1m2.34s``."""
    minutes, _, seconds = field.rstrip("s").partition("m")
    return 60 * int(minutes) + float(seconds)


def known(group: str) -> str:
    """The group as sharectl counts it."""
    return group if group in ("cms", "atlas", "alice") else "other"


def run_sharectl(command: list[str], environment: dict[str, str]) -> tuple[Cost, Waiting]:
    """Cost of sharectl and all its processes, and the jobs that it counted."""
    cost, printed = cost_of(command, environment)
    waiting = Counter(
        {
            (group, int(cores)): jobs
            for group, used in printed["groups"].items()
            for cores, jobs in used["pending_by_cores"].items()
        }
    )
    return cost, waiting


def cost_of(command: list[str], environment: dict[str, str]) -> tuple[Cost, Any]:
    """Cost of a command and all its processes, and the JSON that it printed."""
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        started = subprocess.Popen(command, env=environment, stdout=output)
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.monotonic() - began
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            raise SystemExit(f"sharectl left with {started.returncode}")
        output.seek(0)
        printed = json.load(output)
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * MB_PER_KIB), printed


def memory_mb(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Medians of the most memory of all processes at a time, and of the largest RSS of one, MB."""
    together = statistics.median(most_memory_mb(command, environment) for _ in range(RUNS))
    alone = statistics.median(run_sharectl(command, environment)[0].max_rss_mb for _ in range(RUNS))
    return together, alone


def most_memory_mb(command: list[str], environment: dict[str, str]) -> float:
    """Most memory that the command and its children took at a time, MB."""
    started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    most = 0.0
    while started.poll() is None:
        children = sum(
            memory_kib(pid, "Private_Clean", "Private_Dirty") for pid in children_of(started.pid)
        )
        most = max(most, (memory_kib(started.pid, "Rss") + children) * MB_PER_KIB)
        time.sleep(POLL_SECONDS)
    return most


def children_of(pid: int) -> Iterator[int]:
    """The descendants of a process."""
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from children_of(int(child))


def memory_kib(pid: int, *kinds: str) -> int:
    """Memory of the given kinds that a process has, KiB; 0 if it has ended."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        found = {
            name: int(value.split()[0])
            for name, _, value in (line.partition(":") for line in lines)
        }
        return sum(found.get(kind, 0) for kind in kinds)
    return 0


def judged(
    seed: list[Cost], ours: list[Cost], few: tuple[float, float], many: tuple[float, float]
) -> Iterator[Figure]:
    """The figures, each against its requirement."""
    for name, kind, least, before in TIMES:
        theirs, own = (
            statistics.median(getattr(cost, kind) for cost in costs) for costs in (seed, ours)
        )
        yield Figure(f"{name}, condor_q | awk", f"{theirs:.3f} s", "", ok=True)
        yield Figure(f"{name}, sharectl snapshot", f"{own:.3f} s", "", ok=True)
        ratio = theirs / own
        yield Figure(f"{name}, ratio", f"{ratio:.1f}", f">= {least:g}", ok=ratio >= least)
        yield Figure(f"{name}, ratio before", before, "", ok=True)
    names = ("memory of all its processes", "memory of its largest process")
    for name, at_few, at_many in zip(names, few, many):
        for jobs, memory in ((FEW_JOBS, at_few), (MANY_JOBS, at_many)):
            within = memory <= MOST_MEMORY_MB
            yield Figure(
                f"{name}, {jobs:,} jobs", f"{memory:.1f} MB", f"<= {MOST_MEMORY_MB:g} MB", ok=within
            )
        growth = at_many / at_few
        yield Figure(
            f"{name}, growth",
            f"{growth:.3f}",
            f"<= {MOST_GROWTH_RATIO:g}",
            ok=growth <= MOST_GROWTH_RATIO,
        )


def print_table(figures: list[Figure]) -> None:
    """Print all figures."""
    width = max(len(figure.name) for figure in figures)
    print(f"{'figure':<{width}}  {'measured':>10}  {'required':>10}")
    for figure in figures:
        verdict = "" if not figure.required else "ok" if figure.ok else "MISSED"
        row = f"{figure.name:<{width}}  {figure.measured:>10}  {figure.required:>10}  {verdict}"
        print(row.rstrip())


if __name__ == "__main__":
    sys.exit(main())
