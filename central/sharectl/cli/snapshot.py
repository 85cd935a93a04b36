"""``sharectl snapshot``."""

from __future__ import annotations

import argparse
import sys
import time

from sharectl.cli import options
from sharectl.cycle.doubts import power_doubts
from sharectl.errors import PoolUnavailableError
from sharectl.report import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print jobs of each group, the nodes, and how every daemon answered."""
    config = options.config_of(arguments)
    snapshot = options.pool_of(config).snapshot(int(time.time()))
    content = as_json.snapshot(snapshot, config.tree.names)
    if arguments.json:
        print(as_json.dumps("snapshot", content))
    else:
        from sharectl.report.pool import snapshot_tables

        snapshot_tables(content, sys.stdout)
    options.say(f"{source.name}: {source.problem}" for source in snapshot.problems)
    options.say_warnings(power_doubts(snapshot))
    return 0 if snapshot.complete else PoolUnavailableError.exit_code
