"""Names that every startd publishes, without a scope: no job can give them a value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.check.slot_ad import every_slot_has, jobs_have, saved_ads
from sharectl.condor.library import CondorProcess
from tests.field.test_bare_word_in_start import START, seen
from tests.pool.deployed import jobs, on, run

ACCESS = "ap-1.example.org"
SPEC = BoxSpec(
    (
        ExecutePoint("wn-001.example.org", 8, config="START = Cpus > 100\n"),
        ExecutePoint("wn-002.example.org", 8, config="START = HasDocker =?= 7\n"),
    ),
    access_points=(ACCESS,),
)


@pytest.mark.parametrize(
    "clause",
    [
        'KeyboardIdle > 900 && (Cpus - LoadAvg) > 1 && State =!= "Owner"',
        "Memory > 1",
        "CurrentTime > 0",
    ],
)
def test_they_need_no_scope(clause: str, tmp_path: Path) -> None:
    assert seen(tmp_path, START.format(clause)) == []


@pytest.mark.parametrize("name", ["HasDocker", "PartitionableSlot", "TotalGPUs", "RemoteUser"])
def test_those_that_some_slots_have_need_one(name: str, tmp_path: Path) -> None:
    (finding,) = seen(tmp_path, START.format(f"{name} =!= 7"))
    assert f"MY.{name}" in finding.remedy


def test_a_job_cannot_set_the_current_time() -> None:
    with CondorProcess() as process:
        values = process.evaluate(["CurrentTime > 0"], [{}], [{"CurrentTime": "-5"}])
    assert values == [[[True]]]


@pytest.mark.pool
@pytest.mark.semantics
def test_the_list_is_that_of_the_startd_and_a_job_cannot_forge_them(pool: Box) -> None:
    forged = jobs("cms", 1, 1, 600, "+Cpus = 1000", "+HasDocker = 7")
    running = pool.submit(forged, ACCESS)
    other = jobs("cms", 1, 1, 600, "+Cpus = 1000", on("wn-001.example.org"))
    waiting = pool.submit(other, ACCESS)
    run(pool, 1)

    def names(*command: str, host: str | None = None) -> list[set[str]]:
        text = pool.run([*command], host=host).stdout
        ads = [part for part in re.split(r"\n\s*\n", text) if " = " in part]
        return [set(re.findall(r"^(\w+) = ", ad, re.MULTILINE)) for ad in ads]

    status = ("condor_status", "-long")
    pool.wait_until(lambda: len(names(*status)) == 3, "the collector has the dynamic slot")
    every = [name for name in saved_ads()[0] if every_slot_has(name)]
    assert len(every) > 50
    for ad in [*names(*status), *names(*status, "-direct", "wn-001.example.org")]:
        assert [name for name in every if name not in ad] == []
    both = names("condor_q", "-allusers", "-long", str(running), str(waiting), host=ACCESS)
    own = {"HasDocker", "Cpus"}
    assert len(both) == 2
    assert sorted(name for ad in both for name in ad - own if not jobs_have(name)) == []
    assert [job["ClusterId"] for job in pool.jobs("JobStatus == 2")] == [running]
