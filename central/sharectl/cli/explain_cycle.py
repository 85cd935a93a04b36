"""``sharectl explain cycle``."""

from __future__ import annotations

import argparse
import sys
import time

from sharectl.cli import options
from sharectl.cli.explain_source import (
    before,
    cycle_or_time,
    decided_again,
    is_usable,
    recorded,
)
from sharectl.cli.wiring import ledger_of
from sharectl.explain.cycle import explain_cycle
from sharectl.report import as_json, explain
from sharectl.times import FORMS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject."""
    parser.add_argument(
        "which",
        metavar="N|latest|TIME",
        nargs="?",
        type=cycle_or_time(int(time.time())),
        default=(None, None),
        help="number of a cycle in the ledger, `latest` (default), or a time: the last cycle then",
    )
    options.add_common(parser)
    parser.add_argument(
        "--all", action="store_true", help="more than one screen: every group, node and change"
    )
    parser.epilog = (
        f"TIME is {FORMS}. What would change the plan is found by deciding again, with the "
        "configuration of now and one "
        "thing changed; on a large pool fewer things are tried."
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what a cycle saw, what it decided and published, what that changed, and what would change it."""
    config = options.config_of(arguments)
    ledger = ledger_of(config)
    record = recorded(ledger, *arguments.which)
    earlier = before(ledger, record)
    again = decided_again(record, earlier, config) if is_usable(record) else None
    found = explain_cycle(record, earlier, again)
    if arguments.json:
        print(as_json.dumps("explain_cycle", explain.cycle_as_data(found)))
    else:
        explain.print_cycle(found, sys.stdout, everything=arguments.all)
    return 0
