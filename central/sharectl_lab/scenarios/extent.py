"""Work that a simulation comes to, in steps: one that would not end within a day is refused."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, prod
from typing import TYPE_CHECKING, NamedTuple, Optional, Union

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


class Part(NamedTuple):
    """Part of the work, by the key that sets it."""

    path: _Path
    number: float
    words: str
    """Noun of the number, and what to write."""
    steps: Optional[float] = None
    """Steps of all; None: one each."""


def parts_of(
    scenario: Scenario, seconds: float, strategy: Optional[Strategy] = None
) -> Iterator[Part]:
    """Parts of a run of so many seconds, each at most what it can come to."""
    loop = scenario.loop if strategy is None else strategy.loop_of(scenario.loop)
    defrag = strategy.defrag if strategy is not None else None
    nodes = sum(group.count for group in scenario.nodes)
    slots = sum(group.count * group.slots for group in scenario.nodes)
    cores = sum(group.count * group.cores for group in scenario.nodes)
    cycles = seconds / scenario.negotiator.interval_seconds
    longer = "write a longer one, or fewer days"
    yield Part(("nodes",), slots, "slots; lower count or slots", slots * _SLOT)
    path = ("negotiator", "interval_seconds")
    yield Part(path, cycles, f"negotiation cycles; {longer}")
    looks = nodes * seconds / loop.period_seconds
    yield Part(("loop", "period_seconds"), looks, f"looks at nodes; {longer}")
    looks = nodes * seconds / defrag.interval_seconds if defrag is not None else 0.0
    yield Part(("defrag", "interval_seconds"), looks, f"looks at nodes; {longer}")
    samples = seconds / scenario.sample_seconds
    yield Part(("sample_seconds",), samples, f"figures over time; {longer}", samples * _RECORD)
    for number, stream in enumerate(scenario.jobs):
        for part in _of_stream(stream, cores, cycles, seconds):
            yield part._replace(path=("jobs", number, *part.path))


def _of_stream(stream: JobStream, cores: int, cycles: float, seconds: float) -> Iterator[Part]:
    law, hours = stream.run_time, seconds / HOUR_SECONDS
    # The mean of a wide log-normal law is of jobs so rare that a run may have none.
    usual = law.drawing(lambda: 0.5)() if law.name == "log-normal" else law.mean_seconds
    could_run = cores * seconds / max(usual, 1e-300) / stream.cores
    kinds = stream.users * stream.access_points
    looks = kinds * (_RECORD + cycles)
    yield Part(("users",), looks, "looks at kinds of jobs; lower users or access_points")
    for phase in stream.phases:
        changes = 2 * _times(phase, hours)
        words = "begins and ends of phases; write a longer every_hours"
        yield Part(("phases",), changes, words, changes * _CHANGE)
    arriving = (stream.per_hour or 0.0) * hours
    if stream.phases and arriving:
        arriving *= _mean_factor(stream.phases, hours)
    for key, jobs in (("per_hour", arriving), ("at_start", float(stream.at_start or 0))):
        steps = jobs + _RECORD * max(0.0, jobs - could_run)
        yield Part((key,), jobs, "jobs; lower it, or write fewer days", steps)
    if stream.keep_pending is not None:
        looks, kept = 1 + seconds / stream.factory_seconds, stream.keep_pending
        yield Part(("factory_seconds",), looks * min(kinds, kept), "looks; write a longer time")
        jobs = min(kept * looks, kept + could_run)
        words = "jobs; lower it, or write a longer run_time or fewer days"
        yield Part(("keep_pending",), jobs, words, jobs + _RECORD * kept)


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
    parts = list(parts_of(scenario, seconds, strategy))
    steps = [part.number if part.steps is None else part.steps for part in parts]
    most = min(max(steps), MOST_STEPS) if sum(steps) > MOST_STEPS else inf
    for part in (part for part, own in zip(parts, steps) if own >= most):
        words, _, remedy = part.words.partition("; ")
        yield part.path, f"comes to {part.number:.2g} {words}, too many for one run; {remedy}"


def refuse_endless(scenario: Scenario, strategy: Strategy, seconds: float) -> None:
    """Raise ConfigError for a run that would not end within a day."""
    faults = faults_of(scenario, seconds, strategy)
    name = scenario.name or "scenario"
    problems = [f"{name}: {'.'.join(map(str, path))}: {words}" for path, words in faults]
    if problems:
        raise ConfigError(problems)
