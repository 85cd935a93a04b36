"""Pledges of all groups: those of a source, and those that an operator wrote over them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from sharectl.config.groups import overpromised
from sharectl.errors import InputError, NewerFileError, PoolUnavailableError, StateError
from sharectl.files.documents import Document, DocumentError, record
from sharectl.model import Source
from sharectl.shares.pledges import SOURCE_NAME, Pledge, Pledged
from sharectl.words import shown

T = TypeVar("T")
_MAX_BYTES = 2**25
_SAME = 1e-9
_MOST_NAMES = 10


@dataclass(frozen=True)
class SteeredGroup:
    """A group that is steered, as the configuration has it."""

    group: str
    """Dotted where it is within another."""
    written_hs06: Optional[float] = None
    """Its pledge there; None if the source has it."""
    place: str = ""
    """The key of the group."""
    name_in_source: str = ""


Joined = tuple[tuple[Pledge, ...], list[str]]
"""Pledges of all groups, and notes."""
Ask = Callable[[int, list[str]], Joined]
"""Time, Unix seconds, and a list that takes warnings → pledges of a source.

Raises InputError and PoolUnavailableError.
"""


@dataclass(frozen=True)
class AllPledges:
    """Pledges of groups of all levels."""

    ask: Ask
    tree: Callable[[Mapping[str, float]], Mapping[str, float]]
    """Pledges of the source → those of all groups, each before those within it."""

    def resolve(self, now: int) -> Pledged:
        """Pledges of this moment, or a source with a problem, and no pledges; never raises."""
        began = time.monotonic()
        pledges: tuple[Pledge, ...] = ()
        warnings, notes, problem = list[str](), list[str](), None
        try:
            of_source, notes = self.ask(now, warnings)
            written = {pledge.group: pledge for pledge in of_source}
            tree = self.tree({name: pledge.hs06 for name, pledge in written.items()})
            problem = "; ".join(message for _, message in overpromised(tree)) or None
            for group, hs06 in tree.items() if problem is None else ():
                share = Pledge(group, hs06, "yaml", f"its share of {group.rpartition('.')[0]}")
                pledges = (*pledges, written.get(group) or share)
        except (InputError, PoolUnavailableError) as error:
            problem = "; ".join(error.problems)
        source = Source(SOURCE_NAME, time.monotonic() - began, problem)
        return Pledged(source, pledges, tuple(warnings), tuple(notes))


def join(
    wanted: Sequence[SteeredGroup], in_source: Mapping[str, Pledge], absent: Mapping[str, str]
) -> Joined:
    """Pledges of all groups, written ones first; raises InputError with all that have none."""
    pledges, problems, notes = [], [], []
    for group in wanted:
        name, place, written = group.group, group.place, group.written_hs06
        offer = in_source.get(name)
        if written is not None:
            surplus = offer.surplus if offer else None
            pledges.append(Pledge(name, written, "yaml", place, surplus=surplus))
            if offer is not None and not isclose(offer.hs06, written, rel_tol=_SAME):
                instead_of = f"goes before the {offer.hs06:g} of {offer.place}"
                notes.append(f"{place}: {written:g} HS06 is written, and {instead_of}")
        elif offer is not None and offer.hs06 > 0:
            pledges.append(offer)
        else:
            why = f"{offer.place} is 0" if offer else absent.get(name, "no pledge")
            problems.append(f"{place}: {why}; write pledge_hs06 there, or remove the group")
    if problems:
        raise InputError(problems)
    return tuple(pledges), notes


# ---- the copy of a source's answer


def copy_in(path: Path, kind: type[T], warnings: list[str]) -> Optional[T]:
    """Copy in its file; None without one that can be read."""
    try:
        return Document(path, _MAX_BYTES).read(partial(record, kind))
    except (OSError, DocumentError) as error:
        fact = f"{path}: cannot be read: {shown(str(error))}"
        warnings.append(f"{fact}; it is written again when the source answers")
    except NewerFileError as error:
        fact = f"{path}: schema_version {error.version} is of a newer sharectl"
        warnings.append(f"{fact}; it is written again when the source answers")
    return None


def keep_copy(path: Path, copy: Any, warnings: list[str]) -> None:
    """Replace the file of a copy, which is a dataclass."""
    try:
        Document(path, _MAX_BYTES).replace(asdict(copy))
    except StateError as error:
        warnings.append(f"the copy of the pledges is not kept: {error}")


def some(names: Iterable[str]) -> str:
    """Names of outside origin for a message, not too many."""
    every = list(names)
    more = f" and {len(every) - _MOST_NAMES} more" if len(every) > _MOST_NAMES else ""
    return ", ".join(map(shown, every[:_MOST_NAMES])) + more
