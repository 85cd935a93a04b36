"""One screen of words for people: labels on the left, text beside them, nothing that steers a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TextIO

from sharectl.report.table_layout import shown
from sharectl.report.words import counted

WIDTH = 80
LINES = 23
"""Of a screen of 24: the last one is the prompt's."""
_LABEL = 10


def print_screen(title: str, rows: Iterable[tuple[str, str]], to: TextIO, *, everything: bool) -> None:
    """Print a title and a text for each label; what is beyond one screen only if ``everything``.

    A text that follows one of the same label stands below it without the label.
    """
    lines = screen(title, rows)
    if not everything and len(lines) > LINES:
        left = len(lines) - (LINES - 1)
        lines = [*lines[: LINES - 1], f"… and {counted(left, 'line')} more: --all"]
    to.writelines(f"{line}\n" for line in lines)


def screen(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of the same, none longer than `WIDTH` but for words that are."""
    lines = wrap(shown(title), WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    last = ""
    for label, text in rows:
        head = "" if label == last else label
        last = label
        indent = " " * (_LABEL + 2)
        lines += wrap(
            shown(text),
            WIDTH,
            initial_indent=f"{head:<{_LABEL}}  ",
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        ) or [f"{head:<{_LABEL}}  -"]
    return lines


def print_paragraph(text: str, to: TextIO) -> None:
    """Print a text on lines of at most `WIDTH`, but for words that are longer."""
    lines = wrap(shown(text), WIDTH, break_on_hyphens=False, break_long_words=False)
    to.writelines(f"{line}\n" for line in lines)


def listed(names: Sequence[str], most: int) -> str:
    """Names of nodes, the first ``most`` of them, and how many there are if that is not all."""
    if len(names) <= most:
        return " ".join(names)
    return f"{' '.join(names[:most])} … ({len(names)} in all)"
