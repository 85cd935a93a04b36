"""``sharectl replay``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial

from sharectl.cli import options, wiring
from sharectl.config.load import REPLAYED, REPLAYED_OF_GROUPS, load, tried
from sharectl.control.laws import LAWS
from sharectl.errors import AbsentError
from sharectl.explain.decisions import state_after
from sharectl.explain.replay import Replay, replayed
from sharectl.ledger.ledger import Ledger
from sharectl.plan.records import CycleRecord
from sharectl.report import plans
from sharectl.times import FORMS, MAX_SECONDS

_PAGE_SECONDS = 86_400
"""The ledger is read in pages, so that cycles can write to it meanwhile."""
_EPILOG = (
    "A replay is an open loop: each cycle is decided on the pool as it was then, which does not "
    "react. Targets and controllers' states are carried from cycle to cycle. So it tells how a law "
    "or a strategy differs from what was decided, not how the pool would have fared. Run times are "
    "those known today and jobs' ages are rounded in the ledger, so decisions can differ where "
    f"nothing was changed. TIME is {FORMS}."
)


def _add(parser: argparse.ArgumentParser) -> None:
    options.add(parser, "--from", default=0, help="default: the first cycle")
    options.add(parser, "--to", default=MAX_SECONDS, help="before it; default: now")
    parser.add_argument(
        "--law", choices=LAWS, help="as --set control.law=…, for all groups without their own"
    )
    parser.add_argument("--strategy", choices=("many", "pair"), help="as --set control.strategy=…")
    options.add(
        parser,
        "--set",
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
    options.add(parser, "--all", help="a row for each cycle, not only for those that differ")


def _run(arguments: argparse.Namespace) -> int:
    """Print cycles as they were beside what would have been decided, and their sums."""
    if arguments.csv and arguments.json:
        arguments.usage_error("--csv and --json are two forms of the same: choose one")
    options.refuse_no_period(arguments)
    config = options.config_of(arguments)
    own_pledges = arguments.pledges == "configured"
    shorthands = {"control.law": arguments.law, "control.strategy": arguments.strategy}
    settings = [f"{key}={value}" for key, value in shorthands.items() if value is not None]
    base = load(arguments.other) if arguments.other else config
    decides = tried(base, [*settings, *arguments.settings], own_pledges=own_pledges)
    law = wiring.plan_config(decides, None if own_pledges else wiring.UNASKED)
    ledger = wiring.ledger_of(config)
    first, last = ledger.span() or (0, 0)
    since, until = arguments.since or first, min(arguments.until, int(time.time()) + 1)
    before = ledger.last_complete(0, since)
    withdraws = decides.control.incomplete == "withdraw"
    how = Replay(law, wiring.known_of(config), own_pledges=own_pledges, withdraws=withdraws)
    records = _pages(ledger, since, min(until, last + 1))
    cycles = list(replayed(how, records, before, state_after(before, law.validity_seconds)))
    if not cycles:
        raise AbsentError(options.no_cycle(ledger.span()))
    if all(cycle.would is None for cycle in cycles):
        raise AbsentError(
            "nothing to replay: no cycle in that time was complete; name another time with --from "
            "and --to"
        )
    file = f" of {arguments.other}" if arguments.other else ""
    laws = f"law {decides.control.acting.law}, strategy {law.strategy}{file}"
    words = ", ".join((laws, *arguments.settings))
    text = partial(plans.print_replay, cycles, words, everything=arguments.all)
    if arguments.csv:
        text = partial(plans.replay_csv, cycles)
    heading = {"from": since, "to": until, "decides": words, "pledges": arguments.pledges}
    options.show(arguments, "replay", plans.replay_data(cycles, heading), text)
    return 0


def _pages(ledger: Ledger, since: int, until: int) -> Iterator[CycleRecord]:
    for page in range(since, until, _PAGE_SECONDS):
        yield from ledger.cycles(page, min(page + _PAGE_SECONDS, until), with_nodes=True)


VERBS = {"replay": options.Verb(_run, _add, epilog=_EPILOG)}
