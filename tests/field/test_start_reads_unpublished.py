"""START that reads an attribute of a STARTD_CRON job, which the twin does not run: HEALTHY."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl_lab.twin.answers import NOTHING
from tests.field.simulated import POOL, Simulate, is_shown, notes, simulate

__all__ = ["simulate"]
STREAM = 'jobs: [{group: cms, run_time: "exponential:3600", keep_pending: 20}]\n'
SCENARIO = f"{POOL}{STREAM}start: {{files: [site.conf]}}\nwarmup_hours: 0\n"
REFUSED = f"{NOTHING}; cores are idle because another clause of START refuses all pending jobs"
REFUSED += " that would fit"
PUBLISHED = "HEALTHY = True\nSTARTD_ATTRS = $(STARTD_ATTRS) HEALTHY\n"


def of_nodes(name: str, reader: str = "START") -> str:
    return (
        f"no node of the scenario has {name}, and this is undefined in {reader}: write such as "
        f"attributes: {{{name}: true}} in nodes, or STARTD_ATTRS in a file of start.files"
    )


def of_jobs(name: str, source: str = "jobs") -> str:
    return (
        f"no job of the scenario has {name}, and this is undefined in START: write such as "
        f"attributes: {{{name}: true}} in {source}"
    )


def test_it_says_so_and_how_to_give_it(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "site.conf").write_text("START = MY.HEALTHY =?= True\n")
    simulated = simulate(SCENARIO)
    assert (simulated.code, simulated.notes) == (65, [of_nodes("HEALTHY"), REFUSED])
    assert [is_shown(simulated, note) for note in simulated.notes] == [True, True]
    remedied = simulate(SCENARIO.replace("16}", "16, attributes: {Healthy: true}}"))
    assert (remedied.code, remedied.notes) == (0, [])
    assert remedied.strategy["used_ratio"]["mean"] > 0.8
    (tmp_path / "site.conf").write_text(f"START = MY.HEALTHY =?= True\n{PUBLISHED}")
    assert (simulate(SCENARIO).code, notes(SCENARIO, tmp_path)) == (0, [])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ('TARGET.Tenant == "physics"', [of_jobs("Tenant")]),
        ("MY.Tenant == TARGET.Tenant", [of_nodes("Tenant"), of_jobs("Tenant")]),
        ("Tenant =!= 3", [of_nodes("Tenant")]),
        ("NODE_IS_HEALTHY && (Cpus > 0)", [of_nodes("NODE_IS_HEALTHY")]),
        ("RequestCpus > 0 && MY.Cpus > 0 && Memory > 0 && time() > 0 && CurrentTime > 0", []),
        ("(TARGET.RequestGPUs ?: 0) == 0", []),
        ('Owner != "root" && TARGET.JobUniverse == 5 && MY.SlotType != "Static"', []),
        ("Ready\nReady = MY.Good\nSTARTD_ATTRS = Ready", [of_nodes("Good")]),
    ],
)  # fmt: skip
def test_each_scope(tmp_path: Path, start: str, expected: list[str]) -> None:
    (tmp_path / "site.conf").write_text(f"START = {start}\n")
    assert notes(SCENARIO, tmp_path) == expected


def test_requirements_of_jobs() -> None:
    requirements = 'requirements: "TARGET.HasCvmfs && MY.Wish =!= 3 && TARGET.Cpus > 0"'
    pool = f"{POOL}{STREAM.replace('group:', f'{requirements}, group:')}"
    seen = notes(pool)
    assert seen[0] == of_nodes("HasCvmfs", "the requirements of cms.user")
    assert seen[1].startswith("no job of the scenario has Wish, and this is undefined in the req")
    assert len(seen) == 2
    nodes = pool.replace("16}", "16, attributes: {HasCvmfs: true}}")
    assert notes(nodes.replace("group: cms", "group: cms, attributes: {Wish: 1}")) == []
