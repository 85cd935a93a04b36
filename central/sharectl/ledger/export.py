"""The ledger as files that others read: CSV, Parquet, and rows of shares_Error.log. In bounded memory.

The file that an export is written to: what it may take the place of.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sharectl.errors import MissingExtraError, StateError
from sharectl.files import files
from sharectl.ledger import logs
from sharectl.ledger.data import FLAG, INTEGER, NUMBER, TEXT, Table, Value, plain
from sharectl.ledger.ledger import Ledger

_MAGIC = b"PAR1"
_MOST_BYTES = 2**16
"""Within this the first line of an export ends."""
_SURE = 3
"""So many first names of columns alike, and no foreign name: then it is of sharectl, perhaps of a version with fewer."""


def refuse_foreign(path: Path, form: str, table: Table) -> None:
    """Raise StateError if what is at ``path`` is no export that may be replaced; nothing is changed.

    Parameters
    ----------
    form
        csv, parquet or log.
    """
    try:
        foreign = path.is_symlink() or not _is_export(path, form, table)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StateError(
            f"{path}: not written: what is there cannot be read: {error.strerror or error}; "
            "name another file"
        ) from error
    if foreign:
        raise StateError(
            f"{path}: not replaced: it is no earlier {form} export of the same columns; name "
            "another file, or move it away"
        )


def _is_export(path: Path, form: str, table: Table) -> bool:
    """Whether a file is an export of that form. Raises OSError."""
    start, _facts = files.read_regular(path, _MOST_BYTES)
    return start is not None and _FORMS[form](path, start, table)


def _is_csv(_path: Path, start: bytes, table: Table) -> bool:
    line, end, _rest = start.partition(b"\n")
    return bool(end) and _are_columns(line.decode(errors="replace").split(","), table)


def _is_log(_path: Path, start: bytes, _table: Table) -> bool:
    return start.startswith(f"{logs.HEADER}\n".encode())


def _is_parquet(path: Path, start: bytes, table: Table) -> bool:
    if not start.startswith(_MAGIC):
        return False
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return False
    try:
        return _are_columns(parquet.read_schema(str(path)).names, table)
    except pa.ArrowException:
        return False


def _are_columns(names: Sequence[str], table: Table) -> bool:
    ours = [column.name for column in table.columns]
    return list(names[:_SURE]) == ours[:_SURE] and set(names) <= set(ours)


_FORMS: dict[str, Callable[[Path, bytes, Table], bool]] = {
    "csv": _is_csv,
    "log": _is_log,
    "parquet": _is_parquet,
}


ROWS_A_TIME = 20_000


@dataclass
class Counted:
    """Counts what passes."""

    rows: int = 0

    def of(self, rows: Iterable[tuple[Value, ...]]) -> Iterator[tuple[Value, ...]]:
        """The same rows."""
        for row in rows:
            self.rows += 1
            yield row


def rows_of(ledger: Ledger, table: Table, since: int, until: int) -> Iterator[tuple[Value, ...]]:
    """Rows of a table from ``since`` until before ``until``, Unix seconds, the oldest first."""
    read = ledger.with_nodes if table.needs_nodes else ledger.cycles
    for record in read(since, until):
        yield from table.rows(record)


def csv_of(table: Table, rows: Iterable[tuple[Value, ...]]) -> Iterator[str]:
    """Pieces of a CSV file (RFC 4180 but for the line ends): a line of names, then the rows; nothing if none can be read."""
    rows = iter(rows)
    part = list(islice(rows, ROWS_A_TIME))
    yield _csv_lines([tuple(column.name for column in table.columns)])
    while part:
        yield _csv_lines(tuple(map(plain, row)) for row in part)
        part = list(islice(rows, ROWS_A_TIME))


def log_of(ledger: Ledger, since: int, until: int, counted: Counted) -> Iterator[str]:
    """Lines of a shares_Error.log; nothing if none can be read."""
    records = ledger.cycles(since, until)
    first = next(records, None)
    yield f"{logs.HEADER}\n"
    for record in chain([first] if first is not None else [], records):
        for line in logs.rows(record.taken_at, [control.error for control in record.groups]):
            counted.rows += 1
            yield f"{line}\n"


def write_text(path: Path, pieces: Iterable[str]) -> None:
    """Put a file in its place, whole or not at all. Raises StateError."""
    files.replace(path, pieces, mode=0o640)


def write_parquet(path: Path, table: Table, rows: Iterable[tuple[Value, ...]]) -> None:
    """Put a Parquet file in its place, whole or not at all, row group by row group.

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
    schema = _schema(pa, table)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    rows = iter(rows)
    try:
        with parquet.ParquetWriter(str(beside), schema, compression="zstd") as writer:
            while part := list(islice(rows, ROWS_A_TIME)):
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


def _schema(pa: Any, table: Table) -> Any:
    types = {INTEGER: pa.int64(), NUMBER: pa.float64(), FLAG: pa.bool_(), TEXT: pa.string()}
    return pa.schema(
        [
            pa.field(column.name, types[column.kind], metadata={"meaning": column.meaning})
            for column in table.columns
        ]
    )


def _csv_lines(rows: Iterable[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
