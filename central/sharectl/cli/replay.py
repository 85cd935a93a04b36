"""``sharectl replay``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial

from sharectl.cli import options, wiring
from sharectl.cli.explain import complete_before, recorded
from sharectl.cli.options import moment, no_cycle
from sharectl.cli.wiring import UNASKED, known_of, ledger_of
from sharectl.config.load import REPLAYED, REPLAYED_OF_GROUPS, idle_in_replay, load, overridden
from sharectl.config.model import Config
from sharectl.control.laws import LAWS
from sharectl.errors import AbsentError, SettingError
from sharectl.explain.again import Replay, replayed, state_after
from sharectl.ledger.ledger import Ledger
from sharectl.plan.records import CycleRecord
from sharectl.report import plans
from sharectl.times import FORMS

_PAGE_SECONDS = 86_400
"""The ledger is read in pages, so that cycles can write to it meanwhile."""
_EPILOG = f"""A replay is an open loop: each cycle is decided on the pool as it was then, which does
not react. Targets and controllers' states are carried from cycle to cycle. So it tells how a law or
a strategy differs from what was decided, not how the pool would have fared. Run times are those
known today and jobs' ages are rounded in the ledger, so decisions can differ where nothing was
changed. TIME is {FORMS}."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    when = moment(int(time.time()))
    options.add_common(parser)
    parser.add_argument(
        "--from", dest="since", type=when, metavar="TIME", help="default: the first cycle"
    )
    parser.add_argument(
        "--to", dest="until", type=when, metavar="TIME", help="before it; default: now"
    )
    parser.add_argument(
        "--law", choices=LAWS, help="as --set control.law=…, for all groups without their own"
    )
    parser.add_argument("--strategy", choices=("many", "pair"), help="as --set control.strategy=…")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of the configuration that is otherwise, such as control.pid.gain=0.5; may be "
        f"given several times: {', '.join(REPLAYED)}, groups.NAME.({'|'.join(REPLAYED_OF_GROUPS)})"
        ", and with --pledges configured what says the pledges",
    )
    parser.add_argument(
        "--with",
        dest="other",
        metavar="FILE",
        help="decide by this configuration; the ledger is still that of --config",
    )
    parser.add_argument(
        "--pledges",
        choices=("recorded", "configured"),
        default="recorded",
        help="pledges that each cycle went by (default), or those of the configuration",
    )
    parser.add_argument("--csv", action="store_true", help="print CSV, a row a cycle")
    parser.add_argument(
        "--all", action="store_true", help="a row for each cycle, not only for those that differ"
    )
    parser.epilog = _EPILOG
    parser.set_defaults(usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Print cycles as they were beside what would have been decided, and their sums."""
    if arguments.csv and arguments.json:
        arguments.usage_error("--csv and --json are two forms of the same: choose one")
    config = options.config_of(arguments)
    own_pledges = arguments.pledges == "configured"
    decides = _deciding(arguments, config, own_pledges=own_pledges)
    law = wiring.plan_config(decides, None if own_pledges else UNASKED)
    ledger = ledger_of(config)
    since, until = _period(arguments, ledger)
    before = complete_before(ledger, since)
    withdraws = decides.control.incomplete == "withdraw"
    how = Replay(law, known_of(config), own_pledges=own_pledges, withdraws=withdraws)
    records = _pages(ledger, since, until)
    cycles = replayed(how, records, before, state_after(before, law.validity_seconds))
    file = f" of {arguments.other}" if arguments.other else ""
    words = (
        f"law {decides.control.acting.law}, strategy {law.strategy}{file}",
        *arguments.settings,
    )
    heading = {
        "from": since,
        "to": until,
        "decides": ", ".join(words),
        "pledges": arguments.pledges,
    }
    kind = "json" if arguments.json else "csv" if arguments.csv else None
    text = partial(plans.write_text, everything=arguments.all)
    summary = (plans.FORMATS[kind] if kind else text)(cycles, heading, sys.stdout)
    if not summary.cycles:
        raise AbsentError(no_cycle(ledger.span()))
    return 0


def _deciding(arguments: argparse.Namespace, config: Config, *, own_pledges: bool) -> Config:
    """The configuration that decides."""
    shorthands = {"control.law": arguments.law, "control.strategy": arguments.strategy}
    settings = [f"{key}={value}" for key, value in shorthands.items() if value is not None]
    base = load(arguments.other) if arguments.other else config
    decides = overridden(base, [*settings, *arguments.settings])
    idle = idle_in_replay(arguments.settings, own_pledges=own_pledges)
    if idle:
        raise SettingError(idle)
    return decides


def _period(arguments: argparse.Namespace, ledger: Ledger) -> tuple[int, int]:
    """First and last Unix second, the last one excluded."""
    span = ledger.span()
    if span is None:
        recorded(ledger, None, None)
    since = arguments.since if arguments.since is not None else (span or (0, 0))[0]
    until = arguments.until if arguments.until is not None else int(time.time()) + 1
    if until <= since:
        arguments.usage_error("--from is not before --to: write the earlier time first")
    return since, until


def _pages(ledger: Ledger, since: int, until: int) -> Iterator[CycleRecord]:
    last = ledger.span()
    end = min(until, last[1] + 1) if last else until
    for page in range(since, end, _PAGE_SECONDS):
        yield from ledger.cycles(page, min(page + _PAGE_SECONDS, end), with_nodes=True)
