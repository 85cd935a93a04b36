"""Journal of a search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sharectl.errors import InputError
from sharectl_lab.study.journal import Journal
from sharectl_lab.study.tuning import Evaluate, Result, Score, Take, Task

TASKS = [Task((("control.law", law),), seed) for law in ("pid", "ewma") for seed in (1, 2)]


def results_of(evaluate: Evaluate) -> dict[Task, Result]:
    results: dict[Task, Result] = {}
    evaluate(TASKS, results.__setitem__)
    return results


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
