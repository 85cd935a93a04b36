"""``sharectl report``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from textwrap import fill
from typing import Any

from sharectl.cli import options, wiring
from sharectl.config.files import refuse_output
from sharectl.config.model import Config
from sharectl.errors import AbsentError
from sharectl.files import files
from sharectl.ledger.ledger import Ledger
from sharectl.plan.records import CycleRecord
from sharectl.report import page
from sharectl.report.series import summary
from sharectl.times import DAY_SECONDS, FORMS, PERIOD_SECONDS, shown
from sharectl.words import counted

INDEX = "index.html"
_INTERVAL_SECONDS = 3600
"""Age of the page of ``report.file`` from which a cycle writes it again."""
_PERIOD_SECONDS = 7 * DAY_SECONDS
"""Time up to now that this page shows."""

_EPILOG = f"""\
{fill(f"TIME is {FORMS}.", 100)}

The page is DIR/index.html and nothing else: it runs no script and loads nothing, so that it can be
mailed, printed, or served as a file. A file of that name that is no report stays. With report.file
in the configuration cycles write it (docs/monitoring.md)."""


def _add(parser: argparse.ArgumentParser) -> None:
    begin = "begin of the period (default: %(default)s, or the first cycle of the ledger if that is"
    options.add(parser, "--from", default="-30d", help=f"{begin} later)")
    options.add(parser, "--to", default="now", help="its end (default: now)")
    folder = "folder of the page; made if missing"
    parser.add_argument(
        "-o", "--output", type=options.path, required=True, metavar="DIR", help=folder
    )


def _run(arguments: argparse.Namespace) -> int:
    """Write the page over an older one; print where it is, or its numbers as JSON."""
    options.refuse_no_period(arguments)
    config, path = options.config_of(arguments), arguments.output / INDEX
    refuse_output(path, config, arguments.config)
    content = _write(config, path, arguments.since, arguments.until)
    line = (
        f"{path}: {shown(content['since'])} to {shown(content['until'])}: "
        f"{counted(content['pool']['cycles'], 'cycle')}, {counted(len(content['groups']), 'group')}"
    )
    options.show(arguments, "report", {"page": str(path), **content}, [line])
    return 0


def renew(config: Config, now: int) -> None:
    """Write the page of ``report.file`` unless it is younger than an hour.

    Raises StateError, AbsentError and OSError; the page of before stays then.
    """
    path = config.report.file
    if path is None:
        return
    with suppress(OSError):
        if 0 <= now - path.stat().st_mtime < _INTERVAL_SECONDS:
            return
    # The cycle of now is in the page.
    _write(config, path, max(0, now - _PERIOD_SECONDS), now + 1)


def _write(config: Config, path: Path, wanted: int, until: int) -> dict[str, Any]:
    """Write the page of a period from ``wanted`` on; returns its numbers."""
    ledger = wiring.ledger_of(config)
    recorded = ledger.span()
    first = recorded[0] if recorded else 0
    # The page begins with the first cycle at the soonest.
    since = first if wanted < first < until else wanted
    if next(ledger.cycles(since, until), None) is None:
        raise AbsentError(f"{options.no_cycle(recorded)}; no page was written")
    subject = page.Subject(
        config.pool.name or "",
        int(time.time()),
        ledger.last_complete(since, until),
        config.mode,
        list(page.changes(_sampled(ledger, since, until))),
    )
    series = ledger.series(since, until, page.POINTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.refuse_foreign(path, page.BEGIN, "report of sharectl")
    content = summary(series)
    files.replace(path, [page.report(series, subject, content)])
    return content


def _sampled(ledger: Ledger, since: int, until: int) -> Iterator[CycleRecord]:
    """Cycles of a period, the first for each point of a figure."""
    step = max(PERIOD_SECONDS, (until - since) // page.POINTS)
    for at in range(since, until, step):
        yield from islice(ledger.cycles(at, at + step), 1)


VERBS = {"report": options.Verb(_run, _add, epilog=_EPILOG)}
