"""``sharectl pledges``, and ``sharectl render``: HTCondor's quotas made from them."""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from math import fsum
from typing import Any

from sharectl.cli import options, wiring
from sharectl.errors import ConfigError, PoolUnavailableError
from sharectl.report.tables import print_table
from sharectl.shares.pledges import SOURCES, Pledged, central_manager_configuration

_COLUMNS = ("group", "pledge HS06", "share", "from", "age", "where")


def _add(parser: argparse.ArgumentParser) -> None:
    refresh = "ask CRIC however young the copy is, and keep what it says"
    parser.add_argument("--refresh", action="store_true", help=refresh)
    factor = "differ from those in use by more than a factor of 2"
    confirm = f"the same, and take pledges that {factor}"
    parser.add_argument("--confirm", action="store_true", help=confirm)


def _run(arguments: argparse.Namespace) -> int:
    """Print each group's pledge that a cycle would use now, its source and its age."""
    config, confirm = options.config_of(arguments), arguments.confirm
    writes = arguments.refresh or confirm
    source = wiring.pledges_of(config, keep=writes, refresh=writes, confirm=confirm)
    with wiring.lock_of(config) if writes else nullcontext():
        now = int(time.time())
        pledged = source.resolve(now)
    rows, problem = _rows(pledged, now), pledged.source.problem
    content = {
        "from": config.pledges.source,
        "now": now,
        "seconds": round(pledged.source.seconds, 3),
        "problem": problem,
        "warnings": list(pledged.warnings),
        "notes": list(pledged.notes),
        "pledges": rows,
    }
    table = partial(print_table, "pledges", _COLUMNS, list(map(_cells, rows)))
    options.show(arguments, "pledges", content, table if problem is None else ())
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


_EPILOG = (
    "exit codes besides those of `sharectl --help`: 75 the pledges cannot be had, so that cycles "
    "change nothing"
)


def _add_target(parser: argparse.ArgumentParser) -> None:
    target = "accounting groups and their quotas"
    parser.add_argument(
        "target", choices=("central-manager",), metavar="central-manager", help=target
    )


def _render(arguments: argparse.Namespace) -> int:
    """Print the configuration: the same text for the same pledges."""
    config = options.config_of(arguments)
    if config.pledges.source == "negotiator":
        problem = "its quotas would be made from themselves; write the pledges to render them"
        raise ConfigError([f"pledges.from: negotiator: {problem}"])
    print(central_manager_configuration(wiring.tree_with_pledges(config)), end="")
    return 0


VERBS = {
    "pledges": options.Verb(_run, _add, epilog=_EPILOG),
    "render": options.Verb(_render, _add_target, shared=("--config",)),
}
