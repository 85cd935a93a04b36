"""``sharectl ledger check``."""

from __future__ import annotations

import argparse
import sys

from sharectl.cli import options
from sharectl.report import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_common(parser)
    parser.add_argument(
        "--all", action="store_true", help="read every cycle with its nodes, not the last 200 only"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what is not in order; 1 if anything is not."""
    from sharectl.cli.wiring import ledger_of
    from sharectl.ledger.ledger import problems

    ledger = ledger_of(options.config_of(arguments))
    found = problems(ledger, every_cycle=arguments.all)
    if arguments.json:
        print(as_json.dumps("ledger-check", {"path": str(ledger.path), "problems": found}))
    elif not found:
        print(f"{ledger.path}: in order")
    for problem in found:
        print(f"sharectl: {problem}", file=sys.stderr)
    return 1 if found else 0
