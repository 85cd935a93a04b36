"""Jobs of a search, with a made-up queue; tests/pool has a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Optional

import pytest

from sharectl.condor.jobs import HELD, RUNNING, QueuedJob
from sharectl.errors import InputError, PoolUnavailableError
from sharectl.sim.journal import Journal
from sharectl.sim.on_pool import Cargo, OnPool, pack
from sharectl.sim.tuning import Evaluate, Result, Score, Take, Task

CARGO = Cargo({"strategy": "live", "seconds": 86_400.0}, {"scenario.yaml": "nodes: []\n"})
TASKS = [Task((("control.law", law),), seed) for law in ("pid", "ewma") for seed in (1, 2)]


def score(question: Mapping[str, object]) -> dict[str, object]:
    settings, seed = question["settings"], question["seed"]
    assert isinstance(settings, dict)
    assert isinstance(seed, int)
    error = seed + (0.5 if settings["control.law"] == "pid" else 0.0)
    return {"score": {"shortfall_percent": error, "idle_percent": 0.0, "idle_core_hours": 0.0}}


class FakeQueue:
    """Queue whose jobs end one at each look, unless they are held.

    The first ``silent`` jobs end without an answer.
    """

    def __init__(self, folder: Path, held: int = 0, silent: int = 0) -> None:
        self.folder = folder / "jobs"
        self.held, self.silent = held, silent
        self.queue: dict[int, QueuedJob] = {}
        self.submitted: list[list[str]] = []
        self.removed: list[str] = []

    def submit(self, description: Mapping[str, str], names: Iterable[str]) -> int:
        assert description["initialdir"] == str(self.folder.resolve())
        assert description["executable"] == "python3"
        self.submitted.append(list(names))
        for number in range(len(self.submitted[-1])):
            is_held = number < self.held
            held = QueuedJob(HELD, "no such file\x1b", 1)
            self.queue[number] = held if is_held else QueuedJob(RUNNING)
        return 7

    def jobs(self, _constraint: str) -> dict[int, QueuedJob]:
        jobs = dict(self.queue)
        running = [number for number, job in jobs.items() if job.status == RUNNING]
        if self.submitted and running:
            self.end(running[0])
        for number, job in jobs.items():
            if job.status == HELD:
                self.queue[number] = job._replace(holds=job.holds + 1)
        return jobs

    def end(self, number: int) -> None:
        name = self.submitted[-1][number]
        del self.queue[number]
        if self.silent:
            self.silent -= 1
            (self.folder / f"{name}.err").write_text("Traceback\nMemoryError\n")
            return
        question = json.loads((self.folder / f"{name}.json").read_text())
        (self.folder / f"{name}.out.json").write_text(json.dumps(score(question)))

    def remove(self, constraint: str) -> None:
        self.removed.append(constraint)
        self.queue.clear()


def on_pool(folder: Path, queue: FakeQueue, notes: Optional[list[str]] = None) -> OnPool:
    lines: list[str] = [] if notes is None else notes
    python = {"executable": "python3"}
    return OnPool(queue, folder, CARGO, python, lines.append, lambda _seconds: None)


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


def test_a_job_that_htcondor_releases_no_more_is_a_problem_with_its_reason(tmp_path: Path) -> None:
    queue, notes = FakeQueue(tmp_path, held=1), list[str]()
    results = results_of(on_pool(tmp_path, queue, notes))
    assert results[TASKS[0]] == "the job was held: no such file\\x1b"
    assert [type(results[task]) for task in TASKS[1:]] == [Score] * 3
    assert queue.removed == ["ClusterId == 7 && JobStatus == 5 && NumHolds > 2"]
    assert notes.count("a job of cluster 7 is held: no such file\\x1b") == 1


def test_a_job_without_an_answer_is_a_problem_with_its_last_line(tmp_path: Path) -> None:
    results = results_of(on_pool(tmp_path, FakeQueue(tmp_path, silent=1)))
    problems = [result for result in results.values() if isinstance(result, str)]
    assert problems == ["the job ended without an answer: MemoryError"]


def test_an_interruption_removes_the_cluster(tmp_path: Path) -> None:
    queue = FakeQueue(tmp_path)
    interrupted(on_pool(tmp_path, queue))
    assert queue.removed == ["ClusterId == 7"]


def test_answers_of_a_killed_run_are_used_and_its_jobs_removed(tmp_path: Path) -> None:
    """A problem is tried again, as HTCondor would have done."""
    killed = FakeQueue(tmp_path)
    interrupted(on_pool(tmp_path, killed))
    questions = sorted((tmp_path / "jobs").glob("????????????????.json"))
    contents = (
        '{"problem": "MemoryError: "}',
        json.dumps(score(json.loads(questions[1].read_text()))),
    )
    for question, content in zip(questions, contents):
        question.with_suffix(".out.json").write_text(content)
    queue = FakeQueue(tmp_path)
    queue.queue[0] = QueuedJob(RUNNING)
    results = results_of(on_pool(tmp_path, queue))
    assert [type(results[task]) for task in TASKS] == [Score] * 4
    assert [removed.partition(" ==")[0] for removed in queue.removed] == ["Iwd"]
    (submitted,) = queue.submitted
    assert (questions[0].stem in submitted, questions[1].stem in submitted) == (True, False)


def test_an_interruption_says_if_jobs_stay(tmp_path: Path) -> None:
    class Silent(FakeQueue):
        def remove(self, _constraint: str) -> None:
            raise PoolUnavailableError("access point of this machine: no answer within 30 s")

    notes: list[str] = []
    interrupted(on_pool(tmp_path, Silent(tmp_path), notes))
    words = "access point of this machine: no answer within 30 s"
    assert notes[-1] == f"the jobs stay in the queue: {words}"


def test_a_silent_access_point_is_waited_for(tmp_path: Path) -> None:
    class Silent(FakeQueue):
        looks = 0

        def jobs(self, constraint: str) -> dict[int, QueuedJob]:
            self.looks += 1
            if self.looks == 3:
                raise PoolUnavailableError("access point of this machine: no answer within 30 s")
            return super().jobs(constraint)

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
    for text in ("[]\n[1]\n", "[" * 100_000 + "\n"):
        (tmp_path / "trials.jsonl").write_text(text)
        with pytest.raises(InputError, match="is no journal of `sharectl tune`"):
            Journal(tmp_path, SUBJECT)


@pytest.mark.parametrize("value", ["9" * 309, "NaN", "1e999", '"x"', "null", "[" * 100_000])
def test_an_answer_of_a_node_is_a_score_or_none(tmp_path: Path, value: str) -> None:
    """Anything else in it is tried again, and a problem in the end."""

    class Lying(FakeQueue):
        def end(self, number: int) -> None:
            super().end(number)
            answer = self.folder / f"{self.submitted[-1][number]}.out.json"
            answer.write_text(
                answer.read_text().replace('"idle_percent": 0.0', f'"idle_percent": {value}')
            )

    results = results_of(on_pool(tmp_path, Lying(tmp_path)))
    assert [type(results[task]) for task in TASKS] == [str] * 4
