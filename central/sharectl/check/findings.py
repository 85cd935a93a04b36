"""Findings, and tables of the checks that make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Callable, Generic, TypeVar

from sharectl.condor.library import UnreadableConfigurationError

S = TypeVar("S")


class Level(str, Enum):
    """Weight of a finding."""

    ERROR = "error"
    """Starves jobs, ends a daemon or has no effect."""
    ADVICE = "advice"
    """Works, and could be safer."""


@dataclass(frozen=True)
class Finding:
    """One fault of a configuration."""

    place: str
    """``file:line``, a file, or a knob that no file sets."""
    fault: str
    """The fact, and its consequence."""
    remedy: str
    """Imperative: text to write, or thing to do."""
    level: Level = Level.ERROR
    id: str = ""
    """`Check` that made it, which fills it in."""

    def __str__(self) -> str:
        kind = f"{self.id}, recommended" if self.level is Level.ADVICE else self.id
        return f"{self.place}: {self.fault}; {self.remedy} [{kind}]"


@dataclass(frozen=True)
class Check(Generic[S]):
    """A row of a table of checks."""

    id: str
    holds: str
    """Claim that is true if nothing is found."""
    functions: tuple[Callable[[S], Iterator[Finding]], ...] = ()


SYNTAX = "syntax"
"""Check of every table that HTCondor itself makes: it reads every file."""


def findings(checks: Iterable[Check[S]], subject: S) -> list[Finding]:
    """Findings in the order of the table, each once."""
    return list(
        dict.fromkeys(
            replace(finding, id=check.id)
            for check in checks
            for function in check.functions
            for finding in function(subject)
        )
    )


def refusal(error: UnreadableConfigurationError, name: str) -> Finding:
    """Finding for a configuration that HTCondor refuses."""
    return Finding(
        error.place or name,
        f"HTCondor cannot use the configuration, no daemon starts with it: {error}",
        "mend it first: nothing else can be checked before",
        id=SYNTAX,
    )


def has_errors(results: Iterable[Finding]) -> bool:
    """True if any finding is more than advice."""
    return any(finding.level is Level.ERROR for finding in results)


def as_lines(results: Sequence[Finding], checks: Sequence[Check[Any]]) -> list[str]:
    """Findings one a line, then their number."""
    errors = sum(finding.level is Level.ERROR for finding in results)
    advice = len(results) - errors
    total = f"{len(checks)} checks, {errors or 'nothing'} found"
    return [*map(str, results), f"{total}, {advice} recommended" if advice else total]


def as_content(results: Sequence[Finding], checks: Sequence[Check[Any]]) -> dict[str, Any]:
    """The table and the findings, for JSON."""
    return {
        "checks": [{"id": check.id, "holds": check.holds} for check in checks],
        "findings": [asdict(finding) for finding in results],
    }


def one_line(text: str, most: int = 100) -> str:
    """The text on one line, shortened."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 2]} …"


def some(words: Sequence[str], most: int, separator: str) -> str:
    """The first of several words, and the number of the others."""
    rest = [f"and {len(words) - most} more"] if len(words) > most else []
    return separator.join([*words[:most], *rest])
