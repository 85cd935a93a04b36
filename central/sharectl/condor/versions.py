"""Behaviour of HTCondor that depends on its version, and the releases that changed it.

HTCondor changes several series of releases at a time, such as 24.0 and 25.x, so that a change can
be in 24.0.18 and not in 24.5.1. docs/versions.md has this table; a test holds the two equal.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from math import inf

Version = tuple[int, ...]
"""Three numbers, such as 24.0.18; empty if it is unknown."""
Release = tuple[float, ...]

ALWAYS: Release = (0,)
NEVER: Release = (inf,)
TESTED: Version = (23, 0, 28)
"""Oldest version that pool tests ran on."""
NEEDED: Version = (23, 0)
"""With an older one `60-sharectl-execute-point.conf` changes nothing."""
_DEADLINE_SECONDS = 10
_VERSION = re.compile(r"\D*(\d{1,4})\.(\d{1,4})\.(\d{1,4})\b")


@dataclass(frozen=True)
class Fact:
    """Behaviour that some releases have."""

    words: str
    """Sentence about those that have it."""
    spans: tuple[tuple[Release, Release], ...]
    """First release that has it, and first later one that has it not."""

    def holds(self, version: Version) -> bool:
        """Tell if that version has it."""
        return any(first <= version < end for first, end in self.spans)

    @property
    def releases(self) -> str:
        """Releases that have it, for people."""
        return "; ".join(_span(first, end) for first, end in self.spans)


def _span(first: Release, end: Release) -> str:
    begins = f"from {dotted(first)}" if first > ALWAYS else ""
    ends = f"before {dotted(end)}" if end < NEVER else ""
    return " and ".join(filter(None, (begins, ends)))


def dotted(version: Release) -> str:
    """Version for people, such as ``24.0.18``."""
    return ".".join(map(str, version))


def version_of(written: str) -> Version:
    """Version in a text such as ``$CondorVersion: 25.14.1 …``; empty if it has no version."""
    match = _VERSION.match(written)
    return tuple(map(int, match.groups())) if match else ()


def installed_version() -> Version:
    """Version of HTCondor on this machine; empty without one."""
    try:
        done = subprocess.run(
            ["condor_version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return version_of(done.stdout)


CLAIMED_BY_NOBODY = Fact(
    "A new dynamic slot is `Claimed` before the startd publishes by whom. If START is False then,"
    " the startd ends (HTCONDOR-2307).",
    ((ALWAYS, (23, 7, 2)),),
)
SENDS_SLOTS = Fact(
    "`update:true` of a STARTD_CRON job sends the ads of slots (HTCONDOR-3526).",
    (
        ((8, 4, 11), (23, 7, 2)),
        ((24, 0, 18), (24, 1)),
        ((24, 12, 18), (25,)),
        ((25, 0, 8), (25, 1)),
        ((25, 7, 2), NEVER),
    ),
)
ENDS_ON_SLOT_TYPES = Fact(
    "Slot types that want more than the machine has end the startd (HTCONDOR-2500).",
    ((ALWAYS, (24, 2, 1)),),
)
COUNTS_DISK_LATER = Fact(
    "TotalSlotDisk is 0 until the first claim of a startd (HTCONDOR-3302).",
    ((ALWAYS, (25, 4, 0)),),
)
OFFERS_FEWER_JOBS = Fact(
    "A schedd offers at most 20 jobs of a user in a cycle (HTCONDOR-3664).",
    (((25, 11, 0), NEVER),),
)
BINDS_FS = Fact(
    "FS is bound to the connection, which clients of these releases demand (HTCONDOR-2026-0001).",
    (
        ((24, 0, 22), (24, 1)),
        ((24, 12, 22), (25,)),
        ((25, 0, 12), (25, 1)),
        ((25, 11, 1), NEVER),
    ),
)
LOGS_CORES = Fact("StartLog has the cores of each new dynamic slot.", (((23, 6, 1), NEVER),))
OVERFLOWS_TO_ZERO = Fact(
    "A whole number in an ad that is above 2^63-1 is read as 0, before as 2^63-1 (HTCONDOR-2140).",
    (((23, 3, 0), NEVER),),
)
FACTS = (
    CLAIMED_BY_NOBODY,
    SENDS_SLOTS,
    ENDS_ON_SLOT_TYPES,
    COUNTS_DISK_LATER,
    OFFERS_FEWER_JOBS,
    BINDS_FS,
    LOGS_CORES,
    OVERFLOWS_TO_ZERO,
)
