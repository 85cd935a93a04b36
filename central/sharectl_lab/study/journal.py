"""Journal of a search: every score as a line of JSON, so that a second run goes on: an edge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sharectl.errors import InputError
from sharectl.files.files import append_lines, open_text
from sharectl_lab.study.tuning import Evaluate, Result, Score, Take, Task, score_of

NAME = "trials.jsonl"
VERSION = 1


class Journal:
    """Scores in a file; ``subject`` tells which simulations they are of."""

    def __init__(self, folder: Path, subject: Mapping[str, Any]) -> None:
        self.path = folder / NAME
        heading = {"schema_version": VERSION, "kind": "tune-trials", **subject}
        self.scores: dict[Task, Score] = {}
        if self.path.exists() and self.path.stat().st_size:
            self._read(json.loads(json.dumps(heading)))
        else:
            append_lines(self.path, [json.dumps(heading)])

    def with_new(self, evaluate: Evaluate) -> Evaluate:
        """``evaluate``, asked only for what the journal lacks, which it gets as it comes."""

        def evaluated(tasks: Sequence[Task], take: Take) -> None:
            def add(task: Task, result: Result) -> None:
                if isinstance(result, Score):
                    self._add(task, result)
                take(task, result)

            missing = [task for task in tasks if task not in self.scores]
            for task in tasks:
                if task in self.scores:
                    take(task, self.scores[task])
            if missing:
                evaluate(missing, add)

        return evaluated

    def _add(self, task: Task, score: Score) -> None:
        row = {"settings": dict(task.settings), "seed": task.seed, "score": score._asdict()}
        append_lines(self.path, [json.dumps(row)])
        self.scores[task] = score

    def _read(self, heading: Mapping[str, Any]) -> None:
        """Read the scores; half a line of a killed run is ignored, and cut off by the next one."""
        with open_text(self.path) as file:
            lines = file.read().split("\n")[:-1]
        try:
            first, *rows = [json.loads(line) for line in lines]
            for row in rows:
                task = Task(tuple(row["settings"].items()), row["seed"])
                self.scores[task] = score_of(row["score"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(
                [f"{self.path}: is no journal of `sharectl tune`: {error}; name another folder"]
            ) from error
        if first != heading:
            differ = [key for key in heading if first.get(key) != heading[key]]
            fact = f"{self.path}: has trials of another {', '.join(differ)}"
            raise InputError([f"{fact}; name another folder with -o, or remove it"])
