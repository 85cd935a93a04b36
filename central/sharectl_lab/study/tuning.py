"""Search for settings: parameters with their domains, tasks, scores and the outcome of a search.

A *setting* is a key of the configuration or of the scenario with a value. The *default* is the
scenario as it is, without a setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional, Union

from sharectl_lab.twin.answers import Spread, spread

Value = Union[bool, int, float, str, None]
Settings = tuple[tuple[str, Value], ...]
"""Keys with their values, in the order of the parameters; empty: the default."""

DIGITS = 3
"""Significant digits of a number that is tried: what is printed is what was simulated."""
WIDE = 100.0
"""Ratio of the bounds from which a domain has a logarithmic scale."""
LEAST_PART = 1e-4
"""Lower end of a logarithmic scale that would begin at 0, as a part of its upper end."""
_MOST_SCORE = 1e15
MOST = 1e9
"""Upper bound from which a domain is no help: the user has to write one."""


class Task(NamedTuple):
    """A simulation."""

    settings: Settings
    seed: int


class Score(NamedTuple):
    """Measures of a simulation."""

    shortfall_percent: float
    """RMS shortfall, % of the power present."""
    idle_percent: float
    """Core-hours idle while jobs were pending that could run there, % of the pool's."""
    idle_core_hours: float


def score_of(row: Mapping[str, Any]) -> Score:
    """Score of a row of JSON. Raises TypeError or ValueError for anything but its numbers."""
    score = Score(**row)
    if any(type(part) not in (int, float) or not abs(part) <= _MOST_SCORE for part in score):
        raise ValueError(f"its score is not of three numbers up to {_MOST_SCORE:g}")
    return score


Result = Union[Score, str]
"""Score of a task, or the problem that kept it from having any."""
Take = Callable[[Task, Result], None]
"""Takes the result of a task."""
Evaluate = Callable[[Sequence[Task], Take], None]
"""Hands over the results of tasks, in any order, as they come."""

OBJECTIVES = {
    "balanced": "RMS shortfall, % of the power present, plus the idle price times idle core-hours, "
    "% of the pool's",
    "shortfall": "RMS shortfall, % of the power present",
    "idle": "idle core-hours while jobs were pending that could run there, % of the pool's",
}
"""Name of an objective -> the number that the search makes small."""


@dataclass(frozen=True)
class Objective:
    """Number that the search makes small."""

    name: str = "balanced"
    idle_price: float = 1.0
    """Shortfall, % of power, that is as bad as 1 % of the core-hours idle."""

    def value(self, score: Score) -> float:
        """Objective of a score, %."""
        if self.name == "shortfall":
            return score.shortfall_percent
        if self.name == "idle":
            return score.idle_percent
        return score.shortfall_percent + self.idle_price * score.idle_percent


@dataclass(frozen=True)
class Parameter:
    """Key that the search varies, with its domain: choices, or numbers between two bounds."""

    key: str
    default: Value = None
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False
    nullable: bool = False
    """Whether null is tried too, beside the numbers."""
    ratio: bool = False
    """Whether the file has it as a percentage; bounds and default are parts of 1."""

    def rounded(self, number: float) -> Value:
        """Number of `DIGITS` significant digits within the bounds."""
        short = min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)
        if self.ratio:
            return percent(short)
        return round(short) if self.whole else short

    def admits(self, value: Value) -> bool:
        """Tell if the domain has a value."""
        if self.choices:
            return value in self.choices
        if value is None:
            return self.nullable
        return not isinstance(value, str) and self.low <= value <= self.high

    @property
    def words(self) -> str:
        """Domain as `--over` takes it."""
        if self.choices:
            return f"{self.key}={'|'.join(map(text_of, self.choices))}"
        null = "null|" if self.nullable else ""
        return f"{self.key}={null}{self.low:.6g}..{self.high:.6g}"


def numbers(
    least: float, most: float, *, whole: bool, is_time: bool
) -> Optional[tuple[float, float, bool]]:
    """Lower and upper end of the domain of a number, and whether its scale is logarithmic.

    Times and wide ranges are logarithmic. A logarithmic scale that would begin at 0 begins at 1 for
    times and whole numbers. None where the bounds are too wide to be a domain.
    """
    if most > MOST:
        return None
    log = is_time or most > WIDE * max(least, 1e-12) > 0
    if least <= 0 and most <= 1:
        log = False
    if log and least <= 0:
        least = min(1.0, most) if whole or is_time else most * LEAST_PART
    return least, most, log


def percent(ratio: float) -> str:
    """Part of 1 as the configuration has it."""
    return f"{100 * ratio:.10g}%"


def text_of(value: Value) -> str:
    """Value as YAML."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def lines_of(settings: Settings) -> list[str]:
    """Lines of YAML with the settings, to be pasted."""
    lines: list[str] = []
    before: list[str] = []
    for key, value in sorted(settings, key=lambda pair: pair[0].split(".")):
        *sections, name = key.split(".")
        same = 0
        while same < min(len(sections), len(before)) and sections[same] == before[same]:
            same += 1
        lines += [f"{'  ' * depth}{sections[depth]}:" for depth in range(same, len(sections))]
        before = sections
        lines.append(f"{'  ' * len(sections)}{name}: {text_of(value)}")
    return lines


# ---- outcome


@dataclass(frozen=True)
class Candidate:
    """Settings that were tried, with the spread of the objective and of its parts."""

    settings: Settings
    searched: Optional[Spread]
    """Objective, % over the seeds of the search; None if a seed failed."""
    confirmed: Optional[Spread] = None
    """Objective, % over seeds that the search did not use."""
    shortfall_percent: Optional[Spread] = None
    """RMS shortfall over the seeds of the confirmation, else of the search."""
    idle_percent: Optional[Spread] = None
    idle_core_hours: Optional[Spread] = None
    gain: Optional[Spread] = None
    """Objective of the default less that of these settings, of the same seeds, %."""
    wins: int = 0
    """Seeds of the confirmation on which it is better than the default."""
    compared: int = 0
    """Seeds of the confirmation that both have."""
    problem: Optional[str] = None
    """Reason why a seed failed."""


@dataclass(frozen=True)
class Tuning:
    """Outcome of a search."""

    parameters: tuple[Parameter, ...]
    objective: Objective
    default: Candidate
    best: tuple[Candidate, ...]
    """Candidates by the objective, the best first; confirmed ones before others."""
    tried: int
    """Settings that were tried."""
    problems: tuple[str, ...] = ()
    """Reasons why settings have no score."""
    complete: bool = True
    """False if it was interrupted."""

    @property
    def makes_no_difference(self) -> bool:
        """Tell if all settings have the default's objective."""
        every = [candidate.searched for candidate in (self.default, *self.best)]
        return len(every) > 1 and len({spread.mean for spread in every if spread}) == 1

    @property
    def advised(self) -> Optional[Candidate]:
        """Settings that beat the default on most seeds of the confirmation; None without any."""
        for candidate in self.best:
            gain = candidate.gain
            if (
                candidate.confirmed
                and gain
                and gain.mean > 0
                and 2 * candidate.wins > candidate.compared
            ):
                return candidate
        return None


def candidate_of(
    settings: Settings,
    results: Mapping[Task, Result],
    seeds: tuple[Sequence[int], Sequence[int]],
    objective: Objective,
) -> Candidate:
    """Candidate of all results of its settings; ``seeds`` are those of search and confirmation."""
    scores: list[list[Score]] = []
    for some in seeds:
        answers = [results.get(Task(settings, seed)) for seed in some]
        scores.append([answer for answer in answers if isinstance(answer, Score)])
    every = [results.get(Task(settings, seed)) for some in seeds for seed in some]
    searched, confirmed = (
        _spread([objective.value(score) for score in some]) if len(some) == len(expected) else None
        for some, expected in zip(scores, seeds)
    )
    shown = scores[1] if confirmed else scores[0]
    gains = [
        objective.value(default) - objective.value(own)
        for seed in seeds[1]
        if isinstance(default := results.get(Task((), seed)), Score)
        and isinstance(own := results.get(Task(settings, seed)), Score)
    ]
    return Candidate(
        settings=settings,
        searched=searched,
        confirmed=confirmed,
        shortfall_percent=_spread([score.shortfall_percent for score in shown]),
        idle_percent=_spread([score.idle_percent for score in shown]),
        idle_core_hours=_spread([score.idle_core_hours for score in shown]),
        gain=_spread(gains) if confirmed else None,
        wins=sum(gain > 0 for gain in gains) if confirmed else 0,
        compared=len(gains) if confirmed else 0,
        problem=next((answer for answer in every if isinstance(answer, str)), None),
    )


def _spread(values: Sequence[float]) -> Optional[Spread]:
    return spread(values) if values else None
