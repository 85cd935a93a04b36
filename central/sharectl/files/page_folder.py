"""The folder of a report."""

from __future__ import annotations

from pathlib import Path

from sharectl.errors import StateError
from sharectl.files import files

INDEX = "index.html"
_MOST_BYTES = 4096
"""The mark stands within these."""


def put(folder: Path, page: str, mark: str) -> Path:
    """Write the page into ``folder``, made if missing, over an older report; return its path.

    Parameters
    ----------
    mark
        Text near the begin of every report: a file without it is foreign.

    Raises
    ------
    StateError
        If it cannot be written, or a foreign file is there; nothing is changed then.
    """
    path = folder / INDEX
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = _is_foreign(path, mark)
    except OSError as error:
        raise StateError(
            f"{error.filename or folder}: no report can be written there: "
            f"{error.strerror or error}; name another folder, or give this user the right to "
            "write there"
        ) from error
    if foreign:
        raise StateError(
            f"{path}: not replaced: it is no report of sharectl; name another folder, or move "
            "it away"
        )
    files.replace(path, [page])
    return path


def _is_foreign(path: Path, mark: str) -> bool:
    """Return whether a file is no report; a link is foreign wherever it leads. Raises OSError."""
    if path.is_symlink():
        return True
    try:
        start, _facts = files.read_regular(path, _MOST_BYTES)
    except FileNotFoundError:
        return False
    return start is None or mark.encode() not in start
