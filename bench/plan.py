"""Time, memory and quality of plans for a large pool: many pairs, and the one of the seed.

Each is made in a process of its own, so that the memory is its own. ``--nodes`` and ``--groups``
say how large.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "central"))


from sharectl.model import Node, PendingJobs, PlanLimits, RunningJobs, Snapshot
from sharectl.plan.plan import Decision, PlanConfig, State, decide
from sharectl.plan.waits import nodes_of

NOW = 1_700_000_000
NODE_CORES = 64
POWERS = (9.5, 10.0, 11.2, 12.8, 14.1, 16.0)
SIZES = (1, 2, 4, 8, 16, 64)
WAITING_RATIO = 0.6
"""Of the groups and sizes, those of which jobs wait."""
VARIANTS = ("many", "pair")


def pool(nodes: int, groups: int, seed: int) -> tuple[Snapshot, dict[str, float]]:
    """A full pool in which groups hold more or less than their pledges, and the pledges."""
    draw = Random(seed)
    names = [f"group{number:02}" for number in range(groups)]
    # What each holds, by weight; pledges are the same for all.
    weight = {name: draw.uniform(0.3, 1.7) for name in names}
    points, running = [], []
    for number in range(nodes):
        node, power = f"wn-{number:04}", draw.choice(POWERS)
        machine = f"{node}.example.org"
        points.append(
            Node(node, machine, NODE_CORES, power, controlled=True, memory_mib=4096 * NODE_CORES)
        )
        running += _jobs(draw, node, power, weight)
    pending = [
        PendingJobs(name, size, draw.randint(1, 400), 2048 * size)
        for name in names
        for size in SIZES
        if draw.random() < WAITING_RATIO
    ]
    return Snapshot(NOW, tuple(points), tuple(running), tuple(pending)), dict.fromkeys(
        names, 1000.0
    )


def _jobs(draw: Random, node: str, power: float, weight: dict[str, float]) -> list[RunningJobs]:
    """Jobs that fill a node but for a few cores."""
    free, found = NODE_CORES - draw.choice((0, 0, 0, 1, 3)), []
    groups = draw.choices(list(weight), list(weight.values()), k=12)
    while free > 0:
        cores = min(free, draw.choice((1, 1, 1, 1, 2, 4, 8)))
        seconds = int(draw.expovariate(1 / 20000)) + 1
        found.append(RunningJobs(node, draw.choice(groups), cores, power, seconds, 1, 2048 * cores))
        free -= cores
    return found


def measured(variant: str, nodes: int, groups: int, seed: int) -> dict[str, float]:
    """Figures of one plan: seconds, MiB above those of the pool, targets, power moved, waits."""
    taken, pledges = pool(nodes, groups, seed)
    config = PlanConfig(pledges, PlanLimits(), 3060, strategy=variant)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    decision = decide(config, State(), taken, NOW)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    again, state = time.perf_counter(), replace(decision.state)
    decide(config, state, replace(taken, taken_at=NOW + 60), NOW + 60)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "again_seconds": time.perf_counter() - again,
        "peak_mib": peak_kib / 1024,
        "pool_mib": before_kib / 1024,
        **_worth(decision, taken),
    }


def _worth(decision: Decision, taken: Snapshot) -> dict[str, float]:
    nodes = nodes_of(taken)
    power = {name: here.node.hs06_per_core for name, here in nodes.items()}
    waits = {record.node: record for record in decision.nodes}
    over = sum(control.output_hs06 for control in decision.groups if control.output_hs06 > 0)
    targets = decision.plan.targets
    # A target for single-core jobs is for as many as the held-back group gives up cores.
    cores = {
        target: nodes[target.node].held_cores[target.held_back] - target.cap_cores
        if target.request_cores == 1
        else target.request_cores
        for target in targets
    }
    moved = sum(power[target.node] * cores[target] for target in targets)
    value = sum(
        power[target.node]
        * (
            cores[target] * (86400 - waits[target.node].wait_seconds)
            - waits[target.node].idle_core_seconds
        )
        for target in targets
    )
    return {
        "targets": len(targets),
        "single_core_targets": sum(target.request_cores == 1 for target in targets),
        "moved_ratio": moved / over,
        "idle_core_seconds": sum(waits[target.node].idle_core_seconds for target in targets),
        "value": value,
    }


def main(argv: Sequence[str]) -> int:
    """Print a table, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", choices=VARIANTS, help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.one:
        print(json.dumps(measured(chosen.one, chosen.nodes, chosen.groups, chosen.seed)))
        return 0
    rows = {}
    for variant in VARIANTS:
        asked = [sys.executable, __file__, "--one", variant, "--seed", str(chosen.seed)]
        size = ["--nodes", str(chosen.nodes), "--groups", str(chosen.groups)]
        rows[variant] = json.loads(
            subprocess.run([*asked, *size], check=True, capture_output=True).stdout
        )
    print(f"{chosen.nodes} nodes of {NODE_CORES} cores, {chosen.groups} groups, seed {chosen.seed}")
    print(f"{'':8}  seconds     cpu   again  peak MiB  pool MiB  targets  moved/over  value/many")
    for variant, row in rows.items():
        print(
            f"{variant:8}  {row['seconds']:7.2f} "
            f"{row['cpu_seconds']:7.2f} {row['again_seconds']:7.2f}  "
            f"{row['peak_mib']:8.0f}  {row['pool_mib']:8.0f}  {row['targets']:7.0f}  "
            f"{row['moved_ratio']:10.3f}  "
            f"{row['value'] / rows['many']['value']:12.4f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
