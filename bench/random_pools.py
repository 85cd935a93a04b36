"""sharectl beside no sharectl, in the twin, in pools of few nodes that nobody designed.

Nodes, groups, sizes, run times and arrivals are drawn at random: 1 to 30 nodes of 8 to 64 cores,
two to four groups, of which one has single-core jobs that always wait. The negotiator's quotas are
the pledges. A row is marked *worse* if more power is missing than without sharectl, and *idle* if
many more cores stand idle: each tells of a fault, or of short jobs and a long period of the timer.

``python -m bench.random_pools [--first N] [--pools N] [--period SECONDS]``
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "central"))

from sharectl_lab.scenarios.file import parse
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run
from sharectl_lab.twin.answers import figures_of

STRATEGIES = ("nothing", "live")
RUN_SECONDS = (900, 3600, 10_800, 28_800, 72_000)
SIZES = ((8,), (1, 8), (4,), (16,), (4, 8), (2, 8, 16), (1, 4, 16))
PAUSE = ", phases: [{begin_hours: 3, length_hours: 6, every_hours: 12, factor: 0}]"
WORSE_POINTS, IDLE_POINTS = 0.5, 4.0
"""Percent of the pool's power, and of its cores, beyond those without sharectl."""


class Shown(NamedTuple):
    """Percent of the pool."""

    missing: float
    idle: float


def scenario(seed: int) -> str:
    """Text of a scenario's file."""
    draw = random.Random(seed)
    nodes, cores, power = [], 0, 0
    for number in range(draw.choice((1, 1, 2, 3))):
        size, count = draw.choice((8, 16, 16, 24, 32, 48, 64)), draw.choice((1, 2, 3, 4, 6, 10))
        hs06, memory_mib = draw.choice((8, 10, 12, 15)), size * draw.choice((2000, 3000, 4000))
        cores, power = cores + size * count, power + size * count * hs06
        nodes.append(
            f"{{name: wn-{number}, count: {count}, cores: {size}, hs06_per_core: {hs06}, "
            f"memory_mib: {memory_mib}}}"
        )
    weights = [draw.choice((1, 1, 2, 3)) for _ in range(draw.choice((2, 2, 3, 4)))]
    pledges, jobs = [], []
    for name, weight in zip("abcd", weights):
        part = weight / sum(weights)
        pledges.append(f"{name}: {{pledge_hs06: {part * power:.0f}}}")
        sizes = draw.choice(SIZES) if pledges[1:] else (1,)
        seconds = draw.choice(RUN_SECONDS)
        for size in sizes:
            fit = part * cores / len(sizes) / size
            hourly = f"per_hour: {fit * 3600 / seconds * draw.choice((0.6, 1.0, 1.5)):.4f}"
            always = f"keep_pending: {max(3, round(2 * fit))}"
            jobs.append(
                f'{{group: {name}, cores: {size}, run_time: "log-normal:{seconds},{seconds // 2}", '
                + (draw.choice((always, hourly)) if pledges[1:] else always)
                + (draw.choice(("", "", PAUSE)) if pledges[1:] else "")
                + "}"
            )
    return "\n".join(
        (
            f"summary: {cores} cores",
            f"nodes: [{', '.join(nodes)}]",
            f"jobs: [{', '.join(jobs)}]",
            f"groups: {{{', '.join(pledges)}}}",
            "negotiator: {quotas: static}",
            "warmup_hours: 12\ndays: 2\nsample_seconds: 300",
        )
    )


def figures(seed: int, period_seconds: float) -> dict[str, Shown]:
    """Strategy -> figures."""
    pool = parse(scenario(seed), f"pool {seed}")
    pool = replace(pool, loop=replace(pool.loop, period_seconds=period_seconds))
    shown = {}
    for name in STRATEGIES:
        run = Run(pool, read_strategies(name)[0], seed)
        run.until(run.end)
        seen = figures_of(run.outcome())
        shown[name] = Shown(100 * seen.shortfall_rms_ratio, 100 * seen.idle_ratio)
    return shown


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Print a row for each pool, and means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--pools", type=int, default=20)
    parser.add_argument("--period", type=float, default=300.0)
    arguments = parser.parse_args(argv)
    if arguments.pools < 1 or arguments.period <= 0:
        parser.error("--pools and --period are above 0")
    rows = []
    print("| pool | nothing: missing, idle, % | live | |\n|---|---|---|---|")
    for seed in range(arguments.first, arguments.first + arguments.pools):
        rows.append(figures(seed, arguments.period))
        before, after = (rows[-1][name] for name in STRATEGIES)
        marks = [
            name
            for name, more, bound in zip(
                ("worse", "idle"),
                (after.missing - before.missing, after.idle - before.idle),
                (WORSE_POINTS, IDLE_POINTS),
            )
            if more > bound
        ]
        cells = (f"{row.missing:.1f}, {row.idle:.1f}" for row in (before, after))
        print(f"| {seed} | {' | '.join(cells)} | {' '.join(marks)} |", flush=True)
    means = (
        f"{mean(row[n].missing for row in rows):.2f}, {mean(row[n].idle for row in rows):.2f}"
        for n in STRATEGIES
    )
    print(f"| mean | {' | '.join(means)} | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
