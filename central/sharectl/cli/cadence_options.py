"""Values of the options of ``sharectl cadence``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Optional

from sharectl.cadence.run_times import RunTimes

DEFAULT_INTERVALS = (20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 600.0)
DEFAULT_PLOT_INTERVALS = (60.0, 300.0)
_DAY_SECONDS = 86400
_MOST_INTERVALS = 30
_MOST = 10**9
_MOST_DIGITS = 9

_POOL_IS_NOT_ASKED = "no pool is asked (--cores and --cycle-duration say what it would tell)"
_WITHOUT_EFFECT: Mapping[str, Mapping[str, str]] = {
    # source of run times -> option that changes nothing with it -> why
    "--run-time": {
        "--by": "a law has no sizes or groups",
        "--limit": "a law is no list of jobs",
        "--config": f"a law has no groups, and {_POOL_IS_NOT_ASKED}",
        "--negotiator": _POOL_IS_NOT_ASKED,
    },
    "--history": {"--negotiator": _POOL_IS_NOT_ASKED},
    "--swf": {
        "--config": f"groups of such a log are numbers, and {_POOL_IS_NOT_ASKED}",
        "--negotiator": _POOL_IS_NOT_ASKED,
    },
}


def source_of(arguments: argparse.Namespace) -> Optional[str]:
    """Option that tells run times; None if the live pool does."""
    return next((option for option in _WITHOUT_EFFECT if _is_given(arguments, option)), None)


def without_effect(arguments: argparse.Namespace) -> list[str]:
    """Options given that would change nothing, and why."""
    source = source_of(arguments)
    idle = _WITHOUT_EFFECT[source] if source else {}
    said = [
        f"{option} does nothing with {source}: {why}; leave {option} out"
        for option, why in idle.items()
        if _is_given(arguments, option)
    ]
    if arguments.json and arguments.chart:
        said.append("--chart does nothing with --json: a chart is text; choose one of them")
    return said


def _is_given(arguments: argparse.Namespace, option: str) -> bool:
    return getattr(arguments, option[2:].replace("-", "_")) is not None


def run_time_law(text: str) -> tuple[str, RunTimes]:
    """A law and what it was called."""
    from sharectl.cadence.asks import parse

    try:
        return text, parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def intervals(text: str) -> tuple[float, ...]:
    """Intervals in seconds, the shortest first, each once."""
    words = text.split(",")
    wrong = [word for word in words if not _is_interval(word)]
    if wrong or len(words) > _MOST_INTERVALS:
        what = f"{wrong[0][:20]!r}" if wrong else f"{len(words)} intervals"
        raise argparse.ArgumentTypeError(
            f"{what}: write up to {_MOST_INTERVALS} intervals in whole seconds from 1 to "
            f"{_DAY_SECONDS}, such as 60,300"
        )
    return tuple(sorted({float(word) for word in words}))


def _is_interval(word: str) -> bool:
    return word.isdecimal() and len(word) <= _MOST_DIGITS and 0 < int(word) <= _DAY_SECONDS


def worklife(text: str) -> float:
    """A number of seconds; below 0 is something else."""
    return _seconds(text)


def duration(text: str) -> float:
    """A number of seconds, at least 0."""
    value = _seconds(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text[:20]!r}: write seconds from 0 on, such as 12")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if abs(value) > _MOST:
        raise argparse.ArgumentTypeError(
            f"{text[:20]!r}: write seconds up to {_MOST}, such as 1200"
        )
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"{text[:20]!r}: write seconds, such as 1200")
    return value


def _number(text: str) -> float:
    """A number; not one (NaN) if ``text`` is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def share(text: str) -> float:
    """A share above 0 and below 1, written as such or in percent."""
    stripped = text.strip()
    value = _number(stripped[:-1]) / 100 if stripped.endswith("%") else _number(stripped)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"{text[:20]!r}: write a share between 0 and 1, such as 0.25 or 25%, which is the same"
        )
    return value


def whole_number(text: str) -> int:
    """A whole number above 0."""
    if not (text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0):
        raise argparse.ArgumentTypeError(
            f"{text[:20]!r}: write a whole number above 0 and below {_MOST}"
        )
    return int(text)


def plot_file(text: str) -> Path:
    """A file to draw into."""
    path = Path(text)
    if path.suffix.lower() != ".svg":
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: write a name that ends in .svg")
    return path
