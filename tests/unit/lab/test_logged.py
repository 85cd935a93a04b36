from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from sharectl.cadence.file import history_jobs
from sharectl.cadence.laws import LoggedJob
from sharectl.errors import ConfigError, InputError
from sharectl_lab.scenarios import file as scenario_file
from sharectl_lab.scenarios import swf
from sharectl_lab.workload.draw import JobKind
from sharectl_lab.workload.logged import AFTER, LoggedWorkload, LogSource

FILE = Path("log.swf")
ROWS = """\
; Version: 2.2
1  100 -1   60  1 -1  -1 -1 100 -1 1 7 3 -1 2 1 -1 -1
2  160 -1  120 -1 -1  -1  8 100 1048576 1 8 3 -1 2 1 -1 -1 extra columns
3  170 -1   30  2 -1 524288 -1 100 -1 0 9 4 -1 1 1 -1 -1
4  180 -1   -1  1 -1  -1 -1 100 -1 1 7 3 -1 2 1 -1 -1
5  190 -1   30  1 -1  -1 -1 100 -1 3 7 3 -1 2 1 -1 -1
"""


def _swf(folder: Path, text: str = ROWS) -> Path:
    path = folder / "log.swf.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_jobs_of_a_log_have_sizes_and_names(tmp_path: Path) -> None:
    left_out: Counter[str] = Counter()
    assert swf.swf_jobs(_swf(tmp_path), left_out) == [
        LoggedJob(100, 60, 1, 0, "7", "3", "2"),
        LoggedJob(160, 120, 8, 8192, "8", "3", "2"),
        LoggedJob(170, 30, 2, 1024, "9", "4", "1"),
    ]
    assert left_out == {swf.NO_TIME: 1, swf.PART: 1}


def test_jobs_of_a_log_may_lack_all_but_their_times(tmp_path: Path) -> None:
    """-1 is unknown, columns behind the 18th are no part of the format."""
    unknown = " -1" * 14
    text = f"1 1700000000 -1 100{unknown}\n2 -1 -1 100{unknown}\n3 5 -1 -1{unknown}\n"
    left_out: Counter[str] = Counter()
    job = LoggedJob(1_700_000_000, 100, 1, 0, "-1", "-1", "-1")
    assert swf.swf_jobs(_swf(tmp_path, text), left_out) == [job]
    assert left_out == {swf.NO_SUBMISSION: 1, swf.NO_TIME: 1}


@pytest.mark.parametrize("field", ["rubbish", "1e12", "nan", "-7"])
def test_a_broken_row_is_an_error_with_its_line(tmp_path: Path, field: str) -> None:
    path = _swf(tmp_path, f"{ROWS}6 100 -1 {field} 1 -1 -1 -1 100 -1 1 7 3 -1 2 1 -1 -1\n1 2 3\n")
    with pytest.raises(InputError) as refused:
        swf.swf_jobs(path, Counter())
    places = [problem.partition(": ")[0] for problem in refused.value.problems]
    assert places == [f"{path}:7", f"{path}:8", str(path)]


def test_a_history_is_submitted_again(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    names = {"Owner": "alice", "AccountingGroup": "CMS.prod.alice"}
    times = {"RemoteWallClockTime": 90.0, "QDate": 1700000000}
    path.write_text(json.dumps([{"RequestCpus": 8, "RequestMemory": 4000, **names, **times}]))
    job = LoggedJob(1700000000, 90, 8, 4000, "alice", "cms.prod", "")
    assert history_jobs(path, Counter()) == [job]


def _jobs() -> list[LoggedJob]:
    return [
        LoggedJob(1000 + at, 60, cores, 0, f"u{at % 2}", group, "q")
        for at, (cores, group) in enumerate([(1, "3"), (8, "3"), (1, "4"), (1, "5"), (1, "3")])
    ]


def test_groups_are_mapped_and_times_are_scaled() -> None:
    source = LogSource(FILE, groups={"3": "Cms.prod", "4": "atlas"}, run_time_factor=0.5)
    workload = LoggedWorkload(_jobs(), source, 1, 1e9)
    assert [tuple(job) for job in workload.arrivals()] == [
        (0.0, 0, 30.0),
        (1.0, 1, 30.0),
        (2.0, 2, 30.0),
        (4.0, 0, 30.0),
    ]
    assert workload.kinds == [
        JobKind("cms.prod", "u0", 1, 2048),
        JobKind("cms.prod", "u1", 8, 16_000),
        JobKind("atlas", "u0", 1, 2048),
    ]


def test_the_rest_and_other_fields_are_mapped_too() -> None:
    rest = LoggedWorkload(_jobs(), LogSource(FILE, groups={"3": "cms", "*": "other"}), 1, 1e9)
    assert {kind.account for kind in rest.kinds} == {"cms", "other"}
    users = LoggedWorkload(_jobs(), LogSource(FILE, by="user", groups={"u1": "cms"}), 1, 1e9)
    assert {kind.account for kind in users.kinds} == {"cms"}
    plain = LoggedWorkload(_jobs(), LogSource(FILE, by="queue"), 1, 1e9)
    assert {kind.account for kind in plain.kinds} == {"q"}


def test_a_part_of_the_log_is_taken() -> None:
    workload = LoggedWorkload(_jobs(), LogSource(FILE), 1, 2.0)
    assert [job.at for job in workload.arrivals()] == [0.0, 1.0]
    assert workload.left_out == {AFTER: 3}


def test_a_scenario_reads_its_log(tmp_path: Path) -> None:
    _swf(tmp_path)
    text = """\
nodes: [{name: wn, cores: 8}]
groups: {cms: {pledge_hs06: 1}}
swf: {file: log.swf.gz, groups: {3: cms, "*": other}, multicore: {ratio: 1, cores: 2}}
"""
    scenario = scenario_file.parse(text, "mine.yaml", tmp_path)
    assert [job.at for job in scenario.workload().arrivals()] == [0.0, 60.0, 70.0]
    assert {kind.account for kind in scenario.workload().kinds} == {"cms", "other"}
    some = scenario_file.parse(text.replace('"*"', "5"), "mine.yaml", tmp_path)
    assert some.notes == (
        f"jobs left out: 1 ({swf.NO_TIME})",
        f"jobs left out: 1 ({swf.PART})",
        "jobs left out: 1 (group 4 is not in groups)",
    )
    with pytest.raises(ConfigError, match=r"mine.yaml: swf.groups: no job .* some of 3, 4, or"):
        scenario_file.parse(text.replace("3:", "7:").replace('"*"', "5"), "mine.yaml", tmp_path)
