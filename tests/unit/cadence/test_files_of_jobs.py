from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.cadence import file
from sharectl.cadence.jobs import LoggedJob
from sharectl.cadence.run_times import load_of
from sharectl.errors import InputError

HEADER = "; Version: 2.2\n; Computer: made up\n\n"


def _swf(
    seconds: float, cores: int = 1, requested: int = -1, status: int = 1, group: int = 3
) -> str:
    return f"1 0 -1 {seconds} {cores} -1 -1 {requested} 100 -1 {status} 1 {group} -1 -1 1 -1 -1\n"


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_of_jobs_is_read_packed_or_not(tmp_path: Path) -> None:
    text = HEADER + _swf(60) * 2 + _swf(60.2, -1, 8) + _swf(70, -1, -1, group=-1)
    text += _swf(0) + _swf(-1) * 2 + _swf(30, status=2) + _swf(30, status=4)
    jobs = file.swf_read(_written(tmp_path / "log.swf", text))
    assert jobs.counted == {("3", 1, 60): 2, ("3", 8, 61): 1, ("-1", 1, 70): 1}
    assert jobs.left_out == {file.SWF_NO_TIME: 3, file.PART: 2}
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert file.swf_read(packed) == jobs


def test_jobs_of_a_log_may_lack_all_but_their_times(tmp_path: Path) -> None:
    """-1 is unknown, columns behind the 18th are no part of the format."""
    unknown = " -1" * 14
    text = f"1 1700000000 -1 100{unknown}\n2 -1 -1 100{unknown}\n3 5 -1 -1{unknown}\n"
    text += "4 1700000060 9 60 2 -1 2048 8 -1 -1 1 7 3 -1 5 -1 -1 -1 nineteenth 20\n"
    left_out: Counter[str] = Counter()
    assert file.swf_jobs(_written(tmp_path / "log.swf", text), left_out) == [
        LoggedJob(1_700_000_000, 100, 1, 0, "-1", "-1", "-1"),
        LoggedJob(1_700_000_060, 60, 2, 4, "7", "3", "5"),
    ]
    assert left_out == {file.SWF_NO_SUBMISSION: 1, file.SWF_NO_TIME: 1}


@pytest.mark.parametrize(
    ("name", "read"), [("logs", file.swf_read), ("histories", file.history_read)]
)
def test_a_fault_of_a_file_is_named_with_its_line(
    tmp_path: Path,
    listing: Callable[[str, Callable[[str], list[str]]], None],
    name: str,
    read: Callable[[Path], object],
) -> None:
    def problems(text: str) -> list[str]:
        with pytest.raises(InputError) as refused:
            read(_written(tmp_path / "jobs", text))
        return str(refused.value).replace(str(tmp_path), "FOLDER").splitlines()

    listing(f"cadence/{name}.txt", problems)


@pytest.mark.parametrize(
    "text", ['{"a": ' * 100_000, '[{"Cmd": "' + "x" * 2**24], ids=["nested", "endless"]
)
def test_a_history_without_end_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"jobs:1: .* begins no job, or one that does not end"):
        file.history_read(_written(tmp_path / "jobs", text))


@pytest.mark.parametrize(
    "text",
    ['[{"a":1},\n', '[\n{"a":1}', f'[{json.dumps({"RemoteWallClockTime": 60})},\n{{"a":1}}\n'],
)
def test_a_history_that_is_cut_off_between_jobs_is_refused(tmp_path: Path, text: str) -> None:
    path = _written(tmp_path / "jobs", text)
    with pytest.raises(InputError, match=r"jobs:[123]: the list does not end: .* cut off"):
        file.history_read(path)
    left_out: Counter[str] = Counter()
    with pytest.raises(InputError, match="no job with a known run time"):
        file.history_jobs(path, left_out, skip=True)
    assert left_out[file.BROKEN] == 1


def _job(**attributes: object) -> dict[str, object]:
    return {
        "RemoteWallClockTime": 60.0,
        "NumShadowStarts": 1,
        "CpusProvisioned": 1,
        "AccountingGroup": "cms.prod",
        **attributes,
    }


ADS = [
    _job(),
    _job(RemoteWallClockTime=61.5, CpusProvisioned=None, RequestCpus=8, AccountingGroup="Atlas"),
    _job(RemoteWallClockTime=90, NumShadowStarts=3),
    _job(RemoteWallClockTime=0),
    _job(RemoteWallClockTime="\\/Expr(time())\\/"),
    _job(RemoteWallClockTime=float("inf")),
    _job(JobUniverse=7),
    _job(CpusProvisioned=-4, RequestCpus="all"),
    _job(AccountingGroup="a b;\u202e"),
    _job(NumShadowStarts=10**18, AccountingGroup=["x"]),
]
COUNTED = {
    ("cms", 1, 60): 1,
    ("atlas", 8, 62): 1,
    ("cms", 1, 30): 3,
    ("a b;\u202e", 1, 60): 1,
    ("", 1, 60): 1,
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ADS, indent=2),
        "[\n" + "\n,\n".join(json.dumps(ad, indent=2) for ad in ADS) + "\n]\n",
        "\n".join(map(json.dumps, ADS)),
    ],
)
def test_a_history_is_read(tmp_path: Path, text: str) -> None:
    jobs = file.history_read(_written(tmp_path / "jobs.json", text))
    assert jobs.counted == COUNTED
    assert jobs.left_out == {file.HISTORY_NO_TIME: 3, file.NO_SLOT: 1, file.NO_CORES: 1}


def test_a_history_longer_than_a_piece_is_read(tmp_path: Path) -> None:
    path = _written(tmp_path / "jobs.json", json.dumps([_job(Cmd="x" * 999)] * 5000))
    assert file.history_read(path).counted == {("cms", 1, 60): 5000}


HOSTILE = """99000 -1 0 NaN Infinity -Infinity 1e308 1e-308 2.5 100000 true null [] {} 0x10 "x"
9223372036854775807 # -# #################""".replace("#", "9" * 309)
FIELDS = {
    **dict.fromkeys((*file.JOB_ATTRIBUTES, "NumJobStarts"), "100"),
    **dict.fromkeys(("AccountingGroup", "Owner", "User"), '"cms.prod"'),
    "QDate": "1700000000",
    "JobUniverse": "5",
}
LINE = "1 1700000000 0 60 1 60 100 1 60 100 1 3 4 5 6 -1 -1 -1"
ROW = LINE.split()


@pytest.mark.parametrize("hostile", HOSTILE.split(), ids=lambda text: f"{text[:9]}-{len(text)}")
def test_a_number_of_any_size_makes_few_jobs_or_a_fault_with_its_place(
    tmp_path: Path, hostile: str
) -> None:
    ads = [{**FIELDS, name: hostile} for name in FIELDS]
    texts = [", ".join(f'"{name}": {value}' for name, value in ad.items()) for ad in ads]
    logs = [" ".join([*ROW[:place], hostile, *ROW[place + 1 :]]) for place in range(len(ROW))]
    path, faults, numbers = tmp_path / "rows", list[str](), list[int]()
    for counted, again, rows in (
        (file.history_read, file.history_jobs, [f"{{{text}}}" for text in texts]),
        (file.swf_read, file.swf_jobs, logs),
    ):
        for row in rows:
            _written(path, f"\n{row}\n")
            try:
                load_of(counted(path).counted).loading(60, 1200)
                numbers.append(len(again(path, Counter())))
            except InputError as error:
                faults.append(str(error))
    assert 0 < max(numbers) <= 100
    assert [fault for fault in faults if not fault.startswith(str(path))] == []


def test_starts_are_no_more_than_the_seconds_that_a_job_ran(tmp_path: Path) -> None:
    text = json.dumps([_job(RemoteWallClockTime=50_000, NumShadowStarts=99_000, QDate=1)] * 300)
    path = _written(tmp_path / "rows", text)
    assert file.history_read(path).counted == {("cms", 1, 1): 300 * 50_000}
    jobs = file.history_jobs(path, Counter())
    assert (len(jobs), jobs[0].run_seconds) == (300 * 100, 500)
