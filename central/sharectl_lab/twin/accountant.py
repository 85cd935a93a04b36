"""Accountant: weight that submitters use, and their priorities, by the law of HTCondor's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LEAST_PRIORITY = 0.5
"""Best real priority; that of a submitter that uses nothing."""
DEFAULT_FACTOR = 1000.0
"""DEFAULT_PRIO_FACTOR."""


def account_of(submitter: str) -> str:
    """Accounting group in a submitter's name: the part before the last dot, or empty."""
    return submitter.rpartition(".")[0]


class Accountant:
    """Weighted usage and real priorities; ``factors`` are of submitters or of accounting groups.

    HTCondor updates a priority P once in each negotiation cycle, P ← P b + U (1 - b) with the
    usage U and b = 0.5^(time / half-life). The result does not depend on the times of the updates
    while U is constant, so that a change of the usage is the only event here.
    """

    def __init__(
        self, half_life_seconds: float, factors: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self._half_life = half_life_seconds
        self._factors = factors
        self._usage: dict[str, float] = {}
        self._priority: dict[str, tuple[float, float]] = {}
        self.usages: Mapping[str, float] = MappingProxyType(self._usage)
        """Submitter -> weight that it uses, of all that ever used any."""

    def charge(self, submitter: str, now: float, weight_delta: float) -> None:
        """Change a submitter's usage; it is never less than 0."""
        before = self._priority.get(submitter)
        if before is None or before[0] < now:
            self._priority[submitter] = (now, self.priority(submitter, now))
        usage = self._usage.get(submitter, 0.0) + weight_delta
        self._usage[submitter] = usage if usage > 0 else 0.0

    def priority(self, submitter: str, now: float) -> float:
        """Real priority; less is better."""
        before = self._priority.get(submitter)
        if before is None:
            return LEAST_PRIORITY
        since, priority = before
        if now <= since:
            return priority
        usage = self._usage[submitter]
        aged: float = 0.5 ** ((now - since) / self._half_life)
        return max(LEAST_PRIORITY, usage + (priority - usage) * aged)

    def effective_priority(self, submitter: str, now: float) -> float:
        """Real priority times its factor: the share of a submitter is inverse to it."""
        of_group = self._factors.get(account_of(submitter), DEFAULT_FACTOR)
        return self.priority(submitter, now) * self._factors.get(submitter, of_group)
