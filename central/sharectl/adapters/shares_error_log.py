"""``shares_Error.log``: each group's error, one row a group and cycle (seed 004)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sharectl.adapters import files
from sharectl.core.model import GroupError

HEADER = "# T0 VO PLEDGE DC SC MC DHS DPHS PSC PMC"


def rows(taken_at: int, errors: Iterable[GroupError]) -> list[str]:
    """Rows of one cycle, whitespace-separated, without a newline, in the order of ``errors``.

    Errors are cut to whole numbers towards zero, as the seed's rows are: only then do its three DC agree.
    """
    return [_row(taken_at, error) for error in errors]


def append(path: Path, lines: list[str], max_bytes: int, keep: int) -> None:
    """Add rows to the log at ``path``, rotating it first at ``max_bytes``; every file begins with the header.

    Raises
    ------
    StateError
        If that fails; the log then ends where it ended before.
    """
    files.rotate(path, max_bytes, keep)
    fresh = not path.exists() or path.stat().st_size == 0
    files.append_lines(path, [HEADER, *lines] if fresh else lines)


def _row(taken_at: int, error: GroupError) -> str:
    usage = error.usage
    columns = (
        taken_at,
        error.group,
        _whole(error.pledge_hs06),
        _whole(error.error_cores),
        usage.single_cores,
        usage.multi_cores,
        _whole(error.error_hs06),
        _whole(error.power_minus_pledge_hs06),
        usage.pending_single_jobs,
        usage.pending_multi_jobs,
    )
    return " ".join(map(str, columns))


def _whole(value: float) -> int:
    """``value`` cut towards zero; the last bits of a sum do not turn 3 into 2."""
    return int(round(value, 6))
