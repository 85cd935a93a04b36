"""Processor time of a start: imports of verbs, as ratio to Python that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CENTRAL = Path(__file__).resolve().parents[1] / "central"
RUNS = 15
VERBS = ("main", "status", "plan", "cycle")
GOAL_SECONDS = 0.2
"""Processor time of ``import sharectl.cli.cycle``."""


def processor_seconds(code: str) -> float:
    """Median of user and system time of a process that runs ``code``."""
    seconds = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(CENTRAL)})
        after = os.times()
        user = after.children_user - before.children_user
        seconds.append(user + after.children_system - before.children_system)
    return sorted(seconds)[RUNS // 2]


def main() -> None:
    """Print a row for each verb."""
    bare = processor_seconds("pass")
    print(f"{'import':12} {'processor s':>11} {'ratio':>6}")
    print(f"{'nothing':12} {bare:11.3f} {1:6.1f}")
    for verb in VERBS:
        seconds = processor_seconds(f"import sharectl.cli.{verb}")
        goal = f"  (goal: {GOAL_SECONDS})" if verb == "cycle" else ""
        print(f"{verb:12} {seconds:11.3f} {seconds / max(bare, 1e-3):6.1f}{goal}")


if __name__ == "__main__":
    main()
