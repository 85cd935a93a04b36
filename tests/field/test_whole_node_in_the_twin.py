"""Jobs of the twin that take a whole node: `RequestCpus = TARGET.TotalCpus`, on nodes of two sizes.

Their request has no value that a scenario could have for all nodes.
"""

from __future__ import annotations

import pytest

from sharectl.errors import ConfigError
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import Run
from sharectl_lab.twin.look import Looks
from tests.field.simulated import Simulate, notes, simulate

__all__ = ["simulate"]
POOL = """\
nodes: [{name: small, count: 2, cores: 8}, {name: large, count: 1, cores: 16}]
groups: {cms: {pledge_hs06: 320}}
warmup_hours: 0
days: 0.5
jobs: [{group: cms, whole_node: true, run_time: "3600", keep_pending: 6}]
"""


def test_a_job_takes_all_cores_of_its_node(simulate: Simulate) -> None:
    simulated = simulate(POOL)
    assert simulated.code == 0
    assert not simulated.notes
    assert simulated.strategy["groups"]["cms"]["waits_by_cores"].keys() == {"8", "16"}
    assert simulated.strategy["used_ratio"]["mean"] > 0.9


def test_no_node_is_whole_while_another_job_runs_there(simulate: Simulate) -> None:
    single = '{group: cms, run_time: "864000", at_start: 3}'
    simulated = simulate(POOL.replace("jobs: [", f"jobs: [{single}, "))
    starts = simulated.strategy["groups"]["cms"]["waits_by_cores"]
    assert {"1", "16"} <= starts.keys()


def test_waiting_jobs_count_by_the_sizes_of_nodes() -> None:
    """As a snapshot of a pool shares them out."""
    (nothing,) = read_strategies("nothing")
    run = Run(file.parse(POOL, "mine.yaml"), nothing, 1, 3600.0)
    run.until(600.0)
    looks = Looks(run.twin, run.meets)
    pending = looks.take([None] * 3, {}).snapshot.pending
    assert {jobs.cores: jobs.jobs for jobs in pending if jobs.placeable} == {8: 4, 16: 2}


def test_cores_beside_a_whole_node_are_refused() -> None:
    with pytest.raises(ConfigError, match="whole_node takes all cores of a node; leave cores out"):
        notes(POOL.replace("whole_node: true", "whole_node: true, cores: 4"))
