"""``sharectl errors``."""

from __future__ import annotations

import argparse

from sharectl.adapters import shares_error_log
from sharectl.cli import options
from sharectl.core.shares import group_errors
from sharectl.core.usage import usage_by_group
from sharectl.report import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    options.add_look(parser)
    parser.epilog = (
        "columns: T0 Unix seconds; VO group; PLEDGE HS06; DC cores over the share; SC, MC cores held by single- and "
        "multicore jobs; DHS HS06 over the share; DPHS HS06 over the pledge; PSC, PMC single- and multicore jobs pending"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a row a group: T0 VO PLEDGE DC SC MC DHS DPHS PSC PMC."""
    config = options.config_of(arguments)
    snapshot = options.look(arguments, config)
    pledges = options.plan_config(config).pledge_hs06
    rows = group_errors(usage_by_group(snapshot, pledges), pledges)
    if arguments.json:
        print(as_json.dumps("errors", as_json.errors(snapshot.taken_at, rows)))
    else:
        for line in shares_error_log.rows(snapshot.taken_at, rows):
            print(line)
    return 0
