"""The look at a pool and the seed's command agree, whatever jobs say of themselves."""

from __future__ import annotations

import dataclasses
import math
import os
import time

from poolbox import Box, BoxSpec, ExecutePoint
from sharectl.condor.pool_look import Version
from sharectl.ledger import jobs_file
from sharectl.publish import text
from sharectl.publish.state import StateFile
from tests.htcondor_releases import OVERFLOWS_TO_ZERO, holds
from tests.pool.deployed import CHECKOUT, jobs, on, still
from tests.pool.sharectl_command import GROUPS, Sharectl

FIRST, SECOND = "ap-1.example.org", "ap-2.example.org"
STRONG, MIDDLE, SILENT = "wn-001.example.org", "wn-002.example.org", "wn-003.example.org"
SNIPPET = (CHECKOUT / "config.d" / "60-sharectl-access-point.conf").read_text()
# The site maps users to groups already, so the snippet leaves that alone: here jobs choose, and
# lie.
POWER_IN_JOBS = f"CLASSAD_USER_MAPFILE_AssignAccountingGroup = /dev/null\n{SNIPPET}"
SPEC = BoxSpec(
    execute_points=(
        ExecutePoint(STRONG, cores=12, power_hs06=240.0),
        ExecutePoint(MIDDLE, cores=8, power_hs06=88.0),
        ExecutePoint(SILENT, cores=8, power_hs06=None),
    ),
    access_points=(FIRST, SECOND),
    access_config=POWER_IN_JOBS,
)
SEED_COMMAND = r"""condor_q -global -all -cons 'Member(JobStatus,{1,2}) && (JobUniverse != 7)' \
-af JobStatus 'split((RemoteHost ?: "u@PEND.t1"),"@.")[1]' \
'split(AcctGroup,".")[0]' 'time() - (JobStartDate ?: time())' \
'CpusProvisioned ?: min({RequestCpus ?: 1,8})' \
'((int(MATCH_t1_wn_hs06 ?: 400) + 0.0)/(MATCH_TotalSlotCpus ?: 40))'
"""
NEVER = "requirements = False"


def fill(box: Box) -> None:
    half = jobs("atlas", 1, 2, 600, NEVER).replace("= 1\n", "= 2 * Half\n+Half = 2\n", 1)
    running = [
        (FIRST, jobs("cms", 1, 3, 600, on(STRONG))),
        (SECOND, jobs("cms.prod", 8, 1, 600, on(STRONG))),
        (FIRST, jobs("atlas.user", 4, 1, 600, on(MIDDLE))),
        (SECOND, jobs("ATLAS", 1, 2, 600, on(MIDDLE))),
        (FIRST, jobs("lhcb", 2, 2, 600, on(SILENT))),
        (SECOND, jobs("cms", 3, 1, 600, on(SILENT))),
        (FIRST, jobs("", 1, 1, 600, on(SILENT))),
    ]
    waiting = [
        (FIRST, jobs("cms", 16, 5, 600)),
        (SECOND, jobs("cms", 8, 7, 600, NEVER)),
        (SECOND, jobs("atlas", 1, 11, 600, NEVER)),
        (FIRST, jobs("lhcb.x", 2, 3, 600, NEVER)),
        (FIRST, jobs("cms", 4, 2, 600, "hold = True")),
        (SECOND, half),
    ]
    elsewhere = [
        (FIRST, jobs("cms", 1, 2, 600, "universe = scheduler")),
        (SECOND, jobs("cms", 1, 1, 600, "universe = local")),
    ]
    for access_point, description in (*running, *waiting, *elsewhere):
        box.submit(description, access_point)
    still(box, 11)


def test_the_table_is_that_of_the_seeds_command(sharectl: Sharectl) -> None:
    fill(sharectl.box)
    seen = sharectl.json("snapshot")
    assert seen["complete"]
    # A request of 16 cores counts as the largest node. wn-001 has 240 HS06 on 12 cores, wn-002 88
    # on 8, wn-003 the seed's 400 on 8.
    columns = ("single_cores", "multi_cores", "power_hs06", "pending_by_cores")
    groups = seen["groups"].items()
    assert {name: tuple(used[column] for column in columns) for name, used in groups} == {
        "cms": (3, 11, 11 * 20.0 + 3 * 50.0, {"8": 7, "12": 5}),
        "atlas": (2, 4, 6 * 11.0, {"1": 11, "4": 2}),
        "other": (1, 4, 5 * 50.0, {"2": 3}),
    }
    assert seen["others"] == [
        {"name": "lhcb", "cores": 4, "pending_jobs": 3},
        {"name": "", "cores": 1, "pending_jobs": 0},
    ]
    assert {node["name"]: node["cores_by_group"] for node in seen["nodes"]} == {
        "wn-001": {"cms": 11},
        "wn-002": {"atlas": 6},
        "wn-003": {"cms": 3, "other": 5},
    }

    printed = sharectl.folder / "from-condor_q.txt"
    printed.write_text(sharectl.box.run(["/bin/sh", "-c", SEED_COMMAND]).stdout)
    now = int(time.time())
    os.utime(printed, (now, now))
    pair = {"strategy": "pair"}
    replayed = sharectl.run("errors", "--jobs", str(printed)).stdout
    wanted = [line.split()[1:] for line in replayed.splitlines()]
    assert [row[0] for row in wanted] == ["T0", *GROUPS]
    live = sharectl.run("errors", control=pair).stdout
    assert [line.split()[1:] for line in live.splitlines()] == wanted
    # The file that a cycle writes has the rows of the one that condor_q wrote.
    sharectl.run("cycle", control=pair)
    os.utime(sharectl.jobs_file, (now, now))
    own = sharectl.run("errors", "--jobs", str(sharectl.jobs_file)).stdout
    assert own == replayed


HOSTILE_GROUPS = (
    '"cms\\n2 wn-001 atlas 5 8 10"', '"c\\"ms"', '"cms\' || True"', f'"{"x" * 1000}"',
    '"../../etc/passwd"', 'strcat("a", "tlas")', "{1, 2}", "[a = 1]", "17", "undefined", "error",
    '"none"', '"other"', '"cms atlas"',
)  # fmt: skip
HOSTILE_CORES = (
    "4 - 8", "-3", "0", "99999999999999999999", "1e300", '"eight"', "undefined", "error", "2.5",
    'real("inf")',
)  # fmt: skip
HOSTILE_POWER = ("-5", "1e300", '"much"', "error", 'real("nan")')


def test_jobs_that_lie_stay_within_the_table(sharectl: Sharectl, pool_version: Version) -> None:
    box = sharectl.box
    for group in HOSTILE_GROUPS:
        box.submit(jobs("", 1, 1, 600, f"+AcctGroup = {group}"))
    for power in HOSTILE_POWER:
        names = ("MATCH_t1_wn_hs06", "MATCH_TotalCpus", "MATCH_TotalSlotCpus")
        forged = [f"+{name} = {power}" for name in names]
        box.submit(jobs("cms", 1, 1, 600, *forged))
        box.submit(jobs("cms", 1, 1, 600, NEVER, *forged))
    for cores in HOSTILE_CORES:
        never = jobs("atlas", 1, 1, 600, NEVER)
        box.submit(never.replace("request_cpus = 1", f"request_cpus = {cores}"))
    running = len(HOSTILE_GROUPS) + len(HOSTILE_POWER)
    still(box, running)
    # The schedd has read the twenty digits before sharectl asks it; 2.5 cores are 3 of a node.
    largest = 1 if holds(OVERFLOWS_TO_ZERO, pool_version) else 2
    sizes = {"1": 9 - largest, "3": 1, "12": largest}
    groups = sharectl.json("snapshot")["groups"]
    assert set(groups) == {*GROUPS, "other"}
    assert math.isfinite(sum(used["power_hs06"] for used in groups.values()))
    assert groups["cms"]["pending_by_cores"] == {"1": len(HOSTILE_POWER)}
    assert groups["atlas"]["pending_by_cores"] == sizes
    assert sum(used["cores"] for used in groups.values()) == running
    sharectl.run("cycle")
    assert text.FilePublisher(sharectl.targets).look()[0].problem is None
    rows = jobs_file.read_jobs(sharectl.jobs_file, frozenset(GROUPS))
    assert sum(jobs.jobs for jobs in rows.pending) == len(HOSTILE_POWER) + len(HOSTILE_CORES)
    printed = sharectl.folder / "from-condor_q.txt"
    printed.write_text(box.run(["/bin/sh", "-c", SEED_COMMAND]).stdout)
    sharectl.run("plan", "--jobs", str(printed))


def test_a_young_collector_that_knows_less_than_before_changes_nothing(sharectl: Sharectl) -> None:
    sharectl.run("cycle")
    store = StateFile(sharectl.folder / "state.json")
    before = store.load()
    assert before.nodes == 3
    published = sharectl.targets.read_bytes()
    store.save(dataclasses.replace(before, nodes=5))
    done = sharectl.run("cycle", expect=75)
    assert "knows 3 of 5 execute points" in done.stderr
    assert sharectl.targets.read_bytes() == published
    assert store.load().nodes == 5
    store.save(before)
    sharectl.run("cycle")


def test_a_state_that_cannot_be_read_hides_no_answer_and_is_74(sharectl: Sharectl) -> None:
    sharectl.run("cycle")
    state = sharectl.folder / "state.json"
    whole = state.read_bytes()
    state.write_bytes(whole[:300])
    for words in (
        ("nodes",),
        ("plan",),
        ("plan", "--diff"),
        ("explain", "node", "wn-001", "--live"),
    ):
        done = sharectl.run(*words, expect=74)
        assert done.stderr.count("state.json: cannot be read") == 1
    assert "wn-001" in sharectl.run("nodes", expect=74).stdout
    state.write_bytes(whole)
    sharectl.run("nodes")
