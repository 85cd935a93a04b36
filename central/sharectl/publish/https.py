"""Targets that a web server of the site serves: written to its folder, then fetched as nodes do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from sharectl.cycle.ports import PlacedTargets
from sharectl.errors import PublishError
from sharectl.model import HttpsWay, Plan
from sharectl.publish.text import FilePublisher, Seal, render
from sharectl.words import printable

_PROGRAM = Path(__file__).with_name("target_https.node")
_LATE_SECONDS = 5
"""Time for the program to begin, and to end itself."""
_MOST_WORDS = 500


@dataclass(frozen=True)
class HttpsPublisher:
    """Publishes plans as a file, which stays if the server does not serve it; see `Transport`."""

    way: HttpsWay
    seal: Seal

    @property
    def file(self) -> FilePublisher:
        """Publisher of the file."""
        return FilePublisher(self.way.file, self.seal)

    def publish(self, plan: Plan) -> str:
        """Replace the file by ``plan``, and fetch it; returns its URL."""
        self.file.write(plan)
        problem = self._unserved(render(plan, self.seal).encode())
        if problem is not None:
            raise PublishError(problem)
        return self.file.arrived_at(self.way.url)

    def held(self) -> list[PlacedTargets]:
        """Look at the file, which the server need not serve."""
        return self.file.look()

    def look(self) -> list[PlacedTargets]:
        """Look at the file, and at the server that should serve it."""
        content, placed = self.file.content()
        if placed.targets is None:
            return [replace(placed, way="https")]
        unserved = self._unserved(content)
        more = {**placed.more, "served": unserved is None}
        problem = unserved or placed.problem
        return [replace(placed, way="https", place=self.way.url, problem=problem, more=more)]

    def _unserved(self, content: bytes) -> Optional[str]:
        """Problem with a server that should serve the ``content`` of the file; None if it does."""
        url, file = self.way.url, self.way.file
        try:
            if fetch(self.way) == content:
                return None
        except PublishError as error:
            return f"{url}: {error}; {file} stands"
        remedy = "let the server serve that file, uncached and unchanged"
        return f"{url}: is not what {file} holds; {remedy}"


def fetch(way: HttpsWay) -> bytes:
    """Content that nodes get, by their own program. Raises PublishError."""
    seconds = max(1, int(way.deadline_seconds))
    options = ["--url", way.url, "--ca-file", str(way.ca_file or "")]
    command = [sys.executable, "-IS", str(_PROGRAM), *options, "--timeout-seconds", str(seconds)]
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=seconds + _LATE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PublishError(f"cannot be fetched: {error}") from error
    code, _, content = done.stdout.partition(b"\n")
    if code != b"ok":
        _, _, why = done.stderr.decode("ascii", "replace").partition(": ")
        raise PublishError(f"cannot be fetched: {printable(why.strip(), _MOST_WORDS)}")
    return content
