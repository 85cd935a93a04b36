"""``python -m poolbox.comparison``: strategies side by side on real pools or in the twin.

Six nodes of 16 cores, half of them half as strong again, times of a site divided by 60.
One-core jobs of alice hold all cores; 8-core jobs of cms come (`bursts`: for half of the time), and
the strategy is switched on in that second. Each run adds a line to the folder of results; runs that
are there are left out, so that an interrupted command goes on where it ended.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Optional

from poolbox.comparison import real, results, twin
from poolbox.comparison.recording import TWIN, Record
from poolbox.comparison.results import NAMES, Results
from poolbox.comparison.scenario import SCENARIOS, SECONDS, Comparison
from poolbox.errors import PoolboxError
from poolbox.root import htcondor_version
from poolbox.spec import SUITES
from sharectl.errors import INTERRUPTED
from sharectl_lab.scenarios.strategies import Strategy, read_strategies

POOLS = 3


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Exit code: 0, or 1 if a pool failed."""
    options = _parser().parse_args(argv)
    try:
        return _run(options) if options.verb == "run" else _show(options)
    except PoolboxError as problem:
        print(f"comparison: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m poolbox.comparison", description=(__doc__ or "").split("\n", 1)[1]
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    show = verbs.add_parser("show")
    for verb in (run, show):
        verb.add_argument("folder", type=Path, help="folder of the results")
    run.add_argument("--scenarios", default=",".join(SCENARIOS))
    run.add_argument("--strategies", default=",".join(NAMES), help="as in sharectl simulate")
    run.add_argument("--seeds", type=_seeds, default="1-3", metavar="FIRST-LAST")
    run.add_argument("--minutes", type=float, default=SECONDS / 60)
    run.add_argument("--twin", action="store_true", help="in the twin instead of on pools")
    run.add_argument("--suite", choices=SUITES, default=SUITES[0], help="of the pools")
    run.add_argument("--pools", type=int, default=POOLS, help="pools side by side")
    show.add_argument(
        "--write", action="store_true", help="write README.md, docs/measurements.md and the picture"
    )
    return parser


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _run(options: argparse.Namespace) -> int:
    done = {run.key for run in Results.of(options.folder).runs}
    source = TWIN if options.twin else htcondor_version(options.suite)
    tasks: list[tuple[Comparison, Strategy]] = [
        (SCENARIOS[name](seed, options.minutes * 60), strategy)
        for seed in options.seeds
        for name in options.scenarios.split(",")
        for strategy in read_strategies(options.strategies)
        if (source, name, strategy.name, seed) not in done
    ]

    def record(comparison: Comparison, strategy: Strategy) -> Record:
        if options.twin:
            return twin.run(comparison, strategy)
        return real.run(comparison, strategy, options.suite)

    failed = 0
    with ThreadPoolExecutor(1 if options.twin else options.pools) as side_by_side:
        futures = {side_by_side.submit(record, *task): task for task in tasks}
        try:
            for future in as_completed(futures):
                failed += not _kept(options.folder, future, *futures[future])
        except KeyboardInterrupt:
            print("comparison: no other run begins; wait for those at work", file=sys.stderr)
            side_by_side.shutdown(cancel_futures=True)
            return INTERRUPTED
    if options.twin:
        least = {
            name: [
                twin.least_missing_percent(SCENARIOS[name](seed, options.minutes * 60))
                for seed in options.seeds
            ]
            for name in options.scenarios.split(",")
        }
        results.write_bound(options.folder, least)
    return int(failed > 0)


def _kept(folder: Path, future: Future[Record], comparison: Comparison, strategy: Strategy) -> bool:
    """Add a run that is done to the folder; tells if it is one."""
    name = f"{comparison.name}, {strategy.name}, seed {comparison.seed}"
    try:
        results.append(folder, future.result())
    except PoolboxError as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return False
    print(f"{name}: done", file=sys.stderr)
    return True


def _show(options: argparse.Namespace) -> int:
    kept = Results.of(options.folder)
    print(kept.readme(), kept.simulate(), sep="\n\n")
    if options.write:
        for path, content in results.written(kept).items():
            path.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
