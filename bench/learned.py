"""The law `learned` beside latest, ewma and pid, on jobs that its policy was not trained on.

Each law has the same jobs: shipped scenarios with several seeds, NAME@FACTOR with so many times the
nodes, and the job log that LCG_SWF names in the environment. The log's pool has fewer cores than
the jobs want, so that each group waits. Shortfall: power that was due and not used, part of the
power present. Idle: cores that stood idle while jobs were pending. Churn: targets that changed in a
cycle, by nodes. Score: -(shortfall + idle + 0.02 x churn), the mean of all cycles; 0 is the best.
Gain: the score less that of latest on the same jobs, and its standard deviation over the seeds.

    LCG_SWF=LCG.swf.gz .venv/bin/python bench/learned.py [--keep policy.json]

trains a policy first, for some ten minutes; --policy FILE compares another.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.twin import scaled
from sharectl.cli.main import main as sharectl
from sharectl.config.laws import with_laws
from sharectl.control.laws import LAWS, LEARNED, Control
from sharectl.control.steering import SteeringConfig
from sharectl_lab.scenarios.file import load, parse, render
from sharectl_lab.scenarios.scenario import Scenario
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.many import cores
from sharectl_lab.study.run import Episode
from sharectl_lab.study.training import steps_of

SWF = Path(os.environ.get("LCG_SWF", "LCG.swf.gz"))
SCENARIOS = ("bursts", "infn-t1@0.05", "bench/scenarios/short.yaml")
FIRST_SEED = 101
"""Trainings begin at 1."""
TRAINED_ON = ("bursts", "infn-t1@0.02")
TRAINING = ("--hours", "24", "--seeds", "2", "--generations", "6")
LOG = """
nodes: [{{name: wn, count: 30, cores: 32, hs06_per_core: 10}}]
groups: {{cms: {{pledge_hs06: 5600}}, atlas: {{pledge_hs06: 2200}}, lhcb: {{pledge_hs06: 1800}}}}
swf:
  file: {file}
  by: group
  groups: {{"4": cms, "1": atlas, "16": atlas, "*": lhcb}}
  multicore: {{ratio: 0.4, cores: 8}}
warmup_hours: 24
"""


def scenario_of(name: str) -> Scenario:
    """Scenario of NAME, or of NAME@FACTOR."""
    name, _, factor = name.partition("@")
    return scaled(load(name), float(factor)) if factor else load(name)


def scenarios(names: list[str]) -> Iterator[tuple[str, Scenario]]:
    """Name and scenario; the log last."""
    for name in names:
        yield name, scenario_of(name)
    if SWF.is_file():
        yield "LCG log", parse(LOG.format(file=SWF), "lcg")


def trained(folder: Path) -> Path:
    """Policy that is trained now."""
    files = []
    for name in TRAINED_ON:
        files.append(folder / f"{name}.yaml")
        files[-1].write_text(render(scenario_of(name)), encoding="utf-8")
    policy = folder / "policy.json"
    if sharectl(["learn", *map(str, files), *TRAINING, "-o", str(policy)]):
        raise SystemExit("the training failed")
    return policy


def compare(episode: Episode, controls: dict[str, Control], seeds: range) -> None:
    """Print a row for each law."""
    print(
        f"{'law':8} {'short %':>8} {'idle %':>8} {'churn %':>8} {'score':>9} {'gain':>9} {'sd':>8}"
    )
    first: list[float] = []
    with ProcessPoolExecutor(cores()) as processes:
        for law, control in controls.items():
            runs = list(processes.map(partial(steps_of, episode, control=control), seeds))
            scores = [fmean(step.reward for step in steps) for steps in runs]
            first = first or scores
            gains = [score - before for score, before in zip(scores, first)]
            columns = (
                100 * fmean(step[place] for steps in runs for step in steps) for place in range(3)
            )
            row = " ".join(f"{value:8.3f}" for value in columns)
            spread = stdev(gains) if len(gains) > 1 else 0.0
            words = f"{row} {fmean(scores):8.5f} {fmean(gains):8.5f} {spread:8.5f}"
            print(f"{law:8} {words}", flush=True)


def main() -> None:
    """Print a table for each scenario."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS, metavar="SCENARIO")
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the policy")
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    controls = {law: Control(law) for law in LAWS}
    with tempfile.TemporaryDirectory() as folder:
        policy = (arguments.policy or trained(Path(folder))).absolute()
        controls[LEARNED] = with_laws(SteeringConfig(Control(LEARNED, policy=policy))).control
        if arguments.keep:
            arguments.keep.write_bytes(policy.read_bytes())
    (live,) = read_strategies("live")
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    for name, scenario in scenarios([*arguments.scenarios]):
        print(f"\n{name}, {arguments.hours} h, {arguments.seeds} seeds")
        episode = Episode(replace(scenario, days=arguments.hours / 24), live)
        compare(episode, controls, seeds)


if __name__ == "__main__":
    main()
