"""Output of a plugin for Nagios or Icinga, which have one form for it: a line, figures, details."""

from __future__ import annotations

from collections.abc import Sequence

from sharectl.words import printable

OK, WARNING, CRITICAL, UNKNOWN = range(4)
"""Exit codes."""
_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_LINE_CHARACTERS = 140
"""Of the first line, which monitors show in a table and send to telephones."""
_DETAIL_CHARACTERS = 600
_MOST_DETAILS = 50


def plugin_lines(code: int, details: Sequence[str], figures: Sequence[str] = ()) -> list[str]:
    """Lines of a plugin: the first detail, shortened, with the figures; then each detail."""
    first = details[0] if details else "no problem"
    line = _text(f"SHARECTL {_WORDS[code]} - {first}", _LINE_CHARACTERS)
    shown = [_text(detail, _DETAIL_CHARACTERS) for detail in details[:_MOST_DETAILS]]
    return [f"{line} | {' '.join(figures)}" if figures else line, *shown]


def _text(text: str, most: int) -> str:
    """Text on one line without the sign that begins perfdata."""
    line = printable(" ".join(text.replace("|", "/").split()))
    return line if len(line) <= most else f"{line[: most - 2]} …"
