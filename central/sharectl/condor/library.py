"""HTCondor's library in a process with a deadline: configuration, and expressions in ads."""

from __future__ import annotations

import json
import linecache
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, final

from sharectl.condor.deadline import MARK, end_marked, end_with
from sharectl.words import quoted

CHILD = Path(__file__).with_name("child.py")
DEFAULTS = "USER_CONFIG_FILE =\nLOCAL_CONFIG_DIR =\n"
"""Configuration that makes HTCondor read no file of this machine."""
PROCESS_DEADLINE_SECONDS = 20.0
"""An answer takes 1 ms; macros that refer to each other in a circle take for ever."""

_PARTS = re.compile(r"; (?=Config source |Configuration Error |Error: )|\n")
_PLACE = re.compile(
    r'Config source (?:Error|(?P<warning>Warning)) "(?P<file>[^"]*)", Line (?P<line>\d+)'
    r"(?:, Include Depth \d+)?: ?"
    r"|Configuration Error Line (?P<last_line>\d+) while reading (?:global )?config source "
    r"(?P<last_file>[^;]+);? ?"
    r"|Error: |Config source "
)


class UnreadableConfigurationError(Exception):
    """HTCondor cannot use the configuration; ``place`` is a ``file:line``, empty if unknown."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self.place = place


@final
class CondorProcess:
    """The process, as a context manager; it is started again after it died."""

    def __init__(self, *, deadline_seconds: float = PROCESS_DEADLINE_SECONDS) -> None:
        self._deadline_seconds = deadline_seconds
        self._folder = tempfile.TemporaryDirectory(prefix="sharectl-")
        self._root = Path(self._folder.name) / "condor_config"
        self._root.write_text(DEFAULTS, encoding="utf-8")
        self._errors = Path(self._folder.name) / "errors"
        self._process: Optional[subprocess.Popen[bytes]] = None

    def __enter__(self) -> CondorProcess:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        if kind is KeyboardInterrupt:  # a command of the configuration may run
            end_marked(f"{MARK}={self._folder.name}")
        self._end()
        self._folder.cleanup()

    def values(
        self, macros: Sequence[str], configuration: str, environment: Mapping[str, str]
    ) -> dict[str, str]:
        """Macro → its expanded text, of those that are set. Raises UnreadableConfigurationError."""
        self._root.write_text(configuration, encoding="utf-8")
        question = {"macros": list(macros), "environment": dict(environment)}
        return dict(self._ask(question)["values"])

    def canonical(self, expressions: Sequence[str]) -> list[Optional[str]]:
        """Each expression as HTCondor prints it; None for one that it cannot read."""
        return list(self._ask({"expressions": list(expressions), "slots": [], "jobs": []})["read"])

    def evaluate(
        self,
        expressions: Sequence[str],
        slots: Sequence[Mapping[str, str]] = ({},),
        jobs: Sequence[Mapping[str, str]] = ({},),
    ) -> list[Optional[list[list[Any]]]]:
        """Value of each expression in each slot for each job; None if it cannot be read."""
        question = {"expressions": list(expressions), "slots": list(slots), "jobs": list(jobs)}
        return list(self._ask(question)["values"])

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = self._start()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - both are pipes, says _start
        assert stdout is not None  # noqa: S101
        deadline = time.monotonic() + self._deadline_seconds
        answer = b""
        try:
            stdin.write(json.dumps(question).encode() + b"\n")
            while not answer.endswith(b"\n"):
                if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    end_marked(f"{MARK}={self._folder.name}")
                    self._end()
                    problem = f"no answer in {self._deadline_seconds:.0f} s"
                    raise UnreadableConfigurationError(problem)
                block = stdout.read(65536)
                if not block:
                    raise self._death()
                answer += block
        except BrokenPipeError:
            raise self._death() from None
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    def _start(self) -> subprocess.Popen[bytes]:
        configures = re.compile(r"_?condor_", re.IGNORECASE).match
        environment = {name: text for name, text in os.environ.items() if not configures(name)}
        with self._errors.open("wb") as errors:
            return subprocess.Popen(
                [sys.executable, "-I", str(CHILD)],
                env={**environment, "CONDOR_CONFIG": str(self._root), MARK: self._folder.name},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                preexec_fn=partial(end_with, os.getpid()),  # noqa: PLW1509 - no threads
            )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _death(self) -> UnreadableConfigurationError:
        assert self._process is not None  # noqa: S101 - it was asked
        code = self._process.wait(PROCESS_DEADLINE_SECONDS)
        self._end()
        text = self._errors.read_text(encoding="utf-8", errors="replace")
        return refusal(text, self._folder.name) or UnreadableConfigurationError(
            f"HTCondor's parser ended with {code}"
        )


def refusal(text: str, hidden_folder: str) -> Optional[UnreadableConfigurationError]:
    """Error at the innermost line that is not in ``hidden_folder``; None if the text is empty."""
    reasons: list[str] = []
    place = ""
    for part in _PARTS.split(text):
        match = _PLACE.match(part)
        reason = part[match.end() :].strip() if match else part.strip()
        file = (match["file"] or match["last_file"] or "").strip() if match else ""
        if (match and match["warning"]) or file.startswith(f"{hidden_folder}/"):
            continue
        if reason and reason not in reasons:
            reasons.append(reason)
        number = (match["line"] or match["last_line"]) if match and file else "0"
        place = place or (f"{file}:{number}" if number != "0" else "")
    if not reasons and not place:
        return None
    if not reasons:
        file, _, number = place.rpartition(":")
        line = linecache.getline(file, int(number)).strip()
        reasons = [f"it cannot read {quoted(line)}" if line else "it cannot read that line"]
    return UnreadableConfigurationError("; ".join(reasons), place)
