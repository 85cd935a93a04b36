"""Errors of a box. Every message says what to do next."""

from __future__ import annotations


class PoolboxError(Exception):
    """Base of errors that poolbox reports in one message, with exit code 1."""

    exit_code = 1


class CannotBuildError(PoolboxError):
    """No HTCondor here, and no root can be built; the message names what to install."""


class SpecError(PoolboxError):
    """A `BoxSpec` cannot be a pool; ``problems`` holds all that was found, one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class BoxFailedError(PoolboxError):
    """The pool did not come up, or ended; the message has the tails of the logs."""


class DeadlineError(PoolboxError):
    """A deadline passed; the message has the tails of the logs."""


class CommandError(PoolboxError):
    """A command inside the box failed, with ``returncode``, ``stdout`` and ``stderr``."""

    def __init__(self, argv: list[str], returncode: int, stdout: str, stderr: str) -> None:
        super().__init__(
            f"{' '.join(argv)} exited with {returncode}: {(stderr or stdout).strip()[-2000:]}"
        )
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
