"""Trial: the twin run with settings and a seed: an edge.

As a program, ``-m sharectl_lab.study.trial N``, it answers to a task of `TASKS` on a node.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Optional

from sharectl import __version__
from sharectl.config.laws import policy_digests
from sharectl.config.load import overridden, steering_of
from sharectl.config.model import ControlConfig
from sharectl.control.laws import LAWS
from sharectl.errors import ConfigError, SettingError, SharectlError
from sharectl.times import DAY_SECONDS
from sharectl_lab.scenarios.extent import refuse_endless
from sharectl_lab.scenarios.file import load, render
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.many import Progress, cores, run_many
from sharectl_lab.study.run import Episode, simulate
from sharectl_lab.study.tuning import Result, Score, Settings, Take, Task, text_of
from sharectl_lab.twin.answers import NOTHING, figures_of, has_work

_OF_SCENARIO = ("negotiator", "access", "start")
"""Sections of a scenario that settings vary; those of other sections are the strategy's."""
TASKS = "tasks.pickle"
"""File of a job's folder."""


def episode_of(scenario: str, strategy: str, days: Optional[float] = None) -> Episode:
    """Episode of a scenario and a strategy; raises the errors of both files."""
    loaded, strategies = load(scenario), read_strategies(strategy)
    if len(strategies) > 1:
        raise SettingError([f"--strategy {strategy}: is several; take them one by one"])
    loaded = replace(loaded, days=days or loaded.days)
    refuse_endless(loaded, strategies[0], loaded.end_seconds)
    return Episode(loaded, strategies[0])


def sections_of(episode: Episode) -> dict[str, Any]:
    """Sections that settings can vary, as they are by default; None for one without effect."""
    strategy, scenario = episode.strategy, episode.scenario
    steers = strategy.steering is not None
    return {
        "control": overridden(scenario.config, strategy.control_settings).control
        if steers
        else None,
        "loop": strategy.loop_of(scenario.loop) if steers else None,
        "defrag": strategy.defrag,
        "static": strategy.static,
        **{name: getattr(scenario, name) for name in _OF_SCENARIO},
    }


def changed(episode: Episode, settings: Settings) -> Episode:
    """Episode with these settings, each of a section of the scenario or of the strategy."""
    for key, value in settings:
        section, _, name = key.partition(".")
        strategy = episode.strategy
        if section in _OF_SCENARIO:
            episode = replace(episode, scenario=_changed(episode.scenario, section, name, value))
            continue
        if section == "control":
            control = (*strategy.control_settings, f"{key}={text_of(value)}")
            strategy = replace(strategy, control_settings=control)
        elif section == "loop":
            loop = (*strategy.loop_settings, (name, value))
            strategy = replace(strategy, loop_settings=loop)
        else:
            strategy = _changed(strategy, section, name, value)
        episode = replace(episode, strategy=strategy)
    return episode


def _changed(record: Any, section: str, name: str, value: Any) -> Any:
    return replace(record, **{section: replace(getattr(record, section), **{name: value})})


def run(episode: Episode, task: Task, progress: Progress) -> Optional[Result]:
    """Score of a task, or its problem; None if it was interrupted."""
    try:
        tried = changed(episode, task.settings)
        outcome = simulate(tried.scenario, tried.strategy, task.seed, progress=progress)
    except SharectlError as error:
        return "; ".join(error.problems)
    if not outcome.complete:
        return None
    if not has_work(outcome):
        return NOTHING
    seen = figures_of(outcome)
    return Score(100 * seen.shortfall_rms_ratio, 100 * seen.idle_ratio)


def run_here(
    episode: Episode,
    processes: Optional[int],
    progress: Progress,
    tasks: Sequence[Task],
    take: Take,
) -> None:
    """Hand over results of tasks, simulated on this machine; Ctrl-C then raises an error."""

    def done(number: int, result: Optional[Result]) -> None:
        if result is not None:
            take(tasks[number], result)

    trials = [partial(run, episode, task) for task in tasks]
    results = run_many(trials, processes or cores(), progress, done)
    if None in results:
        raise KeyboardInterrupt


def subject_of(episode: Episode) -> dict[str, Any]:
    """Facts on which scores depend, for a journal."""
    scenario, digest = episode.scenario, hashlib.sha256()
    steering = steering_of(overridden(scenario.config, episode.strategy.control_settings))
    facts = (episode.strategy, tuple(scenario.logged), *policy_digests(steering).values())
    digest.update("\0".join((render(scenario), *map(repr, facts))).encode())
    return {
        "scenario": scenario.name,
        "content": digest.hexdigest(),
        "strategy": episode.strategy.name,
        "seconds": scenario.days * DAY_SECONDS,
        "version": __version__,
    }


# ---- on a node


def cargo_of(episode: Episode, tasks: Sequence[Task]) -> dict[str, bytes]:
    """File of a node -> its content; raises ConfigError if a law is not there on nodes."""
    scenario = episode.scenario
    steering = steering_of(overridden(scenario.config, episode.strategy.control_settings))
    laws = {control.law for control in (steering.control, *steering.by_group.values())}
    if absent := laws - LAWS.keys():
        fact = f"law: {', '.join(sorted(absent))}: jobs on nodes have sharectl's own laws alone"
        raise ConfigError([f"control.{fact}, and no policy; leave out --on-pool"])
    # Without paths, which no node reads: Python 3.13 pickles them as no earlier version reads them.
    swf, history = (
        log and replace(log, file=None)  # type: ignore[arg-type]
        for log in (scenario.swf, scenario.history)
    )
    strategy = replace(episode.strategy, control=ControlConfig())
    there = Episode(replace(scenario, swf=swf, history=history), strategy)
    return {TASKS: pickle.dumps((there, list(tasks)), protocol=4)}


def answer_of(number: int) -> dict[str, Any]:
    """Answer to a task of `TASKS`, as JSON has it; the file is in this folder."""
    episode, tasks = pickle.loads(Path(TASKS).read_bytes())  # noqa: S301 - of the submitter
    result = run(episode, tasks[number], lambda _part: None)
    return {"score": result._asdict()} if isinstance(result, Score) else {"problem": result}


if __name__ == "__main__":
    print(json.dumps(answer_of(int(sys.argv[1]))))
