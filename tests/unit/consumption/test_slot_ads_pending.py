from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import classad2
import pytest

from sharectl.condor.expressions import words_of_text
from sharectl.consumption.asks import MOST_SHAPES, job_keys, job_kinds_of

SLOT = {
    "PartitionableSlot": "true",
    "MachineResources": '"Cpus Memory Disk GPUs Licence"',
    "ConsumptionCpus": "target.RequestCpus",
    "Requirements": "Start",
    "Start": "TARGET.Tier =!= 3",
}
JOB = {
    "ProcId": "0",
    "JobStatus": "1",
    "JobUniverse": "5",
    "AccountingGroup": '"cms.bob"',
    "RequestCpus": "1",
    "RequestMemory": "100",
    "RequestDisk": "10",
    "Requirements": "TARGET.Memory >= RequestMemory",
}


class FakeSchedd:
    """A queue that groups jobs as HTCondor's does: by the keys and by attributes in their texts."""

    def __init__(self, *jobs: Mapping[str, str]) -> None:
        self.jobs = [{"ClusterId": str(number), **JOB, **job} for number, job in enumerate(jobs, 1)]

    def query(
        self, *, constraint: str, projection: Sequence[str] = (), opts: Any = None, limit: int = -1
    ) -> list[Any]:
        met = [job for job in self.jobs if is_met(constraint, job)]
        rows = self.grouped(met, projection, constraint) if opts is not None else map(made, met)
        return list(rows)[: None if limit < 0 else limit]

    def grouped(
        self, jobs: Sequence[Mapping[str, str]], keys: Sequence[str], constraint: str
    ) -> list[Any]:
        groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for job in jobs:
            texts = {name.lower(): text for name, text in job.items()}
            seen = {key.lower() for key in keys} & set(texts)
            seen |= {word for key in seen for word in words_of_text(texts[key]) if word in texts}
            row = tuple((name, texts[name]) for name in sorted(seen))
            groups.setdefault(row, []).append(f"{job['ClusterId']}.{job['ProcId']}")
        return [
            made({**dict(row), "JobCount": str(len(ids)), "JobIds": f'"{ids[0]} {ids[-1]}"'})
            for row, ids in groups.items()
            if is_met(constraint, dict(row))
        ]


def made(ad: Mapping[str, str]) -> Any:
    return classad2.ClassAd("[" + ";".join(f"{name} = {text}" for name, text in ad.items()) + "]")


def is_met(constraint: str, ad: Mapping[str, str]) -> bool:
    return made({**ad, "_constraint": constraint}).eval("_constraint") is True


def kinds_of(schedd: FakeSchedd) -> list[tuple[str, int]]:
    jobs, left_out = job_kinds_of(schedd, "ap-1", job_keys([SLOT]))
    assert not left_out
    return [(alike.ad.place, alike.count) for alike in jobs]


@pytest.mark.parametrize(
    "other",
    [
        {"RequestGPUs": "1"},
        {"RequestLicence": "1"},
        {"Tier": "3"},
        {"AccountingGroup": '"atlas.bob"'},
        {"RequestMemory": "50 + 50"},
        {"Requirements": 'TARGET.Arch == "X86_64"'},
        {"RequestDisk": "10 * Factor", "Factor": "1"},
    ],
)
def test_jobs_without_an_autocluster_are_told_apart_by_all_that_counts(
    other: dict[str, str],
) -> None:
    schedd = FakeSchedd({"Cmd": '"a"'}, other, {"Cmd": '"b"'})
    assert kinds_of(schedd) == [("job 1.0 of ap-1", 2), ("job 2.0 of ap-1", 1)]


def test_jobs_are_counted_by_attributes_that_expressions_refer_to() -> None:
    jobs = [{"RequestCpus": "Wanted", "Wanted": str(cores)} for cores in (1, 8, 8)]
    assert kinds_of(FakeSchedd(*jobs)) == [("job 2.0 of ap-1", 2), ("job 1.0 of ap-1", 1)]
    assert kinds_of(FakeSchedd({}, {"JobUniverse": "7"})) == [("job 1.0 of ap-1", 1)]


def test_kinds_that_are_left_out_are_counted() -> None:
    jobs = [{"RequestMemory": str(mib)} for mib in range(MOST_SHAPES + 3)]
    kinds, left_out = job_kinds_of(FakeSchedd(*jobs), "ap-1", job_keys([SLOT]))
    assert (len(kinds), left_out) == (MOST_SHAPES, 3)
