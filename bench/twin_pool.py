"""The twin beside real pools: the same strategies on the same jobs, and how far they differ.

Each strategy runs on a real pool (as in `bench/strategies.py`) and in the digital twin, with the
same nodes, jobs, intervals and recipes. The first table has the cores of each group, on average
over the time that counts, as % of the pool's cores:

- deviation: the pool's less the mean of twins of `--seeds` seeds, each with jobs of its own seed;
- chance: twice the standard deviation of these twins. Two pools with other jobs of one
  kind differ by that much, so only a deviation beyond it is an error of the twin;
- same jobs: the pool's less that of the twin with the pool's own jobs;
- over time: the mean of the absolute difference to that twin, minute by minute.

The second table has starts of jobs by size, idle cores and RMS errors. Exit code 1 if a deviation
is larger than 5 % of the pool and beyond chance, or if two strategies that differ by more than
chance on the pools are in another order in the twin.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.strategies import keep, options, run_all, table
from poolbox.comparison import twin
from poolbox.comparison.deviation import (
    MOST_RATIO,
    Deviation,
    contradictions,
    deviations,
    order,
)
from poolbox.comparison.recording import STEP_SECONDS, Figures, Run, figures
from poolbox.comparison.scenario import SCENARIOS, Comparison
from sharectl.sim.strategies import Strategy
from sharectl.sim.strategy_file import read_strategies

SEEDS = 20
MINUTE_STEPS = round(60 / STEP_SECONDS)
USAGE = ("strategy", "group", "pool", "twins", "deviation", "chance", "same jobs", "over time")
OTHER = ("strategy", "starts: pool", "twin", "idle cores: pool", "twins", "RMS: pool", "twins")


@dataclass(frozen=True)
class Beside:
    """A strategy on a pool, in the twin with the pool's jobs, and in twins of other seeds."""

    strategy: str
    pool: Figures
    same_jobs: Figures
    twins: tuple[Figures, ...]

    def errors_hs06(self) -> list[float]:
        """RMS error of each twin."""
        return [figures.worst_rms_hs06 for figures in self.twins]


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Exit code: 0, or 1 for a twin that is wrong."""
    parser = options()
    parser.description = (__doc__ or "").split("\n", 1)[0]
    parser.add_argument("--seeds", type=int, default=SEEDS, help="twins with other jobs")
    parser.add_argument("--records", type=Path, help="read pools of an earlier --json instead")
    chosen = parser.parse_args(argv)
    comparison = SCENARIOS[chosen.scenario](chosen.seed, chosen.minutes * 60, chosen.scale)
    strategies = read_strategies(chosen.strategies)
    if chosen.records:
        comparison, pools = recorded(chosen.records)
        strategies = tuple(strategy for strategy in strategies if strategy.name in pools)
    else:
        records = run_all(comparison, strategies, chosen.suite, chosen.pools)
        pools = {record.strategy: record.figures for record in records}
        if chosen.json:
            keep(chosen.json, comparison, records)
    rows = [beside(comparison, strategy, pools, chosen.seeds) for strategy in strategies]
    return judged(rows, comparison)


def recorded(path: Path) -> tuple[Comparison, dict[str, Figures]]:
    """Comparison of a file of records, and strategy -> its figures."""
    data = json.loads(path.read_text())
    comparison = Comparison.from_json(data["comparison"])
    return comparison, {
        record["strategy"]: figures([Run(**run) for run in record["runs"]], comparison)
        for record in data["records"]
    }


def beside(
    comparison: Comparison, strategy: Strategy, pools: dict[str, Figures], seeds: int
) -> Beside:
    """Pool and twins of a strategy."""
    draw = SCENARIOS[comparison.name]
    return Beside(
        strategy.name,
        pools[strategy.name],
        twin.run(comparison, strategy, STEP_SECONDS, comparison.seed),
        tuple(
            twin.run(draw(seed, comparison.seconds, comparison.scale), strategy, STEP_SECONDS, seed)
            for seed in range(1001, 1001 + seeds)
        ),
    )


def judged(rows: Sequence[Beside], comparison: Comparison) -> int:
    """Print the tables and the verdict; 1 if the twin is wrong."""
    usage, wrong = [], []
    for row in rows:
        for seen in deviations(row.pool, row.same_jobs, row.twins, comparison.cores):
            usage.append(usage_row(row, seen, comparison))
            if abs(seen.ratio) > MOST_RATIO and seen.error:
                wrong.append(f"{row.strategy}: {seen.group} deviates by {100 * seen.ratio:+.1f} %")
    print(f"{comparison.name}, {comparison.seconds / 60:g} minutes; usage as % of the pool's cores")
    print(table(USAGE, usage))
    print()
    print(table(OTHER, [other_row(row) for row in rows]))
    pool_hs06 = {row.strategy: row.pool.worst_rms_hs06 for row in rows}
    twins_hs06 = {row.strategy: row.errors_hs06() for row in rows}
    means = {strategy: statistics.fmean(errors) for strategy, errors in twins_hs06.items()}
    print(f"\norder on pools: {', '.join(order(pool_hs06))}")
    print(f"order of twins: {', '.join(order(means))}")
    wrong += contradictions(pool_hs06, twins_hs06)
    print("\n".join(wrong) or f"no deviation above {MOST_RATIO:.0%} beyond chance; one order")
    return int(bool(wrong))


def usage_row(row: Beside, seen: Deviation, comparison: Comparison) -> tuple[str, ...]:
    """Line of the first table."""
    pool, same = (minutes(cores.cores[seen.group]) for cores in (row.pool, row.same_jobs))
    over_time = statistics.fmean(abs(a - b) for a, b in zip(pool, same)) / comparison.cores
    return (
        row.strategy,
        seen.group,
        f"{100 * seen.pool:.1f}",
        f"{100 * statistics.fmean(seen.twins):.1f}",
        f"{100 * seen.ratio:+.1f}",
        f"{100 * seen.chance:.1f}",
        f"{100 * (seen.pool - seen.same_jobs):+.1f}",
        f"{100 * over_time:.1f}",
    )


def other_row(row: Beside) -> tuple[str, ...]:
    """Line of the second table."""
    idle = [figures.mean_idle_cores for figures in row.twins]
    return (
        row.strategy,
        starts(row.pool),
        starts(row.same_jobs),
        f"{row.pool.mean_idle_cores:.1f}",
        f"{statistics.fmean(idle):.1f} ± {statistics.stdev(idle):.1f}",
        f"{row.pool.worst_rms_hs06:.0f}",
        f"{statistics.fmean(row.errors_hs06()):.0f} ± {statistics.stdev(row.errors_hs06()):.0f}",
    )


def starts(seen: Figures) -> str:
    """Starts of jobs, such as `700 of 1, 13 of 8`."""
    return ", ".join(f"{count} of {cores}" for cores, count in seen.starts_by_cores.items())


def minutes(series: Sequence[float]) -> list[float]:
    """Means of each minute, and of what is left at the end."""

    def parts() -> Iterator[float]:
        for place in range(0, len(series), MINUTE_STEPS):
            yield statistics.fmean(series[place : place + MINUTE_STEPS])

    return list(parts())


if __name__ == "__main__":
    sys.exit(main())
