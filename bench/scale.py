"""A whole ``sharectl cycle`` on a large pool: 1,000,000 queued jobs, 5,000 nodes, four schedds.

    .venv/bin/python bench/scale.py --jobs 1000000 --nodes 5000

`make bench` takes a tenth of that. The pool (`bench/large_pool.py`) grows in one run: a tenth of
both, then all jobs, then all nodes. So each stage tells with which power of jobs and of nodes its
time grows. Each size has one first cycle, which is not counted, then some that are.

Terms: wall time begins where the Python interpreter is started; processor time is user + system
time of the command and its children; that of the daemons, their answers and what else they do
meanwhile, has rows of its own. The load of the machine stands
beside both: on a busy machine the processor time is what to compare. Memory is, at the worst
moment, the RSS of the first process plus what its children do not share (USS), and the largest RSS
of any one of them. MB are 10^6 bytes. Stages are measured in cycles of their own, in the process of
the cycle: their times add up to that of the cycle.

Exit code 1 if a requirement is missed on the largest pool, or a cycle was not complete. Wall time
is required of an idle machine: with a load above 1.5 for two cores it is printed and not judged.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

CHECKOUT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":  # a script finds the checkout by itself
    sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "central")]

from bench import large_pool, snapshot  # noqa: E402
from poolbox import Box  # noqa: E402

JOBS, NODES, SCHEDDS = 100_000, 500, 4
RUNS = 3
MOST_SECONDS, MOST_MEMORY_MB = 10.0, 150.0
IDLE_LOAD = 0.75
"""Load per core up to which a machine counts as idle."""
STEPS = ((0.1, 0.1), (1.0, 0.1), (1.0, 1.0))
"""Parts of the jobs and of the nodes, one size after the other."""
SHORTEST_SECONDS = 0.03
"""Processor time from which on its growth is told."""
REST = "configuration, output, status"
IMPORTS = "start of Python, imports"
STAGES = (
    ("collector", "sharectl.snapshot.pool", "collector_answer"),
    ("schedds", "sharectl.snapshot.pool", "ask_both"),
    ("trial of demand", "sharectl.snapshot.pool", "tried"),
    ("rest of the snapshot", "sharectl.snapshot.pool", "CondorPool.snapshot"),
    ("run times", "sharectl.ledger.ledger", "Histories.run_times"),
    ("decide", "sharectl.cycle.cycle", "decide"),
    ("publish", "sharectl.cycle.publication", "Publishing.publish_unless_disabled"),
    ("record", "sharectl.cycle.cycle", "record_of"),
    ("ledger, history", "sharectl.ledger.ledger", "Histories.record"),
)
"""Name, module and function of each stage; one within another is not counted twice."""


DAEMONS = ("condor_collector", "condor_schedd")


@dataclass(frozen=True)
class Size:
    """Figures of one size of the pool, medians of its cycles."""

    jobs: int
    nodes: int
    targets: int
    load: float
    wall_seconds: float
    cpu_seconds: float
    together_mb: float
    largest_mb: float
    stages: dict[str, tuple[float, float]]
    """Stage -> wall and processor seconds."""
    daemons: dict[str, float]
    """Daemons of a kind -> their processor seconds while a cycle runs."""


# ---- in the process of a cycle


def staged(config: str) -> int:
    """Run a cycle; its stages go to standard error as JSON."""
    began = _started_at()
    spent: dict[str, list[float]] = {}
    running: list[list[float]] = []
    for name, module, function in STAGES:
        _time(spent.setdefault(name, [0.0, 0.0]), running, module, function)
    from sharectl.cli.main import main  # noqa: PLC0415 - what it imports is measured

    importlib.import_module("sharectl.cli.cycle")
    spent[IMPORTS] = _now() - began
    code = main(["cycle", "--json", "--config", config])
    whole = _now() - began
    rest = [a - sum(b) for a, *b in zip(whole, *spent.values())]
    print(json.dumps({**spent, REST: rest}), file=sys.stderr)
    return code


class _Moment(tuple[float, float]):
    """Wall and processor time; the difference of two."""

    __slots__ = ()

    def __sub__(self, other: tuple[float, float]) -> list[float]:
        return [a - b for a, b in zip(self, other)]


def _now() -> _Moment:
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return _Moment((time.clock_gettime(time.CLOCK_BOOTTIME), cpu))


def _started_at() -> _Moment:
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return _Moment((ticks / os.sysconf("SC_CLK_TCK"), 0.0))


def _time(total: list[float], running: list[list[float]], module: str, name: str) -> None:
    """Have a function add its time to ``total``, without that of stages within it."""
    *above, last = name.split(".")
    place = functools.reduce(getattr, above, importlib.import_module(module))
    function: Callable[..., Any] = getattr(place, last)

    @functools.wraps(function)
    def timed(*arguments: Any, **named: Any) -> Any:
        began, within = _now(), [0.0, 0.0]
        running.append(within)
        try:
            return function(*arguments, **named)
        finally:
            running.pop()
            took = _now() - began
            for place, (seconds, inner) in enumerate(zip(took, within)):
                total[place] += seconds - inner
                if running:
                    running[-1][place] += seconds

    setattr(place, last, timed)


# ---- outside


def main(argv: Sequence[str]) -> int:
    """Print the tables; 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=JOBS, help="default: %(default)s")
    parser.add_argument("--nodes", type=int, default=NODES, help="default: %(default)s")
    parser.add_argument("--schedds", type=int, default=SCHEDDS, help="default: %(default)s")
    parser.add_argument("--stages", metavar="CONFIG", help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.stages is not None:
        return staged(chosen.stages)
    sizes = []
    with tempfile.TemporaryDirectory() as folder, Box(large_pool.spec(chosen.schedds)) as box:
        jobs = nodes = 0
        for of_jobs, of_nodes in STEPS:
            began = time.monotonic()
            wanted = round(of_jobs * chosen.jobs), round(of_nodes * chosen.nodes)
            if wanted[0] > jobs:
                large_pool.submit(box, wanted[0] - jobs)
                large_pool.negotiate(box)
            large_pool.advertise(box, nodes, wanted[1])
            jobs, nodes = large_pool.queued(box), wanted[1]
            took = time.monotonic() - began
            print(f"{jobs:,} jobs, {nodes:,} nodes: made in {took:.0f} s", flush=True)
            sizes.append(measured(box, Path(folder), jobs, nodes))
        memory = {
            process.program: process.resident_kib / 1024
            for family in box.daemons().values()
            for process in family
        }
    print_sizes(sizes)
    print_stages(sizes)
    print(f"daemons: {', '.join(f'a {kind} has {memory[kind]:.0f} MiB' for kind in DAEMONS)}")
    return 0 if all_ok(sizes[-1]) else 1


def measured(box: Box, folder: Path, jobs: int, nodes: int) -> Size:
    """Figures of the pool as it is now."""
    # One installation for all sizes: another one would leave the published plan alone.
    (folder / "state").mkdir(exist_ok=True)
    config = folder / "sharectl.yaml"
    config.write_text(large_pool.configuration(folder))
    environment = {**os.environ, **box.client_environment}
    environment["PYTHONPATH"] = f"{CHECKOUT / 'central'}:{CHECKOUT}"
    # As it is installed, with bytecode.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "sharectl", "cycle", "--json", "--config", str(config)]
    _, first = snapshot.cost_of(command, environment)
    pending = sum(sum(used["pending_by_cores"].values()) for used in first["errors"])
    if not first["complete"] or pending != jobs or first["warnings"]:
        raise SystemExit(f"{pending} jobs of {jobs}: {first['problems']} {first['warnings']}")
    load = os.getloadavg()[0]
    before = _daemons(box)
    costs = [snapshot.cost_of(command, environment)[0] for _ in range(RUNS)]
    daemons = {kind: (spent - before[kind]) / RUNS for kind, spent in _daemons(box).items()}
    together = [snapshot.most_memory_mb(command, environment) for _ in range(RUNS)]
    staged_command = [sys.executable, __file__, "--stages", str(config)]
    rows = [json.loads(_errors(staged_command, environment)) for _ in range(RUNS)]
    return Size(
        jobs,
        nodes,
        len(first["plan"]["targets"]),
        load,
        statistics.median(cost.wall_seconds for cost in costs),
        statistics.median(cost.cpu_seconds for cost in costs),
        statistics.median(together),
        statistics.median(cost.max_rss_mb for cost in costs),
        {
            name: (
                statistics.median(row[name][0] for row in rows),
                statistics.median(row[name][1] for row in rows),
            )
            for name in rows[0]
        },
        daemons,
    )


def _daemons(box: Box) -> dict[str, float]:
    """Processor seconds so far of all collectors and of all schedds, with the answers they fork."""
    spent = dict.fromkeys(DAEMONS, 0.0)
    for process in (process for family in box.daemons().values() for process in family):
        if process.program in spent:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            spent[process.program] += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return spent


def _errors(command: list[str], environment: dict[str, str]) -> str:
    """Last line that a command prints to standard error."""
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return done.stderr.splitlines()[-1]


def print_sizes(sizes: Sequence[Size]) -> None:
    """Print a row for each size, and the requirements."""
    print(
        f"{'jobs':>10}{'nodes':>7}{'targets':>9}{'load':>7}{'wall s':>8}{'CPU s':>7}"
        f"{'memory MB':>11}{'largest MB':>12}"
    )
    for size in sizes:
        print(
            f"{size.jobs:10,}{size.nodes:7,}{size.targets:9,}{size.load:7.1f}"
            f"{size.wall_seconds:8.2f}{size.cpu_seconds:7.2f}{size.together_mb:11.0f}"
            f"{size.largest_mb:12.0f}"
        )


def print_stages(sizes: Sequence[Size]) -> None:
    """Print a row for each stage: wall and processor seconds at each size, and the growth."""
    columns = "".join(f"{f'{size.jobs:,}/{size.nodes:,}':>20}" for size in sizes)
    print(f"\n{'stage, wall and CPU s':24}{columns}{'~jobs^':>8}{'~nodes^':>8}")
    kinds = {kind: [(0.0, size.daemons[kind]) for size in sizes] for kind in DAEMONS}
    stages = {name: [size.stages[name] for size in sizes] for name in sizes[-1].stages}
    for name, rows in {**stages, **kinds}.items():
        figures = "".join(f"{wall:12.2f}{cpu:8.2f}" for wall, cpu in rows)
        cpu = [seconds for _, seconds in rows]
        of_jobs = exponent(cpu[0], cpu[1], sizes[1].jobs / sizes[0].jobs)
        of_nodes = exponent(cpu[1], cpu[2], sizes[2].nodes / sizes[1].nodes)
        print(f"{name:24}{figures}{of_jobs:>8}{of_nodes:>8}")


def exponent(before: float, after: float, growth: float) -> str:
    """Power of the growth with which a time grows; `-` where it is too short to tell."""
    if min(before, after) < SHORTEST_SECONDS:
        return "-"
    return f"{math.log(after / before) / math.log(growth):.2f}"


def all_ok(size: Size) -> bool:
    """Print the requirements of the full size, and tell if they are met, as far as judged."""
    memory_ok = size.together_mb <= MOST_MEMORY_MB
    print(
        f"memory: {size.together_mb:.0f} of {MOST_MEMORY_MB:.0f} MB{'' if memory_ok else ' MISSED'}"
    )
    seconds = f"wall time: {size.wall_seconds:.1f} of {MOST_SECONDS:.0f} s"
    if size.load > IDLE_LOAD * (os.cpu_count() or 1):
        print(f"{seconds}, not judged: the load was {size.load:.1f}")
        return memory_ok
    print(f"{seconds}{'' if size.wall_seconds <= MOST_SECONDS else ' MISSED'}")
    return memory_ok and size.wall_seconds <= MOST_SECONDS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
