"""Jobs of a search, with a made-up queue; tests/pool has a real one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Callable

import pytest

from sharectl.errors import PoolUnavailableError
from sharectl_lab.study import trial
from sharectl_lab.study.on_pool import OnPool, Queue
from sharectl_lab.study.tuning import Result, Score, Task
from tests.simulated import SMALL

TASKS = [Task((("control.law", "pid"),), seed) for seed in (1, 2, 3)]
SCORE = '{"score": {"shortfall_percent": 1.5, "idle_percent": 0.5}}\n'
SILENT = "access point of this machine: no answer within 120 s"


class FakeQueue(Queue):
    """Silent at first; then all jobs have ended, with ``ends``: a file's end and its text."""

    def __init__(self, folder: Path, ends: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.folder, self.ends, self.looks = folder / "jobs", ends, 0
        self.removed: list[str] = []

    def submit(self, description: Mapping[str, str], jobs: int) -> int:
        assert (description["executable"], jobs) == ("python3", len(TASKS))
        for name in description["transfer_input_files"].split(", "):
            assert (self.folder / name).exists()
        return 7

    def jobs(self, cluster: int) -> dict[int, str]:
        self.looks += 1
        if self.looks == 1:
            raise PoolUnavailableError(SILENT)
        for number, (end, text) in enumerate(self.ends):
            (self.folder / f"{cluster}.{number}.{end}").write_text(text)
        return {}

    def remove(self, constraint: str) -> None:
        self.removed.append(constraint)


def evaluated(
    queue: FakeQueue,
    cargo: Callable[[Sequence[Task]], Mapping[str, bytes]] = lambda _tasks: {"tasks": b""},
) -> tuple[list[Result], list[str]]:
    """Results of the tasks in their order, and notes."""
    results: dict[Task, Result] = {}
    notes: list[str] = []
    python = {"executable": "python3"}
    run = OnPool(
        queue, queue.folder.parent, cargo, python, notes.append, sleep=lambda _seconds: None
    )
    run(TASKS, results.__setitem__)
    return [results[task] for task in TASKS], notes


def test_a_silent_access_point_is_waited_for(tmp_path: Path) -> None:
    queue = FakeQueue(tmp_path, [("out", SCORE)] * 3)
    results, notes = evaluated(queue)
    assert results == [Score(1.5, 0.5)] * 3
    assert notes == [SILENT]
    assert queue.removed == [f'Iwd == "{queue.folder}"'], "of a search that was killed"


def test_a_job_without_an_answer_is_a_problem_with_its_reason(tmp_path: Path) -> None:
    failed = ("err", "Traceback\nMemoryError\x1b\n")
    results, _ = evaluated(FakeQueue(tmp_path, [failed, ("out", '{"problem": "no law"}')]))
    fact = "the job ended without an answer"
    assert results == [f"{fact}: MemoryError\\x1b", "no law", f"{fact}: it was removed"]


@pytest.mark.parametrize("value", ["9" * 309, "NaN", "1e999", '"x"', "null", "[" * 100_000])
def test_an_answer_of_a_node_is_a_score_or_none(tmp_path: Path, value: str) -> None:
    results, _ = evaluated(FakeQueue(tmp_path, [("out", SCORE.replace("0.5", value))] * 3))
    assert [type(result) for result in results] == [str] * 3


def test_a_job_runs_on_a_python_without_any_package(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(SMALL)
    strategy = f"live:deaf_ratio=0.5:policy={tmp_path}/policy.json"
    episode = trial.episode_of(str(tmp_path / "ours.yaml"), strategy, 0.001)
    queue = FakeQueue(tmp_path, [("out", SCORE)] * 3)
    evaluated(queue, partial(trial.cargo_of, episode))
    assert b"pathlib" not in (queue.folder / trial.TASKS).read_bytes()
    done = subprocess.run(
        [sys.executable, "-S", "-m", "sharectl_lab.study.trial", "2"],
        cwd=queue.folder, capture_output=True, check=False, env={},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = trial.run(episode, TASKS[2], lambda _part: None)
    assert isinstance(result, Score)
    assert json.loads(done.stdout) == {"score": result._asdict()}
