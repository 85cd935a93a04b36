"""Options whose value is a point in time."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Optional

from sharectl import times

_NEGATIVE = re.compile(r"-[0-9].*[a-z].*", re.IGNORECASE)
"""Such as ``-2d``, which argparse would take for an option."""

_OF_TWO = frozenset({"--compare"})
"""Options that take two times."""


def moment(now: int) -> Callable[[str], int]:
    """Type of an argument: Unix seconds of what was written, at Unix time ``now``."""

    def read(text: str) -> int:
        try:
            return times.parse(text, now)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def refuse_no_period(arguments: argparse.Namespace) -> None:
    """Usage error of an action whose ``--from`` is not before its ``--to``: nothing would be in between."""
    if arguments.since >= arguments.until:
        arguments.usage_error("--from is not before --to: write the earlier time first")


def no_cycle(span: Optional[tuple[int, int]]) -> str:
    """That no cycle is in the period asked for, and which times the ledger has: ``span``, None if it is empty."""
    if span is None:
        return "no cycle is in the ledger yet: `sharectl cycle`"
    first, last = map(times.shown, span)
    return f"no cycle in that time: the ledger has cycles from {first} to {last}"


def joined(arguments: Sequence[str]) -> list[str]:
    """``arguments`` in which ``--from -2d`` is ``--from=-2d``."""
    result: list[str] = []
    for word in arguments:
        before = result[-1] if result else ""
        if _NEGATIVE.fullmatch(word) and _OF_TWO.intersection(result[-2:]):
            # An option takes its second value only as a word of its own; what begins with a blank
            # is no option.
            result.append(f" {word}")
            continue
        if (
            _NEGATIVE.fullmatch(word)
            and before.startswith("--")
            and before != "--"
            and "=" not in before
        ):
            result[-1] = f"{before}={word}"
        else:
            result.append(word)
    return result
