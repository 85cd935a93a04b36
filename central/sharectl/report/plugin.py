"""Output of a plugin for Nagios or Icinga, which have one form for it: a line, figures, details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

from sharectl.words import printable

OK, WARNING, CRITICAL, UNKNOWN = range(4)
"""Exit codes."""
_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_LINE_CHARACTERS = 140
"""Of the first line, which monitors show in a table and send to telephones."""
_DETAIL_CHARACTERS = 600
_MOST_DETAILS = 50


class Perfdata(NamedTuple):
    """Number for graphs, with the values above which it counts as warning and critical."""

    value: int
    warning: Optional[int] = None
    critical: Optional[int] = None


def plugin_lines(
    code: int, first: str, others: str, details: Sequence[str], figures: Mapping[str, Perfdata]
) -> list[str]:
    """Lines of a plugin: root cause with the number of ``others``, and each finding.

    A figure whose name ends in ``_seconds`` is a time.
    """
    more = f" (and {others})" if others else ""
    head = _text(f"SHARECTL {_WORDS[code]} - {first}", _LINE_CHARACTERS - len(more))
    line = head + more
    data = " ".join(_perfdata(name, figure) for name, figure in figures.items())
    shown = [_text(detail, _DETAIL_CHARACTERS) for detail in details[:_MOST_DETAILS]]
    return [f"{line} | {data}" if data else line, *shown]


def _perfdata(name: str, figure: Perfdata) -> str:
    unit = "s" if name.endswith("_seconds") else ""
    bounds = ["" if bound is None else str(bound) for bound in figure[1:]]
    return ";".join([f"{name}={figure.value}{unit}", *bounds]).rstrip(";")


def _text(text: str, most: int) -> str:
    """Text on one line without the sign that begins perfdata."""
    line = printable(" ".join(text.replace("|", "/").split()))
    return line if len(line) <= most else f"{line[: most - 2]} …"
