"""``sharectl ledger info``."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Optional

from sharectl.cli import options
from sharectl.report import as_json
from sharectl.report.tables import print_table
from sharectl.times import shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers of the ledger."""
    from sharectl.cli.wiring import ledger_of
    from sharectl.ledger.ledger import info

    said = info(ledger_of(options.config_of(arguments)))
    if arguments.json:
        print(as_json.dumps("ledger", said))
    else:
        print_table("ledger", ("what", "is"), _rows(said), sys.stdout)
    return 0


def _rows(said: dict[str, Any]) -> list[tuple[str, object]]:
    cycles = said["cycles"]
    return [
        ("file", said["path"]),
        ("size", _mb(said["bytes"], said["max_bytes"])),
        ("free inside", f"{said['free_bytes'] / 1e6:.1f} MB"),
        ("schema version", said["schema_version"]),
        (
            "cycles",
            f"{cycles}, {said['complete_cycles']} complete, {said['imported_cycles']} imported",
        ),
        ("first", _time(said["first_at"])),
        ("last", _time(said["last_at"])),
        ("bytes a cycle", round(said["bytes"] / cycles) if cycles else "-"),
        ("groups", said["groups"]),
        ("nodes", said["nodes"]),
        ("nodes are known from cycle", said["first_cycle_with_nodes"] or "-"),
        ("kept for", f"{said['keep_days']} days"),
        *(("put aside since it was broken", path) for path in said["broken"]),
    ]


def _mb(size: int, most: int) -> str:
    return f"{size / 1e6:.1f} MB of at most {most / 1e6:.0f} MB"


def _time(seconds: Optional[int]) -> str:
    return "-" if seconds is None else shown(seconds)
