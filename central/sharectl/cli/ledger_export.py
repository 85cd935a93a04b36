"""``sharectl ledger export``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Callable

from sharectl import words
from sharectl.cli import options
from sharectl.cli.options import moment, no_cycle, refuse_no_period
from sharectl.errors import AbsentError
from sharectl.ledger import export
from sharectl.ledger.data import TABLES
from sharectl.ledger.export import Counted, refuse_foreign
from sharectl.ledger.ledger import Ledger
from sharectl.report import as_json
from sharectl.report.tables import print_table
from sharectl.times import FORMS, MAX_SECONDS

_GROUPS = "groups"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_common(parser)
    now = int(time.time())
    tables = "; ".join(f"{name}: {table.summary}" for name, table in TABLES.items())
    parser.add_argument("--what", choices=tuple(TABLES), help=f"{tables} (default: {_GROUPS})")
    parser.add_argument(
        "--format",
        choices=tuple(_FORMATS),
        default="csv",
        help="csv; parquet, which needs the extra `parquet`; log: rows of shares_Error.log, which "
        "have the groups' errors and nothing else (default: %(default)s)",
    )
    parser.add_argument(
        "--from", dest="since", type=moment(now), default=0, metavar="TIME", help=FORMS
    )
    parser.add_argument(
        "--to",
        dest="until",
        type=moment(now),
        default=MAX_SECONDS,
        metavar="TIME",
        help="not included",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="default: standard output; --format parquet needs it, and so does --json, which prints how many rows went there. "
        "It may replace an earlier export of the same columns and nothing else, and not be in "
        "state_directory",
    )
    parser.add_argument(
        "--columns", action="store_true", help="print what each column means, and no data"
    )
    parser.epilog = (
        "exit codes: 0 ok, 1 no cycle in that time, 2 usage, 69 the extra `parquet` is not "
        "installed, 74 the ledger cannot be read or FILE not be written or replaced, "
        "78 configuration; other than with 0, FILE is as it was"
    )
    parser.set_defaults(usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Write the table."""
    if arguments.format == "log" and arguments.what not in (None, _GROUPS):
        arguments.usage_error(
            f"--format log has rows of groups alone: leave --what {arguments.what} out, or "
            "write csv or parquet"
        )
    arguments.what = arguments.what or _GROUPS
    refuse_no_period(arguments)
    if arguments.columns:
        return _tell_columns(arguments)
    if arguments.output is None and (arguments.json or arguments.format == "parquet"):
        arguments.usage_error(
            "--json and --format parquet need -o FILE: standard output is for text"
        )
    from sharectl.cli.wiring import ledger_of
    from sharectl.config.files import NamedFile, refuse_output

    config = options.config_of(arguments)
    ledger = ledger_of(config)
    if arguments.output is not None:
        home = NamedFile("state_directory", config.state_directory, is_folder=True)
        refuse_output(arguments.output, config, arguments.config, [home])
        refuse_foreign(arguments.output, arguments.format, TABLES[arguments.what])
    if next(ledger.cycles(arguments.since, arguments.until), None) is None:
        raise AbsentError(f"{no_cycle(ledger.span())}; nothing was written")
    counted = Counted()
    _FORMATS[arguments.format](arguments, ledger, counted)
    if arguments.output is not None and not arguments.json:
        rows = words.counted(counted.rows, "row")
        print(f"sharectl: {arguments.output}: {rows} of {arguments.what}", file=sys.stderr)
    if arguments.json:
        said = {"file": str(arguments.output), "what": arguments.what, "format": arguments.format}
        print(as_json.dumps("ledger-export", {**said, "rows": counted.rows}))
    return 0


def _tell_columns(arguments: argparse.Namespace) -> int:
    columns = TABLES[arguments.what].columns
    if arguments.json:
        rows = [{"name": one.name, "type": one.kind, "meaning": one.meaning} for one in columns]
        print(as_json.dumps("ledger-columns", {"what": arguments.what, "columns": rows}))
    else:
        rows_of_columns = [(column.name, column.kind, column.meaning) for column in columns]
        print_table(arguments.what, ("column", "type", "meaning"), rows_of_columns, sys.stdout)
    return 0


def _csv(arguments: argparse.Namespace, ledger: Ledger, counted: Counted) -> None:
    table = TABLES[arguments.what]
    rows = export.rows_of(ledger, table, arguments.since, arguments.until)
    _write(arguments, export.csv_of(table, counted.of(rows)))


def _log(arguments: argparse.Namespace, ledger: Ledger, counted: Counted) -> None:
    _write(arguments, export.log_of(ledger, arguments.since, arguments.until, counted))


def _parquet(arguments: argparse.Namespace, ledger: Ledger, counted: Counted) -> None:
    table = TABLES[arguments.what]
    rows = export.rows_of(ledger, table, arguments.since, arguments.until)
    export.write_parquet(arguments.output, table, counted.of(rows))


def _write(arguments: argparse.Namespace, pieces: Iterable[str]) -> None:
    if arguments.output is None:
        for piece in pieces:
            sys.stdout.write(piece)
    else:
        export.write_text(arguments.output, pieces)


_FORMATS: dict[str, Callable[[argparse.Namespace, Ledger, Counted], None]] = {
    "csv": _csv,
    "parquet": _parquet,
    "log": _log,
}
