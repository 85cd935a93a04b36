"""Where an explanation is from: a cycle of the ledger, or a decision made now and not published."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Callable, Optional

from sharectl.cli import options, wiring
from sharectl.cli.options import moment
from sharectl.cli.wiring import UNASKED, ledger_of, state_to_read
from sharectl.config.model import Config
from sharectl.errors import AbsentError, StateError
from sharectl.explain.again import Explained, of_ledger, of_now
from sharectl.explain.what_if import Case
from sharectl.ledger.ledger import Ledger
from sharectl.plan.plan import Known, State
from sharectl.plan.records import CycleRecord
from sharectl.times import FORMS, parse, shown

LATEST = "latest"
LEAST_TIME = 100_000_000
"""Unix seconds from which a number that a person writes is a time: no ledger counts so many cycles."""
_MOST_LOOKS = 500
"""Cycles that are looked through for a complete one: some days."""
_TIME_HELP = f"TIME is {FORMS}."


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which decision is meant."""
    options.add_common(parser)
    parser.add_argument(
        "--all", action="store_true", help="more than one screen: every node, job and sentence"
    )
    parser.add_argument(
        "--cycle",
        type=cycle_number,
        metavar="N",
        help="cycle number N of the ledger, or `latest` (default)",
    )
    parser.add_argument(
        "--at",
        type=moment(int(time.time())),
        metavar="TIME",
        help="the cycle that was the last one at that time",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="look at the pool now and decide anew; nothing is published",
    )
    options.add_look(parser)
    parser.set_defaults(usage_error=parser.error)
    parser.epilog = (
        f"{_TIME_HELP} What would change a decision is found by making it again, with the "
        "configuration of now and "
        "one thing changed; on a large pool fewer things are tried."
    )


def explained_of(arguments: argparse.Namespace, config: Config) -> Explained:
    """The decision that the options name, which is a complete one.

    Raises
    ------
    AbsentError
        If the ledger has no such cycle.
    """
    _refuse_two(arguments)
    ledger = ledger_of(config)
    if arguments.live or arguments.jobs is not None:
        return _of_now(arguments, config, ledger, known_of(config))
    record = recorded(ledger, arguments.cycle, arguments.at)
    usable = _usable_before(ledger, record.taken_at + 1) if not is_usable(record) else record
    if usable is None or (arguments.cycle is not None and usable is not record):
        seen = f"`sharectl explain cycle {record.number}`"
        raise AbsentError(
            f"cycle {record.number} {_why_not(record)}, so there is no decision to explain: {seen}"
        )
    if usable is not record:
        print(
            f"sharectl: cycle {record.number} {_why_not(record)}: this is cycle {usable.number}",
            file=sys.stderr,
        )
    return decided_again(usable, _usable_before(ledger, usable.taken_at), config)


def decided_again(record: CycleRecord, earlier: Optional[CycleRecord], config: Config) -> Explained:
    """A cycle that `is_usable`, decided again.

    Parameters
    ----------
    earlier
        The complete cycle before; None if there is none.
    """
    # The source of pledges is not asked: what they were is in the record.
    return of_ledger(record, earlier, wiring.plan_config(config, UNASKED), known_of(config))


def known_of(config: Config) -> Known:
    """What the ledger has learnt; nothing if it cannot be read, which is said: as in a cycle."""
    try:
        return ledger_of(config).known(config.tree.names)
    except StateError as error:
        print(f"sharectl: {error}", file=sys.stderr)
        return Known()


def recorded(ledger: Ledger, number: Optional[int], at: Optional[int]) -> CycleRecord:
    """Cycle of that number, or the last one at that time, or the last of all; complete or not.

    Raises
    ------
    AbsentError
        If there is none.
    """
    if at is not None:
        found = ledger.cycle_at(at)
    else:
        found = ledger.latest() if number is None else ledger.cycle(number)
    if found is not None:
        return found
    span = ledger.span()
    if span is None:
        raise AbsentError(f"{ledger.path}: no cycle is in it yet: `sharectl cycle`, or --live")
    wanted = f"cycle {number}" if at is None else f"cycle at or before {shown(at)}"
    raise AbsentError(
        f"{ledger.path}: no {wanted}: it has cycles from {shown(span[0])} to {shown(span[1])}"
    )


def before(ledger: Ledger, record: CycleRecord) -> Optional[CycleRecord]:
    """The last complete cycle before; None if there is none."""
    return _usable_before(ledger, record.taken_at)


def cycle_number(text: str) -> Optional[int]:
    """Number of a cycle; None for the latest."""
    if text == LATEST:
        return None
    if not (text.isdecimal() and text.isascii() and int(text) < LEAST_TIME):
        raise argparse.ArgumentTypeError(
            f"{text!r}: write the number of a cycle, or {LATEST}; for times there is --at"
        )
    return int(text)


def cycle_or_time(now: int) -> Callable[[str], tuple[Optional[int], Optional[int]]]:
    """Type of an argument that is a number of a cycle, ``latest``, or a time: number and time, one of them None."""

    def read(text: str) -> tuple[Optional[int], Optional[int]]:
        if text == LATEST:
            return None, None
        if text.isdecimal() and text.isascii() and int(text) < LEAST_TIME:
            return int(text), None
        try:
            return None, parse(text, now)
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"{error}; or the number of a cycle, or {LATEST}"
            ) from None

    return read


def _of_now(
    arguments: argparse.Namespace, config: Config, ledger: Ledger, known: Known
) -> Explained:
    snapshot = options.look_to_decide(arguments, config)
    offline = arguments.jobs is not None
    state = State() if offline else state_to_read(config, snapshot.taken_at)
    case = Case(
        wiring.plan_config(config, offline=offline), state, snapshot, snapshot.taken_at, known
    )
    earlier = (
        _usable_before(ledger, snapshot.taken_at) if not offline and ledger.is_readable() else None
    )
    return of_now(
        case, earlier, str(arguments.jobs) if offline else "a look at the pool now, not published"
    )


def _refuse_two(arguments: argparse.Namespace) -> None:
    given = [
        name
        for name, is_given in {
            "--cycle": arguments.cycle is not None,
            "--at": arguments.at is not None,
            "--live": arguments.live,
            "--jobs": arguments.jobs is not None,
        }.items()
        if is_given
    ]
    if len(given) > 1:
        arguments.usage_error(f"{' and '.join(given)} say different things; give one of them")


def is_usable(record: CycleRecord) -> bool:
    """Whether a cycle decided something, and the ledger has what it decided on."""
    return record.complete and not record.imported and bool(record.groups)


def _why_not(record: CycleRecord) -> str:
    """Why a cycle is none that `is_usable`."""
    if record.imported:
        return "was imported, with no jobs by node"
    return "has no groups" if record.complete else "was not complete"


def _usable_before(ledger: Ledger, until: int) -> Optional[CycleRecord]:
    """The last complete cycle before Unix time ``until``."""
    for _ in range(_MOST_LOOKS):
        record = ledger.cycle_at(until - 1)
        if record is None or is_usable(record):
            return record
        until = record.taken_at
    return None
