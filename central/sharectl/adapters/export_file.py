"""The file that an export is written to: what it may take the place of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sharectl.adapters import files, shares_error_log
from sharectl.core.ledger_data import Table
from sharectl.errors import StateError

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
            f"{path}: not written: what is there cannot be read: {error.strerror or error}; name another file"
        ) from error
    if foreign:
        raise StateError(
            f"{path}: not replaced: it is no earlier {form} export of the same columns; name another file, or move it away"
        )


def _is_export(path: Path, form: str, table: Table) -> bool:
    """Whether a file is an export of that form. Raises OSError."""
    start, _facts = files.read_regular(path, _MOST_BYTES)
    return start is not None and _FORMS[form](path, start, table)


def _is_csv(_path: Path, start: bytes, table: Table) -> bool:
    line, end, _rest = start.partition(b"\n")
    return bool(end) and _are_columns(line.decode(errors="replace").split(","), table)


def _is_log(_path: Path, start: bytes, _table: Table) -> bool:
    return start.startswith(f"{shares_error_log.HEADER}\n".encode())


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
