"""Jobs that lie about their group, their size and their power."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Callable

import pytest

from poolbox import Box, BoxSpec
from sharectl.ledger import jobs_file
from sharectl.publish import text
from tests.pool.looking import FIRST, MODES, SECOND, SEED_COMMAND, SPEC, described, still, table
from tests.pool.sharectl_command import GROUPS, Sharectl

HOSTILE_GROUPS = (
    '"cms\\n2 wn-001 atlas 5 8 10"',
    '"c\\"ms"',
    '"cms\' || True"',
    f'"{"x" * 1000}"',
    '"../../etc/passwd"',
    'strcat("a", "tlas")',
    "{1, 2}",
    "[a = 1]",
    "17",
    "undefined",
    "error",
    '"none"',
    '"other"',
    '"cms atlas"',
)
HOSTILE_CORES = (
    "4 - 8",
    "-3",
    "0",
    "99999999999999999999",
    "1e300",
    '"eight"',
    "undefined",
    "error",
    "2.5",
    'real("inf")',
)
HOSTILE_POWER = ("-5", "1e300", '"much"', "error", 'real("nan")')


@pytest.fixture
def sharectl(
    open_box: Callable[[BoxSpec], AbstractContextManager[Box]], tmp_path: Path
) -> Iterator[Sharectl]:
    with open_box(SPEC) as box:
        yield Sharectl(box, tmp_path)


def test_jobs_that_lie_stay_within_the_table(sharectl: Sharectl) -> None:
    box = sharectl.box
    for number, group in enumerate(HOSTILE_GROUPS):
        box.submit(described("", 1, 1, 600, f"+AcctGroup = {group}"), (FIRST, SECOND)[number % 2])
    for power in HOSTILE_POWER:
        forged = (
            f"+MATCH_t1_wn_hs06 = {power}",
            f"+MATCH_TotalCpus = {power}",
            f"+MATCH_TotalSlotCpus = {power}",
        )
        box.submit(described("cms", 1, 1, 600, *forged))
        box.submit(described("cms", 1, 1, 600, "requirements = False", *forged))
    for cores in HOSTILE_CORES:
        never = described("atlas", 1, 1, 600, "requirements = False")
        box.submit(never.replace("request_cpus = 1", f"request_cpus = {cores}"))
    still(box, len(HOSTILE_GROUPS) + len(HOSTILE_POWER))
    tables = {mode: table(sharectl, mode) for mode in MODES}
    for mode, seen in tables.items():
        assert set(seen["groups"]) == {*GROUPS, "other"}
        assert all(math.isfinite(used["power_hs06"]) for used in seen["groups"].values()), mode
        assert seen["groups"]["cms"]["pending_by_cores"] == {"1": len(HOSTILE_POWER)}
        assert seen["groups"]["atlas"]["pending_by_cores"] == {"1": 8, "2": 1, "12": 1}
        assert sum(used["cores"] for used in seen["groups"].values()) == len(HOSTILE_GROUPS) + len(
            HOSTILE_POWER
        )
    # What the schedd wrote into the jobs at their start stands above what they had said of
    # themselves.
    assert (
        tables["jobs"]["groups"]["cms"]["power_hs06"]
        == tables["counted"]["groups"]["cms"]["power_hs06"]
    )
    for mode in MODES:
        sharectl.run("cycle", pool={"mode": mode})
        text.read(sharectl.targets)
        rows = jobs_file.read_jobs(sharectl.jobs_file, frozenset(GROUPS))
        assert sum(jobs.jobs for jobs in rows.pending) == len(HOSTILE_POWER) + len(HOSTILE_CORES)
    printed = sharectl.folder / "from-condor_q.txt"
    printed.write_text(box.run(["/bin/sh", "-c", SEED_COMMAND]).stdout)
    sharectl.run("plan", "--jobs", str(printed))
