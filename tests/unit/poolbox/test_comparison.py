from __future__ import annotations

import dataclasses
import json
from math import isclose
from pathlib import Path

import pytest

from poolbox import PoolboxError, event_log
from poolbox.comparison import __main__ as command
from poolbox.comparison import recording, results, strategies, twin
from poolbox.comparison.recording import Record, Run
from poolbox.comparison.scenario import FILL_SECONDS, SCENARIOS, Comparison, Job, Node
from poolbox.demo.scenario import CHECKOUT
from sharectl.config.load import load
from sharectl_lab.scenarios.strategies import USUAL, Strategy, read_strategies

SEED = 3
RESULTS = CHECKOUT / "bench/results"


def small() -> Comparison:
    """Two nodes of 8 cores, of 80 and 160 HS06, looked at for 20 s."""
    nodes = (Node("weak", 8, 1000, 80.0), Node("strong", 8, 1000, 160.0))
    jobs = (Job(-5.0, "alice", 4, 15.0), Job(-5.0, "alice", 4, 9.0), Job(0.0, "cms", 8, 12.0))
    return Comparison("steady", 0, 20.0, nodes, {"alice": 100.0, "cms": 100.0}, jobs)


def recorded(*runs: Run) -> Record:
    return recording.record(small(), "live", "25.0", recording.usage_of(runs, small()))


def test_power_is_missing_that_is_due_to_a_group_with_jobs() -> None:
    seen = recorded(
        Run(0, "weak", -5.0, 10.0), Run(1, "strong", -5.0, 5.0), Run(2, "strong", 12.5, 18.0)
    )

    # For 10 s a job of cms waits: 8 cores of 15 HS06 are due to it, and alice's jobs hold more.
    assert seen.missing_hs06 == [120, 120, 0, 0]
    assert seen.returning_cores == [0, 0, 4, 4.8]
    assert (seen.reached_seconds, seen.reached_hours) == (10.0, 10 / 60)
    assert seen.mean_hs06 == {"alice": 40.0, "cms": 44.0}
    assert seen.idle_cores == 16 - 5.2
    assert isclose(seen.rms_percent, 100 * 120 / 2**0.5 / 240)
    assert seen.late_rms_percent == 0


def test_work_of_a_killed_job_is_lost_and_the_job_waits_again() -> None:
    alice = Run(0, "weak", -5.0, None), Run(1, "weak", -5.0, None)
    seen = recorded(*alice, Run(2, "strong", 2.0, 7.0, evicted=True))

    assert (seen.killed_jobs, seen.lost_core_seconds) == (1, 40.0)
    assert seen.missing_hs06[2:] == [120, 120]


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


STRATEGIES = read_strategies(",".join([*USUAL, "live:law=pid"]))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_sharectl_takes_the_configuration_of_a_strategy(strategy: Strategy, tmp_path: Path) -> None:
    made = SCENARIOS["steady"](SEED)
    path = tmp_path / "sharectl.yaml"
    content = strategies.sharectl_configuration(made, strategy, tmp_path, tmp_path / "t.txt")
    path.write_text(json.dumps(content))

    config = load(path)

    assert set(config.groups) == set(made.pledge_hs06)


def test_a_strategy_does_nothing_before_it_is_switched_on() -> None:
    made = SCENARIOS["steady"](SEED)
    deployed = {
        strategy.name: strategies.deployment(made, strategy, "trixie") for strategy in STRATEGIES
    }
    before = {name: repr(dataclasses.asdict(it.spec)) for name, it in deployed.items()}
    after = {name: "".join(it.switched_on.values()) for name, it in deployed.items()}

    defrag = {"defrag", "static+defrag"}
    assert {name for name, text in before.items() if "MACHINES_PER_HOUR = 0\\n" in text} == defrag
    assert {name for name, text in after.items() if "MACHINES_PER_HOUR = 3600\n" in text} == defrag
    static = {"static", "static+defrag"}
    assert {name for name, text in after.items() if "70-multicore-only" in text} == static
    assert [name for name, text in before.items() if "multicore-only" in text] == []


def test_a_table_has_means_and_spreads_of_the_runs_of_a_folder(tmp_path: Path) -> None:
    for seed, idle in ((1, 10.0), (2, 14.0)):
        run = dataclasses.replace(recorded(), seed=seed, idle_cores=idle)
        results.append(tmp_path, run)
        results.append(tmp_path, dataclasses.replace(run, strategy="nothing", idle_cores=2.0))
    (tmp_path / results.BOUND).write_text('{"steady": {"missing": 3.25}}')

    rows = results.Results.of(tmp_path).readme().splitlines()

    assert rows[5] == "| sharectl | 100.0 / - | 100.0 / - | never / - | 10.0±2.8 / - | 0 / - |"
    assert rows[6].startswith("| least possible | 3.2 / - | - / - |")
    results.append(tmp_path, dataclasses.replace(recorded(), seconds=60.0))
    with pytest.raises(PoolboxError, match="runs of several lengths"):
        results.Results.of(tmp_path)


def test_a_run_that_is_there_is_not_run_again(tmp_path: Path) -> None:
    asked = ["run", str(tmp_path), "--twin", "--strategies", "nothing", "--minutes", "1"]
    assert command.main([*asked, "--seeds", "1"]) == 0
    first = (tmp_path / results.RUNS).read_text()

    assert command.main([*asked, "--seeds", "1-2"]) == 0

    assert (tmp_path / results.RUNS).read_text().startswith(first)
    runs = [(run.scenario, run.seed) for run in results.Results.of(tmp_path).runs]
    assert runs == [(scenario, seed) for seed in (1, 2) for scenario in ("steady", "bursts")]


def test_pages_and_picture_are_what_the_results_give() -> None:
    written = results.written(results.Results.of(RESULTS))

    assert len(written) == 3
    remedy = "python -m poolbox.comparison show bench/results --write"
    for path, content in written.items():
        assert path.read_text(encoding="utf-8") == content, remedy


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_twin_has_the_jobs_of_the_pool_in_their_order(name: str) -> None:
    made = SCENARIOS[name](SEED, 60.0)
    (nothing,) = read_strategies("nothing")
    workload = twin.twin_scenario(made, nothing).workload()
    arrivals = [(arrival, workload.kinds[arrival.kind]) for arrival in workload.arrivals()]
    due = [job for job in made.jobs if job.at < 60.0]

    assert [arrival.run_seconds for arrival, _ in arrivals] == [job.run_seconds for job in due]
    assert [(kind.account, kind.cores) for _, kind in arrivals] == [
        (job.group, job.cores) for job in due
    ]
    for (arrival, _), job in zip(arrivals, due):
        assert isclose(arrival.at, FILL_SECONDS + job.at, abs_tol=0.1)
