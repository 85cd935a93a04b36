"""``shares_Error.log``: each group's error, one row a group and cycle (seed 004)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sharectl.adapters import files
from sharectl.adapters.log_source import LogSource, file_source, opened
from sharectl.core.model import GroupError, GroupUsage
from sharectl.errors import InputError

HEADER = "# T0 VO PLEDGE DC SC MC DHS DPHS PSC PMC"
_NAMES = HEADER.split()[1:]
_COLUMNS = len(_NAMES)
FIGURES = tuple(_NAMES[2:])
"""Names of the columns after T0 and VO, in the order of `figures`."""
_MAX_LINE = 1000
_MAX_PROBLEMS = 20


class LogRow(NamedTuple):
    """One row."""

    line: int
    """Number of its line, from 1."""
    taken_at: int
    """Unix seconds of the cycle."""
    error: GroupError


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


def read(path: Path) -> tuple[tuple[int, GroupError], ...]:
    """Rows of the log at ``path``, oldest first: Unix seconds of the cycle, and one group's error.

    Numbers are as whole as they were written; power is DPHS + PLEDGE.

    Raises
    ------
    InputError
        If it cannot be read, or a row is not as it should be; the first `_MAX_PROBLEMS` such rows at once.
    """
    problems: list[str] = []
    found = tuple((row.taken_at, row.error) for row in stream(file_source(path), problems))
    if problems:
        raise InputError(problems)
    return found


def stream(source: LogSource, problems: list[str]) -> Iterator[LogRow]:
    """The same one by one, without holding them; what is wrong with rows is added to ``problems``.

    It ends at `_MAX_PROBLEMS` of a file. A header is passed over also where its ``#`` is missing.

    Raises
    ------
    InputError
        If the log cannot be read.
    """
    known = len(problems)
    with opened(source) as file:
        for number, line in enumerate(files.lines_of(file, _MAX_LINE), start=1):
            words = line.split()
            if words and not line.startswith("#") and words != _NAMES:
                try:
                    row = LogRow(number, *_error(words))
                except (ValueError, OverflowError):
                    problems.append(_problem(source.name, number, line))
                else:
                    yield row
            if len(problems) - known == _MAX_PROBLEMS:
                break


def figures(error: GroupError) -> tuple[int, ...]:
    """Numbers of a row after T0 and VO, as the log has them."""
    usage = error.usage
    return (
        _whole(error.pledge_hs06),
        _whole(error.error_cores),
        usage.single_cores,
        usage.multi_cores,
        _whole(error.error_hs06),
        _whole(error.power_minus_pledge_hs06),
        usage.pending_single_jobs,
        usage.pending_multi_jobs,
    )


def _problem(name: str, number: int, line: str) -> str:
    return (
        f"{name}:{number}: needs {_COLUMNS} columns, all but the second whole numbers ({HEADER}); "
        f"found {line.rstrip()[:200]!r}; remove the row"
    )


def _error(columns: list[str]) -> tuple[int, GroupError]:
    group = columns.pop(1) if len(columns) == _COLUMNS else ""
    if not group:
        raise ValueError
    taken_at, pledge, error_cores, single, multi, error_hs06, less_pledge, pending_single, pending_multi = (
        map(int, columns)
    )
    usage = GroupUsage(
        single_cores=single,
        multi_cores=multi,
        power_hs06=float(less_pledge + pledge),
        pending_single_jobs=pending_single,
        pending_multi_jobs=pending_multi,
    )
    return taken_at, GroupError(
        group=group,
        pledge_hs06=float(pledge),
        error_cores=float(error_cores),
        error_hs06=float(error_hs06),
        power_minus_pledge_hs06=float(less_pledge),
        usage=usage,
    )


def _row(taken_at: int, error: GroupError) -> str:
    return " ".join(map(str, (taken_at, error.group, *figures(error))))


def _whole(value: float) -> int:
    """``value`` cut towards zero; the last bits of a sum do not turn 3 into 2."""
    return int(round(value, 6))
