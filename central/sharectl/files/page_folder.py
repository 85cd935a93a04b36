"""Folder of a report."""

from __future__ import annotations

from pathlib import Path

from sharectl.errors import StateError
from sharectl.files import files

INDEX = "index.html"
_MOST_BYTES = 4096
"""The mark stands within these."""


def put(folder: Path, page: str, mark: str) -> Path:
    """Write the page into ``folder``, which is made if it is missing; returns the page's path.

    Parameters
    ----------
    mark
        Text near the begin of every report: a file without it is foreign, and is not replaced.

    Raises
    ------
    StateError
        If it cannot be written, or something foreign is there; nothing is changed then.
    """
    path = folder / INDEX
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = path.is_symlink() or (path.exists() and not _has(path, mark))
    except FileExistsError as error:
        raise StateError(
            f"{folder}: is a file and not a folder: name a folder; the page becomes {INDEX} in it"
        ) from error
    except OSError as error:
        raise StateError(
            f"{error.filename or folder}: no report can be written there: "
            f"{error.strerror or error}; name another folder, or give this user the right to write "
            "there"
        ) from error
    if foreign:
        raise StateError(
            f"{path}: not replaced: it is no report of sharectl; name another folder, or move it "
            "away"
        )
    files.replace(path, [page])
    return path


def _has(path: Path, mark: str) -> bool:
    start, _facts = files.read_regular(path, _MOST_BYTES)
    return start is not None and mark.encode() in start
