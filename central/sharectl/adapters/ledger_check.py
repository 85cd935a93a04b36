"""What is in a ledger, and whether it is in order."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any, Optional

from sharectl.adapters import ledger_cycles, ledger_rollups
from sharectl.adapters.ledger import Ledger
from sharectl.adapters.ledger_file import errors_of, open_to_read, remedy_of
from sharectl.adapters.ledger_names import Lists
from sharectl.adapters.ledger_nodes import Nodes
from sharectl.core.ledger_series import DAY_SECONDS

MOST_PROBLEMS = 20
LAST_CYCLES = 200
"""Cycles that are read whole unless all are to be."""

_BROKEN = (
    "the file is damaged {places}, named below: figures of old cycles may be wrong or missing, the plans of cycles "
    "are not; {remedy}. To begin a new one now, move the file and its -wal and -shm away while no cycle runs"
)

_COUNTS = {
    "cycles": "SELECT count(*) FROM cycles",
    "complete_cycles": "SELECT count(*) FROM cycles WHERE complete",
    "imported_cycles": "SELECT count(*) FROM cycles WHERE imported",
    "first_at": "SELECT min(taken_at) FROM cycles",
    "last_at": "SELECT max(taken_at) FROM cycles",
    "groups": "SELECT count(DISTINCT group_id) FROM group_rollups",
    "nodes": "SELECT count(*) FROM nodes",
    "first_cycle_with_nodes": "SELECT min(id) / 65536 FROM node_blocks",
    "schema_version": "PRAGMA user_version",
    "pages": "PRAGMA page_count",
    "free_pages": "PRAGMA freelist_count",
    "page_bytes": "PRAGMA page_size",
}


def info(ledger: Ledger) -> dict[str, Any]:
    """Numbers of a ledger, by name. Raises StateError."""
    with errors_of(ledger.path), contextlib.closing(open_to_read(ledger.path)) as connection:
        said = {name: connection.execute(query).fetchone()[0] for name, query in _COUNTS.items()}
    pages, free, size = (said.pop(name) for name in ("pages", "free_pages", "page_bytes"))
    return {
        "path": str(ledger.path),
        **said,
        "bytes": pages * size,
        "free_bytes": free * size,
        "keep_days": ledger.keep.days,
        "max_bytes": ledger.keep.max_bytes,
        "broken": [str(path) for path in broken_ones(ledger.path)],
    }


def broken_ones(path: Path) -> list[Path]:
    """Ledgers that were put aside since they were broken, the oldest first."""
    found = path.parent.glob(f"{path.name}.broken-*")
    return sorted(one for one in found if not one.name.endswith(("-wal", "-shm")))


def problems(ledger: Ledger, *, every_cycle: bool) -> list[str]:
    """What is not in order, one line each, the first `MOST_PROBLEMS`. Raises StateError."""
    with errors_of(ledger.path), contextlib.closing(open_to_read(ledger.path)) as connection:
        found = [f"SQLite: {said}" for said in _integrity(connection)]
        if found:
            found.insert(0, _BROKEN.format(places=_places(len(found)), remedy=remedy_of(ledger.path)))
        else:
            connection.execute("BEGIN")
            for part in (_rollups(connection), _cycles(connection, None if every_cycle else LAST_CYCLES)):
                found += [line for line, _ in zip(part, range(MOST_PROBLEMS))]
    return [f"{ledger.path}: {line}" for line in found[: MOST_PROBLEMS + 1]]


def _places(count: int) -> str:
    return (
        "at one place" if count == 1 else f"at {count} places{' or more' if count >= MOST_PROBLEMS else ''}"
    )


def _integrity(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
    return [said for (said,) in rows if said != "ok"]


def _rollups(connection: sqlite3.Connection) -> Iterator[str]:
    """Days whose sums are not those of their cycles; of the oldest day some cycles may be gone already."""
    whole = "SELECT min(taken_at), max(taken_at) FROM cycles"
    first, last = connection.execute(whole).fetchone()
    if first is None:
        return
    since = (first // DAY_SECONDS + 1) * DAY_SECONDS
    until = (last // DAY_SECONDS + 1) * DAY_SECONDS
    made, kept = (
        ledger_rollups.sums(connection, since, until, DAY_SECONDS, level) for level in (0, DAY_SECONDS)
    )
    for of_cycles, of_rollups in zip(made, kept):
        there = {_key(row): row for row in of_rollups}
        for row in of_cycles:
            if not _same(row, there.pop(_key(row), ())):
                yield f"sums of the day that begins at {row[0]} are not those of its cycles"
        for start, *_ in there.values():
            yield f"there are sums of the day that begins at {start}, which has no such cycles"


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Bucket, and what else a row is known by: as many columns as stand before the sums."""
    columns = {5: 3, 13: 1, 17: 2}
    return row[: columns[len(row)]]


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(
        a == b or (a is not None and b is not None and isclose(a, b, rel_tol=1e-9, abs_tol=1e-6))
        for a, b in zip(one, other)
    )


def _cycles(connection: sqlite3.Connection, most: Optional[int]) -> Iterator[str]:
    lists = Lists(connection)
    nodes = Nodes(connection, lists)
    numbers = "SELECT number FROM cycles ORDER BY number DESC LIMIT ?"
    rows = connection.execute(numbers, (-1 if most is None else most,)).fetchall()
    for (number,) in reversed(rows):
        try:
            for record in ledger_cycles.read(connection, lists, "WHERE number = ?", (number,)):
                _read_nodes(nodes, number, complete=record.complete)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield f"cycle {number} cannot be read: {error}"


def _read_nodes(nodes: Nodes, number: int, *, complete: bool) -> None:
    if nodes.read(number) and not complete:
        raise ValueError("it was not complete, and has nodes")
