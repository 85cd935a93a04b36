"""Pledges from whichever source: what it says, and what an operator wrote over it."""

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
_MOST_NAMES = 10


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
    """Its name in the source."""


@dataclass(frozen=True)
class Told:
    """Pledge of one group in the source."""

    hs06: float
    place: str
    """Exact place in the source."""
    surplus: Optional[str] = None
    """As `Pledge.surplus`."""
    said_at: Optional[int] = None
    """Unix seconds at which the source said so; None for now."""


class WrittenPledges:
    """Pledges that are all in the configuration."""

    def __init__(self, wanted: Iterable[Wanted]) -> None:
        self.wanted = tuple(wanted)

    def resolve(self, now: int) -> Pledged:  # noqa: ARG002 - they do not change with time
        """All of them; see `sharectl.cycle.ports.Pledges`."""
        pledges = (
            Pledge(one.group, one.written_hs06, "yaml", one.place)
            for one in self.wanted
            if one.written_hs06 is not None
        )
        return Pledged(Source(SOURCE_NAME, 0.0), tuple(pledges))


class NestedPledges:
    """Pledges of groups within groups, whose shares are in the configuration."""

    def __init__(
        self, source: Pledges, tree: Callable[[Mapping[str, float]], Mapping[str, float]]
    ) -> None:
        self.source = source
        self.tree = tree
        """Pledges of the source → those of all groups, each before those within it."""

    def resolve(self, now: int) -> Pledged:
        """Pledges of all levels; see `sharectl.cycle.ports.Pledges`."""
        pledged = self.source.resolve(now)
        if pledged.source.problem is not None:
            return pledged
        every = self.tree(pledged.hs06)
        problems = list(_overpromised(every))
        if problems:
            return refused(pledged.source.seconds, problems, pledged.warnings)
        of_source = {pledge.group: pledge for pledge in pledged.pledges}
        pledges = (
            of_source.get(group)
            or Pledge(group, hs06, "yaml", f"its share of {group.rpartition('.')[0]}")
            for group, hs06 in every.items()
        )
        return replace(pledged, pledges=tuple(pledges))


def _overpromised(every: Mapping[str, float]) -> Iterator[str]:
    """Groups that promise more than they have."""
    inner: dict[str, list[float]] = {}
    for group, hs06 in every.items():
        inner.setdefault(group.rpartition(".")[0], []).append(hs06)
    for group, hs06 in every.items():
        total = fsum(inner.get(group, ()))
        if total > hs06 * (1 + _SAME):
            yield (
                f"the groups of {group} are promised {total:g} HS06 of its {hs06:g}; write shares "
                "instead of pledges for them, or lower them"
            )


def joined(
    wanted: Sequence[Wanted], told: Mapping[str, Told], source: str, absent: Mapping[str, str]
) -> tuple[tuple[Pledge, ...], list[str], list[str]]:
    """Pledges, problems and notes: a written pledge goes before that of the source.

    Parameters
    ----------
    told
        Group → its pledge in the source.
    absent
        Group → why the source has no pledge for it.
    """
    pledges, problems, notes = [], [], []
    for one in wanted:
        said, written = told.get(one.group), one.written_hs06
        instead, surplus = (said.hs06, said.surplus) if said is not None else (None, None)
        if written is not None:
            pledges.append(
                Pledge(one.group, written, "yaml", one.place, None, instead, surplus),
            )
            if said is not None and not isclose(said.hs06, written, rel_tol=_SAME):
                notes.append(
                    f"{one.place}: {written:g} HS06 is written, and goes before the "
                    f"{said.hs06:g} of {said.place}"
                )
        elif said is not None and said.hs06 > 0:
            pledge = Pledge(one.group, said.hs06, source, said.place, said.said_at)
            pledges.append(replace(pledge, surplus=surplus))
        else:
            zero = f"{said.place} is 0" if said is not None else "no pledge"
            why = absent.get(one.group, zero)
            problems.append(f"{one.place}: {why}; write pledge_hs06 there, or remove the group")
    return tuple(pledges), problems, notes


def refused(seconds: float, problems: Iterable[str], warnings: Iterable[str] = ()) -> Pledged:
    """No pledges, and why."""
    return Pledged(Source(SOURCE_NAME, seconds, "; ".join(problems)), (), tuple(warnings))


def some(names: Iterable[str]) -> str:
    """Names of outside origin for a message, not too many."""
    every = list(names)
    rest = f" and {len(every) - _MOST_NAMES} more" if len(every) > _MOST_NAMES else ""
    return ", ".join(map(shown, every[:_MOST_NAMES])) + rest


def ago(seconds: float) -> str:
    """Age, such as ``3.5 hours ago``."""
    if seconds < 2 * DAY_SECONDS:
        return f"{max(0.0, seconds) / _HOUR_SECONDS:.1f} hours ago"
    return f"{seconds / DAY_SECONDS:.1f} days ago"
