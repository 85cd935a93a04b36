"""Table, verdict and JSON of a search for settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional, TextIO

from sharectl.report.tables import NONE, number, print_table
from sharectl.words import counted
from sharectl_lab.study.tuning import (
    OBJECTIVES,
    Candidate,
    Settings,
    Tuning,
    lines_of,
    text_of,
)
from sharectl_lab.twin.answers import Spread

SHOWN = 5
"""Candidates in the table."""
_STEERING = ("control", "validity_seconds")
"""Sections that sharectl's configuration has; others are the scenario's or the strategy's."""


def as_content(tuning: Tuning, heading: Mapping[str, Any]) -> dict[str, Any]:
    """Outcome as plain data; numbers of seeds that are missing are null."""
    advised = tuning.advised
    return {
        **heading,
        "complete": tuning.complete,
        "objective": asdict(tuning.objective),
        "parameters": [parameter.words for parameter in tuning.parameters],
        "tried": tuning.tried,
        "problems": list(tuning.problems),
        "default": _candidate(tuning.default),
        "best": [_candidate(candidate) for candidate in tuning.best],
        "advised": dict(advised.settings) if advised else None,
    }


def print_tuning(tuning: Tuning, heading: Sequence[str], to: TextIO) -> None:
    """Print the best settings beside the default, and the lines to paste."""
    to.writelines(f"{line}\n" for line in (*heading, _objective(tuning)))
    keys = [parameter.key for parameter in tuning.parameters]
    default = {parameter.key: parameter.default for parameter in tuning.parameters}
    columns = [
        *keys,
        "confirmed %",
        "searched %",
        "shortfall %",
        "idle %",
        "idle core-h",
        "better by",
    ]
    rows = [
        [
            *(text_of(dict(candidate.settings or default.items())[key]) for key in keys),
            *_numbers(candidate),
        ]
        for candidate in (tuning.default, *tuning.best[:SHOWN])
    ]
    titles = ["default", *map(str, range(1, len(rows)))]
    to.write("\n")
    print_table(
        f"{counted(tuning.tried, 'setting')} tried; mean ± standard deviation over seeds",
        ["", *columns, "on seeds"],
        [[title, *row] for title, row in zip(titles, rows)],
        to,
    )
    to.write("\n")
    to.writelines(f"{line}\n" for line in _verdict(tuning))


def _objective(tuning: Tuning) -> str:
    words = OBJECTIVES[tuning.objective.name]
    price = f" (idle price {tuning.objective.idle_price:g})"
    return f"objective: {words}{price if tuning.objective.name == 'balanced' else ''}"


def _numbers(candidate: Candidate) -> Iterator[str]:
    for spread in (
        candidate.confirmed,
        candidate.searched,
        candidate.shortfall_percent,
        candidate.idle_percent,
    ):
        yield _spread(spread, 2)
    yield _spread(candidate.idle_core_hours, 0)
    gain = candidate.gain if candidate.settings else None
    yield _spread(gain, 2)
    yield f"{candidate.wins} of {candidate.compared}" if gain else NONE


def _spread(spread: Optional[Spread], digits: int) -> str:
    if spread is None:
        return NONE
    return f"{number(spread.mean, digits)} ± {number(spread.sd, digits)}"


def _verdict(tuning: Tuning) -> Iterator[str]:
    for problem in tuning.problems:
        yield f"settings without a score: {problem}"
    if not tuning.complete:
        yield "interrupted: nothing is confirmed on other seeds yet"
        return
    if tuning.makes_no_difference:
        yield "all settings that were tried have one score: these keys have no effect here"
        return
    advised = tuning.advised
    if advised is None or advised.gain is None:
        yield "no settings are better than the default on most seeds of the confirmation: keep it"
        return
    yield (
        f"better than the default on {advised.wins} of {advised.compared} seeds that the search "
        f"did not use, by {_spread(advised.gain, 2)}:"
    )
    for place, settings in _by_place(advised.settings):
        yield f"# {place}"
        yield from lines_of(settings)


def _by_place(settings: Settings) -> Iterator[tuple[str, Settings]]:
    own = tuple(pair for pair in settings if pair[0].split(".")[0] in _STEERING)
    others = tuple(pair for pair in settings if pair not in own)
    if own:
        yield "sharectl.yaml", own
    if others:
        yield "the scenario or the strategy; on a pool its own configuration", others


def _candidate(candidate: Candidate) -> dict[str, Any]:
    spreads = {
        name: value._asdict() if isinstance(value, Spread) else value
        for name, value in vars(candidate).items()
    }
    return {**spreads, "settings": dict(candidate.settings)}
