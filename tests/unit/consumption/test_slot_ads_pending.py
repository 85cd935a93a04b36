from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sharectl.condor.ads import ad_of_long
from sharectl.consumption.asks import MOST_SHAPES, job_keys, job_kinds_of

SLOT = {
    "PartitionableSlot": "true",
    "MachineResources": '"Cpus Memory Disk GPUs Licence"',
    "ConsumptionCpus": "target.RequestCpus + target.Factor",
    "Requirements": "Start",
    "Start": "TARGET.Tier =!= 3",
}


class FakeSchedd:
    """A schedd that has counted its jobs."""

    def __init__(self, *rows: str) -> None:
        self.rows = [f"{row}\nJobStatus = 1" for row in rows]

    def query(
        self, *, constraint: str, projection: Sequence[str], opts: Any, limit: int
    ) -> list[Any]:
        assert {*constraint.split()[:1], "RequestCpus"} <= {*projection}
        assert opts is not None
        return [ad_of_long(row) for row in self.rows[:limit]]


def test_jobs_are_told_apart_by_all_that_slots_and_matches_look_at() -> None:
    keys = {key.lower() for key in job_keys([SLOT])}
    assert keys >= {"requestgpus", "requestlicence", "tier", "factor", "accountinggroup"}
    assert keys >= {"requestcpus", "requestmemory", "requestdisk", "requirements", "jobuniverse"}
    assert "cmd" not in keys


def test_kinds_are_those_of_jobs_for_slots_the_commonest_first() -> None:
    rows = ['JobCount = 1\nJobIds = "1.0"', 'JobCount = 2\nJobIds = "2.0 3.4"']
    schedd = FakeSchedd(*rows, "JobCount = 9\nJobUniverse = 7")
    jobs, left_out = job_kinds_of(schedd, "ap-1", job_keys([SLOT]))
    assert [(alike.ad.place, alike.count) for alike in jobs] == [
        ("job 2.0 of ap-1", 2),
        ("job 1.0 of ap-1", 1),
    ]
    assert left_out == 0


def test_kinds_that_are_left_out_are_counted() -> None:
    rows = [f"RequestMemory = {mib}" for mib in range(MOST_SHAPES + 3)]
    kinds, left_out = job_kinds_of(FakeSchedd(*rows), "ap-1", job_keys([SLOT]))
    assert (len(kinds), left_out) == (MOST_SHAPES, 3)
