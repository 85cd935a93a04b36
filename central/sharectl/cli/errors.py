"""``sharectl errors``."""

from __future__ import annotations

import argparse

from sharectl.cli import options, wiring
from sharectl.ledger import error_log
from sharectl.report import as_json
from sharectl.shares.errors import group_errors, usage_by_group
from sharectl.shares.groups import with_subgroups


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    options.add_common(parser)
    options.add_look(parser)
    parser.epilog = (
        "columns: T0 Unix seconds; VO group; PLEDGE HS06; DC cores over the share; SC, MC cores "
        "held by single- and "
        "multicore jobs; DHS HS06 over the share; DPHS HS06 over the pledge; PSC, PMC single- "
        "and multicore jobs pending"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the header of shares_Error.log, and a row a group with the groups within it."""
    config = options.config_of(arguments)
    snapshot = options.look(arguments, config)
    law = wiring.plan_config(config)
    usage = usage_by_group(snapshot, law.shared_hs06)
    rows = with_subgroups(group_errors(usage, law.shared_hs06), law.own_hs06)
    if arguments.json:
        print(as_json.dumps("errors", as_json.errors(snapshot.taken_at, rows)))
    else:
        for line in (error_log.HEADER, *error_log.rows(snapshot.taken_at, rows)):
            print(line)
    return 0
