"""``sharectl ledger``: what was recorded of every cycle, its export, import and check."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.cli import options
from sharectl.cli.options import moment, no_cycle, refuse_no_period
from sharectl.errors import AbsentError
from sharectl.files import files
from sharectl.ledger.data import TABLES, Table
from sharectl.ledger.ledger import Ledger
from sharectl.report import as_json
from sharectl.report.tables import print_table
from sharectl.times import FORMS, MAX_SECONDS, shown
from sharectl.words import counted

_Act = Callable[[argparse.Namespace], int]
_Add = Callable[[argparse.ArgumentParser], None]

_GROUPS = "groups"
_FORMATS = ("csv", "parquet", "log")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    for name, (act, add, summary) in _ACTIONS.items():
        described = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        options.add_common(described)
        described.set_defaults(act=act, usage_error=described.error)
        if add is not None:
            add(described)


def run(arguments: argparse.Namespace) -> int:
    """Do what was named."""
    code: int = arguments.act(arguments)
    return code


def _ledger(arguments: argparse.Namespace) -> Ledger:
    from sharectl.cli.wiring import ledger_of

    return ledger_of(options.config_of(arguments))


def _add_period(parser: argparse.ArgumentParser) -> None:
    time_type = moment(int(time.time()))
    parser.add_argument(
        "--from", dest="since", type=time_type, default=0, metavar="TIME", help=FORMS
    )
    end = "not included"
    parser.add_argument(
        "--to", dest="until", type=time_type, default=MAX_SECONDS, metavar="TIME", help=end
    )


def _info(arguments: argparse.Namespace) -> int:
    info = _ledger(arguments).info()
    if arguments.json:
        print(as_json.dumps("ledger", info))
    else:
        rows = [(name.replace("_", " "), _shown(name, value)) for name, value in info.items()]
        print_table("ledger", ("what", "is"), rows, sys.stdout)
    return 0


def _shown(name: str, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if name.endswith("_at"):
        return shown(value)
    if name.endswith("bytes"):
        return f"{value / 1e6:.1f} MB"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _add_export(parser: argparse.ArgumentParser) -> None:
    tables = "; ".join(f"{name}: {table.summary}" for name, table in TABLES.items())
    parser.add_argument("--what", choices=tuple(TABLES), help=f"{tables} (default: {_GROUPS})")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        default="csv",
        help="csv; parquet, which needs the extra `parquet`; log: rows of shares_Error.log, which "
        "have the groups' errors and nothing else (default: %(default)s)",
    )
    _add_period(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="default: standard output; --format parquet needs it, and so does --json, which "
        "prints how many rows went there. It may replace an earlier export of the same columns "
        "and nothing else, and not be in state_directory",
    )
    parser.add_argument(
        "--columns", action="store_true", help="print what each column means, and no data"
    )
    parser.epilog = (
        "exit codes: 0 ok, 1 no cycle in that time, 2 usage, 69 the extra `parquet` is not "
        "installed, 74 the ledger cannot be read or FILE not be written or replaced, "
        "78 configuration; other than with 0, FILE is as it was"
    )


def _export(arguments: argparse.Namespace) -> int:
    name, form, output = arguments.what or _GROUPS, arguments.format, arguments.output
    if form == "log" and name != _GROUPS:
        arguments.usage_error(
            f"--format log has rows of groups alone: leave --what {name} out, or write csv or "
            "parquet"
        )
    refuse_no_period(arguments)
    table = TABLES[name]
    if arguments.columns:
        return _print_columns(arguments, name)
    if output is None and (arguments.json or form == "parquet"):
        arguments.usage_error(
            "--json and --format parquet need -o FILE: standard output is for text"
        )
    ledger = _ledger(arguments)
    if output is not None:
        _refuse_to_replace(arguments, table)
    if next(ledger.cycles(arguments.since, arguments.until), None) is None:
        raise AbsentError(f"{no_cycle(ledger.span())}; nothing was written")
    rows = _write(arguments, ledger, table)
    if arguments.json:
        result = {"file": str(output), "what": name, "format": form, "rows": rows}
        print(as_json.dumps("ledger-export", result))
    elif output is not None:
        options.say([f"{output}: {counted(rows, 'row')} of {name}"])
    return 0


def _refuse_to_replace(arguments: argparse.Namespace, table: Table) -> None:
    """Raise StateError if the file may not be replaced: sharectl's own, or not an export."""
    from sharectl.config.files import NamedFile, refuse_output
    from sharectl.ledger.export import refuse_foreign

    config = options.config_of(arguments)
    home = NamedFile("state_directory", config.state_directory, is_folder=True)
    refuse_output(arguments.output, config, arguments.config, [home])
    refuse_foreign(arguments.output, arguments.format, table)


def _print_columns(arguments: argparse.Namespace, name: str) -> int:
    columns, heading = TABLES[name].columns, ("name", "type", "meaning")
    if arguments.json:
        rows = [dict(zip(heading, column)) for column in columns]
        print(as_json.dumps("ledger-columns", {"what": name, "columns": rows}))
    else:
        print_table(name, ("column", *heading[1:]), list(columns), sys.stdout)
    return 0


def _write(arguments: argparse.Namespace, ledger: Ledger, table: Table) -> int:
    """Write the rows; returns their number."""
    from sharectl.ledger import export

    passed = export.Counted()
    period = (arguments.since, arguments.until)
    rows = passed.of(export.rows_of(ledger, table, *period))
    if arguments.format == "parquet":
        export.write_parquet(arguments.output, table, rows)
        return passed.rows
    pieces = export.csv_of(table, rows)
    if arguments.format == "log":
        pieces = export.log_of(passed.of(export.log_rows(ledger, *period)))
    if arguments.output is None:
        sys.stdout.writelines(pieces)
    else:
        files.replace(arguments.output, pieces, mode=0o640)
    return passed.rows


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a shares_Error.log, also one that was rotated or packed by gzip; in any order; - "
        "for standard input",
    )
    parser.epilog = (
        "exit codes: 0 ok; 1 all rows are older than ledger.keep_days; "
        "65 a row or file is not as it should be, and nothing was added. "
        "`sharectl ledger forget --imported` takes rows out again."
    )


def _import(arguments: argparse.Namespace) -> int:
    """1 if all rows are too old."""
    from sharectl.files.packed import sources
    from sharectl.ledger.imports import bring_in

    ledger = _ledger(arguments)
    with sources(arguments.files, sys.stdin.buffer) as logs:
        done = bring_in(ledger, logs, int(time.time()))
    if arguments.json:
        print(as_json.dumps("ledger-import", {"path": str(ledger.path), **asdict(done)}))
    else:
        added = f"{done.rows_added} of {counted(done.rows, 'row')} added"
        parts = [
            f"{added}, in {counted(done.cycles_added, 'new cycle')}",
            f"{done.rows_known} there already",
            f"{done.rows_too_old} older than ledger.keep_days ({ledger.keep.days})",
        ]
        print("; ".join(parts))
    remarks = [f"{name}: has no rows" for name in done.without_rows]
    if done.keep_days_needed is not None:
        remarks.append(
            f"{counted(done.rows_too_old, 'row')} left out as too old: set ledger.keep_days to "
            f"{done.keep_days_needed} or more, then import again"
        )
    options.say(remarks)
    return 1 if done.rows_too_old == done.rows else 0


def _add_forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--imported",
        action="store_true",
        required=True,
        help="rows that `import` added: what a cycle recorded is never removed",
    )
    _add_period(parser)
    parser.add_argument("--dry-run", action="store_true", help="say how many, and remove none")


def _forget(arguments: argparse.Namespace) -> int:
    from sharectl.ledger.imports import forget_imported, imported

    refuse_no_period(arguments)
    ledger = _ledger(arguments)
    act = imported if arguments.dry_run else forget_imported
    done = act(ledger, arguments.since, arguments.until)
    if arguments.json:
        result = {"path": str(ledger.path), "removed": not arguments.dry_run, **asdict(done)}
        print(as_json.dumps("ledger-forget", result))
    else:
        would = "would be removed" if arguments.dry_run else "removed"
        print(f"{counted(done.rows, 'imported row')} {would}, of {counted(done.cycles, 'cycle')}")
    return 0


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="read every cycle with its nodes, not the last 200 only"
    )


def _check(arguments: argparse.Namespace) -> int:
    """1 if anything is wrong."""
    ledger = _ledger(arguments)
    problems = ledger.problems(every_cycle=arguments.all)
    if arguments.json:
        print(as_json.dumps("ledger-check", {"path": str(ledger.path), "problems": problems}))
    elif not problems:
        print(f"{ledger.path}: in order")
    options.say(problems)
    return 1 if problems else 0


_ACTIONS: dict[str, tuple[_Act, Optional[_Add], str]] = {
    "info": (_info, None, "how much is in it, since when, and how large it is"),
    "export": (
        _export,
        _add_export,
        "write it as CSV, Parquet or rows of shares_Error.log: the data set to learn from",
    ),
    "import": (
        _import,
        _add_import,
        "add the rows of shares_Error.log files, none of them twice",
    ),
    "forget": (
        _forget,
        _add_forget,
        "remove rows again that were imported; nothing that a cycle recorded",
    ),
    "check": (_check, _add_check, "look whether the file and its cycles are in order"),
}
