"""``shares_Error.log``: the groups' errors, one row a group and cycle."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path

from sharectl.files import files
from sharectl.model import GroupError

_COLUMNS = {
    "PLEDGE": "pledge_hs06",
    "DC": "error_cores",
    "SC": "usage.single_cores",
    "MC": "usage.multi_cores",
    "DHS": "error_hs06",
    "DPHS": "power_minus_pledge_hs06",
    "PSC": "usage.pending_single_jobs",
    "PMC": "usage.pending_multi_jobs",
}
"""Column after T0 and VO -> its attribute of a `GroupError`."""
HEADER = f"# T0 VO {' '.join(_COLUMNS)}"
_figures = attrgetter(*_COLUMNS.values())


def rows(taken_at: int, errors: Iterable[GroupError]) -> list[str]:
    """Rows of one cycle; errors are cut to whole numbers towards zero, as in the seed's rows."""
    # The last bits of a sum do not turn 3 into 2.
    return [
        " ".join(map(str, (taken_at, error.group, *(int(round(n, 6)) for n in _figures(error)))))
        for error in errors
    ]


def append(path: Path, taken_at: int, errors: Iterable[GroupError]) -> None:
    """Add the rows of a cycle, after rotation. StateError leaves the log as it was."""
    files.rotate(path, files.LOG_BYTES, files.LOG_FILES)
    has_rows = path.exists() and path.stat().st_size > 0
    files.append_lines(path, [*([] if has_rows else [HEADER]), *rows(taken_at, errors)])
