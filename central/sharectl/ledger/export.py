"""The ledger as files for others: CSV, Parquet, and rows of shares_Error.log, in bounded memory."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Optional

from sharectl.errors import MissingExtraError, StateError
from sharectl.files import files
from sharectl.ledger import error_log
from sharectl.ledger.data import FLAG, INTEGER, NUMBER, TEXT, Table, Value, plain
from sharectl.ledger.ledger import Ledger

_ROWS_A_TIME = 20_000
_SURE = 4
"""Columns that an earlier export of a table begins with."""


@dataclass
class Counted:
    """Counter of the rows that pass."""

    rows: int = 0

    def of(self, rows: Iterable[Any]) -> Iterator[Any]:
        """``rows``, unchanged."""
        for row in rows:
            self.rows += 1
            yield row


def write(
    path: Optional[Path], form: str, table: Table, ledger: Ledger, since: int, until: int
) -> int:
    """Replace a file by an export as csv, parquet or log; returns the number of its rows.

    It goes to standard output if ``path`` is None. Raises as `write_parquet`.
    """
    passed = Counted()
    if form == "log":
        pieces = log_of(passed.of(log_rows(ledger, since, until)))
    else:
        rows = passed.of(rows_of(ledger, table, since, until))
        if form == "parquet" and path is not None:
            write_parquet(path, table, rows)
            return passed.rows
        pieces = csv_of(table, rows)
    if path is None:
        sys.stdout.writelines(pieces)
    else:
        files.replace(path, pieces, mode=0o640)
    return passed.rows


def rows_of(ledger: Ledger, table: Table, since: int, until: int) -> Iterator[tuple[Value, ...]]:
    """Rows of a table from ``since`` until before ``until``, Unix seconds, the oldest first."""
    for record in ledger.cycles(since, until, with_nodes=table.needs_nodes):
        yield from table.rows(record)


def csv_of(table: Table, rows: Iterable[tuple[Value, ...]]) -> Iterator[str]:
    """Pieces of a CSV file (RFC 4180 but for the line ends)."""
    yield _csv_lines([tuple(column.name for column in table.columns)])
    rows = iter(rows)
    while part := list(islice(rows, _ROWS_A_TIME)):
        yield _csv_lines(tuple(map(plain, row)) for row in part)


def log_rows(ledger: Ledger, since: int, until: int) -> Iterator[str]:
    """Rows of a shares_Error.log."""
    for record in ledger.cycles(since, until):
        yield from error_log.rows(record.taken_at, [control.error for control in record.groups])


def log_of(rows: Iterable[str]) -> Iterator[str]:
    """Lines of a shares_Error.log with these rows."""
    yield f"{error_log.HEADER}\n"
    for row in rows:
        yield f"{row}\n"


def write_parquet(path: Path, table: Table, rows: Iterable[tuple[Value, ...]]) -> None:
    """Replace a Parquet file whole or not at all, row group by row group.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    StateError
        If the file cannot be written.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet", "pyarrow", "parquet", "export with --format csv"
        ) from error
    types = {INTEGER: pa.int64(), NUMBER: pa.float64(), FLAG: pa.bool_(), TEXT: pa.string()}
    schema = pa.schema(
        [
            pa.field(column.name, types[column.kind], metadata={"meaning": column.meaning})
            for column in table.columns
        ]
    )
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    rows = iter(rows)
    try:
        with parquet.ParquetWriter(str(beside), schema, compression="zstd") as writer:
            while part := list(islice(rows, _ROWS_A_TIME)):
                columns = [
                    pa.array(list(column), field.type) for column, field in zip(zip(*part), schema)
                ]
                writer.write_batch(pa.record_batch(columns, schema=schema))
        beside.chmod(0o640)
        beside.replace(path)
    except OSError as error:
        raise StateError(
            f"{path}: cannot be written: {error.strerror or error}; make room, or name another"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink()


def refuse_foreign(path: Path, form: str, table: Table) -> None:
    """Raise StateError if a file is no earlier export of that form: csv, parquet or log."""
    begins = {
        "csv": ",".join(column.name for column in table.columns[:_SURE]),
        "parquet": "PAR1",
        "log": f"{error_log.HEADER}\n",
    }
    files.refuse_foreign(path, begins[form], f"earlier {form} export of the same columns")


def _csv_lines(rows: Iterable[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
