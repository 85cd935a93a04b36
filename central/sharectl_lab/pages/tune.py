"""Table, verdict and JSON of a search for settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional, TextIO

from sharectl.report.tables import NONE, number, print_table
from sharectl.words import counted
from sharectl_lab.study.tuning import OBJECTIVE, Candidate, Tuning, text_of
from sharectl_lab.twin.answers import Spread

SHOWN = 5
"""Candidates in the table."""
_COLUMNS = {
    "confirmed": "confirmed %",
    "searched": "searched %",
    "shortfall_percent": "shortfall %",
    "idle_percent": "idle %",
    "gain": "better by",
}
"""Spread of a candidate -> its column."""


def as_content(tuning: Tuning, heading: Mapping[str, Any]) -> dict[str, Any]:
    """Outcome as plain data; numbers of seeds that are missing are null."""
    advised = tuning.advised
    return {
        **heading,
        "complete": tuning.complete,
        "parameters": [parameter.words for parameter in tuning.parameters],
        "tried": tuning.tried,
        "problems": list(tuning.problems),
        "default": _content(tuning.default),
        "best": [_content(candidate) for candidate in tuning.best],
        "advised": dict(advised.settings) if advised else None,
    }


def _content(candidate: Candidate) -> dict[str, Any]:
    spreads = {
        name: value._asdict() if isinstance(value, Spread) else value
        for name, value in vars(candidate).items()
    }
    return {**spreads, "settings": dict(candidate.settings)}


def print_tuning(tuning: Tuning, heading: str, to: TextIO) -> None:
    """Print the best settings beside the default, and the options that set them."""
    to.write(f"{heading}\nobjective: {OBJECTIVE}\n\n")
    default = {parameter.key: parameter.default for parameter in tuning.parameters}
    rows = []
    for place, candidate in enumerate((tuning.default, *tuning.best[:SHOWN])):
        values = dict(candidate.settings or default.items())
        spreads = [_spread(getattr(candidate, name)) for name in _COLUMNS]
        wins = f"{candidate.wins} of {candidate.compared}" if candidate.compared else NONE
        rows.append([str(place or "default"), *map(text_of, values.values()), *spreads, wins])
    print_table(
        f"{counted(tuning.tried, 'setting')} tried; mean ± standard deviation over seeds",
        ["", *default, *_COLUMNS.values(), "on seeds"],
        rows,
        to,
    )
    to.write("\n")
    to.writelines(f"{line}\n" for line in _verdict(tuning))


def _spread(spread: Optional[Spread]) -> str:
    return f"{number(spread.mean, 2)} ± {number(spread.sd, 2)}" if spread else NONE


def _verdict(tuning: Tuning) -> Iterator[str]:
    for problem in tuning.problems:
        yield f"settings without a score: {problem}"
    advised = tuning.advised
    if not tuning.complete:
        yield "interrupted: nothing is confirmed on other seeds yet"
    elif tuning.makes_no_difference:
        yield "all settings that were tried have one score: these keys have no effect here"
    elif advised is None:
        yield "no settings are better than the default on most seeds of the confirmation: keep it"
    else:
        yield (
            f"better than the default on {advised.wins} of {advised.compared} seeds that the "
            f"search did not use, by {_spread(advised.gain)}:"
        )
        yield from (f"  {key}={text_of(value)}" for key, value in advised.settings)
