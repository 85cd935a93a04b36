"""The ledger as files for others: CSV, Parquet, and rows of shares_Error.log, in bounded memory."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.errors import MissingExtraError, StateError
from sharectl.files import files
from sharectl.ledger import error_log
from sharectl.ledger.export_tables import FLAG, INTEGER, NUMBER, TEXT, Table, Value, plain
from sharectl.ledger.ledger import Ledger
from sharectl.plan.records import CycleRecord

_ROWS_A_TIME = 20_000
_SURE = 4
"""Columns that an earlier export of a table begins with."""


def write(
    path: Optional[Path], form: str, table: Table, ledger: Ledger, since: int, until: int
) -> int:
    """Replace a file by an export as csv, parquet or log; returns the number of its rows.

    It goes to standard output if ``path`` is None. Raises as `_write_parquet`.
    """
    read: Callable[[CycleRecord], Iterator[Any]] = _log_rows if form == "log" else table.rows
    records = ledger.cycles(since, until, with_nodes=table.needs_nodes)
    passed = count()
    # `zip` takes no number when there is no row any more.
    rows = (row for row, _ in zip(chain.from_iterable(map(read, records)), passed))
    if form == "parquet" and path is not None:
        _write_parquet(path, table, rows)
    else:
        lines = chain([f"{error_log.HEADER}\n"], rows) if form == "log" else _csv(table, rows)
        if path is None:
            sys.stdout.writelines(lines)
        else:
            files.replace(path, lines, mode=0o640)
    return next(passed)


def _log_rows(record: CycleRecord) -> Iterator[str]:
    for row in error_log.rows(record.taken_at, [control.error for control in record.groups]):
        yield f"{row}\n"


class _Line:
    """File for `csv.writer`, which then returns its lines."""

    @staticmethod
    def write(line: str) -> str:
        return line


def _csv(table: Table, rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """Lines of a CSV file (RFC 4180 but for the line ends)."""
    writer: Any = csv.writer(_Line(), lineterminator="\n")
    yield writer.writerow(column.name for column in table.columns)
    for row in rows:
        yield writer.writerow(map(plain, row))


def _write_parquet(path: Path, table: Table, rows: Iterator[Sequence[Value]]) -> None:
    """Replace a Parquet file whole or not at all, row group by row group.

    Raises MissingExtraError without pyarrow, StateError if the file cannot be written.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet needs pyarrow, which is not installed: in the checkout `pip install "
            "'.[parquet]'`, or export with --format csv"
        ) from error
    types = {INTEGER: pa.int64(), NUMBER: pa.float64(), FLAG: pa.bool_(), TEXT: pa.string()}
    schema = pa.schema(
        [
            pa.field(column.name, types[column.kind], metadata={"meaning": column.meaning})
            for column in table.columns
        ]
    )
    beside = path.with_name(f".{path.name}.{os.getpid()}")
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
