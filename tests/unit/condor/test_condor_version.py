"""What an installed HTCondor says of its version, if there is one and it says anything."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from sharectl.condor.library import installed_version


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("echo '$CondorVersion: 23.9.6 2024-08-08 BuildID: Debian-23.9.6 $'", (23, 9)),
        (
            (
                "echo '$CondorVersion: 25.14.1 2026-09-24 $'; echo '$CondorPlatform: "
                "X86_64-Debian_13 $'"
            ),
            (25, 14),
        ),
        ("echo 'ERROR: no configuration'; exit 1", None),
        ("echo '$CondorVersion: new $'", None),
        ("exec sleep 60", None),
    ],
)
def test_the_first_two_numbers(
    line: str, version: Optional[tuple[int, int]], tmp_path: Path
) -> None:
    program = tmp_path / "condor_version"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    assert installed_version(tmp_path, deadline_seconds=2.0 if version else 0.3) == version


def test_no_htcondor_says_nothing(tmp_path: Path) -> None:
    assert installed_version(tmp_path / "nowhere") is None
