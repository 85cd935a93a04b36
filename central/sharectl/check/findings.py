"""Findings, and tables of the checks that make them.

A table is a text file of this folder: codes of checks, levels and words of their findings. Rules,
functions of a subject, say where a fault is and what is inserted into the words.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from sharectl.condor.configuration import DAEMONS, Configuration, Definition, unread
from sharectl.condor.library import UnreadableConfigurationError

_UNREAD = {True: "unread", False: "wrong daemon"}
Rule = TypeVar("Rule", bound=Callable[[Any], Iterator["Finding"]])
SYNTAX = "syntax"
"""Check of every table that HTCondor itself makes."""
_MOST_CHARACTERS = 100
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

    def moved(self, name: str, to: str) -> Finding:
        """Finding with the file or folder ``name`` called ``to``."""
        texts = (self.place, self.fault, self.remedy)
        place, fault, remedy = (text.replace(name, to) for text in texts)
        return Finding(place, fault, remedy, self.level, self.id)


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
            flat = " ".join(value.split())
            return flat if len(flat) <= _MOST_CHARACTERS else f"{flat[: _MOST_CHARACTERS - 2]} …"
        if isinstance(value, float) and not format_spec:
            return plain(value)
        return format(value, format_spec)


class Checks(list[Check]):
    """Table of checks in a text file of this folder, causes before their consequences."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.words: dict[str, Finding] = {}
        """Name of a finding → the finding without its place, before words are inserted."""
        self._rules: list[tuple[str, Callable[[Any], Iterable[Finding]]]] = []
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        for part in text.split("\n# ")[1:]:
            title, *lines = part.rstrip().splitlines()
            check_id, _, holds = title.partition(": ")
            self.append(Check(check_id, holds))
            for number in range(0, len(lines), 3):
                name, fault, remedy = map(str.strip, lines[number : number + 3])
                level, _, kind = name.rpartition(": ")
                self.words[kind] = Finding("", fault, remedy, Level(level or "error"), check_id)

    def finding(
        self, kind: str, place: str, level: Optional[Level] = None, /, **inserted: Any
    ) -> Finding:
        """Finding of that name; ``level`` goes before that of the table."""
        row = self.words[kind]
        fault, remedy = (_Words().vformat(text, (), inserted) for text in (row.fault, row.remedy))
        return Finding(place, fault, remedy, level or row.level, row.id)

    def rule(self, parts: str = "") -> Callable[[Rule], Rule]:
        """Decorate a rule of the subject, or of each part in an attribute of it."""

        def add(rule: Rule) -> Rule:
            self._rules.append((parts, rule))
            return rule

        return add

    def findings(self, subject: Any) -> list[Finding]:
        """Findings in the order of the table, each once."""
        every = (
            result
            for parts, rule in self._rules
            for part in (getattr(subject, parts) if parts else (subject,))
            for result in rule(part)
        )
        return self.in_order(dict.fromkeys(every))

    def in_order(self, results: Iterable[Finding]) -> list[Finding]:
        """Findings in the order of the table."""
        order = [check.id for check in self]
        return sorted(results, key=lambda result: order.index(result.id))


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
    rows: dict[tuple[Level, tuple[str, ...], str], list[Definition]] = {}
    for part, readers, is_elsewhere in unread(configuration):
        is_advice = is_elsewhere and not is_meant(part.name)
        level, kind = Level.ADVICE if is_advice else Level.ERROR, _UNREAD[is_elsewhere]
        rows.setdefault((level, readers, kind), []).append(part)
    for (level, readers, kind), parts in rows.items():
        names, knob = [part.name for part in parts], parts[0].name.rpartition(".")[2]
        words = {"names": some(names, 6, ", "), "knob": knob, "one": readers[0], "list": DAEMONS}
        yield finding(kind, parts[0].place, level, daemons=" or ".join(readers), **words)
