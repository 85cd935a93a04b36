"""Which group a job belongs to: outside names in, configured names or `other` out."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Optional

from sharectl.core.model import OTHER

GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""What a configured group may be called: safe in a ClassAd, a file name and a metric label."""

_FIRST_PART = re.compile(r"[^.@]*")


def group_of(accounting_group: Optional[str], configured: Collection[str]) -> str:
    """Name of the configured group that a job belongs to, or `OTHER`.

    Parameters
    ----------
    accounting_group
        AcctGroup of a job (``cms.prod``) or AccountingGroup of a slot (``cms.prod.bob@site``); None if
        the job has none.
    configured
        Names of the configured groups, lower case.
    """
    match = _FIRST_PART.match(accounting_group or "")
    name = match.group().lower() if match else ""
    return name if name in configured else OTHER
