"""What the configuration file says about the ledger."""

from __future__ import annotations

from pydantic import Field

from sharectl.adapters.config_types import Section
from sharectl.adapters.ledger_retention import KEEP_DEFAULT


class LedgerConfig(Section):
    """What is kept of every cycle in ``ledger/ledger.sqlite`` (docs/ledger.md)."""

    keep_days: int = Field(
        KEEP_DEFAULT.days, ge=1, le=36500, description="Age from which cycles are removed, the oldest first."
    )
    max_bytes: int = Field(
        KEEP_DEFAULT.max_bytes,
        ge=2**20,
        le=2**44,
        description="Largest size of the file: beyond it what nodes held is removed first, the oldest first, then "
        "whole cycles.",
    )
