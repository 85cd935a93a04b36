"""Control laws: from a group's error to the power to move."""

from __future__ import annotations

LAWS = {
    "latest": "acts on the latest error alone (seed)",
}
"""Name of a law -> what it does."""
