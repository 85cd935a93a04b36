"""Jobs of sharectl's own on a pool: submitted as one cluster, looked at and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor.ads import evaluated, text, whole
from sharectl.condor.daemons import bindings, param, why_silent
from sharectl.condor.deadline import Question, ask_all
from sharectl.errors import PoolUnavailableError

SUBMIT_SECONDS, LOOK_SECONDS = 120.0, 30.0
"""Deadlines of a submission, and of all other questions."""
RUNNING, REMOVED, COMPLETED, HELD = 2, 3, 4, 5
"""JobStatus."""


class QueuedJob(NamedTuple):
    """Job in the queue of its access point."""

    status: int
    hold_reason: str = ""
    holds: int = 0
    """Times that it was held."""


@dataclass(frozen=True)
class Queue:
    """Queue of an access point: that of this machine, or the one of a name.

    All methods raise PoolUnavailableError if the schedd does not answer.
    """

    access_point: Optional[str] = None

    def submit(self, description: Mapping[str, str], names: Iterable[str]) -> int:
        """Submit a job for each name, `$(task)` of the description, as one cluster: its number."""
        tasks = [{"task": name} for name in names]

        def ask(schedd: Any) -> int:
            submit = bindings().Submit(dict(description))
            return int(schedd.submit(submit, itemdata=iter(tasks)).cluster())

        cluster: int = self._ask(ask, SUBMIT_SECONDS)
        return cluster

    def jobs(self, constraint: str) -> dict[int, QueuedJob]:
        """Jobs that have not ended, by their number in the cluster."""
        projection = ["ProcId", "JobStatus", "HoldReason", "NumHolds"]

        def ask(schedd: Any) -> dict[int, QueuedJob]:
            return dict(map(_job_of, schedd.query(constraint=constraint, projection=projection)))

        every: dict[int, QueuedJob] = self._ask(ask)
        return {n: job for n, job in every.items() if job.status not in (REMOVED, COMPLETED)}

    def remove(self, constraint: str) -> None:
        """Remove jobs."""
        self._ask(lambda schedd: _remove(schedd, constraint))

    def _ask(self, ask: Callable[[Any], Any], deadline_seconds: float = LOOK_SECONDS) -> Any:
        """Answer of the schedd, asked in a child."""
        bindings()

        def why(error: Exception) -> str:
            return why_silent(self.access_point or param("SCHEDD_HOST"), "SCHEDD", error)

        question = Question(lambda: ask(self._schedd()), deadline_seconds, why)
        answer = ask_all({"schedd": question})["schedd"]
        if answer.source.problem is not None:
            name = self.access_point or "of this machine"
            raise PoolUnavailableError(
                f"access point {name}: {answer.source.problem}; run it on an access point, or name "
                "one with --access-point"
            )
        return answer.value

    def _schedd(self) -> Any:
        """Schedd of the bindings; for the child."""
        if self.access_point is None:
            return bindings().Schedd()
        kind = bindings().DaemonType.Schedd
        return bindings().Schedd(bindings().Collector().locate(kind, self.access_point))


def _remove(schedd: Any, constraint: str) -> None:
    schedd.act(bindings().JobAction.Remove, constraint, "sharectl tune")


def _job_of(ad: Any) -> tuple[int, QueuedJob]:
    names = ("ProcId", "JobStatus", "NumHolds")
    number, status, holds = (whole(evaluated(ad, name), 0) for name in names)
    return number, QueuedJob(status, text(evaluated(ad, "HoldReason")) or "", holds)
