"""``sharectl pledges``."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from dataclasses import asdict
from math import fsum
from typing import Any

from sharectl.cli import options, wiring
from sharectl.cli.options import say_warnings
from sharectl.errors import PoolUnavailableError
from sharectl.files.files import only_one
from sharectl.report import as_json
from sharectl.report.tables import print_table
from sharectl.shares.pledges import SOURCES, Pledged

_EPILOG = """exit codes besides those of `sharectl --help`: 75 the pledges cannot be had, so that cycles change nothing"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="ask CRIC however young the copy is, and keep what it says",
    )
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="the same, and take pledges that differ from those in use by more than pledges.cric.max_change_factor",
    )
    parser.epilog = _EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Print each group's pledge, where it is from and how old it is: what a cycle would use now.

    Raises
    ------
    PoolUnavailableError
        If a cycle would have none.
    """
    config = options.config_of(arguments)
    writes = arguments.refresh or arguments.confirm
    with contextlib.ExitStack() as stack:
        if writes:
            stack.enter_context(only_one(config.state_directory / "lock", config.lock_wait_seconds))
        now = int(time.time())
        pledged = wiring.pledges_of(
            config, keep=writes, refresh=writes, confirm=arguments.confirm
        ).resolve(now)
    rows = _rows(pledged, now)
    notes = (*pledged.notes, *_idle(arguments, config.pledges.source))
    if arguments.json:
        print(
            as_json.dumps(
                "pledges",
                {
                    "from": config.pledges.source,
                    "now": now,
                    "seconds": round(pledged.source.seconds, 3),
                    "problem": pledged.source.problem,
                    "warnings": list(pledged.warnings),
                    "notes": list(notes),
                    "pledges": rows,
                },
            )
        )
    elif pledged.source.problem is None:
        _print(rows)
    say_warnings(pledged.warnings)
    for note in notes:
        print(f"sharectl: note: {note}", file=sys.stderr)
    if pledged.source.problem is not None:
        raise PoolUnavailableError(f"pledges: {pledged.source.problem}")
    return 0


def _idle(arguments: argparse.Namespace, source: str) -> list[str]:
    """A note on the options that change nothing with this source of pledges."""
    given = [f"--{name}" for name in ("refresh", "confirm") if getattr(arguments, name)]
    if source != "yaml" or not given:
        return []
    does = "does" if len(given) == 1 else "do"
    return [
        (
            f"{' and '.join(given)} {does} nothing with `from: {source}`: the pledges of the "
            "configuration need neither"
        )
    ]


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


def _print(rows: list[dict[str, Any]]) -> None:
    print_table(
        "pledges",
        ("group", "pledge HS06", "share", "from", "age", "where"),
        [
            (
                row["group"],
                round(row["hs06"], 1),
                f"{row['share_ratio']:.4f}",
                SOURCES[row["source"]],
                _age(row["age_seconds"]),
                row["place"],
            )
            for row in rows
        ],
        sys.stdout,
    )


def _age(seconds: int) -> str:
    return (
        f"{seconds // 86400} d {seconds % 86400 // 3600} h"
        if seconds >= 3600  # noqa: PLR2004
        else f"{seconds // 60} min"
    )
