"""Simulations as jobs on an HTCondor pool: the tasks of a batch are one cluster: an edge.

A job gets sharectl itself, as an archive, and a question; it sends an answer back, both small JSON.
Jobs carry the folder as their mark: a run that was killed is found again by it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Optional, Protocol

from sharectl.condor.jobs import HELD, RUNNING, QueuedJob
from sharectl.errors import PoolUnavailableError
from sharectl.sim import pool_job
from sharectl.sim.tuning import Result, Score, Take, Task
from sharectl.words import counted, printable

FOLDER, PACKAGE = "jobs", "sharectl.zip"
QUESTION, ANSWER = ".json", (".out.json", ".err")
"""Ends of the names of a task's files."""
POLL_SECONDS = 5.0
LATE_LOOKS = 3
"""Looks at a folder in which an answer may appear late: it may be on another machine's disk."""
PATIENCE_SECONDS = 86_400.0
"""Time without any answer after which the pool is given up."""
_LIBRARIES = ("yaml",)
"""Pure Python that sharectl needs, for nodes without it."""
_MOST_CHARACTERS = 300


class JobQueue(Protocol):
    """Queue of an access point; `sharectl.condor.jobs.Queue` is it."""

    def submit(
        self, mark: str, description: Mapping[str, str], tasks: Sequence[Mapping[str, str]]
    ) -> int:
        """Submit a job for each task as one cluster; returns its number."""

    def jobs(self, mark: str) -> Sequence[QueuedJob]:
        """Jobs with a mark that have not ended."""

    def release(self, mark: str, tasks: Iterable[str]) -> None:
        """Release held jobs."""

    def remove(self, mark: str, tasks: Optional[Iterable[str]] = None) -> None:
        """Remove the jobs with a mark, or those of some tasks."""


@dataclass(frozen=True)
class JobTerms:
    """Terms of the jobs."""

    python: str = "/usr/bin/python3"
    """Path of the interpreter on the nodes."""
    memory_mib: int = 2048
    retries: int = 2
    """Times that a job is tried again after it failed or was held."""
    submit: Mapping[str, str] = field(default_factory=dict)
    """Commands of the submit language that go before sharectl's."""


@dataclass(frozen=True)
class Cargo:
    """Content of all jobs beside settings and seed."""

    common: Mapping[str, Any]
    """Of each question."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Name of a file on the node -> its text."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Name of a file on the node -> the file."""


class OnPool:
    """Evaluates tasks as jobs; ``note`` gets lines for the user."""

    def __init__(
        self,
        queue: JobQueue,
        folder: Path,
        cargo: Cargo,
        terms: JobTerms,
        note: Callable[[str], object] = lambda _line: None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.queue, self.cargo, self.terms = queue, cargo, terms
        self.folder = (folder / FOLDER).resolve()
        self.mark = str(self.folder)
        self._note, self._sleep = note, sleep
        self._holds: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._silent_seconds = 0.0
        self.folder.mkdir(parents=True, exist_ok=True)
        pack(self.folder / PACKAGE)
        shutil.copyfile(pool_job.__file__, self.folder / "pool_job.py")
        for name, text in cargo.texts.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        for name, file in cargo.files.items():
            shutil.copyfile(file, self.folder / name)

    def __call__(self, tasks: Sequence[Task], take: Take) -> None:
        """Hand over results as jobs end; those that still run are removed if this ends early."""
        waiting: dict[str, Task] = {}
        for task in tasks:
            settings = dict(task.settings)
            question = {**self.cargo.common, "settings": settings, "seed": task.seed}
            name = _name(question)
            (self.folder / f"{name}.json").write_text(json.dumps(question), encoding="utf-8")
            waiting[name] = task
        try:
            self._begin(waiting)
            while waiting:
                self._look(waiting, take)
        finally:
            if waiting:
                try:
                    self.queue.remove(self.mark)
                except PoolUnavailableError as error:
                    self._note(f"the jobs stay in the queue: {error}")

    def _begin(self, waiting: Mapping[str, Task]) -> None:
        """Submit tasks that have neither a score nor a job of an earlier run.

        A problem that one left is of a job that was to be tried again.
        """
        queued = {job.task for job in self.queue.jobs(self.mark)}
        if queued - waiting.keys():
            self.queue.remove(self.mark, queued - waiting.keys())
        fresh = [
            name
            for name in waiting
            if name not in queued and not isinstance(self._answer(name), Score)
        ]
        if queued & waiting.keys():
            self._note(f"jobs of an earlier run that go on: {len(queued & waiting.keys())}")
        for name in fresh:
            self._forget(name, *ANSWER)
        if fresh:
            cluster = self.queue.submit(
                self.mark, self._description(), [{"task": name} for name in fresh]
            )
            self._note(f"cluster {cluster}: {counted(len(fresh), 'job')}")

    def _look(self, waiting: dict[str, Task], take: Take) -> None:
        """Hand over the results of jobs that have ended, which leave ``waiting``; then sleep."""
        ended: list[tuple[str, Result]] = []
        try:
            queued = {job.task: job for job in self.queue.jobs(self.mark)}
            for name in waiting:
                result = None if name in queued else self._result(name)
                if result is not None:
                    ended.append((name, result))
            ended += self._held([job for job in queued.values() if job.task in waiting])
            running = sum(job.status == RUNNING for job in queued.values())
            state = f"{counted(len(waiting) - len(ended), 'job')} to go, {running} running"
        except PoolUnavailableError as error:
            state = str(error)
        for name, result in ended:
            take(waiting[name], result)
            del waiting[name]
            self._forget(name, QUESTION, *ANSWER)
        self._silent_seconds = 0.0 if ended else self._silent_seconds + POLL_SECONDS
        if self._silent_seconds > PATIENCE_SECONDS:
            hours = PATIENCE_SECONDS / 3600
            raise PoolUnavailableError(
                f"no job has ended for {hours:g} hours; see `condor_q -better-analyze` there"
            )
        self._note(state)
        if waiting:
            self._sleep(POLL_SECONDS)

    def _result(self, name: str) -> Optional[Result]:
        """Result of a job that has ended; None while its answer may come late."""
        result = self._answer(name)
        if result is None:
            self._late[name] += 1
            if self._late[name] > LATE_LOOKS:
                lines = self._text(f"{name}.err").split("\n")
                reason = next((line for line in reversed(lines) if line.strip()), "it was removed")
                return printable(f"the job ended without an answer: {reason}", _MOST_CHARACTERS)
        return result

    def _held(self, jobs: Iterable[QueuedJob]) -> list[tuple[str, Result]]:
        """Results of jobs that are held once too often; others that are held are released."""
        again: list[str] = []
        over: list[tuple[str, Result]] = []
        for job in jobs:
            if job.status != HELD:
                continue
            self._holds[job.task] += 1
            reason = printable(job.hold_reason, _MOST_CHARACTERS)
            self._note(f"job {job.job_id} is held: {reason}")
            if self._holds[job.task] <= self.terms.retries:
                again.append(job.task)
            else:
                over.append((job.task, f"the job was held: {reason}"))
        if again:
            self.queue.release(self.mark, again)
        if over:
            self.queue.remove(self.mark, [task for task, _ in over])
        return over

    def _description(self) -> dict[str, str]:
        own = (*self.cargo.texts, *self.cargo.files)
        files = [PACKAGE, "pool_job.py", *own, "$(task).json"]
        return {
            "executable": self.terms.python,
            "transfer_executable": "False",
            "arguments": f"pool_job.py {PACKAGE} $(task).json $(task).out.json",
            "initialdir": str(self.folder),
            "should_transfer_files": "YES",
            "when_to_transfer_output": "ON_EXIT",
            "transfer_input_files": ", ".join(files),
            "transfer_output_files": "$(task).out.json",
            "error": "$(task).err",
            "request_cpus": "1",
            "request_memory": f"{self.terms.memory_mib} MB",
            "request_disk": "500 MB",
            "max_retries": str(self.terms.retries),
            "notification": "never",
            "JobBatchName": "sharectl-tune",
            **self.terms.submit,
        }

    def _answer(self, name: str) -> Optional[Result]:
        """Answer of a job that has ended; None without a whole one."""
        try:
            answer = json.loads(self._text(f"{name}.out.json"))
            return str(answer["problem"]) if "problem" in answer else Score(**answer["score"])
        except (ValueError, KeyError, TypeError):
            return None

    def _text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _forget(self, name: str, *ends: str) -> None:
        for end in ends:
            (self.folder / f"{name}{end}").unlink(missing_ok=True)


def _name(question: Mapping[str, Any]) -> str:
    text = json.dumps(question, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pack(path: Path) -> None:
    """Make the archive with sharectl and the libraries in pure Python that it needs."""
    fresh = path.with_name(f".{path.name}")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
        own = Path(__file__).parents[1]
        for file in sorted(own.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, f"first/sharectl/{file.relative_to(own)}")
        for name in _LIBRARIES:
            spec = find_spec(name)
            folder = Path(spec.origin).parent if spec and spec.origin else own
            for file in sorted(folder.rglob("*.py")):
                archive.write(file, f"last/{name}/{file.relative_to(folder)}")
    fresh.replace(path)
