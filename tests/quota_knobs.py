"""Quota knobs of a negotiator, from lines of configuration."""

from __future__ import annotations

from sharectl.condor.negotiator import QuotaKnob


def knobs_of(text: str) -> list[QuotaKnob]:
    """Knobs of quotas in the text; the place of each is ``f:LINE``."""
    rows = ((number, *line.partition("=")) for number, line in enumerate(text.splitlines(), 1))
    knobs = (
        QuotaKnob(f"f:{n}", name.strip(), value.strip()) for n, name, sign, value in rows if sign
    )
    return [knob for knob in knobs if any(knob.parts)]
