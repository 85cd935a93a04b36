"""The law `learned` beside latest, ewma and pid, on jobs that its policy was not trained on.

Each law has the same jobs: shipped scenarios with several seeds, and the job log that LCG_SWF names
in the environment. Error: power that the wrong groups used, part of all. Idle: cores that stood
idle while jobs were pending. Churn: targets that changed in a cycle, by nodes. Score: -(error +
idle + 0.02 x churn), the mean of all cycles; 0 is the best.

    .venv/bin/python bench/learned.py policy.json [--hours 48] [--seeds 3] [SCENARIO…]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

from sharectl.config.laws import with_laws
from sharectl.control.laws import LAWS, LEARNED, Control
from sharectl.control.steering import SteeringConfig
from sharectl.sim.file import load, parse
from sharectl.sim.scenario import Scenario
from sharectl.sim.stepped import Episode, Halting
from sharectl.sim.strategy_file import read_strategies
from sharectl.sim.training import REWARD, StepFigures

SWF = Path(os.environ.get("LCG_SWF", "LCG.swf.gz"))
SCENARIOS = ("small-site", "gpu-mixed", "pilot-storm")
FIRST_SEED = 101
"""Trainings begin at 1."""
LOG = """
nodes: [{{name: wn, count: 40, cores: 32, hs06_per_core: 10}}]
groups: {{cms: {{pledge_hs06: 7000}}, atlas: {{pledge_hs06: 3000}}, lhcb: {{pledge_hs06: 2800}}}}
swf:
  file: {file}
  by: group
  groups: {{"4": cms, "1": atlas, "16": atlas, "*": lhcb}}
  multicore: {{ratio: 0.4, cores: 8}}
warmup_hours: 24
"""


def scenarios(names: list[str]) -> Iterator[tuple[str, Scenario]]:
    """Name and scenario; the log last."""
    for name in names:
        yield name, load(name)
    if SWF.is_file():
        yield "LCG log", parse(LOG.format(file=SWF), "lcg")


def measured(episode: Episode, seed: int, control: Control) -> list[StepFigures]:
    """Figures of all cycles under a law."""
    run = Halting(episode, seed, lambda steering: replace(steering, control=control, by_group={}))
    steps = []
    while not run.is_over:
        steps.append(run.step())
    return steps


def main() -> None:
    """Print a table for each scenario."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    controls = {law: Control(law) for law in LAWS}
    learned = SteeringConfig(Control(LEARNED, policy=arguments.policy.absolute()))
    controls[LEARNED] = with_laws(learned).control
    (live,) = read_strategies("live")
    for name, scenario in scenarios([*arguments.scenarios]):
        episode = Episode(scenario, live, arguments.hours * 3600.0)
        print(f"\n{name}, {arguments.hours} h, {arguments.seeds} seeds")
        print(f"{'law':8} {'error %':>8} {'idle %':>8} {'churn %':>8} {'score':>9} {'sd':>8}")
        for law, control in controls.items():
            seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
            runs = [measured(episode, seed, control) for seed in seeds]
            scores = [fmean(map(REWARD.reward, steps)) for steps in runs]
            columns = (
                100 * fmean(step[place] for steps in runs for step in steps) for place in range(3)
            )
            row = " ".join(f"{value:8.3f}" for value in columns)
            spread = stdev(scores) if len(scores) > 1 else 0.0
            print(f"{law:8} {row} {fmean(scores):9.5f} {spread:8.5f}", flush=True)


if __name__ == "__main__":
    main()
