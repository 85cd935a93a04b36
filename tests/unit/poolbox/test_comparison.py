from __future__ import annotations

from math import isclose

import pytest

from poolbox.comparison import recording, results, twin
from poolbox.comparison.recording import Record, Run
from poolbox.comparison.scenario import FILL_SECONDS, SCENARIOS, Comparison, Job, Node
from poolbox.demo.scenario import CHECKOUT
from sharectl_lab.scenarios.strategies import read_strategies

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
