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
_MOST_SCORE = 1e15
OBJECTIVE = (
    "RMS shortfall, % of the power present, plus core-hours idle while jobs were pending that "
    "could run there, % of the pool's"
)
"""Number that the search makes small."""


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

    @property
    def objective(self) -> float:
        """Value of `OBJECTIVE`."""
        return self.shortfall_percent + self.idle_percent


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


@dataclass(frozen=True)
class Parameter:
    """Key that the search varies, with its domain: choices, or numbers between two bounds."""

    key: str
    default: Value = None
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    @property
    def log(self) -> bool:
        """True if the scale is logarithmic: the bounds differ by a magnitude."""
        return self.high >= 10 * self.low > 0

    def rounded(self, number: float) -> Value:
        """Number of `DIGITS` significant digits within the bounds."""
        short = min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)
        return round(short) if self.whole else short

    def admits(self, value: Value) -> bool:
        """Return whether the domain has a value."""
        if self.choices:
            return value in self.choices
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    @property
    def words(self) -> str:
        """Domain as `--over` takes it."""
        if self.choices:
            return f"{self.key}={'|'.join(map(text_of, self.choices))}"
        return f"{self.key}={self.low:.6g}..{self.high:.6g}"


def text_of(value: Value) -> str:
    """Value as YAML."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


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
        """True if all settings have the default's objective."""
        every = [candidate.searched for candidate in (self.default, *self.best)]
        return len(every) > 1 and len({spread.mean for spread in every if spread}) == 1

    @property
    def advised(self) -> Optional[Candidate]:
        """Settings that beat the default on most seeds of the confirmation; None without any."""
        for candidate in self.best:
            gain = candidate.gain
            if gain and gain.mean > 0 and 2 * candidate.wins > candidate.compared:
                return candidate
        return None


def candidate_of(
    settings: Settings,
    results: Mapping[Task, Result],
    seeds: tuple[Sequence[int], Sequence[int]],
) -> Candidate:
    """Candidate of all results of its settings; ``seeds`` are those of search and confirmation."""
    searched, confirmed = ([results.get(Task(settings, seed)) for seed in some] for some in seeds)
    objective, further = (
        _spread([score.objective for score in _scores(some)])
        if len(_scores(some)) == len(some)
        else None
        for some in (searched, confirmed)
    )
    shown = _scores(confirmed if further else searched)
    defaults = [results.get(Task((), seed)) for seed in seeds[1]]
    gains = [
        default.objective - score.objective
        for default, score in zip(defaults, confirmed)
        if isinstance(default, Score) and isinstance(score, Score) and further
    ]
    problems = (result for result in (*searched, *confirmed) if isinstance(result, str))
    return Candidate(
        settings=settings,
        searched=objective,
        confirmed=further,
        shortfall_percent=_spread([score.shortfall_percent for score in shown]),
        idle_percent=_spread([score.idle_percent for score in shown]),
        idle_core_hours=_spread([score.idle_core_hours for score in shown]),
        gain=_spread(gains),
        wins=sum(gain > 0 for gain in gains),
        compared=len(gains),
        problem=next(problems, None),
    )


def _scores(results: Sequence[Optional[Result]]) -> list[Score]:
    return [result for result in results if isinstance(result, Score)]


def _spread(values: Sequence[float]) -> Optional[Spread]:
    return spread(values) if values else None
