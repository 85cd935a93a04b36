"""``sharectl ledger``: records of every cycle, their export and check."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from sharectl.cli import options, wiring
from sharectl.config.files import NamedFile, refuse_output
from sharectl.errors import AbsentError
from sharectl.ledger.export import TABLES, refuse_foreign, write
from sharectl.report.tables import cell, print_table
from sharectl.times import FORMS, MAX_SECONDS, shown
from sharectl.words import counted


def _check(arguments: argparse.Namespace) -> int:
    """1 if anything is wrong."""
    content = wiring.ledger_of(options.config_of(arguments)).check()
    problems = content["problems"]
    rows = [
        (name.replace("_", " "), _shown(name, value))
        for name, value in content.items()
        if name != "problems"
    ]
    rows.append(("state", "damaged" if problems else "in order"))
    table = partial(print_table, "ledger", ("what", "is"), rows)
    options.show(arguments, "ledger-check", content, table)
    options.say(problems)
    return 1 if problems else 0


def _shown(name: str, value: Any) -> str:
    if name.endswith("_at") and value is not None:
        return shown(value)
    return cell(", ".join(value) if isinstance(value, list) else value)


def _add_export(parser: argparse.ArgumentParser) -> None:
    tables = "; ".join(f"{name}: {table.summary}" for name, table in TABLES.items())
    tables += " (default: %(default)s; docs/ledger.md has the columns)"
    parser.add_argument("--what", choices=tuple(TABLES), default="groups", help=tables)
    options.add(parser, "--from", default=0, help=FORMS)
    options.add(parser, "--to", default=MAX_SECONDS, help="not included")
    parser.add_argument(
        "-o",
        "--output",
        type=options.path,
        required=True,
        metavar="FILE",
        help="it may replace an earlier export of the same columns and nothing else, and not be in "
        "state_directory",
    )


def _export(arguments: argparse.Namespace) -> int:
    name, output = arguments.what, arguments.output
    options.refuse_no_period(arguments)
    config, table = options.config_of(arguments), TABLES[name]
    ledger, period = wiring.ledger_of(config), (arguments.since, arguments.until)
    home = NamedFile("state_directory", config.state_directory)
    refuse_output(output, config, arguments.config, [home])
    refuse_foreign(output, table)
    if next(ledger.cycles(*period), None) is None:
        raise AbsentError(f"{options.no_cycle(ledger.span())}; nothing was written")
    rows = write(output, table, ledger, *period)
    result = {"file": str(output), "what": name, "rows": rows}
    line = f"{output}: {counted(rows, 'row')} of {name}"
    options.show(arguments, "ledger-export", result, [line])
    return 0


_ACTIONS = {
    "check": options.Verb(
        _check,
        summary="how much is in it, since when, and whether every cycle can be read",
        epilog="exit codes: 0 ok, 1 damage; 74 the file cannot be used",
    ),
    "export": options.Verb(
        _export,
        _add_export,
        summary="write it as CSV: the data set to learn from",
        epilog="exit codes: 0 ok, 1 no cycle in that time, 2 usage, 74 the ledger cannot be read "
        "or FILE not be replaced, 78 configuration; other than with 0, FILE is as it was",
    ),
}
VERBS = {"ledger": options.with_actions("action", _ACTIONS)}
