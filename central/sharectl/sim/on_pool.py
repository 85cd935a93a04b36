"""Simulations as jobs on an HTCondor pool: the tasks of a batch are one cluster: an edge.

A job gets sharectl itself, as an archive, and a question; it sends an answer back, both small JSON.
HTCondor tries jobs again that fail or are held. A run that was killed is found again by its folder:
answers of its jobs are used, and jobs that have none yet are removed.
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

from sharectl.condor.ads import quoted
from sharectl.condor.jobs import HELD, RUNNING, QueuedJob
from sharectl.errors import PoolUnavailableError
from sharectl.sim import pool_job
from sharectl.sim.tuning import Result, Take, Task, score_of
from sharectl.words import counted, printable

FOLDER, PACKAGE = "jobs", "sharectl.zip"
ENDS = (".json", ".out.json", ".err")
"""Ends of the names of a task's files."""
POLL_SECONDS = 5.0
LATE_LOOKS = 3
"""Looks at a folder in which an answer may appear late: it may be on another machine's disk."""
PATIENCE_SECONDS = 86_400.0
"""Time without any answer after which the pool is given up."""
RETRIES = 2
"""Times that HTCondor tries a job again after it failed or was held."""
_LIBRARIES = ("yaml",)
"""Pure Python that sharectl needs, for nodes without it."""
_MOST_CHARACTERS = 300


class JobQueue(Protocol):
    """Queue of an access point; `sharectl.condor.jobs.Queue` is it."""

    def submit(self, description: Mapping[str, str], names: Iterable[str]) -> int:
        """Submit a job for each name as one cluster; returns its number."""

    def jobs(self, constraint: str) -> Mapping[int, QueuedJob]:
        """Jobs that have not ended, by their number in the cluster."""

    def remove(self, constraint: str) -> None:
        """Remove jobs."""


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
    """Evaluates tasks as jobs; ``note`` gets lines for the user.

    ``submit`` are commands of the submit language, `executable` among them: Python on the nodes.
    """

    def __init__(
        self,
        queue: JobQueue,
        folder: Path,
        cargo: Cargo,
        submit: Mapping[str, str],
        note: Callable[[str], object] = lambda _line: None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.queue, self.cargo, self.submit = queue, cargo, submit
        self.folder = (folder / FOLDER).resolve()
        self._note, self._sleep = note, sleep
        self._hold_reasons: set[str] = set()
        self._late: Counter[str] = Counter()
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
            if isinstance(self._answer(name), str):
                # The killed run would have had it tried again.
                self._forget(name)
            (self.folder / f"{name}.json").write_text(json.dumps(question), encoding="utf-8")
            waiting[name] = task
        of_folder = f"Iwd == {quoted(str(self.folder))}"
        if self.queue.jobs(of_folder):
            self.queue.remove(of_folder)
        missing = [name for name in waiting if self._answer(name) is None]
        cluster = self.queue.submit(self._description(), missing) if missing else 0
        try:
            silent_seconds = 0.0
            while waiting:
                before = len(waiting)
                self._note(self._look(cluster, missing, waiting, take))
                silent_seconds = 0.0 if len(waiting) < before else silent_seconds + POLL_SECONDS
                if silent_seconds > PATIENCE_SECONDS:
                    raise PoolUnavailableError(
                        f"no job has ended for {PATIENCE_SECONDS / 3600:g} hours; see "
                        "`condor_q -better-analyze` there"
                    )
                if waiting:
                    self._sleep(POLL_SECONDS)
        finally:
            if waiting:
                try:
                    self.queue.remove(f"ClusterId == {cluster}")
                except PoolUnavailableError as error:
                    self._note(f"the jobs stay in the queue: {error}")

    def _look(
        self, cluster: int, missing: Sequence[str], waiting: dict[str, Task], take: Take
    ) -> str:
        """Hand over results of jobs that have ended, which leave ``waiting``; returns the state."""
        try:
            of_cluster = f"ClusterId == {cluster}"
            jobs = {missing[n]: job for n, job in self.queue.jobs(of_cluster).items()}
            held = {name: job for name, job in jobs.items() if job.status == HELD}
            if any(job.holds > RETRIES for job in held.values()):
                self.queue.remove(f"{of_cluster} && JobStatus == {HELD} && NumHolds > {RETRIES}")
        except PoolUnavailableError as error:
            return str(error)
        problems: dict[str, str] = {}
        for name, job in held.items():
            reason = printable(job.hold_reason, _MOST_CHARACTERS)
            if job.holds > RETRIES:
                problems[name] = f"the job was held: {reason}"
            if reason not in self._hold_reasons:
                self._hold_reasons.add(reason)
                self._note(f"a job of cluster {cluster} is held: {reason}")
        for name in [*waiting]:
            result = problems.get(name) if name in jobs else self._result(name)
            if result is not None:
                take(waiting[name], result)
                del waiting[name]
                self._forget(name)
        running = sum(job.status == RUNNING for job in jobs.values())
        return f"cluster {cluster}: {counted(len(waiting), 'job')} to go, {running} running"

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

    def _description(self) -> dict[str, str]:
        own = (*self.cargo.texts, *self.cargo.files)
        files = [PACKAGE, "pool_job.py", *own, "$(task).json"]
        return {
            "transfer_executable": "False",
            "arguments": f"pool_job.py {PACKAGE} $(task).json $(task).out.json",
            "initialdir": str(self.folder),
            "should_transfer_files": "YES",
            "when_to_transfer_output": "ON_EXIT",
            "transfer_input_files": ", ".join(files),
            "transfer_output_files": "$(task).out.json",
            "error": "$(task).err",
            "request_cpus": "1",
            "request_disk": "500 MB",
            "max_retries": str(RETRIES),
            # A job that its owner holds (code 1) stays held.
            "periodic_release": f"NumHolds <= {RETRIES} && HoldReasonCode =!= 1",
            "notification": "never",
            "JobBatchName": "sharectl-tune",
            **self.submit,
        }

    def _answer(self, name: str) -> Optional[Result]:
        """Answer of a job that has ended; None without a whole one."""
        try:
            answer = json.loads(self._text(f"{name}.out.json"))
            return str(answer["problem"]) if "problem" in answer else score_of(answer["score"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def _text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _forget(self, name: str) -> None:
        for end in ENDS:
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
