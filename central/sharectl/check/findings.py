"""Findings, and tables of the checks that make them.

A table is a text file of this folder: codes of checks, and the words of their findings. Rules,
functions of a subject, say where a fault is and what is inserted into the words.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from sharectl.condor.configuration import DAEMONS, Configuration, Unread, unread
from sharectl.condor.library import UnreadableConfigurationError

Rule = TypeVar("Rule", bound=Callable[[Any], Iterator["Finding"]])
SYNTAX = "syntax"
"""Check of every table that HTCondor itself makes."""
MOST_CHARACTERS = 100
"""Characters of an expression that are shown."""


class Level(str, Enum):
    """Weight of a finding."""

    ERROR = "error"
    """Starves jobs, ends a daemon or has no effect."""
    ADVICE = "advice"
    """Works, and could be safer."""
    UNKNOWN = "unknown"
    """Cannot be told from here."""


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
    """`Check` that made it."""

    def __str__(self) -> str:
        kind = f"{self.id}, recommended" if self.level is Level.ADVICE else self.id
        return f"{self.place}: {self.fault}; {self.remedy} [{kind}]"


@dataclass(frozen=True)
class Check:
    """A row of a table of checks."""

    id: str
    holds: str
    """Claim that is true if nothing is found."""


class _Words(string.Formatter):
    """Writes amounts in as few digits as they have, lists and ads with commas; ``:short``."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Mapping):
            value = [f"{key} = {self.format_field(part, '')}" for key, part in value.items()]
        if isinstance(value, (tuple, list)):
            return ", ".join(value)
        if format_spec == "short":
            return one_line(value)
        if isinstance(value, float) and not format_spec:
            return plain(value)
        return format(value, format_spec)


class Checks(list[Check]):
    """Table of checks, causes before their consequences.

    Parameters
    ----------
    name
        Text file of this folder.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.words: dict[str, tuple[str, str, str]] = {}
        """Name of a finding → check, fault and remedy."""
        self._rules: list[tuple[str, Callable[[Any], Iterable[Finding]]]] = []
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        for part in text.split("\n# ")[1:]:
            title, *lines = part.rstrip().splitlines()
            check_id, _, holds = title.partition(": ")
            self.append(Check(check_id, holds))
            for number in range(0, len(lines), 3):
                kind, fault, remedy = map(str.strip, lines[number : number + 3])
                self.words[kind] = (check_id, fault, remedy)

    def finding(
        self, kind: str, place: str, /, *, level: Level = Level.ERROR, **inserted: Any
    ) -> Finding:
        """Finding of that name."""
        check_id, *words = self.words[kind]
        fault, remedy = (_Words().vformat(text, (), inserted) for text in words)
        return Finding(place, fault, remedy, level, check_id)

    def rule(self, parts: str = "") -> Callable[[Rule], Rule]:
        """Decorate a rule of the subject, or of each part in an attribute of it."""

        def add(rule: Rule) -> Rule:
            self._rules.append((parts, rule))
            return rule

        return add

    def findings(self, subject: Any) -> list[Finding]:
        """Findings in the order of the table, each once."""
        order = [check.id for check in self]
        every = dict.fromkeys(
            result
            for parts, rule in self._rules
            for part in (getattr(subject, parts) if parts else (subject,))
            for result in rule(part)
        )
        return sorted(every, key=lambda result: order.index(result.id))


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


def as_lines(results: Sequence[Finding], checks: Sequence[Check]) -> list[str]:
    """Findings one a line, then their number."""
    errors = sum(finding.level is Level.ERROR for finding in results)
    advice = len(results) - errors
    total = f"{len(checks)} checks, {errors or 'nothing'} found"
    return [*map(str, results), f"{total}, {advice} recommended" if advice else total]


def as_content(results: Sequence[Finding], checks: Sequence[Check]) -> dict[str, Any]:
    """The table and the findings, for JSON."""
    return {"checks": [asdict(check) for check in checks], "findings": [asdict(f) for f in results]}


def plain(amount: Optional[float]) -> str:
    """Amount in as few digits as it has."""
    if amount is None:
        return "no number"
    return str(int(amount)) if float(amount).is_integer() else repr(float(amount))


def one_line(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text on one line, shortened."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 2]} …"


def some(words: Sequence[str], most: int, separator: str) -> str:
    """The first of several words, and the number of the others."""
    rest = [f"and {len(words) - most} more"] if len(words) > most else []
    return separator.join([*words[:most], *rest])


def unread_knobs(
    finding: Callable[..., Finding], configuration: Configuration, is_meant: Callable[[str], Any]
) -> Iterator[Finding]:
    """A finding for each kind of daemons that is missing.

    Configurations that all machines share have knobs of other daemons: only for those that
    ``is_meant`` names, and those that no machine reads, it is more than advice.
    """
    rows: dict[tuple[Level, tuple[str, ...], bool], list[Unread]] = {}
    for knob in unread(configuration):
        is_fault = not knob.is_elsewhere or is_meant(knob.part.name)
        level = Level.ERROR if is_fault else Level.ADVICE
        rows.setdefault((level, knob.readers, knob.is_elsewhere), []).append(knob)
    for (level, readers, is_elsewhere), knobs in rows.items():
        names = some([knob.part.name for knob in knobs], 6, ", ")
        kind, daemons = "unread" if is_elsewhere else "wrong daemon", " or ".join(readers)
        first, words = knobs[0].part, {"names": names, "daemons": daemons, "one": readers[0]}
        plain_name = first.name.rpartition(".")[2]
        yield finding(kind, first.place, level=level, knob=plain_name, list=DAEMONS, **words)
