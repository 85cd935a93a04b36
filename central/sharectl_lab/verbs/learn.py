"""``sharectl learn``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from sharectl.cli import options

if TYPE_CHECKING:  # a start loads no YAML
    from sharectl_lab.study.many import Result, Task
    from sharectl_lab.study.run import Episode
    from sharectl_lab.study.training import Case, Evaluate, Weights

_MOST = 10_000
_EPILOG = """\
Trains the policy of the law `learned` on simulated pools, by a seeded evolution strategy that
begins at the law latest. Each generation tries 8 policies, each on all seeds of all scenarios. The
reward of a cycle is -(shortfall + idle + 0.02 x churn): power that was due and not used as part of
the power present, cores idle while jobs were pending beyond those that are idle without sharectl,
and targets that changed by nodes. Take scenarios in which `sharectl simulate --strategies nothing`
has a shortfall: where it has none, there is nothing to learn.

  sharectl learn bursts -o policy.json
  sharectl learn bursts site.yaml --hours 72 --seeds 3 -o /etc/sharectl/policy.json

Look at what it would do before it acts: control: {shadow: {law: learned, policy: FILE}}.
Compare it on jobs that it has not seen: bench/learned.py.

The same seed gives the same file, on any number of cores.

exit codes: 0 ok, 2 usage, 65 bad job log, or no job of a group ran, 74 the file cannot be written,
78 scenario, 130 interrupted (no file is written)"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenarios", nargs="+", metavar="SCENARIO",
        help="shipped name, or a file; several are learned from together",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=options.path, required=True, metavar="FILE", help="policy to write"
    )
    parser.add_argument(
        "--strategy", default="live", help="strategy that steers (default: %(default)s)"
    )
    for option, least, default, words in (
        ("--hours", 1, 48, "hours of each episode, after the warm-up (default: %(default)s)"),
        ("--seeds", 1, 2, "seeds of each scenario, the first is --seed (default: %(default)s)"),
        ("--seed", 0, 1, "seed of the search too (default: %(default)s)"),
        ("--generations", 1, 12, "generations (default: %(default)s)"),
        ("--jobs", 1, None, "runs at once (default: cores)"),
    ):
        whole = options.number(least, _MOST, whole=True)
        parser.add_argument(option, type=whole, default=default, metavar="N", help=words)


def _run(arguments: argparse.Namespace) -> int:
    from sharectl.config.laws import MAX_BYTES
    from sharectl.files import files
    from sharectl.files.documents import Document
    from sharectl_lab.study import many
    from sharectl_lab.study.training import Case, trained

    episodes = _episodes(arguments)
    # Before hours of work.
    files.refuse_unwritable(arguments.output)
    files.refuse_foreign(arguments.output, "{", "policy")
    document = Document(arguments.output, MAX_BYTES)
    seeds = tuple(range(arguments.seed, arguments.seed + arguments.seeds))
    cases = [Case(episode, seed) for episode in episodes for seed in seeds]
    evaluate = _evaluation(cases, arguments.jobs or many.cores())
    names = tuple(episode.scenario.name for episode in episodes)
    training = {"scenarios": names, "seeds": seeds}
    policy = trained(arguments.generations, arguments.seed, evaluate, training, _note)
    content = asdict(policy)
    document.replace(content)
    score, before = policy.training["score"], policy.training["score_before"]
    words = f"score {score:.5f}, latest {before:.5f}"
    options.show(arguments, "policy", content, [f"{arguments.output}: {words}"])
    return 0


def _episodes(arguments: argparse.Namespace) -> list[Episode]:
    from sharectl_lab.scenarios.omissions import notes_of
    from sharectl_lab.study.trial import episode_of

    days = arguments.hours / 24
    episodes = [episode_of(name, arguments.strategy, days) for name in arguments.scenarios]
    if episodes[0].strategy.steering is None:
        arguments.usage_error("--strategy: name one in which sharectl runs, such as live")
    for scenario in (episode.scenario for episode in episodes):
        options.say(f"{scenario.name}: {note}" for note in notes_of(scenario))
    return episodes


def _evaluation(cases: Sequence[Case], processes: int) -> Evaluate:
    from sharectl_lab.study.training import score, with_idle

    cases = _results([partial(with_idle, case) for case in cases], processes)

    def evaluate(policies: Sequence[Weights]) -> list[float]:
        tasks = [partial(score, case, weights) for weights in policies for case in cases]
        scores = _results(tasks, processes)
        return [fmean(scores[at : at + len(cases)]) for at in range(0, len(scores), len(cases))]

    return evaluate


def _results(tasks: Sequence[Task[Result]], processes: int) -> list[Result]:
    from sharectl_lab.study.many import run_many

    results = run_many(tasks, processes, lambda _part: None)
    if any(result is None for result in results):
        raise KeyboardInterrupt
    return [result for result in results if result is not None]


def _note(generation: int, best_score: float) -> None:
    if sys.stderr.isatty():
        options.say([f"generation {generation}: best score {best_score:.5f}"])


VERBS = {"learn": options.Verb(_run, _add, shared=("--json",), epilog=_EPILOG)}
