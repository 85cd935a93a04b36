"""Twin that halts before each cycle of sharectl, for laws that learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, fsum
from typing import Callable, NamedTuple, Optional

from sharectl.control.laws import Control, Move, Reading
from sharectl.control.learned import FEATURES, Training, features, law_of
from sharectl.control.steering import SteeringConfig, steer
from sharectl.errors import InputError
from sharectl.model import OTHER
from sharectl.plan.limits import deadband_hs06
from sharectl.shares.errors import shortfalls_hs06
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import Strategy
from sharectl_lab.study.run import Run, simulate
from sharectl_lab.study.training import (
    REWARD,
    RewardWeights,
    Step,
    StepFigures,
    Weights,
    policy_of,
    score_of,
)
from sharectl_lab.twin.answers import NOTHING, WASTE, figures_of
from sharectl_lab.twin.look import Looks, unix

EARLY_SECONDS = 0.001
"""Time before a cycle at which the twin halts."""
AGENT = "agent"
"""Name of the law that puts out what it is handed."""
HALF_LIFE_SECONDS = 7200.0
"""Of the average of the error among the values of a step."""


@dataclass(frozen=True)
class Episode:
    """Time of a scenario that a policy is judged by."""

    scenario: Scenario
    strategy: Strategy
    """One that has cycles of sharectl."""
    seconds: float
    """Time after the warm-up."""


class Halting:
    """One run, with other laws than its scenario's."""

    def __init__(
        self, episode: Episode, seed: int, change: Callable[[SteeringConfig], SteeringConfig]
    ) -> None:
        self.run = Run(episode.scenario, episode.strategy, seed, episode.seconds)
        if self.run.steering is None:
            raise ValueError(f"strategy {episode.strategy.name} has no cycles of sharectl")
        self.loop = self.run.steering
        self.loop.config = replace(self.loop.config, steering=change(self.loop.config.steering))
        self.period = episode.strategy.loop_of(episode.scenario.loop).period_seconds
        self._next = self.period * (floor(self.run.begin / self.period) + 1)
        self._nodes = len(self.run.twin.nodes)
        self._cores = sum(node.spec.cores for node in self.run.twin.nodes)
        self.run.until(self._next - EARLY_SECONDS)
        self._before = self._sums()

    @property
    def has_work(self) -> bool:
        """True if a job of a group ran in the time that counts."""
        return any(work for group, work in self._before[0].items() if group != OTHER)

    @property
    def is_over(self) -> bool:
        """True if no whole step is to come."""
        return self._next - EARLY_SECONDS + self.period > self.run.end

    def step(self) -> StepFigures:
        """Run the cycle, and on to just before the next."""
        self._next += self.period
        self.run.until(self._next - EARLY_SECONDS)
        before, after = self._before, self._sums()
        self._before = after
        power = {name: (work - before[0][name]) / self.period for name, work in after[0].items()}
        present_hs06, due = self.run.twin.due_hs06(power)
        missing_hs06 = fsum(shortfalls_hs06(due, power).values())
        return StepFigures(
            shortfall_ratio=missing_hs06 / present_hs06 if present_hs06 > 0 else 0.0,
            idle_ratio=(after[1] - before[1]) / (self._cores * self.period),
            churn_ratio=(after[2] - before[2]) / self._nodes,
        )

    def _sums(self) -> tuple[dict[str, float], float, float]:
        """Work of each group, wasted core-seconds and changed targets so far."""
        twin = self.run.twin
        twin.idle.settle(twin.now)
        work = {}
        for group, measure in twin.measures.items():
            measure.use(twin.now, 0, 0.0)
            work[group] = measure.work
        wasted = fsum(twin.idle.seconds[cause] for cause in WASTE)
        return work, wasted, twin.counts["changed_targets"]


def idle_of_nothing(episode: Episode, seed: int) -> float:
    """Part of the pool's core-seconds that is idle without sharectl on the same jobs."""
    nothing = Strategy("nothing", "")
    return figures_of(simulate(episode.scenario, nothing, seed, episode.seconds)).idle_ratio


def score(
    episode: Episode,
    seed: int,
    control: Optional[Control],
    weights: RewardWeights = REWARD,
    idle_ratio: float = 0.0,
) -> float:
    """Score of a law for all groups, None for those of the scenario; idle beyond a part is bad."""
    run = Halting(episode, seed, lambda steering: _with_law(steering, control))
    rewards = []
    while not run.is_over:
        rewards.append(weights.reward(run.step()))
    if not run.has_work:
        raise InputError([f"{episode.scenario.name}: {NOTHING}"])
    return score_of(rewards) + weights.idle * idle_ratio


def _with_law(steering: SteeringConfig, control: Optional[Control]) -> SteeringConfig:
    return steering if control is None else replace(steering, control=control, by_group={})


class PolicyTrial(NamedTuple):
    """Policy to try on an episode."""

    episode: Episode
    seed: int
    weights: Weights
    half_life_seconds: float


def scores(trials: Sequence[PolicyTrial], progress: Callable[[float], None]) -> list[float]:
    """Score of each trial."""
    done: list[float] = []
    idle_ratios: dict[tuple[int, int], float] = {}
    for trial in trials:
        progress(len(done) / len(trials))
        control = control_of(trial.weights, trial.half_life_seconds)
        jobs = (id(trial.episode), trial.seed)
        if jobs not in idle_ratios:
            idle_ratios[jobs] = idle_of_nothing(trial.episode, trial.seed)
        done.append(score(trial.episode, trial.seed, control, idle_ratio=idle_ratios[jobs]))
    return done


def control_of(weights: Weights, half_life_seconds: float) -> Control:
    """Law of a policy that is being trained."""
    policy = policy_of(weights, half_life_seconds, Training((), (), "", 0.0, 0.0, ""))
    return Control("learned", loaded=law_of(policy))


class SteppedRun:
    """Twin whose outputs another program decides: a `SteppedTwin`."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.groups = tuple(episode.scenario.plan_config().shared_hs06)
        self._outputs: Optional[Mapping[str, float]] = None
        """None during the warm-up: the law is *latest*."""
        self._values: dict[str, Mapping[str, float]] = {}
        self._halting: Optional[Halting] = None
        self._looks: Optional[Looks] = None

    def reset(self, seed: int) -> Step:
        """Begin again, and halt before the first cycle after the warm-up."""
        self._outputs = None
        self._halting = Halting(self.episode, seed, self._with_agent)
        run = self._halting.run
        self._looks = Looks(run.twin.nodes, run.twin.kinds, run.meets)
        return Step(self._seen(), StepFigures(0.0, 0.0, 0.0), is_over=self._halting.is_over)

    def step(self, outputs: Mapping[str, float]) -> Step:
        """Run a cycle with these outputs, parts of all power that is shared out, to the next."""
        if self._halting is None:
            raise ValueError("the twin has not begun: call reset first")
        self._outputs = outputs
        figures = self._halting.step()
        return Step(self._seen(), figures, is_over=self._halting.is_over)

    def _with_agent(self, steering: SteeringConfig) -> SteeringConfig:
        laws = {group: Control(AGENT, loaded=partial(self._act, group)) for group in self.groups}
        return replace(steering, by_group=laws)

    def _act(
        self, group: str, state: Mapping[str, float], reading: Reading, dt_seconds: float
    ) -> Move:
        if not reading.most_hs06 > 0:
            self._values[group] = dict.fromkeys(FEATURES, 0.0)
            return Move({}, 0.0)
        values, after = features(HALF_LIFE_SECONDS, state, reading, dt_seconds)
        self._values[group] = values
        output = values["error"] if self._outputs is None else self._outputs[group]
        return Move(after, output * reading.most_hs06)

    def _seen(self) -> dict[str, Mapping[str, float]]:
        """Values that the laws of the next cycle will see."""
        if self._halting is None or self._looks is None:
            return {}
        loop, twin = self._halting.loop, self._halting.run.twin
        obeyed = [job.obeyed_at(twin.now) for job in loop.nodes.values()]
        look = self._looks.take(twin.now, twin.start_knobs, obeyed, {})
        config = loop.config
        steer(
            config.shared_hs06,
            deadband_hs06(config.limits, look.snapshot.nodes),
            config.steering,
            loop.state.controllers,
            look.snapshot,
            unix(twin.now + EARLY_SECONDS),
        )
        return dict(self._values)
