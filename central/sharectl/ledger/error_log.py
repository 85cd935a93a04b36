"""``shares_Error.log``: the groups' errors, one row a group and cycle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Optional

from sharectl.files import files
from sharectl.files.packed import opened, rows_of
from sharectl.ledger.series import UNKNOWN_SIZE
from sharectl.model import GroupError, GroupUsage
from sharectl.shares.groups import GROUP_NAME

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
_NAMES = ["T0", "VO", *_COLUMNS]
HEADER = f"# {' '.join(_NAMES)}"
_figures = attrgetter(*_COLUMNS.values())
_MAX_LINE = 1000
_MOST_TIME = 253_402_300_799
_MOST_NUMBER = 2**53
_SIGNED = frozenset({"DC", "DHS", "DPHS"})
_NEEDS = (
    f"needs {len(_NAMES)} columns ({HEADER}): Unix seconds, not in the future, a group of letters, "
    "digits, _, - and dots, and whole numbers up to 2^53, of which only DC, DHS and DPHS may be "
    "below 0"
)


def rows(taken_at: int, errors: Iterable[GroupError]) -> list[str]:
    """Rows of one cycle, without a newline, in the order of ``errors``.

    Errors are cut to whole numbers towards zero, as in the seed's rows: so its three DC agree.
    """
    # The last bits of a sum do not turn 3 into 2.
    return [
        " ".join(map(str, (taken_at, error.group, *(int(round(n, 6)) for n in _figures(error)))))
        for error in errors
    ]


def append(path: Path, lines: list[str], max_bytes: int, keep: int) -> None:
    """Add rows to the log, which is rotated first at ``max_bytes``; each file has the header.

    Raises StateError if that fails; the log then ends where it ended before.
    """
    files.rotate(path, max_bytes, keep)
    fresh = not path.exists() or path.stat().st_size == 0
    files.append_lines(path, [HEADER, *lines] if fresh else lines)


def stream(
    path: Path, problems: list[str], latest: int = _MOST_TIME
) -> Iterator[tuple[int, GroupError]]:
    """Unix seconds, up to ``latest``, and error of each row.

    Invalid rows are added to ``problems``, at most 20. Raises InputError if the log cannot be read.
    """
    parse = partial(_row, latest=latest)
    with opened(path) as file:
        lines = files.lines_of(file, _MAX_LINE)
        for _, row in rows_of(lines, str(path), parse, _NEEDS, problems):
            yield row


def _row(line: str, latest: int) -> Optional[tuple[int, GroupError]]:
    """Unix seconds and error of a row; None of a comment, and of a header without its ``#``."""
    words = line.split()
    if not words or line.startswith("#") or words == _NAMES:
        return None
    taken_at, group, numbers = int(words[0]), words[1], dict(zip(_COLUMNS, map(int, words[2:])))
    if (
        len(words) != len(_NAMES)
        or not 0 < taken_at <= latest
        or not all(map(GROUP_NAME.fullmatch, group.split(".")))
        or any(abs(number) > _MOST_NUMBER for number in numbers.values())
        or any(number < 0 for name, number in numbers.items() if name not in _SIGNED)
    ):
        raise ValueError
    values = {_COLUMNS[name]: number for name, number in numbers.items()}
    own = {name: float(number) for name, number in values.items() if "." not in name}
    held: dict[str, Any] = {
        name.partition(".")[2]: number for name, number in values.items() if "." in name
    }
    usage = GroupUsage(
        **held,
        power_hs06=float(numbers["DPHS"] + numbers["PLEDGE"]),
        pending_by_cores={1: numbers["PSC"], UNKNOWN_SIZE: numbers["PMC"]},
    )
    return taken_at, GroupError(group.lower(), usage=usage, **own)
