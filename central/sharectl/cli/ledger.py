"""``sharectl ledger``: what was recorded of every cycle, its export, import and check."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sharectl.cli import options, wiring
from sharectl.cli.options import moment, no_cycle, refuse_no_period
from sharectl.config.files import NamedFile, refuse_output
from sharectl.errors import AbsentError
from sharectl.files.packed import sources
from sharectl.ledger import export
from sharectl.ledger.imports import bring_in, forget_imported, imported
from sharectl.ledger.ledger import Ledger
from sharectl.ledger.tables import TABLES
from sharectl.report import as_json
from sharectl.report.tables import print_table
from sharectl.times import FORMS, MAX_SECONDS, shown
from sharectl.words import counted

_GROUPS = "groups"
_FORMATS = ("csv", "parquet", "log")
_ACTIONS = {
    "info": "how much is in it, since when, and how large it is",
    "export": "write it as CSV, Parquet or rows of shares_Error.log: the data set to learn from",
    "import": "add the rows of shares_Error.log files, none of them twice",
    "forget": "remove rows again that were imported; nothing that a cycle recorded",
    "check": "look whether the file and its cycles are in order",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    add = {"export": _add_export, "import": _add_import, "forget": _add_forget, "check": _add_check}
    for name, summary in _ACTIONS.items():
        described = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        options.add_common(described)
        described.set_defaults(usage_error=described.error)
        if name in add:
            add[name](described)


def run(arguments: argparse.Namespace) -> int:
    """Do what was named."""
    act = {"info": _info, "export": _export, "import": _import, "forget": _forget, "check": _check}
    return act[arguments.action](arguments)


def _ledger(arguments: argparse.Namespace) -> Ledger:
    return wiring.ledger_of(options.config_of(arguments))


def _add_period(parser: argparse.ArgumentParser) -> None:
    keywords: dict[str, Any] = {"type": moment(int(time.time())), "metavar": "TIME"}
    parser.add_argument("--from", dest="since", default=0, help=FORMS, **keywords)
    parser.add_argument("--to", dest="until", default=MAX_SECONDS, help="not included", **keywords)


def _show(arguments: argparse.Namespace, kind: str, content: dict[str, Any], text: str) -> None:
    """Print the content as JSON or, if there is one, the text."""
    if arguments.json:
        print(as_json.dumps(kind, content))
    elif text:
        print(text)


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
    columns = "print what each column means, and no data"
    parser.add_argument("--columns", action="store_true", help=columns)
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
    if arguments.columns:
        return _print_columns(arguments, name)
    if output is None and (arguments.json or form == "parquet"):
        arguments.usage_error(
            "--json and --format parquet need -o FILE: standard output is for text"
        )
    config, table = options.config_of(arguments), TABLES[name]
    ledger, period = wiring.ledger_of(config), (arguments.since, arguments.until)
    if output is not None:
        home = NamedFile("state_directory", config.state_directory, is_folder=True)
        refuse_output(output, config, arguments.config, [home])
        export.refuse_foreign(output, form, table)
    if next(ledger.cycles(*period), None) is None:
        raise AbsentError(f"{no_cycle(ledger.span())}; nothing was written")
    rows = export.write(output, form, table, ledger, *period)
    if arguments.json:
        result = {"file": str(output), "what": name, "format": form, "rows": rows}
        print(as_json.dumps("ledger-export", result))
    elif output is not None:
        options.say([f"{output}: {counted(rows, 'row')} of {name}"])
    return 0


def _print_columns(arguments: argparse.Namespace, name: str) -> int:
    columns, heading = TABLES[name].columns, ("name", "type", "meaning")
    if arguments.json:
        rows = [dict(zip(heading, column)) for column in columns]
        print(as_json.dumps("ledger-columns", {"what": name, "columns": rows}))
    else:
        print_table(name, ("column", *heading[1:]), list(columns), sys.stdout)
    return 0


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
    ledger = _ledger(arguments)
    with sources(arguments.files, sys.stdin.buffer) as logs:
        done = bring_in(ledger, logs, int(time.time()))
    text = (
        f"{done.rows_added} of {counted(done.rows, 'row')} added, in "
        f"{counted(done.cycles_added, 'new cycle')}; {done.rows_known} there already; "
        f"{done.rows_too_old} older than ledger.keep_days ({ledger.keep.days})"
    )
    _show(arguments, "ledger-import", {"path": str(ledger.path), **asdict(done)}, text)
    options.say(f"{name}: has no rows" for name in done.without_rows)
    if done.keep_days_needed is not None:
        too_old = counted(done.rows_too_old, "row")
        remedy = f"set ledger.keep_days to {done.keep_days_needed} or more, then import again"
        options.say([f"{too_old} left out as too old: {remedy}"])
    return 1 if done.rows_too_old == done.rows else 0


def _add_forget(parser: argparse.ArgumentParser) -> None:
    rows = "rows that `import` added: what a cycle recorded is never removed"
    parser.add_argument("--imported", action="store_true", required=True, help=rows)
    _add_period(parser)
    parser.add_argument("--dry-run", action="store_true", help="say how many, and remove none")


def _forget(arguments: argparse.Namespace) -> int:
    refuse_no_period(arguments)
    ledger, removes = _ledger(arguments), not arguments.dry_run
    act = forget_imported if removes else imported
    done = act(ledger, arguments.since, arguments.until)
    result = {"path": str(ledger.path), "removed": removes, **done._asdict()}
    removed = "removed" if removes else "would be removed"
    rows, cycles = counted(done.rows, "imported row"), counted(done.cycles, "cycle")
    _show(arguments, "ledger-forget", result, f"{rows} {removed}, of {cycles}")
    return 0


def _add_check(parser: argparse.ArgumentParser) -> None:
    every = "read every cycle with its nodes, not the last 200 only"
    parser.add_argument("--all", action="store_true", help=every)


def _check(arguments: argparse.Namespace) -> int:
    """1 if anything is wrong."""
    ledger = _ledger(arguments)
    problems = ledger.problems(every_cycle=arguments.all)
    content = {"path": str(ledger.path), "problems": problems}
    _show(arguments, "ledger-check", content, "" if problems else f"{ledger.path}: in order")
    options.say(problems)
    return 1 if problems else 0
