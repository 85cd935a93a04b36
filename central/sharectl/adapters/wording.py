"""Outside text in messages."""

from __future__ import annotations

MAX_SHOWN = 60
"""Characters of a text in a message."""


def shown(text: str) -> str:
    """``text`` on one line, cut to `MAX_SHOWN` characters, without what could steer a terminal."""
    seen = "".join(character if character.isprintable() else "?" for character in text[: MAX_SHOWN + 1])
    return seen if len(seen) <= MAX_SHOWN else f"{seen[:MAX_SHOWN]}…"


def quoted(text: str) -> str:
    """`shown` in quotes."""
    return f'"{shown(text)}"'
