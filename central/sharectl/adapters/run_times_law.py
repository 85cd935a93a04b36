"""Laws of run times as they are written on a command line, such as ``normal:255,50``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable

from sharectl.core.run_times import Exponential, RunTimes, Seen, log_normal, normal

MOST_SECONDS = 1e9

_LAWS: Mapping[str, tuple[tuple[str, ...], Callable[..., RunTimes]]] = {
    "constant": (("SECONDS",), lambda seconds: Seen({seconds: 1.0})),
    "exponential": (("MEAN",), Exponential),
    "normal": (("MEAN", "SD"), normal),
    "log-normal": (("MEAN", "SD"), log_normal),
}
FORMS = tuple(f"{name}:{','.join(words)}" for name, (words, _) in _LAWS.items())


def parse(text: str) -> RunTimes:
    """Law that ``text`` names, in seconds.

    Raises
    ------
    ValueError
        If it names none.
    """
    name, colon, rest = text.partition(":")
    if name not in _LAWS or not colon:
        raise ValueError(f"{text[:60]!r} is no law of run times; write one of {' '.join(FORMS)}")
    words, law = _LAWS[name]
    parts = rest.split(",")
    if len(parts) != len(words):
        raise ValueError(f"{text[:60]!r}: write {name}:{','.join(words)}, in seconds")
    return law(*(_seconds(text, part) for part in parts))


def _seconds(text: str, part: str) -> float:
    try:
        value = float(part)
    except ValueError:
        value = -1.0
    if value > MOST_SECONDS:
        raise ValueError(
            f"{text[:60]!r}: {part[:20]!r} is too long; write at most {MOST_SECONDS:.0f} seconds, such as 255"
        )
    if 0 < value < 1 / MOST_SECONDS:
        raise ValueError(
            f"{text[:60]!r}: {part[:20]!r} is too short; write at least {1 / MOST_SECONDS:g} seconds, such as 255"
        )
    if not value > 0:
        raise ValueError(f"{text[:60]!r}: {part[:20]!r} is no time; write seconds above 0, such as 255")
    return value
