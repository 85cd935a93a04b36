"""Speed and memory of the digital twin.

sizes   small-site at 1, 4 and 16 times its size: the exponent by which time grows with the size
month   30 days of infn-t1 with `nothing` and `live`; --days for fewer
log     a job log in Standard Workload Format on 3,000 cores; --log FILE
lapis   jobs per second beside lapis on the same jobs; --lapis PYTHON, an interpreter that has
        lapis-sim (python3 -m venv FOLDER; FOLDER/bin/pip install lapis-sim)

Each run is a process of its own, so that the memory is its own. Times are of the processor.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import log
from pathlib import Path
from random import Random
from typing import Callable, NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "central"))

from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run
from sharectl_lab.twin.engine import Setup, Twin
from sharectl_lab.twin.records import NodeSpec, SlotSpec
from sharectl_lab.twin.start import StartKnobs
from sharectl_lab.workload.draw import Arrival, JobKind

LOG = """
summary: a job log on 3,000 cores
nodes: [{name: wn, count: 75, cores: 40}]
groups: {all: {pledge_hs06: 1000}}
swf: {file: LOG, by: group, groups: {"*": all}}
warmup_hours: 0
days: 14
"""
SIZES = (1, 4, 16)
CASES = {"without contention": (20_000, 2000, 3600.0, 0.7), "contended": (5000, 96, 3600.0, 5.0)}
"""Jobs, cores, mean run time, and cores that jobs ask for as part of the pool's."""
NODE_CORES = 8


class Jobs(NamedTuple):
    """Listed jobs of one core."""

    jobs: tuple[Arrival, ...]
    kinds: tuple[JobKind, ...] = (JobKind("all", "user", 1, 1000),)
    factories: tuple[()] = ()

    def arrivals(self) -> Iterator[Arrival]:
        """Jobs in the order of their times."""
        return iter(self.jobs)


def jobs_of(case: str) -> Jobs:
    """Jobs of a case, the same at every call."""
    count, cores, mean_seconds, load = CASES[case]
    draw, at, jobs = Random(case).random, 0.0, []
    for _ in range(count):
        at -= log(1 - draw()) * mean_seconds / (cores * load)
        # lapis knows whole seconds.
        run_seconds = max(1, round(-mean_seconds * log(1 - draw())))
        jobs.append(Arrival(float(round(at)), 0, float(run_seconds)))
    return Jobs(tuple(jobs))


def scaled(scenario: Scenario, factor: float) -> Scenario:
    """Scenario with so many times the nodes, jobs, pledges and errors that are left alone."""

    def times(number: int) -> int:
        return max(1, round(number * factor))

    limits = scenario.control.limits
    if limits.deadband_hs06 is not None:
        limits = replace(limits, deadband_hs06=limits.deadband_hs06 * factor)
    return replace(
        scenario,
        control=replace(scenario.control, limits=limits),
        nodes=tuple(replace(kind, count=times(kind.count)) for kind in scenario.nodes),
        groups={
            name: replace(group, pledge_hs06=(group.pledge_hs06 or 0) * factor)
            for name, group in scenario.groups.items()
        },
        jobs=tuple(
            replace(
                stream,
                keep_pending=stream.keep_pending and times(stream.keep_pending),
                per_hour=stream.per_hour and stream.per_hour * factor,
            )
            for stream in scenario.jobs
        ),
    )


def measured(scenario: Scenario, strategy: str, seconds: Optional[float] = None) -> None:
    """Print processor seconds, memory and jobs of a run as JSON."""
    begin = time.process_time()
    run = Run(scenario, read_strategies(strategy)[0], 1, seconds)
    run.until(run.end)
    outcome = run.outcome()
    done = sum(sum(group.done_by_cores.values()) for group in outcome.groups.values())
    _print(time.process_time() - begin, done)


def measured_case(case: str) -> None:
    """Print processor seconds, memory and jobs of the twin with the jobs of a case."""
    jobs, cores = jobs_of(case), CASES[case][1]
    begin = time.process_time()
    nodes = tuple(
        NodeSpec(f"wn-{number}", (SlotSpec(NODE_CORES, 1000 * NODE_CORES),), 10.0)
        for number in range(cores // NODE_CORES)
    )
    twin = Twin(Setup(nodes, {"all": 1.0}, start=StartKnobs(enabled=False)), jobs)
    while twin.measures["all"].done[1] < len(jobs.jobs):
        twin.run(twin.now + 3600)
    _print(time.process_time() - begin, len(jobs.jobs))


def _print(seconds: float, jobs: int) -> None:
    used_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "mib": used_mib, "jobs": jobs}))


class Measured(NamedTuple):
    """Figures of a run."""

    seconds: float
    mib: float
    jobs: int

    def __str__(self) -> str:
        pace = self.jobs / self.seconds
        return f"{self.seconds:7.1f} s  {self.mib:5.0f} MiB  {self.jobs:8} jobs  {pace:7.0f} jobs/s"


def apart(*arguments: str) -> Measured:
    """Figures of a run in a process of its own."""
    command = [sys.executable, __file__, "--measure", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Measured(**json.loads(answer))


def sizes(_: argparse.Namespace) -> None:
    """Print time by size, and the exponent between two sizes."""
    before: Optional[Measured] = None
    for size in SIZES:
        now = apart("size", str(size))
        exponent = "" if before is None else f"  exponent {_exponent(before, now):.2f}"
        print(f"{size:3} times small-site, live  {now}{exponent}")
        before = now


def _exponent(before: Measured, now: Measured) -> float:
    return log(now.seconds / before.seconds) / log(now.jobs / before.jobs)


def month(arguments: argparse.Namespace) -> None:
    """Print time and memory of a month of infn-t1."""
    for strategy in ("nothing", "live"):
        figures = apart("month", strategy, str(arguments.days))
        print(f"{arguments.days:g} days of infn-t1, {strategy:8} {figures}", flush=True)


def job_log(arguments: argparse.Namespace) -> None:
    """Print time and memory of a job log, with the time to read it."""
    if arguments.log is None:
        raise SystemExit("bench/twin.py: log: name a job log by --log")
    print(f"{arguments.log.name} {apart('log', str(arguments.log.resolve()))}")


def beside_lapis(arguments: argparse.Namespace) -> None:
    """Print jobs per second of the twin and of lapis."""
    if arguments.lapis is None:
        raise SystemExit("bench/twin.py: lapis: name an interpreter that has it by --lapis")
    for case, (_, cores, *_) in CASES.items():
        ours = apart("case", case)
        seconds = lapis_seconds(arguments.lapis, jobs_of(case), cores)
        print(f"{case:20} {ours}")
        print(f"{'':20} lapis {ours.jobs / seconds:.0f} jobs/s: {seconds / ours.seconds:.1f} times")


def lapis_seconds(python: Path, jobs: Jobs, cores: int) -> float:
    """Processor seconds of lapis on the jobs, start-up taken off."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pool, few, all_jobs = (folder / f"{part}.csv" for part in ("pool", "few", "all"))
        pool.write_text(
            "Count TotalSlotCPUs TotalSlotDisk TotalSlotMemory\n"
            f"{cores // NODE_CORES} {NODE_CORES} 1000000 {1000 * NODE_CORES}\n"
        )
        _write_csv(few, jobs.jobs[:1])
        _write_csv(all_jobs, jobs.jobs)
        end = max(job.at + job.run_seconds for job in jobs.jobs)
        return _lapis(python, all_jobs, pool, end * 10) - _lapis(python, few, pool, end * 10)


def _write_csv(path: Path, jobs: tuple[Arrival, ...]) -> None:
    names = (
        "RequestCpus RequestWalltime RequestMemory RequestDisk QDate RemoteWallClockTime "
        "MemoryUsage DiskUsage_RAW RemoteSysCpu RemoteUserCpu"
    )
    rows = [names]
    for job in jobs:
        seconds = int(job.run_seconds)
        rows.append(f"1 {seconds} 1000 1 {int(job.at)} {seconds} 1000 1 0 {seconds}")
    path.write_text("\n".join(rows) + "\n")


def _lapis(python: Path, jobs: Path, pool: Path, until: float) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "from lapis.cli.simulate import cli; cli()"
    files = ["--job-file", str(jobs), "htcondor", "--pool-file", str(pool), "htcondor"]
    command = [str(python), "-c", code, "--until", str(until), "static", *files]
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


MEASURES: Mapping[str, Callable[..., None]] = {
    "size": lambda size: measured(scaled(file.load("small-site"), float(size)), "live", 86_400.0),
    "month": lambda strategy, days: measured(file.load("infn-t1"), strategy, float(days) * 86_400),
    "log": lambda path: measured(file.parse(LOG.replace("LOG", path), "log"), "nothing"),
    "case": measured_case,
}
"""Name of a run in a process of its own -> the run."""
PARTS = {"sizes": sizes, "month": month, "log": job_log, "lapis": beside_lapis}


def main() -> None:
    """Print the part that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="?", default="sizes", choices=tuple(PARTS))
    parser.add_argument("--days", type=float, default=30.0, help="of month")
    parser.add_argument("--log", type=Path, help="a job log in Standard Workload Format")
    parser.add_argument("--lapis", type=Path, help="an interpreter that has lapis-sim")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, *values = arguments.measure
        MEASURES[name](*values)
    else:
        PARTS[arguments.part](arguments)


if __name__ == "__main__":
    main()
