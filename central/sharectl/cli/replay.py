"""``sharectl replay``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial

from sharectl.cli import options, wiring
from sharectl.cli.cycle import digest_of
from sharectl.config.load import REPLAYED, REPLAYED_OF_GROUPS, tried
from sharectl.errors import AbsentError
from sharectl.explain.replay import Replay, replayed
from sharectl.ledger.ledger import Ledger
from sharectl.plan.records import CycleRecord
from sharectl.report import plans
from sharectl.times import FORMS, MAX_SECONDS

_PAGE_SECONDS = 86_400
"""The ledger is read in pages, so that cycles can write to it meanwhile."""
_EPILOG = (
    "A replay is an open loop: each cycle is decided on the pool as it was then, which does not "
    f"react (docs/why.md). TIME is {FORMS}."
)


def _add(parser: argparse.ArgumentParser) -> None:
    options.add(parser, "--from", default=0, help="default: the first cycle")
    options.add(parser, "--to", default=MAX_SECONDS, help="before it; default: now")
    options.add(
        parser,
        "--set",
        help="a key of the configuration that is otherwise, such as control.law=pid; may be "
        f"given several times: {', '.join(REPLAYED)}, groups.NAME.({'|'.join(REPLAYED_OF_GROUPS)})",
    )


def _run(arguments: argparse.Namespace) -> int:
    """Print cycles as they were beside what would have been decided, and their sums."""
    options.refuse_no_period(arguments)
    config = options.config_of(arguments)
    settings = arguments.settings
    decides = tried(config, settings, own_pledges=False)
    unchanged = wiring.plan_config(config, wiring.UNASKED)
    configuration, law = digest_of(config), unchanged
    if digest_of(decides) != configuration:
        law = wiring.plan_config(decides, wiring.UNASKED)
    ledger = wiring.ledger_of(config)
    first, last = ledger.span() or (0, 0)
    since, until = arguments.since or first, min(arguments.until, int(time.time()) + 1)
    withdraws = decides.control.incomplete == "withdraw"
    how = Replay(law, unchanged, configuration, withdraws=withdraws)
    records = _pages(ledger, since, min(until, last + 1))
    cycles = list(replayed(how, records))
    if not cycles:
        raise AbsentError(options.no_cycle(ledger.span()))
    if all(cycle.would is None for cycle in cycles):
        raise AbsentError(
            "nothing to replay: no cycle in that time was complete, decided its plan and still has "
            "its nodes; name another time with --from and --to"
        )
    laws = f"law {decides.control.acting.law}, strategy {law.strategy}"
    words = ", ".join((laws, *settings))
    text = partial(plans.print_replay, cycles, words)
    heading = {"from": since, "to": until, "decides": words}
    options.show(arguments, "replay", plans.replay_data(cycles, heading), text)
    return 0


def _pages(ledger: Ledger, since: int, until: int) -> Iterator[CycleRecord]:
    for page in range(since, until, _PAGE_SECONDS):
        yield from ledger.cycles(page, min(page + _PAGE_SECONDS, until), with_nodes=True)


VERBS = {"replay": options.Verb(_run, _add, epilog=_EPILOG)}
