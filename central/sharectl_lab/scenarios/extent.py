"""Work that a simulation comes to, in steps: one that would not end within a day is refused."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Optional

from sharectl.errors import ConfigError
from sharectl.files.yaml import ValuePath
from sharectl_lab.workload.draw import HOUR_SECONDS, JobStream

if TYPE_CHECKING:
    from sharectl_lab.scenarios.scenario import Scenario
    from sharectl_lab.scenarios.strategies import Strategy

MOST_STEPS = 1e9
"""Steps of a run; a million take up to a minute."""
_RECORD, _SLOT, _CHANGE = 100, 500, 100
"""Steps that the memory of a waiting job or a figure counts for, that of a slot, and a begin or end
of a phase: a run goes through each of them, though phases of milliseconds change nothing."""


def steps_of(
    scenario: Scenario, seconds: float, strategy: Optional[Strategy] = None
) -> Iterator[tuple[ValuePath, float]]:
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
        yield ("jobs", number), _of_stream(stream, cores, cycles, seconds)


def _of_stream(stream: JobStream, cores: int, cycles: float, seconds: float) -> float:
    law, hours = stream.run_time, seconds / HOUR_SECONDS
    # The mean of a wide log-normal law is of jobs so rare that a run may have none.
    usual = law.drawing(lambda: 0.5)() if law.name == "log-normal" else law.mean_seconds
    could_run = cores * seconds / max(usual, 1e-300) / stream.cores
    kinds = stream.users * stream.access_points
    steps = kinds * (_RECORD + cycles)
    begins = (1 + hours / (phase.every_hours or hours) for phase in stream.phases)
    steps += 2 * _CHANGE * sum(begins)
    bursts = prod(max(1.0, phase.factor) for phase in stream.phases)
    jobs = (stream.per_hour or 0.0) * hours * bursts + (stream.at_start or 0)
    steps += jobs + _RECORD * max(0.0, jobs - could_run)
    if stream.keep_pending is not None:
        looks, kept = 1 + seconds / stream.factory_seconds, stream.keep_pending
        steps += looks * min(kinds, kept)
        steps += min(kept * looks, kept + could_run) + _RECORD * kept
    return steps


def faults_of(
    scenario: Scenario, seconds: float, strategy: Optional[Strategy] = None
) -> Iterator[tuple[ValuePath, str]]:
    """Place and message of the part that is most, if all together are too much."""
    parts = list(steps_of(scenario, seconds, strategy))
    if sum(steps for _, steps in parts) > MOST_STEPS:
        path, steps = max(parts, key=lambda part: part[1])
        remedy = "write fewer nodes, jobs or days, or longer times"
        yield path, f"comes to {steps:.2g} steps, too many for one run; {remedy}"


def refuse_endless(scenario: Scenario, strategy: Strategy, seconds: float) -> None:
    """Raise ConfigError for a run that would not end within a day."""
    name = scenario.name or "scenario"
    for path, words in faults_of(scenario, seconds, strategy):
        raise ConfigError([f"{name}: {'.'.join(map(str, path))}: {words}"])
