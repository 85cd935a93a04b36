"""Quota knobs of a negotiator, from lines of configuration."""

from __future__ import annotations


def knobs_of(text: str) -> dict[str, str]:
    """Knobs in the text, as a negotiator answers with them."""
    rows = (line.partition(" = ") for line in text.splitlines())
    return {name.lower(): value.strip() for name, sign, value in rows if sign}
