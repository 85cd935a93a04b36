from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.errors import InputError
from sharectl.files.packed import MOST_PROBLEMS
from sharectl.ledger import jobs_file
from sharectl.model import PendingJobs, RunningJobs
from tests.fakes import running, snapshot

GROUPS = frozenset(("alice", "cms"))


def parse(text: str) -> jobs_file.JobRows:
    return jobs_file.parse(text.splitlines(), "jobs", GROUPS)


def test_what_condor_q_prints_is_read() -> None:
    rows = parse(
        "2 cn-609-05-06 alice 1200 1 10.3\n"
        "2 CN-609-05-06 Alice 1200 8 10\n"
        "2 wn-1 cms undefined error undefined\n"
        "2 wn-1 cms 60 0 10\n"
        "1 PEND cms 0 8 10.0\n"
        "1 PEND cms 0 8 10.0\n"
        "5 PEND cms 0 8 10.0\n"
        "2 PEND cms 60 1 10\n"
        "All queues are empty\n"
    )
    assert rows.running == (
        RunningJobs("cn-609-05-06", "alice", 1, 10.3, 1200),
        RunningJobs("cn-609-05-06", "alice", 8, 10.0, 1200),
        RunningJobs("wn-1", "cms", 1, 10.0, 0),
        RunningJobs("wn-1", "cms", 1, 10.0, 60),
    )
    assert rows.pending == (PendingJobs("cms", 8, 2),)
    assert (rows.ignored_rows, rows.defaulted_rows) == (2, 1)


@pytest.mark.parametrize(
    ("row", "group", "cores"),
    [
        *((f"{name} 0 1 10", "cms", 1) for name in ("CMS", "cms.prod", "  cms  ")),
        *((f"{name} 0 1 10", "other", 1) for name in ("undefined", "my cms", "", 'x" || True')),
        *((f"cms 0 {cores} -3", "cms", 1) for cores in ("0", "-5", "error", "nan", "cores")),
        *(("cms 0 8.0 10", "cms", 8), ("cms 0 2.5 10", "cms", 2), ("cms 0 inf 1", "cms", 10**6)),
    ],
)
def test_groups_and_requests_of_users_do_not_make_the_file_unreadable(
    row: str, group: str, cores: int
) -> None:
    assert parse(f"1 PEND {row}").pending == (PendingJobs(group, cores, 1),)


BAD_ROWS = (
    "2 wn-1 cms 60 1",
    "two wn-1 cms 60 1 10",
    "2 wn-1 cms 60 1.5 10",
    "2 wn-1 cms 60 1 nan",
    "2 wn-1 cms 60 1 0",
    "2 wn-1 cms 1e99 1 10",
    "2 wn;1 cms 60 1 10",
    "2 wn-1 60 1 10",
    "1 PEND 0 8 10",
)


def test_bad_rows_are_named_with_their_line() -> None:
    good = "2 wn-1 cms 60 1 10"
    with pytest.raises(InputError) as caught:
        parse("\n".join([good, *BAD_ROWS, good, *["bad"] * 100]))
    lines = [problem.split(": ")[0] for problem in caught.value.problems]
    bad = [*range(2, len(BAD_ROWS) + 2), *range(len(BAD_ROWS) + 3, 99)]
    assert lines == [f"jobs:{number}" for number in bad][:MOST_PROBLEMS]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    taken = snapshot(
        [running("wn-1", "alice", 1, 3), running("wn-2", "cms", 8, hs06_per_core=10.37)],
        {("cms", 8): 2500, ("other", 1): 1},
    )
    path = tmp_path / "AcctGroup_hs06.txt"
    jobs_file.write(path, taken)
    rows = jobs_file.read_jobs(path, GROUPS)
    assert len(rows.running) == 4
    assert rows.running[-1] == running("wn-2", "cms", 8, hs06_per_core=10.37)
    assert set(rows.pending) == set(taken.pending)


def test_of_jobs_beyond_number_a_bounded_file_is_written_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    jobs_file.write(path, snapshot([], {("cms", 1): 10**15, ("alice", 8): 3}), most_pending=5)
    rows = jobs_file.read_jobs(path, GROUPS)
    assert rows.pending == (PendingJobs("alice", 8, 3), PendingJobs("cms", 1, 2))
    assert f"\n# {10**15 - 2} more of cms" in path.read_text()
