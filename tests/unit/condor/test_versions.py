"""Versions of HTCondor, and the table of the documents in which they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.condor.versions import NEEDED, TESTED, Version, version_of
from tests.htcondor_releases import SENDS_SLOTS, holds

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


@pytest.mark.parametrize(
    ("version", "sends"),
    [
        ((23, 0, 28), True),
        ((23, 9, 6), False),
        ((24, 0, 17), False),
        ((24, 0, 18), True),
        ((24, 5, 1), False),
        ((25, 0, 13), True),
        ((25, 6, 1), False),
        ((25, 14, 1), True),
        ((), False),
    ],
)
def test_each_series_gets_a_change_in_another_release(version: Version, sends: object) -> None:
    assert holds(SENDS_SLOTS, version) is sends


def test_the_snippet_needs_what_the_checks_say() -> None:
    """A version without a patch level: that of HTCondor's `if version`."""
    snippet = (ROOT / "config.d" / "60-sharectl-execute-point.conf").read_text()
    assert f"\nif version < {'.'.join(map(str, NEEDED))}\n" in snippet
    assert NEEDED <= TESTED
