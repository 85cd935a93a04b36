"""Lists of the ledger by which names and what seldom changes are written once, and numbers in their place."""

from __future__ import annotations

import sqlite3
from typing import Any, Optional


class Numbered:
    """One of these lists: number of a row, and row of a number; rows that are not there are added."""

    def __init__(self, connection: sqlite3.Connection, table: str, *columns: str) -> None:
        self._connection = connection
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._rows: dict[int, tuple[Any, ...]] = {}
        names, places = ", ".join(columns), ", ".join("?" * len(columns))
        same = " AND ".join(f"{column} = ?" for column in columns)
        # Names of tables and columns are of this package.
        self._find = f"SELECT id FROM {table} WHERE {same}"  # noqa: S608
        self._add = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608
        self._get = f"SELECT {names} FROM {table} WHERE id = ?"  # noqa: S608

    def number(self, *row: Any) -> int:
        """Number of a row, which is added if it is new."""
        number = self._numbers.get(row)
        if number is None:
            number = self.known(*row)
            if number is None:
                number = int(self._connection.execute(self._add, row).lastrowid or 0)
            self._numbers[row] = number
        return number

    def known(self, *row: Any) -> Optional[int]:
        """Number of a row; None if it is not there."""
        found = self._connection.execute(self._find, row).fetchone()
        return int(found[0]) if found else None

    def row(self, number: int) -> tuple[Any, ...]:
        """Row of a number.

        Raises
        ------
        ValueError
            If there is none.
        """
        row = self._rows.get(number)
        if row is None:
            row = self._connection.execute(self._get, (number,)).fetchone()
            if row is None:
                raise ValueError(f"no row {number}: {self._get}")
            self._rows[number] = row
        return row


class Lists:
    """All of them, through one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.names = Numbered(connection, "names", "name")
        """Groups and codes."""
        self.nodes = Numbered(connection, "nodes", "name")
        self.shapes = Numbered(
            connection,
            "shapes",
            "cores",
            "hs06_per_core",
            "memory_mib",
            "controlled",
            "reserved",
            "draining",
            "multicore_only",
        )
        self.kinds = Numbered(connection, "job_kinds", "group_id", "cores")

    def name(self, number: int) -> str:
        """Name of a number. Raises ValueError."""
        return str(self.names.row(number)[0])
