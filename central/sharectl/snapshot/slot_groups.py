"""Slots of a pool when nothing runs there, grouped by what jobs can tell apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from sharectl.condor import ad_rows
from sharectl.condor.ad_rows import LITERAL, AdRow
from sharectl.condor.ads import ad_of_long
from sharectl.condor.expressions import code_of

MOST_VIEWS = 50
"""Sets of attributes that jobs look at for which kinds of slots are kept in memory."""

SlotQuery = Callable[[Sequence[str]], Iterable[Any]]
"""Returns the ads of a pool's slots with these attributes."""


class SlotClause(NamedTuple):
    """Clause of a slot's Requirements, and attributes and words in lower case."""

    text: str
    code: str
    """Of `sharectl.explain.job.OBSTACLES`."""
    of_slot: frozenset[str]
    """Attributes of the slot that it looks at, directly or not."""
    of_job: frozenset[str]
    words: frozenset[str]


def clauses_in(row: AdRow) -> tuple[SlotClause, ...]:
    """Clauses of the Requirements of a slot."""
    expressions = sorted(pair for pair in row.items() if not LITERAL.fullmatch(pair[1]))
    return _clauses_in(tuple(expressions), frozenset(row))


@lru_cache(maxsize=1000)
def _clauses_in(
    expressions: tuple[tuple[str, str], ...], names: frozenset[str]
) -> tuple[SlotClause, ...]:
    texts = {**dict.fromkeys(names, ""), **dict(expressions)}
    return tuple(
        SlotClause(
            clause.text, code_of(clause), *map(frozenset, ad_rows.seen_by(clause.text, texts))
        )
        for clause in ad_rows.clauses_of(texts)
    )


class SlotGroup:
    """Slots that jobs cannot tell apart."""

    def __init__(self, row: AdRow) -> None:
        self.row = dict(row)
        self.machines = set[str]()
        """Host names, lower case."""

    @cached_property
    def ad(self) -> Any:
        """Ad for trials."""
        return ad_of_long(ad_rows.long_of(self.row))


class SlotGroups:
    """Slots of a pool by kind, for jobs that look at some of their attributes."""

    def __init__(
        self,
        slots: Iterable[tuple[AdRow, AdRow, Collection[str]]],
        step: Callable[[str, str], str] = lambda _, text: text,
    ) -> None:
        """Slots with rows, policies that go before them, and attributes that policies look at.

        ``step`` returns what numbers that make no different kinds have in common.
        """
        self._slots = list(slots)
        self._step = step
        self._view = lru_cache(MOST_VIEWS)(self._grouped)
        texts: dict[str, set[str]] = {}
        for row, _, _ in self._slots:
            for name, text in row.items():
                texts.setdefault(name, set()).update(() if LITERAL.fullmatch(text) else (text,))
        self.texts = {name: " ".join(several) for name, several in texts.items()}
        """Attribute of any slot -> its expressions, without literals."""
        self.machines = {_machine(row) for row, _, _ in self._slots}
        """Host names, lower case."""

    def reached(self, words: Iterable[str]) -> set[str]:
        """The words, and those of the attributes that they name, in turn."""
        return ad_rows.names_reached(words, self.texts)

    def of(self, names: Collection[str]) -> list[SlotGroup]:
        """Kinds for jobs that look at these attributes, with the largest numbers of each kind."""
        return self._view(frozenset(self.texts.keys() & names))

    def _grouped(self, names: frozenset[str]) -> list[SlotGroup]:
        kinds: dict[frozenset[tuple[str, str]], SlotGroup] = {}
        for row, policy, looks_at in self._slots:
            seen = {name: row[name] for name in names.union(looks_at) if name in row} | {**policy}
            key = frozenset((name, self._step(name, text)) for name, text in seen.items())
            kind = kinds.setdefault(key, SlotGroup(seen))
            kind.machines.add(_machine(row))
            for name, text in seen.items():
                if text != kind.row[name] and float(text) > float(kind.row[name]):
                    kind.row[name] = text
        return list(kinds.values())


def _machine(row: AdRow) -> str:
    return row.get("machine", "").strip('"').lower()
