"""Search by Optuna's TPE sampler, in batches: a seed gives the same settings whatever the timing.

A journal has every score, so that a second run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl.errors import InputError, MissingExtraError
from sharectl.files.files import append_lines, open_text
from sharectl_lab.study.tuning import (
    Candidate,
    Evaluate,
    Parameter,
    Result,
    Score,
    Settings,
    Task,
    Tuning,
    candidate_of,
    score_of,
)

_MOST_REPEATED = 20
"""Times that settings already tried are replaced by fresh ones, in a batch."""


@dataclass(frozen=True)
class SearchSize:
    """Size of a search."""

    trials: int = 64
    """Settings to try, beside the default."""
    batch: int = 8
    """Settings that are chosen at once."""
    seeds: int = 3
    """Seeds of each trial; the finalists and the default are compared on as many others."""
    finalists: int = 3


def library() -> Any:
    """Module optuna; raises MissingExtraError without it."""
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError(
            "tune needs Optuna, which is not installed: pip install 'sharectl[lab]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Search:
    """A search, which keeps what it has when it is interrupted."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        size: SearchSize,
        seed: int,
        evaluate: Evaluate,
        journal: Optional[Journal] = None,
    ) -> None:
        self.parameters = tuple(parameters)
        self.size = size
        middle = seed + size.seeds
        self.seeds = range(seed, middle), range(middle, middle + size.seeds)
        self.results: dict[Task, Result] = {} if journal is None else {**journal.scores}
        self.tried: list[Settings] = []
        self._default = tuple((p.key, p.default) for p in self.parameters)
        self._evaluate, self._journal = evaluate, journal
        self._optuna = library()
        self._distributions = {p.key: self._distribution(p) for p in self.parameters}
        # `constant_liar` keeps the settings of a batch apart.
        sampler = self._optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self._study = self._optuna.create_study(sampler=sampler)
        self._complete = False

    def run(self, note: Callable[[str], object] = lambda _stage: None) -> Tuning:
        """Try settings, and compare the best ones with the default on further seeds."""
        note("default")
        self._measure([()], self.seeds[0])
        default = self._candidate(())
        if default.searched is None:
            raise InputError([f"the scenario cannot be simulated as it is: {default.problem}"])
        self._begin_at_default()
        while len(self.tried) < self.size.trials:
            chosen = self._choose(min(self.size.batch, self.size.trials - len(self.tried)))
            if not chosen:
                break
            note(f"settings {len(self.tried) + 1} to {len(self.tried) + len(chosen)}")
            self._measure([settings for _, settings in chosen], self.seeds[0])
            for trial, settings in chosen:
                self._tell(trial, settings)
        note("confirmation")
        finalists = [candidate.settings for candidate in self._ranked()[: self.size.finalists]]
        self._measure([(), *finalists], self.seeds[1])
        self._complete = True
        return self.tuning()

    def tuning(self) -> Tuning:
        """Outcome so far."""
        every = [self._candidate(settings) for settings in self.tried]
        return Tuning(
            parameters=self.parameters,
            default=self._candidate(()),
            best=tuple(self._ranked()),
            tried=sum(bool(candidate.searched or candidate.problem) for candidate in every),
            problems=tuple(dict.fromkeys(c.problem for c in every if c.problem)),
            complete=self._complete,
        )

    def _measure(self, several: Sequence[Settings], seeds: Sequence[int]) -> None:
        tasks = dict.fromkeys(Task(settings, seed) for settings in several for seed in seeds)
        missing = [task for task in tasks if task not in self.results]
        if missing:
            self._evaluate(missing, self._take)

    def _take(self, task: Task, result: Result) -> None:
        self.results[task] = result
        if self._journal is not None:
            self._journal.add(task, result)

    def _ranked(self) -> list[Candidate]:
        every = map(self._candidate, self.tried)
        return sorted((candidate for candidate in every if candidate.searched), key=_rank)

    def _candidate(self, settings: Settings) -> Candidate:
        return candidate_of(settings, self.results, self.seeds)

    # ---- the library

    def _begin_at_default(self) -> None:
        """Let the sampler know the default's score, if the domains have it."""
        score = self._candidate(()).searched
        if score is not None and all(p.admits(p.default) for p in self.parameters):
            trial = self._optuna.trial.create_trial(
                params=dict(self._default),
                distributions=self._distributions,
                value=score.mean,
            )
            self._study.add_trial(trial)

    def _distribution(self, parameter: Parameter) -> Any:
        kinds = self._optuna.distributions
        if parameter.choices:
            return kinds.CategoricalDistribution(parameter.choices)
        kind = kinds.IntDistribution if parameter.whole else kinds.FloatDistribution
        return kind(parameter.low, parameter.high, log=parameter.log)

    def _choose(self, count: int) -> list[tuple[Any, Settings]]:
        """Settings to try next, with the library's trials; none twice, unless nothing else is."""
        chosen: list[tuple[Any, Settings]] = []
        repeated = 0
        while len(chosen) < count:
            trial = self._study.ask(self._distributions)
            settings = tuple((p.key, p.rounded(trial.params[p.key])) for p in self.parameters)
            if settings in self.tried or settings == self._default:
                self._tell(trial, () if settings == self._default else settings)
                repeated += 1
                if repeated > _MOST_REPEATED:
                    break
                continue
            self.tried.append(settings)
            chosen.append((trial, settings))
        return chosen

    def _tell(self, trial: Any, settings: Settings) -> None:
        searched = self._candidate(settings).searched
        if searched is None:
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, searched.mean)


def _rank(candidate: Candidate) -> tuple[bool, float]:
    """Confirmed candidates first, then by the objective."""
    spread = candidate.confirmed or candidate.searched
    return candidate.confirmed is None, spread.mean if spread else float("inf")


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

    def add(self, task: Task, result: Result) -> None:
        """Write a score; problems are tried again by the next run."""
        if isinstance(result, Score):
            row = {"settings": dict(task.settings), "seed": task.seed, "score": result._asdict()}
            append_lines(self.path, [json.dumps(row)])

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
