"""Which group a job belongs to: outside names in, configured names or `other` out."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Optional

from sharectl.core.model import OTHER

GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""What a group of the first level, or one part of a name, may be called: safe in a ClassAd, a file name and a metric
label."""

MAX_GROUP_LENGTH = 64
"""Characters of a whole name."""

NESTED_GROUP_NAME = re.compile(
    rf"(?=.{{1,{MAX_GROUP_LENGTH}}}\Z)[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9][a-z0-9_-]*)*"
)
"""What a group of any level may be called, such as ``alice.prod``."""

_PARTS = re.compile(r"[^.@]*(?:[^@]*(?=\.[^.@]*@)|[^@]*\Z)?")
"""The group in a name: without ``@`` all of it; else what is before the last part before it, which is the user, or the
first part if there is no other. config.d has the same pattern."""


def first_part(accounting_group: Optional[str]) -> str:
    """First part of the name that a job gives as its group, lower case; empty without one. Users write it."""
    return re.split(r"[.@]", (accounting_group or "")[: MAX_GROUP_LENGTH + 1], maxsplit=1)[0].lower()


def without_user(accounting_group: Optional[str]) -> Optional[str]:
    """Group in an AccountingGroup, of any length, as it is written; None if there is none."""
    match = _PARTS.match(accounting_group or "")
    return (match.group() or None) if match else None


def group_of(accounting_group: Optional[str], configured: Collection[str]) -> str:
    """Name of the configured group that a job belongs to, the longest that its own begins with, or `OTHER`.

    Parts count as a whole and case does not: with ``alice`` and ``alice.prod`` configured, jobs of
    ``Alice.Prod.mc`` belong to ``alice.prod``, those of ``alice.production`` to ``alice``.

    Parameters
    ----------
    accounting_group
        Name of a group (``cms.prod``), or AccountingGroup with the user in it (``cms.prod.bob@site``); None if
        the job has none.
    configured
        Names of the configured groups, lower case.
    """
    # No configured name is longer, however long what a user wrote is.
    name = (without_user(accounting_group) or "")[: MAX_GROUP_LENGTH + 1].lower()
    while name and name not in configured:
        name = name.rpartition(".")[0]
    return name if name in configured else OTHER
