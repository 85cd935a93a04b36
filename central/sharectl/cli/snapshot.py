"""``sharectl snapshot``: jobs of each group, the nodes, and how every daemon answered.

Parts of a cycle that a look does not need are not imported: a look at many jobs takes little more.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, TextIO

from sharectl.cli import options
from sharectl.cycle.doubts import power_doubts
from sharectl.errors import PoolUnavailableError
from sharectl.report import as_json

if TYPE_CHECKING:
    from sharectl.condor.pool import CondorPool
    from sharectl.config.model import Config


def pool_of(config: Config) -> CondorPool:
    """Live pool."""
    from sharectl.condor.pool import CondorPool
    from sharectl.config.model import OBSERVE

    steering = config.control
    return CondorPool(
        config.tree.names,
        config.nodes,
        config.pool,
        steering.limits.multicore_cores,
        true_sizes=steering.strategy == "many",
        observes=config.mode == OBSERVE,
    )


def _snapshot(arguments: argparse.Namespace) -> int:
    """Print jobs of each group, the nodes, and how every daemon answered."""
    config = options.config_of(arguments)
    snapshot = pool_of(config).snapshot(int(time.time()))
    content = as_json.snapshot(snapshot, config.tree.names)

    def tables(to: TextIO) -> None:
        from sharectl.report.pool import snapshot_tables

        snapshot_tables(content, to)

    options.show(arguments, "snapshot", content, tables)
    options.say(f"{source.name}: {source.problem}" for source in snapshot.problems)
    over = (snapshot.over_budget,) if snapshot.over_budget is not None else ()
    options.say_warnings((*power_doubts(snapshot), *over))
    return 0 if snapshot.complete else PoolUnavailableError.exit_code


VERBS = {"snapshot": options.Verb(_snapshot)}
