"""Work that a simulation comes to, in steps: one that would not end within a day is refused."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, prod
from typing import TYPE_CHECKING, Optional, Union

from sharectl.errors import ConfigError
from sharectl_lab.workload.draw import HOUR_SECONDS, JobStream, Phase

if TYPE_CHECKING:
    from sharectl_lab.scenarios.scenario import Scenario
    from sharectl_lab.scenarios.strategies import Strategy

_Path = tuple[Union[str, int], ...]

MOST_STEPS = 1e9
"""Steps of a run; a million take up to a minute."""
_RECORD, _SLOT, _CHANGE = 100, 500, 100
"""Steps that the memory of a waiting job or a figure counts for, that of a slot, and a begin or end
of a phase: a run goes through each of them, though phases of milliseconds change nothing."""


def steps_of(
    scenario: Scenario, seconds: float, strategy: Optional[Strategy] = None
) -> Iterator[tuple[_Path, float]]:
    """Key and steps of each part of a run of so many seconds, at most."""
    loop = scenario.loop if strategy is None else strategy.loop_of(scenario.loop)
    nodes = sum(group.count for group in scenario.nodes)
    cores = sum(group.count * group.cores for group in scenario.nodes)
    cycles = seconds / scenario.negotiator.interval_seconds
    yield ("nodes",), sum(group.count * group.slots for group in scenario.nodes) * _SLOT
    yield ("negotiator", "interval_seconds"), cycles
    yield ("loop", "period_seconds"), nodes * seconds / loop.period_seconds
    if strategy is not None and strategy.defrag is not None:
        looks = nodes * seconds / strategy.defrag.interval_seconds
        yield ("defrag", "interval_seconds"), looks
    yield ("sample_seconds",), seconds / scenario.sample_seconds * _RECORD
    for number, stream in enumerate(scenario.jobs):
        for key, steps in _of_stream(stream, cores, cycles, seconds):
            yield ("jobs", number, key), steps


def _of_stream(
    stream: JobStream, cores: int, cycles: float, seconds: float
) -> Iterator[tuple[str, float]]:
    law, hours = stream.run_time, seconds / HOUR_SECONDS
    # The mean of a wide log-normal law is of jobs so rare that a run may have none.
    usual = law.drawing(lambda: 0.5)() if law.name == "log-normal" else law.mean_seconds
    could_run = cores * seconds / max(usual, 1e-300) / stream.cores
    kinds = stream.users * stream.access_points
    yield "users", kinds * (_RECORD + cycles)
    yield "phases", sum(2 * _times(phase, hours) for phase in stream.phases) * _CHANGE
    arriving = (stream.per_hour or 0.0) * hours
    if stream.phases and arriving:
        arriving *= _mean_factor(stream.phases, hours)
    for key, jobs in (("per_hour", arriving), ("at_start", float(stream.at_start or 0))):
        yield key, jobs + _RECORD * max(0.0, jobs - could_run)
    if stream.keep_pending is not None:
        looks, kept = 1 + seconds / stream.factory_seconds, stream.keep_pending
        yield "factory_seconds", looks * min(kinds, kept)
        yield "keep_pending", min(kept * looks, kept + could_run) + _RECORD * kept


def _times(phase: Phase, hours: float) -> float:
    return 1 + hours / phase.every_hours if phase.every_hours is not None else 1.0


def _mean_factor(phases: tuple[Phase, ...], hours: float) -> float:
    """Mean of the factors, at most: where one burst is in force, all may be."""
    bursts = [phase for phase in phases if phase.factor > 1]
    part = sum(_times(phase, hours) * phase.length_hours / hours for phase in bursts)
    most = prod(phase.factor for phase in bursts)
    return min(most, 1 + part * most)


def faults_of(
    scenario: Scenario, seconds: float, strategy: Optional[Strategy] = None
) -> Iterator[tuple[_Path, str]]:
    """Place and message of each part that is too much, or of the largest if all together are."""
    parts = list(steps_of(scenario, seconds, strategy))
    largest = max(steps for _, steps in parts)
    most = min(largest, MOST_STEPS) if sum(steps for _, steps in parts) > MOST_STEPS else inf
    for path, steps in parts:
        if steps >= most:
            remedy = "write fewer nodes, jobs or days, or longer times"
            yield path, f"comes to {steps:.2g} steps, too many for one run; {remedy}"


def refuse_endless(scenario: Scenario, strategy: Strategy, seconds: float) -> None:
    """Raise ConfigError for a run that would not end within a day."""
    faults = faults_of(scenario, seconds, strategy)
    name = scenario.name or "scenario"
    problems = [f"{name}: {'.'.join(map(str, path))}: {words}" for path, words in faults]
    if problems:
        raise ConfigError(problems)
