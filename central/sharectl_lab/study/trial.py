"""Trial: the twin run with settings and a seed, on a core of this machine or on a node: an edge.

As a program, ``-m sharectl_lab.study.trial NUMBER``, it is a job of ``tune --on-pool``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional

from sharectl import __version__
from sharectl.config.laws import policy_digests
from sharectl.config.load import overridden, steering_of
from sharectl.control.laws import LAWS
from sharectl.control.steering import SteeringConfig
from sharectl.errors import ConfigError, SettingError, SharectlError
from sharectl.files.yaml import text_of as text_of_file
from sharectl.times import DAY_SECONDS
from sharectl_lab.scenarios.extent import refuse_endless
from sharectl_lab.scenarios.file import LEAST, load, render
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.scenarios.strategy_file import read_strategies
from sharectl_lab.study.many import cores, run_many
from sharectl_lab.study.run import simulate
from sharectl_lab.study.tuning import Result, Score, Settings, Take, Task, text_of
from sharectl_lab.twin.answers import NOTHING, figures_of, has_work
from sharectl_lab.workload.logged import LogSource

TASKS, WORK, SCENARIO, STRATEGY = "tasks.json", "work.json", "scenario.yaml", "strategy.yaml"
"""Names of the files on a node."""
_OF_SCENARIO = ("negotiator", "access", "start")
"""Sections of a scenario that settings vary; those of other sections are the strategy's."""


@dataclass(frozen=True)
class Work:
    """Part of a trial that all tasks have in common."""

    scenario: Scenario
    strategy: str
    """Strategy as the command line has it, such as `live:law=pid`."""
    seconds: float
    """Time that counts."""


def work_of(scenario: str, strategy: str, days: Optional[float] = None) -> Work:
    """Work of a scenario and a strategy; raises the errors of both files."""
    loaded = load(scenario)
    seconds = (days or loaded.days) * DAY_SECONDS
    refuse_endless(loaded, _strategy(strategy), loaded.warmup_seconds + seconds)
    return Work(loaded, strategy, seconds)


def sections_of(work: Work) -> tuple[dict[str, Any], frozenset[str]]:
    """Sections that settings can vary, as they are by default, and the laws that act.

    A section is None where the strategy makes no use of it.
    """
    strategy, scenario = _strategy(work.strategy), work.scenario
    config = overridden(scenario.config, strategy.control)
    steers = strategy.steering is not None
    sections = {
        "control": config.control if steers else None,
        "loop": strategy.loop_of(scenario.loop) if steers else None,
        "defrag": strategy.defrag,
        "static": strategy.static,
        **{name: getattr(scenario, name) for name in _OF_SCENARIO},
    }
    return sections, _laws(steering_of(config))


def _laws(steering: SteeringConfig) -> frozenset[str]:
    return frozenset(c.law for c in (steering.control, *steering.by_group.values()))


def run(work: Work, task: Task, progress: Callable[[float], None]) -> Optional[Result]:
    """Score of a task, or its problem; None if it was interrupted."""
    try:
        strategy = _strategy(strategy_with(work.strategy, task.settings))
        scenario = scenario_with(work.scenario, task.settings)
        outcome = simulate(scenario, strategy, task.seed, work.seconds, progress)
    except SharectlError as error:
        return "; ".join(error.problems)
    if not outcome.complete:
        return None
    if not has_work(outcome):
        return NOTHING
    seen = figures_of(outcome)
    return Score(100 * seen.shortfall_rms_ratio, 100 * seen.idle_ratio, seen.idle_core_hours)


def run_here(
    work: Work,
    processes: Optional[int],
    note: Callable[[str], object],
    tasks: Sequence[Task],
    take: Take,
) -> None:
    """Hand over the results of tasks, simulated on this machine's cores.

    Ctrl-C hands over those that are done, and raises KeyboardInterrupt.
    """

    def done(number: int, result: Optional[Result]) -> None:
        if result is not None:
            take(tasks[number], result)

    def progress(part: float) -> None:
        note(f"{part:.0%}")

    trials = [partial(run, work, task) for task in tasks]
    results = run_many(trials, processes or cores(), progress, done)
    if None in results:
        raise KeyboardInterrupt


def answer_of(number: int) -> dict[str, Any]:
    """Answer to a task of `TASKS`, as JSON has it; all files are in this folder."""
    settings, seed = json.loads(Path(TASKS).read_text(encoding="utf-8"))[number]
    work = Work(load(SCENARIO), **json.loads(Path(WORK).read_text(encoding="utf-8")))
    result = run(work, Task(tuple(settings.items()), seed), lambda _part: None)
    return {"score": result._asdict()} if isinstance(result, Score) else {"problem": result}


def cargo_of(work: Work) -> dict[str, bytes]:
    """Name of a file on a node -> its content.

    Raises ConfigError if the scenario asks the live pool, or a law is not there on nodes.
    """
    if absent := _laws(_steering(work)) - LAWS.keys():
        fact = f"law: {', '.join(sorted(absent))}: jobs on nodes have sharectl's own laws alone"
        raise ConfigError([f"control.{fact}, and no policy; leave out --on-pool"])
    return _files(work)


def _steering(work: Work) -> SteeringConfig:
    return steering_of(overridden(work.scenario.config, _strategy(work.strategy).control))


def _files(work: Work) -> dict[str, bytes]:
    scenario, strategy = work.scenario, work.strategy
    if scenario.history is not None and scenario.history.file is None:
        remedy = "write what `condor_history -json` prints to a file, and name it there"
        raise ConfigError([f"history: jobs on nodes cannot ask the pool for it; {remedy}"])
    paths = {f"start-{n}-{path.name}": path for n, path in enumerate(scenario.start.files)}
    start = replace(scenario.start, files=tuple(map(Path, paths)))
    logs = [_beside(source, paths) for source in (scenario.swf, scenario.history)]
    there = replace(scenario, start=start, swf=logs[0], history=logs[1])
    files = {SCENARIO: render(there).encode()}
    name, colon, options = strategy.partition(":")
    if "/" in name or name.endswith((".yaml", ".yml")):
        files[STRATEGY] = text_of_file(Path(name), LEAST).encode()
        strategy = f"{STRATEGY}{colon}{options}"
    files[WORK] = json.dumps({"strategy": strategy, "seconds": work.seconds}).encode()
    return files | {name: path.read_bytes() for name, path in paths.items()}


def _beside(source: Optional[LogSource], paths: dict[str, Path]) -> Optional[LogSource]:
    """Source of a log that lies beside the scenario; its file goes to ``paths``."""
    if source is None or source.file is None:
        return source
    name = f"log-{source.file.name}"
    paths[name] = source.file
    return replace(source, file=Path(name))


def subject_of(work: Work) -> dict[str, Any]:
    """Facts on which scores depend, for a journal."""
    digest = hashlib.sha256("\0".join(map(str, policy_digests(_steering(work)).values())).encode())
    files = _files(work)
    common = json.loads(files.pop(WORK))
    for content in files.values():
        digest.update(content)
    return {
        "scenario": work.scenario.name,
        "content": digest.hexdigest(),
        **common,
        "version": __version__,
    }


def strategy_with(strategy: str, settings: Settings) -> str:
    """Strategy with those settings that are its own, as the command line has it."""
    own = (pair for pair in settings if pair[0].partition(".")[0] not in _OF_SCENARIO)
    return ":".join((strategy, *(f"{key}={text_of(value)}" for key, value in own)))


def scenario_with(scenario: Scenario, settings: Settings) -> Scenario:
    """Scenario with those settings that are its own."""
    for key, value in settings:
        section, _, name = key.partition(".")
        if section in _OF_SCENARIO:
            changed = replace(getattr(scenario, section), **{name: value})
            scenario = replace(scenario, **{section: changed})
    return scenario


def _strategy(text: str) -> Strategy:
    """The one strategy of a text; raises SettingError for several."""
    strategies = read_strategies(text)
    if len(strategies) > 1:
        raise SettingError([f"--strategy {text}: is several; tune them one by one"])
    return strategies[0]


if __name__ == "__main__":
    print(json.dumps(answer_of(int(sys.argv[1]))))
