"""``sharectl snapshot``."""

from __future__ import annotations

import argparse
import sys
import time

from sharectl.cli import wiring
from sharectl.cli.plan import say_warnings
from sharectl.cycle.doubts import power_doubts
from sharectl.errors import PoolUnavailableError
from sharectl.report import as_json
from sharectl.report.pool import snapshot_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    wiring.add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what each group holds and waits for, on which nodes, and how every daemon answered."""
    config = wiring.config_of(arguments)
    snapshot = wiring.pool_of(config).snapshot(int(time.time()))
    groups = config.tree.names
    if arguments.json:
        print(as_json.dumps("snapshot", as_json.snapshot(snapshot, groups)))
    else:
        snapshot_tables(as_json.snapshot(snapshot, groups), sys.stdout)
    for source in snapshot.problems:
        print(f"sharectl: {source.name}: {source.problem}", file=sys.stderr)
    say_warnings(power_doubts(snapshot))
    return 0 if snapshot.complete else PoolUnavailableError.exit_code
