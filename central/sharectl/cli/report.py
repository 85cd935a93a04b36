"""``sharectl report``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sharectl.cli import options
from sharectl.cli.options import moment, no_cycle
from sharectl.errors import AbsentError, StateError
from sharectl.files import files
from sharectl.times import FORMS, shown

_DAY_SECONDS = 86_400
_DEFAULT_DAYS = 30
INDEX = "index.html"
_MARK_BYTES = 4096
"""The mark of a report stands within these."""

_EPILOG = f"""\
TIME is {FORMS}.

  sharectl report -o /var/www/shares                       the last 30 days
  sharectl report --from 2022-01-01 --to 2022-02-01 -o january
  sharectl report --from -30d --compare 2021-04-01 2021-05-01 -o before-and-after

The page is DIR/index.html and nothing else: figures and style are within it, it runs no script and
loads nothing, so that it can be mailed, printed, or served as a file. It is replaced at once; a
file of that name that is no report stays.

exit codes: 0 ok, 1 no cycle in a period (no page is written), 2 usage, 74 the ledger cannot be read
or the page not be written, 78 configuration"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    now = int(time.time())
    options.add_common(parser)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument(
        "--from",
        dest="since",
        type=moment(now),
        default=now - _DEFAULT_DAYS * _DAY_SECONDS,
        metavar="TIME",
        help=f"begin of the period (default: -{_DEFAULT_DAYS}d, or the first cycle of the ledger "
        "if that is later)",
    )
    parser.add_argument(
        "--to",
        dest="until",
        type=moment(now),
        default=now,
        metavar="TIME",
        help="its end (default: now)",
    )
    parser.add_argument(
        "--compare",
        nargs=2,
        type=moment(now),
        metavar=("FROM", "TO"),
        help="a second period beside it, on the same axes, and what the two differ in",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the page; made if missing",
    )
    parser.set_defaults(now=now, usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Write the page; print where it is, or its numbers as JSON."""
    from sharectl.cli.wiring import ledger_of
    from sharectl.config.files import refuse_output
    from sharectl.report import as_json, page
    from sharectl.words import counted

    wanted = _periods(arguments)
    config = options.config_of(arguments)
    refuse_output(arguments.output / INDEX, config, arguments.config)
    ledger = ledger_of(config)
    recorded = ledger.span()
    first = recorded[0] if recorded else 0
    # The page begins with the first cycle at the soonest.
    spans = [(first if since < first < until else since, until) for since, until in wanted]
    for option, (since, until) in zip(("", "--compare: "), spans):
        if next(ledger.cycles(since, until), None) is None:
            raise AbsentError(f"{option}{no_cycle(recorded)}; no page was written")
    spans.sort()
    asked_for = min(wanted)[0]
    notes = (
        f"The ledger begins at {shown(first)}, and the page with it: {shown(asked_for)} was asked "
        "for."
    )
    subject = page.Subject(
        config.pool.name or "",
        arguments.now,
        config.control.limits.deadband_hs06,
        [notes] if asked_for < first else [],
        spans,
        ledger.last_complete(*spans[-1]),
    )
    periods = [ledger.series(since, until, page.POINTS) for since, until in spans]
    path = _put(arguments.output, page.report(periods, subject), page.GENERATOR)
    content = page.as_content(periods, subject)
    if arguments.json:
        print(as_json.dumps("report", {"page": str(path), **content}))
        return 0
    for period in content["periods"]:
        groups = counted(len(period["groups"]), "group")
        cycles = counted(period["pool"]["cycles"], "cycle")
        begin, end = shown(period["since"]), shown(period["until"])
        print(f"{path}: {begin} to {end}: {cycles}, {groups}")
    return 0


def _periods(arguments: argparse.Namespace) -> list[tuple[int, int]]:
    """Begin and end of each period, Unix seconds."""
    periods = {("--from", "--to"): (arguments.since, arguments.until)}
    if arguments.compare:
        periods["FROM of --compare", "TO"] = tuple(arguments.compare)
    for (begin, end), (since, until) in periods.items():
        if since >= until:
            arguments.usage_error(f"{begin} is not before {end}: write the earlier time first")
    return list(periods.values())


def _put(folder: Path, text: str, mark: str) -> Path:
    """Write the page into ``folder``, made if missing, over an older report; return its path.

    A file without ``mark`` near its begin is foreign and stays, as does a link.
    """
    path = folder / INDEX
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = path.is_symlink()
        if path.exists() and not foreign:
            start, _facts = files.read_regular(path, _MARK_BYTES)
            foreign = mark.encode() not in (start or b"")
    except OSError as error:
        raise StateError(
            f"{error.filename or folder}: no report can be written there: "
            f"{error.strerror or error}; name another folder, or give this user the right to "
            "write there"
        ) from error
    if foreign:
        raise StateError(
            f"{path}: not replaced: it is no report of sharectl; name another folder, or move "
            "it away"
        )
    files.replace(path, [text])
    return path
