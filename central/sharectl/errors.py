"""Errors, by who can mend them. Every message names the place and what to do there."""

from __future__ import annotations

from collections.abc import Sequence

from sharectl.words import printable

EXIT_CODES = {
    0: "ok",
    1: "failure or findings; or what was asked for is not there: a group, a node, a job, a cycle, "
    "or any cycle in a period",
    2: "usage",
    65: "bad input file",
    69: "an extra is not installed",
    70: "an internal error",
    74: "own file not readable or writable, or targets that did not arrive",
    75: "the pool did not answer, or another cycle runs",
    78: "configuration",
    130: "interrupted by Ctrl-C",
}
"""Exit code of every command -> meaning, as in sysexits."""

INTERNAL, INTERRUPTED = 70, 130

REPORT = "please report this line at https://github.com/sharectl/sharectl/issues"
"""Request of a message about a fault of sharectl itself."""


class SharectlError(Exception):
    """Base of all errors that sharectl reports in lines, without a traceback.

    ``problems`` are its lines. Text from outside is escaped here, so that it neither steers a
    terminal nor begins a line. ``exit_code`` is one of `EXIT_CODES`.
    """

    exit_code = 1

    def __init__(self, *lines: str) -> None:
        self.problems = tuple(map(printable, lines))
        super().__init__("; ".join(self.problems))


class AbsentError(SharectlError):
    """A group, node, job or cycle that a command names is missing, or a period has no cycle."""


class MissingExtraError(SharectlError):
    """A command needs a library of an extra that is not installed."""

    exit_code = 69


class _ProblemsError(SharectlError):
    """Something of an operator is wrong; ``problems`` has all of it, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(*problems)


class ConfigError(_ProblemsError):
    """The configuration is wrong."""

    exit_code = 78


class SettingError(ConfigError):
    """An argument names or sets something that is not there; the configuration is not wrong."""

    exit_code = 2


class InputError(_ProblemsError):
    """A file of a command is invalid."""

    exit_code = 65


class PoolUnavailableError(SharectlError):
    """A daemon of the pool did not answer, or its answer was useless."""

    exit_code = 75


class StateError(SharectlError):
    """A file of sharectl's own cannot be read or written."""

    exit_code = 74
    sequence = 0
    """Highest sequence that it may have; later plans are above it."""


class NoLedgerError(StateError):
    """No cycle has begun the ledger: every period is empty."""

    exit_code = AbsentError.exit_code


class BrokenStateError(StateError):
    """The state of the last cycle is invalid."""

    def __init__(self, problem: str, sequence: int) -> None:
        super().__init__(problem)
        self.sequence = sequence


class NewerFileError(StateError):
    """A file is of a newer sharectl, and stays as it is."""

    def __init__(self, place: object, version: int, sequence: int = 0) -> None:
        super().__init__(
            f"{place}: schema_version {version} is of a newer sharectl: left as it is; install "
            "that sharectl again, or move the file away to begin a new one"
        )
        self.version, self.sequence = version, sequence


class PublishError(StateError):
    """Targets did not arrive where nodes look for them."""


class _PlaceError(PublishError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(problem)
        self.place = place


class PartlyPublishedError(_PlaceError):
    """A plan has arrived at ``place``, and not at all other places of the same transport."""


class WithdrawnError(_PlaceError):
    """Targets are gone from ``place``, and the plan without targets is not as it should be."""


class ForeignPlanError(PublishError):
    """Another installation's valid plan stands, or stood, where this one publishes."""

    exit_code = 1


class LockedError(SharectlError):
    """Another cycle is running."""

    exit_code = 75
