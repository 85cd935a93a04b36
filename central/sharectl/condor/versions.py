"""Versions of HTCondor. docs/versions.md has the points in which releases differ."""

from __future__ import annotations

import re

Version = tuple[int, ...]
"""Three numbers, such as 24.0.18; empty if it is unknown."""

TESTED: Version = (23, 0, 28)
"""Oldest version that pool tests ran on."""
NEEDED: Version = (23, 0)
"""With an older one `60-sharectl-execute-point.conf` changes nothing."""
_VERSION = re.compile(r"\D*(\d{1,4})\.(\d{1,4})\.(\d{1,4})\b")


def dotted(version: Version) -> str:
    """Version for people, such as ``24.0.18``."""
    return ".".join(map(str, version))


def version_of(written: str) -> Version:
    """Version in a text such as ``$CondorVersion: 25.14.1 …``; empty if it has no version."""
    match = _VERSION.match(written)
    return tuple(map(int, match.groups())) if match else ()
