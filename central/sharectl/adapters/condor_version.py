"""Which HTCondor is installed here: not the one whose library checks, and who knows which its daemons are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Optional

_VERSION = re.compile(r"\$CondorVersion:\s+(\d{1,4})\.(\d{1,4})\.")
DEADLINE_SECONDS = 5.0


def installed_version(
    programs: Path, deadline_seconds: float = DEADLINE_SECONDS
) -> Optional[tuple[int, int]]:
    """First two numbers of the version of the HTCondor with its programs in that folder; None if it does not say."""
    try:
        done = subprocess.run(
            [programs / "condor_version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=deadline_seconds,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    return (int(match[1]), int(match[2])) if match else None
