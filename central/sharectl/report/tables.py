"""The one way to print a table, and a screen of labelled text."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from textwrap import wrap
from typing import Any, TextIO

from sharectl.words import counted, printable, rounded

WIDTH = 80
LINES = 23
"""Of a screen of 24: the last one is the prompt's."""
UNKNOWN, NONE = "?", "-"
_LABEL = 10
_GAP = "  "
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?%?(±[\d.]+)?|[?-]|inf|nan")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], to: TextIO
) -> None:
    """Print one table; columns of numbers are aligned right. Text is never read as markup.

    A terminal gets lines as wide as it is, with wrapped cells; a pipe gets a line a row.
    """
    heading = [printable(column) for column in columns]
    cells = [[printable(cell) for cell in row] for row in rows]
    right = [
        bool(cells) and all(_NUMBER.fullmatch(row[number]) for row in cells)
        for number in range(len(heading))
    ]
    if to.isatty():
        _print_wrapped(title, heading, cells, right, to)
        return
    widths = [max(map(len, column)) for column in zip(heading, *cells)]
    to.write(f"{printable(title)}\n")
    for row in (heading, *cells):
        line = _GAP.join(
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(row, widths, right)
        )
        to.write(f"{line.rstrip()}\n")


def _print_wrapped(
    title: str,
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    to: TextIO,
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(printable(title)) if title else None,
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, len(_GAP), 0, 0),
    )
    for column, to_the_right in zip(zip(heading, *rows), right):
        # Numbers are never folded, nor cut where even they are too wide.
        table.add_column(
            Text(column[0]),
            justify="right" if to_the_right else "left",
            overflow="fold",
            min_width=max(map(len, column[1:])) if to_the_right else None,
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(file=to, width=shutil.get_terminal_size().columns, highlight=False)
    console.print()
    console.print(table, crop=False)


def print_records(
    title: str, columns: str, records: Iterable[Mapping[str, Any]], to: TextIO
) -> None:
    """Print a table of records; ``columns`` are ``key AS heading``, with commas between them."""
    pairs = [column.strip().partition(" AS ") for column in columns.split(",")]
    rows = [[cell(record[key]) for key, _, _ in pairs] for record in records]
    print_table(title, [heading or key for key, _, heading in pairs], rows, to)


def cell(value: Any) -> str:
    """Text of a value; ``?`` if it is unknown, ``-`` if it is empty."""
    if isinstance(value, Mapping):
        value = " ".join(f"{name}={cell(amount)}" for name, amount in value.items())
    if value is None:
        return UNKNOWN
    return rounded(value) if type(value) is float else str(value) or NONE


def number(value: float, digits: int = 1) -> str:
    """Value with a fixed number of digits, never ``-0.0``."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text


def plain(value: float) -> str:
    """Value without needless digits; shares lie between 0 and 1."""
    if isclose(value, round(value), rel_tol=1e-12, abs_tol=1e-9):
        return str(round(value))
    return number(value) if abs(value) >= 1 else rounded(value, 3)


def print_screen(title: str, rows: Iterable[tuple[str, str]], to: TextIO) -> None:
    """Print a title and labelled texts; a terminal gets at most one screen of them.

    A label stands once above texts that share it; words longer than a line stay whole.
    """
    lines, last = _wrapped(title, "", "  "), ""
    for label, text in rows:
        head = f"{'' if label == last else label:<{_LABEL}}{_GAP}"
        last = label
        lines += _wrapped(text, head, " " * len(head)) or [f"{head}-"]
    if to.isatty() and len(lines) > LINES:
        hidden = len(lines) - (LINES - 1)
        lines = [*lines[: LINES - 1], f"… and {counted(hidden, 'line')} more: | cat"]
    to.writelines(f"{line}\n" for line in lines)


def print_hanging(head: str, text: str, to: TextIO) -> None:
    """Print a text behind its head, wrapped below itself on a terminal; a pipe gets one line."""
    if not to.isatty():
        to.write(f"{head}{printable(text)}\n")
        return
    width = max(2 * WIDTH // 3, shutil.get_terminal_size().columns)
    to.writelines(f"{line}\n" for line in _wrapped(text, head, " " * len(head), width))


def print_paragraph(text: str, to: TextIO, begin: str = "") -> None:
    """Print a text on lines of at most `WIDTH`, each after ``begin``; longer words stay whole."""
    to.writelines(f"{line}\n" for line in _wrapped(text, begin, begin))


def _wrapped(text: str, first: str, others: str, width: int = WIDTH) -> list[str]:
    return wrap(
        printable(text),
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )


def listed(names: Sequence[str], most: int) -> str:
    """The first ``most`` names, and the number of all if there are more."""
    first = " ".join(names[:most])
    return first if len(names) <= most else f"{first} … ({len(names)} in all)"
