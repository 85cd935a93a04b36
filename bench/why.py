"""Time of explanations, as ratios to one decision.

Each strategy is measured in a separate process, by the processor's time. ``--nodes`` and
``--groups`` say how large the pool is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("", "central")]

from bench.plan import pool  # noqa: E402 - a script finds the checkout by itself
from sharectl.cycle.record import record_of  # noqa: E402
from sharectl.explain import what_if  # noqa: E402
from sharectl.explain.decisions import of_ledger, otherwise  # noqa: E402
from sharectl.model import PlanLimits  # noqa: E402
from sharectl.plan.plan import PlanConfig, State, decide  # noqa: E402
from sharectl.plan.records import CycleRecord  # noqa: E402


def explained(strategy: str, nodes: int, groups: int) -> dict[str, Any]:
    """Processor seconds of a decision and of explanations, and the number of changes found."""
    config, record = _decided(strategy, nodes, groups)
    context = of_ledger(record, config)
    decision_seconds, _ = _timed(context.case.decided)
    most_over = max(record.groups, key=lambda control: control.output_hs06).group
    without = next(node.node for node in record.nodes if node.target is None)
    group_seconds, group = _timed(lambda: otherwise(context, what_if.role(most_over)))
    under_target = what_if.under_target(without)
    node_seconds, node = _timed(lambda: otherwise(context, under_target, without))
    cycle_seconds, cycle = _timed(lambda: otherwise(context, what_if.targets_in_all))
    return {
        "decide": decision_seconds,
        "cycle": cycle_seconds,
        "group": group_seconds,
        "node": node_seconds,
        "flips": [len(changes.flips) for changes in (group, node, cycle)],
    }


def main(argv: Sequence[str]) -> int:
    """Print what was measured, as ratios within this run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.only:
        print(json.dumps(explained(arguments.only, arguments.nodes, arguments.groups)))
        return 0
    for strategy in ("pair", "many"):
        seen = _in_a_process(strategy, arguments)
        print(
            f"{strategy}: {arguments.nodes} nodes, {arguments.groups} groups: a decision is 1 "
            f"({seen['decide']:.2f} s), a "
            f"group {seen['group'] / seen['decide']:.1f}, a node "
            f"{seen['node'] / seen['decide']:.1f}, a cycle {seen['cycle'] / seen['decide']:.1f} "
            f"({seen['cycle']:.1f} s) "
            f"({seen['flips']} changes found)"
        )
    return 0


def _decided(strategy: str, nodes: int, groups: int) -> tuple[PlanConfig, CycleRecord]:
    snapshot, pledges = pool(nodes, groups, seed=1)
    config = PlanConfig(pledges, PlanLimits(max_nodes=nodes // 5), 3060, strategy=strategy)
    decision = decide(config, State(), snapshot, snapshot.taken_at)
    return config, record_of(config, snapshot, decision, decision.plan, ())


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def _in_a_process(strategy: str, arguments: argparse.Namespace) -> dict[str, Any]:
    size = ["--nodes", str(arguments.nodes), "--groups", str(arguments.groups)]
    done = subprocess.run(
        [sys.executable, __file__, "--only", strategy, *size],
        check=True,
        capture_output=True,
        text=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
