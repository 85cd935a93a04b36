"""``sharectl ledger import``."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path

from sharectl.cli import options
from sharectl.report import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_common(parser)
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a shares_Error.log, also one that was rotated; in any order",
    )


def run(arguments: argparse.Namespace) -> int:
    """Add the rows, and print how many."""
    from sharectl.adapters.ledger_import import bring_in
    from sharectl.cli.cycle import ledger_of

    ledger = ledger_of(options.config_of(arguments))
    done = bring_in(ledger, arguments.files, int(time.time()))
    if arguments.json:
        print(as_json.dumps("ledger-import", {"path": str(ledger.path), **asdict(done)}))
    else:
        print(
            f"{done.rows_added} of {done.rows} rows added, in {done.cycles_added} new cycles; {done.rows_known} were "
            f"there already, {done.rows_too_old} are older than ledger.keep_days ({ledger.keep.days})"
        )
    return 0
