"""Jobs of sharectl's own on a pool: submitted as one cluster, looked at and removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional

from sharectl.condor.ads import evaluated, text, whole
from sharectl.condor.daemons import bindings, param, why_silent
from sharectl.condor.deadline import Question, ask_all
from sharectl.errors import PoolUnavailableError
from sharectl.words import printable

DEADLINE_SECONDS = 120.0
MOST_CHARACTERS = 300
"""Of a reason in a message."""


@dataclass(frozen=True)
class Queue:
    """Queue of an access point: that of this machine, or the one of a name.

    All methods raise PoolUnavailableError if the schedd does not answer.
    """

    access_point: Optional[str] = None

    def submit(self, description: Mapping[str, str], jobs: int) -> int:
        """Submit so many jobs as one cluster; returns its number."""
        submit = bindings().Submit(dict(description))
        cluster: int = self._ask(lambda schedd: schedd.submit(submit, count=jobs).cluster())
        return cluster

    def jobs(self, cluster: int) -> dict[int, str]:
        """Job of a cluster that has not left the queue -> reason of its last hold, or nothing."""

        def ask(schedd: Any) -> dict[int, str]:
            ads = schedd.query(
                f"ClusterId == {cluster}", ["ProcId", "HoldReason", "LastHoldReason"]
            )
            return {whole(evaluated(ad, "ProcId"), 0): _hold_reason(ad) for ad in ads}

        every: dict[int, str] = self._ask(ask)
        return every

    def remove(self, constraint: str) -> None:
        """Remove jobs."""
        action = bindings().JobAction.Remove
        self._ask(lambda schedd: bool(schedd.act(action, constraint, "sharectl tune")))

    def _ask(self, ask: Callable[[Any], Any]) -> Any:
        """Answer of the schedd, asked in a child."""

        def schedd() -> Any:
            if self.access_point is None:
                return bindings().Schedd()
            kind = bindings().DaemonType.Schedd
            return bindings().Schedd(bindings().Collector().locate(kind, self.access_point))

        def why(error: Exception) -> str:
            return why_silent(self.access_point or param("SCHEDD_HOST"), "SCHEDD", error)

        question = Question(lambda: ask(schedd()), DEADLINE_SECONDS, why)
        answer = ask_all({"schedd": question})["schedd"]
        if answer.source.problem is not None:
            name = self.access_point or "of this machine"
            raise PoolUnavailableError(
                f"access point {name}: {answer.source.problem}; run it on an access point, or name "
                "one with --access-point"
            )
        return answer.value


def _hold_reason(ad: Any) -> str:
    reasons = (text(evaluated(ad, name)) for name in ("HoldReason", "LastHoldReason"))
    return printable(next(filter(None, reasons), ""), MOST_CHARACTERS)
