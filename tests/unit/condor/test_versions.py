"""Versions of HTCondor, and the table of the documents in which they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.condor.pool_look import NEEDED, TESTED, Version, version_of

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1 $", (25, 14, 1)),
        ("$CondorVersion: 23.9.6 x", (23, 9, 6)),
        ("", ()),
        ("9" * 99, ()),
    ],
)
def test_versions(text: str, version: Version) -> None:
    assert version_of(text) == version


def test_the_snippet_needs_what_the_checks_say() -> None:
    """A version without a patch level: that of HTCondor's `if version`."""
    snippet = (ROOT / "config.d" / "60-sharectl-execute-point.conf").read_text()
    assert f"\nif version < {'.'.join(map(str, NEEDED))}\n" in snippet
    assert NEEDED <= TESTED
