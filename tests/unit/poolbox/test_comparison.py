from __future__ import annotations

import dataclasses
import json
from math import isclose
from pathlib import Path

import pytest

from poolbox import PoolboxError, event_log
from poolbox.comparison import deviation, recording, strategies
from poolbox.comparison.recording import Figures, Run, figures
from poolbox.comparison.scenario import SCENARIOS, Comparison, Job, Node
from sharectl.config.load import load
from sharectl.sim.strategies import Strategy
from sharectl.sim.strategy_file import USUAL, read_strategies

SEED = 3


def small() -> Comparison:
    """Two nodes of 8 cores, of 80 and 160 HS06, looked at for 20 s."""
    nodes = (Node("weak", 8, 1000, 80.0), Node("strong", 8, 1000, 160.0))
    jobs = (Job(-5.0, "alice", 4, 10, 15.0), Job(0.0, "cms", 8, 10, 12.0))
    return Comparison("small", 0, 60.0, 20.0, 5.0, nodes, {"alice": 100.0, "cms": 100.0}, jobs)


def test_figures_count_cores_and_power_while_jobs_run_and_only_in_the_time_that_counts() -> None:
    runs = [Run(0, "weak", -5.0, 10.0), Run(1, "strong", 5.0, None)]

    seen = figures(runs, small(), step=10.0)

    assert seen.times == (10.0, 20.0)
    assert seen.cores == {"alice": (4.0, 0.0), "cms": (4.0, 8.0)}
    assert seen.power_hs06 == {"alice": (40.0, 0.0), "cms": (80.0, 160.0)}
    assert seen.idle_cores == (8.0, 8.0)
    assert seen.idle_core_seconds == 160.0
    # Errors of cms: 80 - 120 / 2 = 20, and 160 - 160 / 2 = 80.
    assert isclose(seen.rms_hs06["cms"], ((20**2 + 80**2) / 2) ** 0.5)
    assert seen.worst_rms_hs06 == seen.rms_hs06["cms"]
    assert seen.starts_by_cores == {4: 0, 8: 1}
    assert seen.done_by_cores == {4: 1}


def test_work_of_an_evicted_job_is_lost_and_the_job_is_not_done() -> None:
    seen = figures([Run(1, "weak", 2.0, 7.0, evicted=True)], small())

    assert (seen.evicted_jobs, seen.lost_core_seconds) == (1, 40.0)
    assert seen.done_by_cores == {8: 0}


def event(number: str, job: str, second: int, text: str = "") -> str:
    return f"{number} ({job}.000) 2026-01-01T00:00:{second:02}.500Z Job\n{text}...\n"


def test_runs_of_an_event_log_have_the_jobs_place_in_the_list(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    slot = "\tSlotName: slot1_1@weak\n"
    log.write_text(
        event("000", "007.001", 0)
        + event("001", "007.001", 10, slot)
        + event("004", "007.001", 14)
        + event("001", "007.001", 20, slot)
        + event("005", "007.001", 30)
        + event("001", "008.000", 31, slot)
    )
    began = event_log.times(log, "000")[0]

    assert recording.runs_of(log, {7: 40, 8: 90}, began) == [
        Run(41, "weak", 10.0, 14.0, evicted=True),
        Run(41, "weak", 20.0, 30.0),
        Run(90, "weak", 31.0, None),
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_made_from_its_seed_alone_and_survives_a_file(name: str) -> None:
    made = SCENARIOS[name](SEED)

    assert SCENARIOS[name](SEED) == made
    assert SCENARIOS[name](SEED + 1).jobs != made.jobs
    assert Comparison.from_json(json.loads(json.dumps(made.as_json()))) == made
    assert list(made.jobs) == sorted(made.jobs, key=lambda job: job.at)


@pytest.mark.parametrize("name", SCENARIOS)
def test_one_core_jobs_can_hold_the_pool_to_the_end(name: str) -> None:
    made = SCENARIOS[name](SEED)
    work = sum(job.run_seconds for job in made.jobs if job.cores == 1)

    assert work > made.cores * (made.seconds + made.warm_up_seconds)


STRATEGIES = read_strategies(",".join([*USUAL, "live:law=pid"]))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_sharectl_takes_the_configuration_of_a_strategy(strategy: Strategy, tmp_path: Path) -> None:
    made = SCENARIOS["two-groups"](SEED)
    path = tmp_path / "sharectl.yaml"
    content = strategies.sharectl_configuration(made, strategy, tmp_path, tmp_path / "t.txt")
    path.write_text(json.dumps(content))

    config = load(path)

    assert set(config.groups) == set(made.pledge_hs06)


def test_a_strategy_configures_its_own_hosts_alone() -> None:
    made = SCENARIOS["two-groups"](SEED)
    text = {
        strategy.name: dataclasses.asdict(strategies.deployment(made, strategy, "trixie").spec)
        for strategy in STRATEGIES
    }
    marks = {"defrag": "DEFRAG_INTERVAL = 10", "static": "70-multicore-only", "grace": "SHARECTL_"}
    having = {
        mark: {name for name, spec in text.items() if word in repr(spec)}
        for mark, word in marks.items()
    }

    assert having == {
        "defrag": {"defrag", "static+defrag"},
        "static": {"static", "static+defrag"},
        "grace": {"grace", "cron", "live", "live:law=pid"},
    }


def test_what_no_pool_can_do_is_refused() -> None:
    (strategy,) = read_strategies("live:failing_ratio=0.5")

    with pytest.raises(PoolboxError, match="failing_ratio can be tried in the twin alone"):
        strategies.deployment(SCENARIOS["two-groups"](SEED), strategy, "trixie")


@pytest.mark.parametrize(("recipe", "concurrent"), [("defrag", 2), ("defrag:recipe=quattor", 1)])
def test_a_recipe_keeps_its_proportion_of_draining_to_whole_nodes(
    recipe: str, concurrent: int
) -> None:
    (strategy,) = read_strategies(recipe)
    assert strategy.defrag

    scaled = strategies.scaled_defrag(strategy.defrag, SCENARIOS["two-groups"](SEED))

    assert (scaled.max_whole, scaled.max_concurrent) == (5, concurrent)
    assert scaled.machines_per_hour == 60 * strategy.defrag.machines_per_hour


def figures_of_cores(cores: float, rms_hs06: float = 0.0) -> Figures:
    return Figures(
        times=(5.0,),
        cores={"alice": (cores,)},
        power_hs06={"alice": (cores,)},
        idle_cores=(0.0,),
        rms_hs06={"alice": rms_hs06},
        starts_by_cores={},
        done_by_cores={},
        evicted_jobs=0,
        lost_core_seconds=0.0,
    )


def test_a_deviation_is_an_error_as_far_as_it_is_beyond_chance() -> None:
    twins = [figures_of_cores(cores) for cores in (40, 50, 60)]
    (seen,) = deviation.deviations(figures_of_cores(90), figures_of_cores(50), twins, 100)

    assert isclose(seen.ratio, 0.4)
    assert isclose(seen.chance, 2 * 0.1 * (4 / 3) ** 0.5)
    assert isclose(seen.error, seen.ratio - seen.chance)
    assert seen.same_jobs == 0.5
    (within,) = deviation.deviations(figures_of_cores(60), figures_of_cores(50), twins, 100)
    assert within.error == 0


def test_an_order_is_contradicted_by_pools_that_differ_more_than_chance_alone() -> None:
    twins = {"live": (100.0, 110.0), "defrag": (80.0, 90.0)}

    assert deviation.contradictions({"live": 95.0, "defrag": 100.0}, twins) == []
    assert deviation.contradictions({"live": 95.0, "defrag": 200.0}, twins) == [
        "live is 105 HS06 better than defrag on pools, and 20 HS06 worse in the twin"
    ]
    assert deviation.contradictions({"live": 200.0, "defrag": 95.0}, twins) == []
