"""What can go wrong, by who can mend it. Every message names the place and what to do there."""

from __future__ import annotations

from collections.abc import Sequence


class SharectlError(Exception):
    """Base of all errors that sharectl reports to its user in one line, without a traceback.

    ``exit_code`` follows sysexits: what a timer unit or a script may tell apart.
    """

    exit_code = 1


class ConfigError(SharectlError):
    """The configuration is wrong; ``problems`` holds all that was found, one line each."""

    exit_code = 78

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class SettingError(ConfigError):
    """An option that sets a key of the configuration is wrong; the configuration itself is not."""

    exit_code = 2


class InputError(SharectlError):
    """A file given to a command does not hold what it should; ``problems`` as for `ConfigError`."""

    exit_code = 65

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class PoolUnavailableError(SharectlError):
    """A daemon of the pool did not answer, or not with what was asked."""

    exit_code = 75


class StateError(SharectlError):
    """A file of sharectl's own cannot be read or written."""

    exit_code = 74

    def __init__(self, message: str, supersedes: str = "") -> None:
        super().__init__(message)
        self.supersedes = supersedes
        """What was said of the same before, and need not be said now: this message tells what became of it."""


class BrokenStateError(StateError):
    """What the last cycle left cannot be understood: ``fact``; what is published next has a sequence above ``sequence``."""

    def __init__(self, fact: str, remedy: str, sequence: int) -> None:
        super().__init__(f"{fact}; {remedy}")
        self.fact = fact
        self.sequence = sequence


class PublishError(StateError):
    """Targets did not arrive where nodes look for them."""


class UnsignedError(PublishError):
    """A plan without targets has arrived at ``place``, without the signature that the configuration asks for."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(
            f"{place}: targets are withdrawn, unsigned: {problem}; nodes that have a key refuse what is not signed and "
            "have no target either (reason unsigned)"
        )
        self.place = place


class LockedError(SharectlError):
    """Another cycle is running."""

    exit_code = 75


class DisabledError(SharectlError):
    """An operator has switched sharectl off."""
