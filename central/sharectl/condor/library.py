"""HTCondor's library in a process of its own, for any number of questions.

Which HTCondor is installed here: not the one whose library checks, and who knows which its daemons
are.
"""

from __future__ import annotations

import json
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
from typing import IO, Any, Optional, final

from sharectl.condor.deadline import end_with

CHILD = Path(__file__).with_name("child.py")
PROCESS_DEADLINE_SECONDS = 20.0
"""An answer takes 0.1 s; without a deadline, macros that refer to each other in a circle take for ever."""

_PLACE = re.compile(r"Line (?P<line>\d+) while reading config source (?P<file>\S+)")


class UnreadableConfigurationError(Exception):
    """HTCondor cannot use the configuration; ``place`` is a ``file:line``, empty if it is not known."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self.place = place


@final
class CondorProcess:
    """The process, as a context manager.

    Parameters
    ----------
    configuration
        Text of the file that CONDOR_CONFIG names when the library is loaded.
    environment
        Variables of the process.
    deadline_seconds
        For each answer.
    """

    def __init__(
        self,
        configuration: str,
        environment: Mapping[str, str],
        deadline_seconds: float = PROCESS_DEADLINE_SECONDS,
    ) -> None:
        self._deadline_seconds = deadline_seconds
        self._folder = tempfile.TemporaryDirectory(prefix="sharectl-")
        self._root = Path(self._folder.name) / "condor_config"
        self._root.write_text(configuration, encoding="utf-8")
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(CHILD)],
            env={**environment, "CONDOR_CONFIG": str(self._root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            preexec_fn=partial(end_with, os.getpid()),  # noqa: PLW1509 - no threads
        )

    def __enter__(self) -> CondorProcess:
        return self

    def __exit__(
        self,
        _kind: Optional[type[BaseException]],
        _error: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()

    def values(
        self, macros: Sequence[str], configuration: str, environment: Mapping[str, str]
    ) -> dict[str, str]:
        """Macro → its expanded text; without those that are not set, or empty.

        Parameters
        ----------
        configuration
            Text of the file that CONDOR_CONFIG names, from now on.
        environment
            Variables that the process has besides its own, for this once.

        Raises
        ------
        UnreadableConfigurationError
            If HTCondor cannot use the configuration.
        """
        self._root.write_text(configuration, encoding="utf-8")
        asked = {"macros": list(macros), "environment": dict(environment)}
        values: dict[str, str] = self._ask(asked)["values"]
        return values

    def canonical(self, expressions: Sequence[str]) -> list[Optional[str]]:
        """Each expression as HTCondor prints it again; None for one that it cannot read."""
        read = self._ask({"expressions": list(expressions), "slots": [], "jobs": []})["read"]
        return [seen.get("text") for seen in read]

    def evaluate(
        self,
        expressions: Sequence[str],
        slots: Sequence[Mapping[str, str]],
        jobs: Sequence[Mapping[str, str]],
    ) -> list[Optional[list[list[Any]]]]:
        """Value of each expression in each slot for each job; None for an expression that HTCondor cannot read.

        A value is a bool or a number, ``"undefined"``, ``"error"``, or text. Ads are name →
        expression.
        """
        asked = {"expressions": list(expressions), "slots": list(slots), "jobs": list(jobs)}
        values: list[Optional[list[list[Any]]]] = self._ask(asked)["values"]
        return values

    def keep(
        self, slots: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, str]], weight: str
    ) -> list[dict[str, Any]]:
        """What is known of each slot by itself; slots and jobs are kept for `looks`, instead of earlier ones.

        The parameters are those of `sharectl.condor.child.Kept`.
        """
        asked = {"keep": {"slots": list(slots), "jobs": list(jobs), "weight": weight}}
        facts: list[dict[str, Any]] = self._ask(asked)["slots"]
        return facts

    def looks(
        self, asked: Sequence[tuple[int, int, Optional[Mapping[str, float]]]]
    ) -> list[tuple[Optional[float], dict[str, Optional[float]], Optional[bool], Optional[bool]]]:
        """Slot's weight, what a job takes by asset, and whether the Requirements of slot and job hold, for each question.

        A question is the numbers of a kept slot and job, and the assets that the slot has left
        (None: what it has).
        """
        answers = self._ask({"looks": list(asked)})["looks"]
        return [(weight, consumed, slot, job) for weight, consumed, slot, job in answers]

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - both are pipes, says __init__
        assert stdout is not None  # noqa: S101
        deadline = time.monotonic() + self._deadline_seconds
        answer = b""
        try:
            stdin.write(json.dumps(question).encode() + b"\n")
            while not answer.endswith(b"\n"):
                if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    raise UnreadableConfigurationError(
                        f"no answer in {self._deadline_seconds:.0f} s"
                    )
                block = stdout.read(65536)
                if not block:
                    raise self._death()
                answer += block
        except BrokenPipeError:
            raise self._death() from None
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    def _death(self) -> UnreadableConfigurationError:
        code = self._process.wait(PROCESS_DEADLINE_SECONDS)
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")
        lines = [line for line in said.splitlines() if str(self._root) not in line]
        where = _PLACE.search(said)
        return UnreadableConfigurationError(
            "; ".join(lines) or f"HTCondor's parser ended with {code}",
            f"{where['file']}:{where['line']}" if where else "",
        )


_VERSION = re.compile(r"\$CondorVersion:\s+(\d{1,4})\.(\d{1,4})\.")
VERSION_DEADLINE_SECONDS = 5.0


def installed_version(
    programs: Path, deadline_seconds: float = VERSION_DEADLINE_SECONDS
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
