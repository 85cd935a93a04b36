"""The search with a made-up simulation, whose best settings are known."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from sharectl.errors import InputError, SharectlError
from sharectl_lab.study.search import Journal, Search, SearchSize
from sharectl_lab.study.tuning import Parameter, Result, Score, Settings, Take, Task, Tuning

GIVE_UP = Parameter("control.give_up_seconds", 10_000.0, low=1, high=604_800)
LAW = Parameter("control.law", "latest", ("latest", "ewma", "pid"))
BLOCKS = Parameter("control.max_nodes", 32, low=1, high=1000, whole=True)
ALL = (GIVE_UP, LAW, BLOCKS)
SMALL = SearchSize(trials=40, batch=8, seeds=3, finalists=2)


def result(settings: Settings, seed: int) -> Result:
    """Error that is least with ewma at 500 s, and 4 % with the default."""
    values = {"control.give_up_seconds": 10_000.0, "control.law": "latest", **dict(settings)}
    error = abs(math.log(float(values["control.give_up_seconds"] or 1) / 500))
    error += 0 if values["control.law"] == "ewma" else 1
    return Score(error + seed % 3 / 100, 0.0)


class Simulations:
    """Simulations in the order that a random number decides, as they end on a pool."""

    def __init__(self, order: int = 0, most: float = math.inf) -> None:
        self.order = random.Random(order)
        self.most = most
        self.batches: list[list[Task]] = []

    def __call__(self, tasks: Sequence[Task], take: Take) -> None:
        self.batches.append(list(tasks))
        for task in sorted(tasks, key=lambda _task: self.order.random()):
            self.most -= 1
            if self.most < 0:
                raise KeyboardInterrupt
            take(task, result(*task))


def search(simulations: Simulations, seed: int = 1, size: SearchSize = SMALL) -> Tuning:
    return Search(ALL, size, seed, simulations).run()


def test_the_best_settings_come_close_to_the_optimum() -> None:
    simulations = Simulations()
    tuning = search(simulations)
    best = tuning.advised
    assert best is not None
    assert dict(best.settings)["control.law"] == "ewma"
    assert best.confirmed is not None
    assert best.confirmed.mean < 1.0
    assert best.wins == 3
    assert tuning.default.confirmed is not None
    assert tuning.default.confirmed.mean == pytest.approx(4.01, abs=0.02)
    assert tuning.complete
    searched = {task.seed for batch in simulations.batches[:-1] for task in batch}
    assert searched.isdisjoint(task.seed for task in simulations.batches[-1])


def test_a_seed_gives_the_same_whatever_the_order_of_results() -> None:
    first, second = Simulations(1), Simulations(2)
    assert search(first) == search(second)
    assert first.batches == second.batches
    assert search(Simulations(), seed=2) != search(Simulations())


def test_nothing_is_tried_twice_and_a_small_domain_ends_the_search() -> None:
    simulations = Simulations()
    tuning = Search((LAW,), SMALL, 1, simulations).run()
    assert tuning.tried == 2
    tasks = [task for batch in simulations.batches for task in batch]
    assert len(tasks) == len(set(tasks))


def test_an_interrupted_search_has_its_best_so_far() -> None:
    running = Search(ALL, SMALL, 1, Simulations(most=3 + 30))
    with pytest.raises(KeyboardInterrupt):
        running.run()
    tuning = running.tuning()
    assert not tuning.complete
    assert tuning.best
    assert tuning.advised is None
    assert 8 <= tuning.tried < 16


def test_settings_that_fail_are_left_out_and_the_rest_goes_on() -> None:
    class SomeFail(Simulations):
        def __call__(self, tasks: Sequence[Task], take: Take) -> None:
            def take_some(task: Task, score: Result) -> None:
                fails = dict(task.settings).get("control.law") == "pid"
                take(task, "pid is broken" if fails else score)

            super().__call__(tasks, take_some)

    tuning = search(SomeFail())
    assert tuning.problems == ("pid is broken",)
    assert all(dict(c.settings)["control.law"] != "pid" for c in tuning.best)
    assert tuning.best


def test_a_default_that_fails_ends_the_search_with_its_problem() -> None:
    def fail(tasks: Sequence[Task], take: Take) -> None:
        for task in tasks:
            take(task, "held: no such file")

    with pytest.raises(SharectlError, match="cannot be simulated as it is: held: no such file"):
        Search(ALL, SMALL, 1, fail).run()


SUBJECT = {"scenario": "small-site", "strategy": "live", "digest": "abc"}


def test_a_second_run_simulates_what_the_first_lacks(tmp_path: Path) -> None:
    def journal() -> Journal:
        return Journal(tmp_path, SUBJECT)

    with pytest.raises(KeyboardInterrupt):
        Search(ALL, SMALL, 1, Simulations(most=20), journal()).run()
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"settings": {"contr')
    second, third, alone = Simulations(), Simulations(), Simulations()
    tuning = Search(ALL, SMALL, 1, second, journal()).run()
    assert tuning == search(alone)
    assert sum(map(len, second.batches)) == sum(map(len, alone.batches)) - 20
    assert Search(ALL, SMALL, 1, third, journal()).run() == tuning
    assert third.batches == []


def test_a_journal_has_scores_alone_and_those_of_other_simulations_are_refused(
    tmp_path: Path,
) -> None:
    Journal(tmp_path, SUBJECT).add(Task((), 1), "no memory")
    assert Journal(tmp_path, SUBJECT).scores == {}, "a problem is tried again"
    with pytest.raises(InputError, match="has trials of another strategy, digest; name another"):
        Journal(tmp_path, {**SUBJECT, "strategy": "cron", "digest": "d"})
    for text in ("[]\n[1]\n", "[" * 100_000 + "\n"):
        (tmp_path / "trials.jsonl").write_text(text)
        with pytest.raises(InputError, match="is no journal of `sharectl tune`"):
            Journal(tmp_path, SUBJECT)
