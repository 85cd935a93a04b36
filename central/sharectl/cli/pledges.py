"""``sharectl pledges``."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict
from math import fsum
from typing import Any

from sharectl.cli import options, wiring
from sharectl.errors import PoolUnavailableError
from sharectl.files.files import only_one
from sharectl.report import as_json
from sharectl.report.tables import print_table
from sharectl.shares.pledges import SOURCES, Pledged

_COLUMNS = ("group", "pledge HS06", "share", "from", "age", "where")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    refresh = "ask CRIC however young the copy is, and keep what it says"
    parser.add_argument("--refresh", action="store_true", help=refresh)
    factor = "differ from those in use by more than pledges.cric.max_change_factor"
    confirm = f"the same, and take pledges that {factor}"
    parser.add_argument("--confirm", action="store_true", help=confirm)
    parser.epilog = (
        "exit codes besides those of `sharectl --help`: 75 the pledges cannot be had, so that "
        "cycles change nothing"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print each group's pledge that a cycle would use now, its source and its age.

    Raises
    ------
    PoolUnavailableError
        If a cycle would have none.
    """
    config, confirm = options.config_of(arguments), arguments.confirm
    writes = arguments.refresh or confirm
    source = wiring.pledges_of(config, keep=writes, refresh=writes, confirm=confirm)
    lock = config.state_directory / "lock"
    with only_one(lock, config.lock_wait_seconds) if writes else nullcontext():
        now = int(time.time())
        pledged = source.resolve(now)
    rows, problem = _rows(pledged, now), pledged.source.problem
    if arguments.json:
        content = {
            "from": config.pledges.source,
            "now": now,
            "seconds": round(pledged.source.seconds, 3),
            "problem": problem,
            "warnings": list(pledged.warnings),
            "notes": list(pledged.notes),
            "pledges": rows,
        }
        print(as_json.dumps("pledges", content))
    elif problem is None:
        print_table("pledges", _COLUMNS, list(map(_cells, rows)), sys.stdout)
    options.say_warnings(pledged.warnings)
    options.say(f"note: {note}" for note in pledged.notes)
    if problem is not None:
        raise PoolUnavailableError(f"pledges: {problem}")
    return 0


def _rows(pledged: Pledged, now: int) -> list[dict[str, Any]]:
    total = fsum(pledge.hs06 for pledge in pledged.pledges if "." not in pledge.group)
    return [
        {
            **asdict(pledge),
            "share_ratio": pledge.hs06 / total if total > 0 else 0.0,
            "age_seconds": max(0, now - pledge.said_at) if pledge.said_at is not None else 0,
        }
        for pledge in pledged.pledges
    ]


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    hours, seconds = divmod(row["age_seconds"], 3600)
    age = f"{hours // 24} d {hours % 24} h" if hours else f"{seconds // 60} min"
    share, source = f"{row['share_ratio']:.4f}", SOURCES[row["source"]]
    return row["group"], round(row["hs06"], 1), share, source, age, row["place"]
