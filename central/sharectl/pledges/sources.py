"""Pledges as the configuration has them, from whichever source: what a source says, and what an operator wrote over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isclose
from typing import Callable, Optional

from sharectl.cycle.ports import Pledges
from sharectl.model import Source
from sharectl.shares.pledges import SOURCE_NAME, Pledge, Pledged
from sharectl.words import shown

DAY_SECONDS = 86400
_HOUR_SECONDS = 3600
_SAME = 1e-9


@dataclass(frozen=True)
class Wanted:
    """A group that is steered, as the configuration has it."""

    group: str
    """Dotted where it is within another."""
    written_hs06: Optional[float] = None
    """Its pledge there; None if the source has it."""
    place: str = ""
    """The key of the group."""
    known_as: str = ""
    """What the source calls it."""


@dataclass(frozen=True)
class Told:
    """What a source says of one group."""

    hs06: float
    place: str
    """Where exactly."""
    surplus: Optional[str] = None
    """As `Pledge.surplus`."""


class WrittenPledges:
    """Pledges that are all in the configuration."""

    def __init__(self, wanted: Iterable[Wanted]) -> None:
        self.wanted = tuple(wanted)

    def resolve(self, now: int) -> Pledged:  # noqa: ARG002 - they do not change with time
        """All of them; see `sharectl.cycle.ports.Pledges`."""
        pledges = (
            Pledge(each.group, each.written_hs06, "yaml", each.place)
            for each in self.wanted
            if each.written_hs06 is not None
        )
        return Pledged(Source(SOURCE_NAME, 0.0), tuple(pledges))


class NestedPledges:
    """The same for groups within groups, whose shares are in the configuration."""

    def __init__(
        self, source: Pledges, tree: Callable[[Mapping[str, float]], Mapping[str, float]]
    ) -> None:
        self.source = source
        self.tree = tree
        """Of the pledges that the source has: those of all groups, each before those within it."""

    def resolve(self, now: int) -> Pledged:
        """Pledges of all levels; see `sharectl.cycle.ports.Pledges`."""
        found = self.source.resolve(now)
        if found.source.problem is not None:
            return found
        every = self.tree(found.hs06)
        known = {pledge.group: pledge for pledge in found.pledges}
        problems = list(_beyond(every))
        if problems:
            return refused(found.source.seconds, problems, found.warnings)
        pledges = (
            known.get(group)
            or Pledge(group, hs06, "yaml", f"its share of {group.rpartition('.')[0]}")
            for group, hs06 in every.items()
        )
        return replace(found, pledges=tuple(pledges))


def _beyond(every: Mapping[str, float]) -> Iterator[str]:
    """Groups that promise more than they have."""
    inner: dict[str, list[float]] = {}
    for group, hs06 in every.items():
        inner.setdefault(group.rpartition(".")[0], []).append(hs06)
    for group, hs06 in every.items():
        total = fsum(inner.get(group, ()))
        if total > hs06 * (1 + _SAME):
            yield (
                f"the groups of {group} are promised {total:g} HS06 of its {hs06:g}; write "
                "shares instead of pledges "
                "for them, or lower them"
            )


def joined(
    wanted: Sequence[Wanted],
    told: Mapping[str, Told],
    source: str,
    *,
    said_at: Optional[int] = None,
    absent: Mapping[str, str],
) -> tuple[tuple[Pledge, ...], list[str], list[str]]:
    """Pledges, problems and notes: a written pledge goes before what the source says.

    Parameters
    ----------
    told
        Group → what the source says.
    said_at
        Unix seconds at which it said so; None for now.
    absent
        Group → why the source has no pledge for it, where it has none.
    """
    pledges, problems, notes = [], [], []
    for each in wanted:
        from_source = told.get(each.group)
        if each.written_hs06 is not None:
            instead, surplus = (
                (from_source.hs06, from_source.surplus) if from_source is not None else (None, None)
            )
            pledges.append(
                Pledge(
                    each.group,
                    each.written_hs06,
                    "yaml",
                    each.place,
                    instead_of_hs06=instead,
                    surplus=surplus,
                )
            )
            if instead is not None and not isclose(instead, each.written_hs06, rel_tol=_SAME):
                notes.append(
                    f"{each.place}: {each.written_hs06:g} HS06 is written, and goes before the "
                    f"{instead:g} of "
                    f"{from_source.place if from_source else source}"
                )
        elif from_source is None or not from_source.hs06 > 0:
            why = absent.get(each.group) or (
                f"{from_source.place} is 0" if from_source else "no pledge"
            )
            problems.append(f"{each.place}: {why}; write pledge_hs06 there, or remove the group")
        else:
            hs06, place, surplus = from_source.hs06, from_source.place, from_source.surplus
            pledges.append(Pledge(each.group, hs06, source, place, said_at, surplus=surplus))
    return tuple(pledges), problems, notes


def refused(seconds: float, problems: Iterable[str], warnings: Iterable[str] = ()) -> Pledged:
    """No pledges, and why."""
    return Pledged(Source(SOURCE_NAME, seconds, "; ".join(problems)), (), tuple(warnings))


def some(names: Iterable[str], most: int = 10) -> str:
    """Names of outside origin for a message, not too many."""
    every = list(names)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(shown(name) for name in every[:most]) + rest


def ago(seconds: float) -> str:
    """How long ago something was, such as ``3.5 hours ago``."""
    if seconds < 2 * DAY_SECONDS:
        return f"{max(0.0, seconds) / _HOUR_SECONDS:.1f} hours ago"
    return f"{seconds / DAY_SECONDS:.1f} days ago"
