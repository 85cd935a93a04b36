"""Simulations as jobs on an HTCondor pool: each batch of tasks is one cluster: an edge.

HTCondor tries a job again that failed or was held, and removes it at last.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import yaml

import sharectl
import sharectl_lab
from sharectl.condor.ads import evaluated, quoted, text, whole
from sharectl.condor.daemons import bindings, param, why_silent
from sharectl.condor.deadline import Question, ask_all
from sharectl.errors import PoolUnavailableError
from sharectl.words import printable
from sharectl_lab.study.many import Progress
from sharectl_lab.study.tuning import Result, Score, Take, Task, score_of

DEADLINE_SECONDS = 120.0
MOST_CHARACTERS = 300
"""Of a reason in a message."""


@dataclass(frozen=True)
class Queue:
    """Queue of an access point; all methods raise PoolUnavailableError if the schedd is silent."""

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


PACKAGES = (sharectl, sharectl_lab, yaml)
"""Packages that jobs bring with them."""
FOLDER = "jobs"
POLL_SECONDS = 5.0
RETRIES = 2
"""Times that HTCondor tries a job again after it failed, and after it was held."""
HOLDS = "HoldReasonCode =!= 1 && NumHolds"
"""Of a job that its owner did not hold."""
DESCRIPTION = {
    "executable": "/usr/bin/python3",
    "transfer_executable": "False",
    "arguments": "-m sharectl_lab.study.trial $(Process)",
    "should_transfer_files": "YES",
    "output": "$(Cluster).$(Process).out",
    "error": "$(Cluster).$(Process).err",
    "request_cpus": "1",
    "request_memory": "2048 MB",
    "request_disk": "500 MB",
    "max_retries": str(RETRIES),
    "periodic_release": f"{HOLDS} <= {RETRIES}",
    "periodic_remove": f"JobStatus == 5 && {HOLDS} > {RETRIES}",
    "notification": "never",
    "JobBatchName": "sharectl-tune",
}


class OnPool:
    """Evaluates tasks as jobs, with the files of ``cargo``.

    ``submit`` has commands of the submit language that go before those of `DESCRIPTION`.
    """

    def __init__(
        self,
        queue: Queue,
        folder: Path,
        cargo: Callable[[Sequence[Task]], Mapping[str, bytes]],
        submit: Mapping[str, str],
        say: Callable[[str], object] = lambda _line: None,
        progress: Progress = lambda _part: None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.queue, self.folder = queue, (folder / FOLDER).resolve()
        self._cargo, self._submit, self._sleep = cargo, submit, sleep
        self._say, self._progress = say, progress
        # Jobs of a search that was killed.
        queue.remove(f"Iwd == {quoted(str(self.folder))}")
        shutil.rmtree(self.folder, ignore_errors=True)
        for package in PACKAGES:
            # Without what was compiled for this machine.
            compiled = shutil.ignore_patterns("__pycache__", "*.so")
            there = self.folder / package.__name__
            shutil.copytree(package.__path__[0], there, ignore=compiled)

    def __call__(self, tasks: Sequence[Task], take: Take) -> None:
        """Hand over results as jobs end; those that still run are removed if this ends early."""
        files = self._cargo(tasks)
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        names = ", ".join((*(package.__name__ for package in PACKAGES), *files))
        paths = {"initialdir": str(self.folder), "transfer_input_files": names}
        cluster = self.queue.submit({**DESCRIPTION, **paths, **self._submit}, len(tasks))
        waiting, reasons = dict(enumerate(tasks)), dict[int, str]()
        jobs = dict.fromkeys(waiting, "")
        try:
            while waiting:
                before = jobs
                try:
                    jobs = self.queue.jobs(cluster)
                except PoolUnavailableError as error:
                    self._say(str(error))
                for number, reason in jobs.items():
                    if reason and reason not in reasons.values():
                        self._say(f"a job of cluster {cluster} is held: {reason}")
                    reasons[number] = reason
                for number in waiting.keys() - jobs.keys():
                    result = self._result(f"{cluster}.{number}", reasons.get(number, ""))
                    # An answer may come late if the folder is on another machine's disk.
                    if isinstance(result, Score) or number not in before:
                        take(waiting.pop(number), result)
                self._progress(1 - len(waiting) / len(tasks))
                if waiting:
                    self._sleep(POLL_SECONDS)
        finally:
            if waiting:
                self.queue.remove(f"ClusterId == {cluster}")

    def _result(self, name: str, hold_reason: str) -> Result:
        """Answer of a job that has left the queue, or the reason why it has none."""
        try:
            answer = json.loads(self._last_line(f"{name}.out"))
            if "problem" in answer:
                return printable(answer["problem"], MOST_CHARACTERS)
            return score_of(answer["score"])
        except (ValueError, KeyError, TypeError, RecursionError):
            if hold_reason:
                return f"the job was held: {hold_reason}"
            reason = self._last_line(f"{name}.err") or "it was removed"
            return f"the job ended without an answer: {printable(reason, MOST_CHARACTERS)}"

    def _last_line(self, name: str) -> str:
        """Last line of a file that has a character; empty without one."""
        try:
            text = (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return text.rstrip().rpartition("\n")[2]
