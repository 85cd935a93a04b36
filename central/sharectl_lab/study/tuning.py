"""Search for settings: parameters with their domains, tasks, scores and the outcome of a search.

A *setting* is a key of the configuration or of the scenario with a value. The *default* is the
scenario as it is, without a setting. An edge: domains are those of the configuration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional, Union

from sharectl.config.fields import Key, items_of
from sharectl.errors import SettingError
from sharectl.words import did_you_mean, quoted
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

    @property
    def objective(self) -> float:
        """Value of `OBJECTIVE`."""
        return self.shortfall_percent + self.idle_percent


def score_of(row: Mapping[str, Any]) -> Score:
    """Score of a row of JSON. Raises TypeError or ValueError for anything but its numbers."""
    score = Score(**row)
    if any(type(part) not in (int, float) or not abs(part) <= _MOST_SCORE for part in score):
        raise ValueError(f"its score is not of two numbers up to {_MOST_SCORE:g}")
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

    def rounded(self, value: Any) -> Value:
        """Choice as it is, or number of `DIGITS` significant digits within the bounds."""
        if self.choices:
            choice: Value = value
            return choice
        short = min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)
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


# ---- domains

SYNTAX = "KEY=LOW..HIGH|=VALUE|VALUE…"
WITHOUT_EFFECT = ("control.incomplete",)
"""Keys on which the twin does not depend: its looks at the pool are complete."""


def parameters(texts: Sequence[str], records: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Parameters of texts such as ``control.give_up_seconds=60..3600``; raises SettingError.

    ``records`` are the sections that can be varied, by name; None for one that has no effect.
    """
    keys = {
        name: pair for section, record in records.items() for name, pair in _keys(section, record)
    }
    items = [item.strip() for text in texts for item in text.split(",") if item.strip()]
    problems: list[str] = [] if items else [f"there is no key; write {SYNTAX}, or control.law"]
    made: dict[str, Parameter] = {}
    for text in items:
        name, equals, domain = (part.strip() for part in text.partition("="))
        try:
            if name in made:
                raise ValueError("stands there twice; keep one of them")  # noqa: TRY301
            key, default = _key(name, keys, records)
            made[name] = _parameter(name, key, default, domain if equals else None)
        except ValueError as error:
            problems.append(f"{quoted(name or text)}: {error}")
    if problems:
        raise SettingError([f"--over {problem}" for problem in problems])
    return tuple(made.values())


def _keys(section: str, record: Any) -> Iterator[tuple[str, tuple[Key, Any]]]:
    """Dotted name -> key and default of everything below a section that can be varied."""
    for key, value in items_of(record) if record is not None else ():
        name = f"{section}.{key.name}"
        is_number = key.hint in (int, float, bool) and not key.setting.kind
        if key.section is not None and key.section is key.hint:
            yield from _keys(name, value)
        elif (is_number or key.setting.choices) and name not in WITHOUT_EFFECT:
            yield name, (key, value)


def _key(
    name: str, keys: Mapping[str, tuple[Key, Any]], records: Mapping[str, Any]
) -> tuple[Key, Any]:
    """Key of that name and its default. Raises ValueError with the nearest one."""
    if name in keys:
        return keys[name]
    section = name.partition(".")[0]
    if section in records and records[section] is None:
        raise ValueError(f"has no effect here: the strategy has no {section}; name another one")
    sections = ", ".join(f"{section}.…" for section, record in records.items() if record)
    short = {key.rpartition(".")[2]: key for key in keys}
    advice = did_you_mean(short.get(name) or name, keys, f"write keys of {sections}")
    raise ValueError(f"is no key of a simulated pool; {advice}")


def _parameter(name: str, key: Key, default: Any, domain: Optional[str]) -> Parameter:
    """Parameter with all choices of the key, or the values of ``domain``."""
    if domain is None and (key.setting.choices or key.hint is bool):
        return Parameter(name, default, key.setting.choices or (False, True))
    low, dots, high = (domain or "").partition("..")
    if not domain:
        raise ValueError(f"has no domain; write {name}=LOW..HIGH, or values with | between them")
    if not dots:
        values = [_value(key, word.strip()) for word in domain.split("|")]
        return Parameter(name, default, tuple(dict.fromkeys(values)))
    bounds = _number(key, low), _number(key, high)
    if bounds[0] >= bounds[1]:
        raise ValueError(f"{domain} is empty; write the lower number first")
    return Parameter(name, default, (), *bounds, whole=key.hint is int)


def _value(key: Key, word: str) -> Value:
    """Value of a domain. Raises ValueError if the key cannot have it."""
    if word == "null" and key.optional:
        return None
    if not key.setting.choices and key.hint is not bool:
        return _number(key, word)
    choices = {text_of(value): value for value in key.setting.choices or (False, True)}
    if word not in choices:
        advice = did_you_mean(word, choices, f"write some of {', '.join(choices)}")
        raise ValueError(f"{quoted(word)} is no value of it; {advice}")
    return choices[word]


def _number(key: Key, word: str) -> float:
    """Number of a domain. Raises ValueError if the key cannot have it."""
    number: Optional[float] = None
    with contextlib.suppress(ValueError):
        number = float(word)
    if number is None or not key.admits(number) or (key.hint is int and number != int(number)):
        raise ValueError(f"{quoted(word)} is no value of it; write a {key.range}")
    return int(number) if key.hint is int else number


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
    settings: Settings, results: Mapping[Task, Result], seeds: tuple[Sequence[int], Sequence[int]]
) -> Candidate:
    """Candidate of all results of its settings; ``seeds`` are those of search and confirmation."""
    searched, confirmed = ([results.get(Task(settings, seed)) for seed in some] for some in seeds)
    objective, further = (
        _spread([s.objective for s in _scores(some)]) if len(_scores(some)) == len(some) else None
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
        gain=_spread(gains),
        wins=sum(gain > 0 for gain in gains),
        compared=len(gains),
        problem=next(problems, None),
    )


def _scores(results: Sequence[Optional[Result]]) -> list[Score]:
    return [result for result in results if isinstance(result, Score)]


def _spread(values: Sequence[float]) -> Optional[Spread]:
    return spread(values) if values else None
