"""The folder that a report is written to."""

from __future__ import annotations

from pathlib import Path

from sharectl.errors import StateError
from sharectl.files import files

INDEX = "index.html"
_MOST_BYTES = 4096
"""Within this the mark stands."""


def put(folder: Path, page: str, mark: str) -> Path:
    """Path of the page in ``folder``, which is made if it is missing; an older report there is replaced at once.

    Parameters
    ----------
    mark
        Text near the begin of every report: a file without it is somebody else's.

    Raises
    ------
    StateError
        If it cannot be written, or something else is there; nothing is changed then.
    """
    path = folder / INDEX
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = _is_foreign(path, mark)
    except FileExistsError as error:
        raise StateError(
            f"{folder}: is a file and not a folder: name a folder; the page becomes {INDEX} in it"
        ) from error
    except OSError as error:
        raise StateError(
            f"{error.filename or folder}: no report can be written there: "
            f"{error.strerror or error}; name another folder, or "
            "give this user the right to write there"
        ) from error
    if foreign:
        raise StateError(
            f"{path}: not replaced: it is no report of sharectl; name another folder, or move "
            "it away"
        )
    files.replace(path, [page])
    return path


def _is_foreign(path: Path, mark: str) -> bool:
    """Whether something is there that is not a report; a link is foreign wherever it leads.

    Raises OSError.
    """
    if path.is_symlink():
        return True
    try:
        start, _facts = files.read_regular(path, _MOST_BYTES)
    except FileNotFoundError:
        return False
    return start is None or mark.encode() not in start
