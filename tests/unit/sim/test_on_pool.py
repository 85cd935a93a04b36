"""Jobs of a search, with a made-up queue; tests/pool has a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Optional

import pytest

from sharectl.condor.jobs import HELD, IDLE, RUNNING, QueuedJob
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.sim.journal import Journal
from sharectl.sim.on_pool import Cargo, JobTerms, OnPool, pack
from sharectl.sim.tuning import Evaluate, Result, Score, Take, Task

CARGO = Cargo({"strategy": "live", "seconds": 86_400.0}, {"scenario.yaml": "nodes: []\n"})
TASKS = [Task((("control.law", law),), seed) for law in ("pid", "ewma") for seed in (1, 2)]


def score(question: Mapping[str, object]) -> dict[str, object]:
    settings, seed = question["settings"], question["seed"]
    assert isinstance(settings, dict)
    assert isinstance(seed, int)
    error = seed + (0.5 if settings["control.law"] == "pid" else 0.0)
    return {"score": {"error_percent": error, "idle_percent": 0.0, "idle_core_hours": 0.0}}


class FakeQueue:
    """Queue whose jobs end one at each look, unless they are held or end without an answer."""

    def __init__(self, folder: Path, held: int = 0, silent: int = 0) -> None:
        self.folder = folder / "jobs"
        self.held, self.silent = held, silent
        self.queue: dict[str, QueuedJob] = {}
        self.submitted: list[list[str]] = []
        self.removed: list[str] = []
        self.released: list[str] = []
        self.is_killed = False
        """Whether the process that would remove jobs is gone."""

    def submit(
        self, mark: str, _description: Mapping[str, str], tasks: Sequence[Mapping[str, str]]
    ) -> int:
        assert mark == str(self.folder.resolve())
        names = [task["task"] for task in tasks]
        for number, name in enumerate(names):
            status = HELD if number < self.held else RUNNING
            reason = "no such file\x1b" if status == HELD else ""
            self.queue[name] = QueuedJob(name, f"7.{number}", status, reason)
        self.submitted.append(names)
        return 7

    def jobs(self, _mark: str) -> list[QueuedJob]:
        jobs = list(self.queue.values())
        running = [job for job in jobs if job.status == RUNNING]
        if running:
            self.end(running[0].task)
        return jobs

    def end(self, name: str) -> None:
        del self.queue[name]
        if self.silent:
            self.silent -= 1
            (self.folder / f"{name}.err").write_text("Traceback\nMemoryError\n")
            return
        question = json.loads((self.folder / f"{name}.json").read_text())
        (self.folder / f"{name}.out.json").write_text(json.dumps(score(question)))

    def release(self, _mark: str, tasks: Iterable[str]) -> None:
        self.released += tasks

    def remove(self, _mark: str, tasks: Optional[Iterable[str]] = None) -> None:
        names = list(self.queue) if tasks is None else list(tasks)
        for name in () if self.is_killed else names:
            self.removed.append(name)
            self.queue.pop(name, None)


def on_pool(folder: Path, queue: FakeQueue, notes: Optional[list[str]] = None) -> OnPool:
    lines: list[str] = [] if notes is None else notes
    return OnPool(queue, folder, CARGO, JobTerms(), lines.append, lambda _seconds: None)


def results_of(evaluate: Evaluate, tasks: Sequence[Task] = TASKS) -> dict[Task, Result]:
    results: dict[Task, Result] = {}
    evaluate(tasks, results.__setitem__)
    return results


def interrupted(evaluate: Evaluate) -> dict[Task, Result]:
    """Results until Ctrl-C, which is pressed at the second."""
    results: dict[Task, Result] = {}

    def take(task: Task, result: Result) -> None:
        if results:
            raise KeyboardInterrupt
        results[task] = result

    with pytest.raises(KeyboardInterrupt):
        evaluate(TASKS, take)
    return results


def test_a_batch_is_one_cluster_and_every_task_has_its_score(tmp_path: Path) -> None:
    queue = FakeQueue(tmp_path)
    results = results_of(on_pool(tmp_path, queue))
    errors = [result[0] for result in map(results.__getitem__, TASKS)]
    assert errors == [1.5, 2.5, 1.0, 2.0]
    assert len(queue.submitted) == 1
    assert not queue.removed
    assert sorted(path.name for path in (tmp_path / "jobs").iterdir()) == [
        "pool_job.py",
        "scenario.yaml",
        "sharectl.zip",
    ]


def test_a_held_job_is_released_a_few_times_and_then_removed(tmp_path: Path) -> None:
    queue, notes = FakeQueue(tmp_path, held=1), list[str]()
    results = results_of(on_pool(tmp_path, queue, notes))
    assert results[TASKS[0]] == "the job was held: no such file\\x1b"
    assert all(isinstance(results[task], Score) for task in TASKS[1:])
    assert len(queue.released) == JobTerms().retries
    assert len(queue.removed) == 1
    assert "job 7.0 is held: no such file\\x1b" in notes


def test_a_job_without_an_answer_is_a_problem_with_its_last_line(tmp_path: Path) -> None:
    results = results_of(on_pool(tmp_path, FakeQueue(tmp_path, silent=1)))
    problems = [result for result in results.values() if isinstance(result, str)]
    assert problems == ["the job ended without an answer: MemoryError"]


def test_an_interruption_removes_the_cluster(tmp_path: Path) -> None:
    queue = FakeQueue(tmp_path)
    interrupted(on_pool(tmp_path, queue))
    assert not queue.queue
    assert queue.removed


def test_jobs_of_a_killed_run_go_on_and_answers_are_used(tmp_path: Path) -> None:
    queue = FakeQueue(tmp_path)
    queue.is_killed = True
    first = interrupted(on_pool(tmp_path, queue))
    queue.is_killed = False
    notes: list[str] = []
    rest = [task for task in TASKS if task not in first]
    again = results_of(on_pool(tmp_path, queue, notes), rest)
    assert len(again) == 3
    assert all(isinstance(result, Score) for result in again.values())
    assert len(queue.submitted) == 1
    assert notes[0] == "jobs of an earlier run that go on: 1"


def test_a_problem_that_an_earlier_run_left_is_tried_again(tmp_path: Path) -> None:
    queue = FakeQueue(tmp_path)
    interrupted(on_pool(tmp_path, queue))
    for question in (tmp_path / "jobs").glob("????????????????.json"):
        question.with_suffix(".out.json").write_text('{"problem": "MemoryError: "}')
    results = results_of(on_pool(tmp_path, queue))
    assert all(isinstance(result, Score) for result in results.values())


def test_an_interruption_says_if_jobs_stay(tmp_path: Path) -> None:
    class Silent(FakeQueue):
        def remove(self, _mark: str, _tasks: Optional[Iterable[str]] = None) -> None:
            raise PoolUnavailableError("access point of this machine: no answer within 30 s")

    notes: list[str] = []
    interrupted(on_pool(tmp_path, Silent(tmp_path), notes))
    words = "access point of this machine: no answer within 30 s"
    assert notes[-1] == f"the jobs stay in the queue: {words}"


def test_jobs_of_another_search_in_the_folder_are_removed(tmp_path: Path) -> None:
    queue = FakeQueue(tmp_path)
    queue.queue["other"] = QueuedJob("other", "6.0", IDLE)
    results_of(on_pool(tmp_path, queue))
    assert queue.removed == ["other"]


def test_a_silent_access_point_is_waited_for(tmp_path: Path) -> None:
    class Silent(FakeQueue):
        looks = 0

        def jobs(self, mark: str) -> list[QueuedJob]:
            self.looks += 1
            if self.looks == 2:
                raise PoolUnavailableError("access point of this machine: no answer within 30 s")
            return super().jobs(mark)

    notes: list[str] = []
    results = results_of(on_pool(tmp_path, Silent(tmp_path), notes))
    assert len(results) == 4
    assert "access point of this machine: no answer within 30 s" in notes


def test_the_archive_brings_what_a_node_needs(tmp_path: Path) -> None:
    """A Python without any package, as on a node, reads a question and answers."""
    pack(tmp_path / "sharectl.zip")
    script = Path(__file__).parents[3] / "central" / "sharectl" / "sim" / "pool_job.py"
    question = {"strategy": "live", "seconds": 60.0, "settings": {}}
    (tmp_path / "q.json").write_text(json.dumps({**question, "seed": 1}))
    arguments = [str(script), "sharectl.zip", "q.json", "a.json"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", *arguments], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (
        "scenario.yaml: there is no such file"
        in json.loads((tmp_path / "a.json").read_text())["problem"]
    )


class Counting:
    """Evaluation that counts its tasks, and ends early."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.tasks: list[Task] = []

    def __call__(self, tasks: Sequence[Task], take: Take) -> None:
        for task in tasks:
            if len(self.tasks) == self.most:
                raise KeyboardInterrupt
            self.tasks.append(task)
            take(task, Score(task.seed / 3, 0.1, 2.0) if task.seed < 2 else "held")


SUBJECT = {"scenario": "small-site", "strategy": "live", "digest": "abc"}


def test_a_second_run_simulates_what_the_first_lacks(tmp_path: Path) -> None:
    first, second = Counting(most=2), Counting()
    with pytest.raises(KeyboardInterrupt):
        results_of(Journal(tmp_path, SUBJECT).with_new(first))
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"settings": {"contr')
    results = results_of(Journal(tmp_path, SUBJECT).with_new(second))
    assert results[TASKS[0]] == Score(1 / 3, 0.1, 2.0)
    assert TASKS[0] not in second.tasks
    assert second.tasks == TASKS[1:]
    third = Counting()
    assert results_of(Journal(tmp_path, SUBJECT).with_new(third)) == results
    assert third.tasks == [task for task in TASKS if task.seed == 2]


def test_a_journal_of_other_simulations_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path, SUBJECT)
    with pytest.raises(InputError, match="has trials of another strategy, digest; name another"):
        Journal(tmp_path, {**SUBJECT, "strategy": "cron", "digest": "d"})
    (tmp_path / "trials.jsonl").write_text("[]\n[1]\n")
    with pytest.raises(InputError, match="is no journal of `sharectl tune`"):
        Journal(tmp_path, SUBJECT)
