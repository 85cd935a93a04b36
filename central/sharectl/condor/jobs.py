"""Jobs of sharectl's own on a pool: submitted as one cluster, looked at, released and removed.

They carry a mark, by which a later process finds them again whatever became of the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional

from sharectl.condor.ads import ad_of, evaluated, text, whole
from sharectl.condor.daemons import bindings, param, why_silent
from sharectl.condor.deadline import Question, ask_all
from sharectl.errors import PoolUnavailableError

MARK, TASK = "SharectlMark", "SharectlTask"
"""Attributes of the jobs: text of those that belong together, and name of each."""
SUBMIT_SECONDS, LOOK_SECONDS = 120.0, 30.0
"""Deadlines of a submission, and of all other questions."""
IDLE, RUNNING, REMOVED, COMPLETED, HELD = 1, 2, 3, 4, 5
"""JobStatus."""

_PROJECTION = ["ClusterId", "ProcId", "JobStatus", "HoldReason", TASK]


class QueuedJob(NamedTuple):
    """Job in the queue of its access point."""

    task: str
    job_id: str
    """Cluster and number, `12.3`."""
    status: int
    hold_reason: str = ""
    """HTCondor's HoldReason; empty if it is not held."""


@dataclass(frozen=True)
class Queue:
    """Queue of an access point: that of this machine, or the one of a name."""

    access_point: Optional[str] = None
    collector: Optional[str] = None
    """Address of the collector that knows the name; None: that of this machine's pool."""

    def submit(
        self, mark: str, description: Mapping[str, str], tasks: Sequence[Mapping[str, str]]
    ) -> int:
        """Submit a job for each of ``tasks`` as one cluster; returns its number.

        A task has variables of the submit language for ``description``, `task` with its name among
        them. Raises PoolUnavailableError if the schedd does not take all of them.
        """
        marks = {f"My.{MARK}": _quoted(mark), f"My.{TASK}": '"$(task)"'}

        def ask(schedd: Any) -> int:
            submit = bindings().Submit({**description, **marks})
            return int(
                schedd.submit(submit, itemdata=iter([dict(task) for task in tasks])).cluster()
            )

        cluster: int = self._ask(ask, SUBMIT_SECONDS)
        return cluster

    def jobs(self, mark: str) -> list[QueuedJob]:
        """Jobs with a mark that have not ended. Raises PoolUnavailableError."""

        def ask(schedd: Any) -> list[QueuedJob]:
            ads = schedd.query(constraint=_marked(mark), projection=_PROJECTION)
            return [_job_of(ad) for ad in ads]

        every: list[QueuedJob] = self._ask(ask)
        return [job for job in every if job.status not in (REMOVED, COMPLETED)]

    def release(self, mark: str, tasks: Iterable[str]) -> None:
        """Release held jobs. Raises PoolUnavailableError."""
        self._act("Release", mark, tasks)

    def remove(self, mark: str, tasks: Optional[Iterable[str]] = None) -> None:
        """Remove the jobs with a mark, or those of some tasks. Raises PoolUnavailableError."""
        self._act("Remove", mark, tasks)

    def _act(self, action: str, mark: str, tasks: Optional[Iterable[str]]) -> None:
        constraint = _marked(mark)
        if tasks is not None:
            constraint += f" && member({TASK}, {{{', '.join(map(_quoted, tasks))}}})"

        def ask(schedd: Any) -> None:
            schedd.act(getattr(bindings().JobAction, action), constraint, "sharectl tune")

        self._ask(ask)

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
        collector = bindings().Collector(*([self.collector] if self.collector else []))
        return bindings().Schedd(collector.locate(bindings().DaemonType.Schedd, self.access_point))


def _job_of(ad: Any) -> QueuedJob:
    return QueuedJob(
        text(evaluated(ad, TASK)) or "",
        f"{whole(evaluated(ad, 'ClusterId'), 0)}.{whole(evaluated(ad, 'ProcId'), 0)}",
        whole(evaluated(ad, "JobStatus"), 0),
        text(evaluated(ad, "HoldReason")) or "",
    )


def _marked(mark: str) -> str:
    return f"{MARK} == {_quoted(mark)}"


def _quoted(value: str) -> str:
    """Text as a string of the ClassAd language."""
    return str(ad_of({"value": value}).lookup("value"))
