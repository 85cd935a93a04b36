"""``sharectl ledger``: what was recorded of every cycle, its export, import and check."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from functools import partial
from typing import Any

from sharectl.cli import options, wiring
from sharectl.config.files import NamedFile, refuse_output
from sharectl.errors import AbsentError
from sharectl.ledger.error_log import bring_in
from sharectl.ledger.export import TABLES, refuse_foreign, write
from sharectl.ledger.ledger import Ledger
from sharectl.report.tables import print_table
from sharectl.times import FORMS, MAX_SECONDS, shown
from sharectl.words import counted


def _ledger(arguments: argparse.Namespace) -> Ledger:
    return wiring.ledger_of(options.config_of(arguments))


_LABELS = {"bytes": "size", "broken": "broken, put aside"}


def _info(arguments: argparse.Namespace) -> int:
    info = _ledger(arguments).info()
    rows = [
        (_LABELS.get(name, name.replace("_", " ")), _shown(name, value))
        for name, value in info.items()
    ]
    table = partial(print_table, "ledger", ("what", "is"), rows)
    options.show(arguments, "ledger", info, table)
    return 0


def _shown(name: str, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if name.endswith("_at"):
        return shown(value)
    if name.endswith("bytes"):
        return f"{value / 1e6:.1f} MB"
    return ", ".join(value) if isinstance(value, list) else str(value)


# ---- export


def _add_export(parser: argparse.ArgumentParser) -> None:
    tables = "; ".join(f"{name}: {table.summary}" for name, table in TABLES.items())
    tables += " (default: %(default)s; docs/ledger.md has the columns)"
    parser.add_argument("--what", choices=tuple(TABLES), default="groups", help=tables)
    options.add(parser, "--from", default=0, help=FORMS)
    options.add(parser, "--to", default=MAX_SECONDS, help="not included")
    parser.add_argument(
        "-o",
        "--output",
        type=options.output,
        metavar="FILE",
        help="default, and -: standard output; --json needs it, and prints how many rows went "
        "there. It may replace an earlier export of the same columns and nothing else, and not be "
        "in state_directory",
    )


def _export(arguments: argparse.Namespace) -> int:
    name, output = arguments.what, arguments.output
    options.refuse_no_period(arguments)
    if output is None and arguments.json:
        arguments.usage_error("--json needs -o FILE: standard output is for the table")
    config, table = options.config_of(arguments), TABLES[name]
    ledger, period = wiring.ledger_of(config), (arguments.since, arguments.until)
    if output is not None:
        home = NamedFile("state_directory", config.state_directory)
        refuse_output(output, config, arguments.config, [home])
        refuse_foreign(output, table)
    if next(ledger.cycles(*period), None) is None:
        raise AbsentError(f"{options.no_cycle(ledger.span())}; nothing was written")
    rows = write(output, table, ledger, *period)
    result = {"file": str(output), "what": name, "rows": rows}
    options.show(arguments, "ledger-export", result, ())
    if output is not None and not arguments.json:
        options.say([f"{output}: {counted(rows, 'row')} of {name}"])
    return 0


# ---- import, check


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        type=options.path,
        nargs="+",
        metavar="FILE",
        help="a shares_Error.log, also one that was rotated or packed by gzip; in any order",
    )


def _import(arguments: argparse.Namespace) -> int:
    """1 if all rows are too old."""
    ledger = _ledger(arguments)
    done = bring_in(ledger, arguments.files, int(time.time()))
    text = (
        f"{done.rows_added} of {counted(done.rows, 'row')} added, in "
        f"{counted(done.cycles_added, 'new cycle')}; {done.rows_known} there already; "
        f"{done.rows_too_old} older than ledger.keep_days ({ledger.keep.days})"
    )
    options.show(arguments, "ledger-import", {"path": str(ledger.path), **asdict(done)}, [text])
    if done.keep_days_needed is not None:
        too_old = counted(done.rows_too_old, "row")
        remedy = f"set ledger.keep_days to {done.keep_days_needed} or more, then import again"
        options.say([f"{too_old} left out as too old: {remedy}"])
    return 1 if done.rows_too_old == done.rows else 0


def _add_check(parser: argparse.ArgumentParser) -> None:
    every = "read every cycle with its nodes, not the last 200 only"
    parser.add_argument("--all", action="store_true", help=every)


def _check(arguments: argparse.Namespace) -> int:
    """1 if anything is wrong."""
    ledger = _ledger(arguments)
    problems = ledger.problems(every_cycle=arguments.all)
    content = {"path": str(ledger.path), "problems": problems}
    lines = [] if problems else [f"{ledger.path}: in order"]
    options.show(arguments, "ledger-check", content, lines)
    options.say(problems)
    return 1 if problems else 0


_ACTIONS = {
    "info": options.Verb(_info, summary="how much is in it, since when, and how large it is"),
    "export": options.Verb(
        _export,
        _add_export,
        summary="write it as CSV: the data set to learn from",
        epilog="exit codes: 0 ok, 1 no cycle in that time, 2 usage, 74 the ledger cannot be read "
        "or FILE not be replaced, 78 configuration; other than with 0, FILE is as it was",
    ),
    "import": options.Verb(
        _import,
        _add_import,
        summary="add the rows of shares_Error.log files, none of them twice",
        epilog="exit codes: 0 ok; 1 all rows are older than ledger.keep_days; 65 a row or file is "
        "not as it should be, and nothing was added",
    ),
    "check": options.Verb(
        _check,
        _add_check,
        summary="look whether the file and its cycles are in order",
    ),
}
VERBS = {"ledger": options.with_actions("action", _ACTIONS)}
