"""``sharectl ledger import``."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from sharectl.cli import options
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.logs import Imported
from sharectl.report import as_json
from sharectl.words import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_common(parser)
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a shares_Error.log, also one that was rotated or packed by gzip; in any order; - for standard input",
    )
    parser.epilog = (
        "exit codes: 0 ok; 1 rows differ from what is there, or all are older than "
        "ledger.keep_days; 65 a row or file "
        "is not as it should be, and nothing was added. `sharectl ledger forget --imported` "
        "takes rows out again."
    )


def run(arguments: argparse.Namespace) -> int:
    """Add the rows, and print how many; 1 if some are not what is there, or none could be kept."""
    from sharectl.cli.wiring import ledger_of
    from sharectl.files.packed import sources
    from sharectl.ledger.logs import bring_in

    ledger = ledger_of(options.config_of(arguments))
    with sources(arguments.files, sys.stdin.buffer) as logs:
        done = bring_in(ledger, logs, int(time.time()))
    if arguments.json:
        print(as_json.dumps("ledger-import", {"path": str(ledger.path), **asdict(done)}))
    else:
        print(_said(ledger, done))
    for line in _remarks(done):
        print(f"sharectl: {line}", file=sys.stderr)
    return 1 if done.rows_differing or done.rows_too_old == done.rows else 0


def _said(ledger: Ledger, done: Imported) -> str:
    parts = [
        (
            f"{done.rows_added} of {counted(done.rows, 'row')} added, in "
            f"{counted(done.cycles_added, 'new cycle')}"
        ),
        f"{done.rows_known} there already",
        f"{done.rows_too_old} older than ledger.keep_days ({ledger.keep.days})",
    ]
    if done.rows_differing:
        parts.append(f"{done.rows_differing} differing from what is there")
    return "; ".join(parts)


def _remarks(done: Imported) -> list[str]:
    """What the operator should know besides, a line each."""
    said = [f"{name}: has no rows" for name in done.without_rows]
    said += done.differing
    more = done.rows_differing - len(done.differing)
    if more:
        said.append(f"and {counted(more, 'row')} more that differ")
    if done.keep_days_needed is not None:
        left = counted(done.rows_too_old, "row")
        said.append(
            f"{left} left out as too old: set ledger.keep_days to {done.keep_days_needed} or "
            "more, then import again"
        )
    return said
