"""Lines of a table that lose nothing: as wide as its cells where there is room, wrapped or stacked where there is not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Optional

from rich.cells import cell_len

_GAP = "  "
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?%?|[?-]|inf|nan")
_BREAK = re.compile(r"(?<=[/=@])|(?<=[:,._-])(?=[^\W\d])|(?<=[^\W\d][:,])")
"""Where a word may go on in the next line: never within a number."""


def laid_out(columns: Sequence[str], rows: Sequence[Sequence[str]], width: Optional[int]) -> list[list[str]]:
    """Lines of the heading and of each row, none with blanks at its end.

    Parameters
    ----------
    width
        Characters that a line may have; None for as many as it takes. Where not even wrapped cells fit, rows are stacked:
        a line for each cell, behind its column's name, and no heading.
    """
    cells = [[column, *(row[number] for row in rows)] for number, column in enumerate(columns)]
    widths = [max(map(cell_len, column)) for column in cells]
    if width is not None and not _narrowed(widths, [_narrowest(column) for column in cells], width):
        return [[], *(_stacked(columns, row) for row in rows)]
    right = [bool(rows) and all(map(_NUMBER.fullmatch, column[1:])) for column in cells]
    return [_row(row, widths, right) for row in (columns, *rows)]


def shown(cell: object) -> str:
    """A cell as text in one line that steers no terminal: control characters are escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in str(cell)
    )


def _narrowed(widths: list[int], least: Sequence[int], width: int) -> bool:
    """Take from the widest columns until a line fits; whether it then does."""
    room = width - len(_GAP) * (len(widths) - 1)
    if sum(least) > room:
        return False
    while sum(widths) > room:
        widest = max(
            (number for number in range(len(widths)) if widths[number] > least[number]),
            key=lambda n: widths[n],
        )
        widths[widest] -= 1
    return True


def _narrowest(cells: Iterable[str]) -> int:
    return max((cell_len(piece) for cell in cells for piece in _pieces(cell)), default=0)


def _pieces(text: str) -> list[str]:
    """What must stay in one line; blanks are at the ends of pieces, and do not count there."""
    return [piece for word in text.split() for piece in _BREAK.split(word) if piece]


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths)]
    return [
        _GAP.join(
            (" " * (width - cell_len(part)) + part)
            if to_the_right
            else (part + " " * (width - cell_len(part)))
            for part, width, to_the_right in zip(parts, widths, right)
        ).rstrip()
        for parts in zip_longest(*wrapped, fillvalue="")
    ]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a cell: whole words where they fit, pieces of a word that is too long."""
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        whole = cell_len(word) <= width
        for number, piece in enumerate([word] if whole else _pieces(word)):
            joint = "" if number or not lines[-1] else " "
            if cell_len(lines[-1] + joint + piece) <= width:
                lines[-1] += joint + piece
            else:
                lines.append(piece)
    return lines if lines[0] else lines[1:]


def _stacked(columns: Sequence[str], row: Sequence[str]) -> list[str]:
    label = max(map(cell_len, columns))
    lines = [
        f"{column}{' ' * (label - cell_len(column))}{_GAP}{cell}".rstrip()
        for column, cell in zip(columns, row)
    ]
    return [*lines, ""]
