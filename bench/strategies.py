"""Strategies side by side on real pools, with the very same jobs: the table that README shows.

Each strategy has a pool of its own in a sandbox: six nodes of 16 cores, half of them half as strong
again, times of a site divided by a scale. One-core jobs of alice hold all cores, 8-core jobs of cms
wait; in `three-groups` lhcb has one-core jobs too, and cms as many 8-core jobs again that no node
can run; in `bursts` cms has work only at times. All is read from the jobs' event logs.

The busier the machine, the longer daemons take: compare strategies of one run. With `--json` the
records are kept, with each start and end of a job.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from poolbox.comparison import real  # it is no installed package
from poolbox.comparison.recording import Record
from poolbox.comparison.scenario import SCALE, SCENARIOS, SECONDS, Comparison
from poolbox.spec import SUITES
from sharectl.sim.strategies import Strategy
from sharectl.sim.strategy_file import USUAL, read_strategies

POOLS = 3
HEADER = ("strategy", "RMS error, HS06", "idle cores", "8-core jobs done", "1-core", "evicted")


def options() -> argparse.ArgumentParser:
    """Options that this bench has in common with `bench/twin_pool.py`."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n", 1)[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("scenario", nargs="?", choices=SCENARIOS, default="two-groups")
    parser.add_argument("--strategies", default=",".join(USUAL), help="as in sharectl simulate")
    parser.add_argument("--minutes", type=float, default=SECONDS / 60)
    parser.add_argument("--scale", type=float, default=SCALE, help="times of a site are divided by")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pools", type=int, default=POOLS, help="pools that run at a time")
    parser.add_argument("--suite", choices=SUITES, default=SUITES[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the records")
    return parser


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Exit code 0, or 1 if a pool failed."""
    asked = options().parse_args(argv)
    comparison = SCENARIOS[asked.scenario](asked.seed, asked.minutes * 60, asked.scale)
    records = run_all(comparison, read_strategies(asked.strategies), asked.suite, asked.pools)
    if asked.json:
        keep(asked.json, comparison, records)
    print(title(comparison, records))
    print(table(HEADER, [row(record, comparison) for record in records]))
    return 0


def run_all(
    comparison: Comparison, strategies: Sequence[Strategy], suite: str, pools: int
) -> list[Record]:
    """Records of strategies, some pools at a time; a line on standard error for each that ended."""

    def run(strategy: Strategy) -> Record:
        began = time.monotonic()
        record = real.run(comparison, strategy, suite)
        seconds = time.monotonic() - began
        print(f"{strategy.name}: {seconds:.0f} s with its pool's start", file=sys.stderr)
        return record

    with ThreadPoolExecutor(pools) as side_by_side:
        return list(side_by_side.map(run, strategies))


def keep(path: Path, comparison: Comparison, records: Iterable[Record]) -> None:
    """Write the comparison and its records as JSON."""
    data = {
        "comparison": comparison.as_json(),
        "records": [record.as_json() for record in records],
    }
    path.write_text(json.dumps(data) + "\n")


def title(comparison: Comparison, records: Sequence[Record]) -> str:
    """Pool, time and scale of a comparison."""
    return (
        f"{comparison.name}: {len(comparison.nodes)} nodes, {comparison.cores} cores, "
        f"{comparison.seconds / 60:g} minutes at 1/{comparison.scale:g} of a site's times, seed "
        f"{comparison.seed}, HTCondor {records[0].htcondor}"
    )


def row(record: Record, comparison: Comparison) -> tuple[str, ...]:
    """Line of the table. The error is that of the group with the largest."""
    figures = record.figures
    most = max(job.cores for job in comparison.jobs)
    return (
        record.strategy,
        f"{figures.worst_rms_hs06:.0f}",
        f"{figures.mean_idle_cores:.1f}",
        f"{figures.done_by_cores.get(most, 0)}",
        f"{figures.done_by_cores.get(1, 0)}",
        f"{figures.evicted_jobs}",
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown table."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ruler, *rows))


if __name__ == "__main__":
    sys.exit(main())
