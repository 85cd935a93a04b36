"""``sharectl ledger forget``."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict

from sharectl.cli import options
from sharectl.cli.options import moment, refuse_no_period
from sharectl.report import as_json
from sharectl.times import FORMS
from sharectl.words import counted

_END_OF_TIME = 2**62


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_common(parser)
    now = int(time.time())
    parser.add_argument(
        "--imported",
        action="store_true",
        required=True,
        help="rows that `import` added: what a cycle recorded is never removed",
    )
    parser.add_argument(
        "--from", dest="since", type=moment(now), default=0, metavar="TIME", help=FORMS
    )
    parser.add_argument(
        "--to",
        dest="until",
        type=moment(now),
        default=_END_OF_TIME,
        metavar="TIME",
        help="not included",
    )
    parser.add_argument("--dry-run", action="store_true", help="say how many, and remove none")
    parser.set_defaults(usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Remove them, and print how many."""
    from sharectl.cli.wiring import ledger_of
    from sharectl.ledger.logs import forget_imported, imported

    refuse_no_period(arguments)
    ledger = ledger_of(options.config_of(arguments))
    action = imported if arguments.dry_run else forget_imported
    done = action(ledger, arguments.since, arguments.until)
    if arguments.json:
        said = {"path": str(ledger.path), "removed": not arguments.dry_run, **asdict(done)}
        print(as_json.dumps("ledger-forget", said))
    else:
        would = "would be removed" if arguments.dry_run else "removed"
        print(f"{counted(done.rows, 'imported row')} {would}, of {counted(done.cycles, 'cycle')}")
    return 0
