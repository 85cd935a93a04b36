"""Elements of SVG and HTML as text: whatever is not markup already is escaped.

Own text rather than matplotlib's SVG: that draws glyphs and clip paths by the megabyte, in fixed colours, whereas a page whose
colours are CSS variables has a light, a dark and a printed form of one figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from sharectl.report.table_layout import shown

NARROW = "\u202f"
"""Blank between groups of three digits."""


class Markup(str):
    """Text that is markup already and is pasted as it is."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: object) -> Markup:
    """One element; children that are no `Markup` become text of it.

    Parameters
    ----------
    name
        Of the element, such as ``path``.
    attributes
        Underscores stand for hyphens, and one at the end for nothing (``class_``). None and False leave an attribute out, True
        gives it without a value.
    """
    inside = "".join(as_markup(child) for child in children)
    start = f"{name}{''.join(_attribute(key, value) for key, value in attributes.items())}"
    if name in _VOID:
        return Markup(f"<{start}>")
    return Markup(f"<{start}>{inside}</{name}>")


def as_markup(text: str) -> Markup:
    """``text`` escaped, unless it is markup already; characters that steer a terminal or turn its direction are spelt out."""
    return text if isinstance(text, Markup) else Markup(_escaped(text))


def joined(parts: Iterable[str]) -> Markup:
    """Markup one after the other, each on a line of its own."""
    return Markup("\n".join(as_markup(part) for part in parts))


def coordinate(value: float) -> str:
    """A coordinate with one decimal, and none where it is 0."""
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


_HARMLESS = re.compile(r"[-A-Za-z0-9 .,:;%+/()#=]*")
_VOID = frozenset({"meta", "br", "hr", "col"})
"""Elements of HTML that have no end."""


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = coordinate(value) if isinstance(value, float) else str(value)
    return f' {name}="{_escaped(text)}"'


def _escaped(text: str) -> str:
    if _HARMLESS.fullmatch(text):
        return text
    return escape(NARROW.join(shown(part) for part in text.split(NARROW)))
