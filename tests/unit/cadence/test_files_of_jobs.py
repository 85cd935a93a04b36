from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sharectl.cadence import file
from sharectl.cadence.laws import LoggedJob, law_of
from sharectl.errors import InputError


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_fault_of_a_history_is_named_with_its_line(
    tmp_path: Path, listing: Callable[[str, Callable[[str], list[str]], int], None]
) -> None:
    def problems(text: str) -> list[str]:
        with pytest.raises(InputError) as refused:
            file.history_jobs(_written(tmp_path / "jobs", text), Counter())
        return [line.replace(str(tmp_path), "FOLDER") for line in refused.value.problems]

    listing("cadence/histories.txt", problems, 6)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": ' * 100_000, "1: .* begins no job, or one that does not end"),
        ('[{"Cmd": "' + "x" * 2**24, "1: .* begins no job, or one that does not end"),
        ('[{"a":1},\n', "[12]: the list does not end"),
        ('[\n{"a":1}', "[12]: the list does not end"),
        (
            f'[{json.dumps({"RemoteWallClockTime": 60})},\n{{"a":1}}\n',
            "[23]: the list does not end",
        ),
    ],
    ids=range(5),
)
def test_a_history_without_end_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path, left_out = _written(tmp_path / "jobs", text), Counter[str]()
    with pytest.raises(InputError, match=f"jobs:{fault}"):
        file.history_jobs(path, Counter())
    with pytest.raises(InputError, match="no job with a known run time"):
        file.history_jobs(path, left_out, skip=True)
    assert left_out[file.BROKEN] == 1


def _job(**attributes: object) -> dict[str, object]:
    return {
        "RemoteWallClockTime": 60.0,
        "NumShadowStarts": 1,
        "CpusProvisioned": 1,
        "AccountingGroup": "cms.prod",
        "QDate": 7,
        "Owner": "ann",
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
    _job(QDate=None),
    _job(AccountingGroup="a b;\u202e"),
    _job(NumShadowStarts=10**18, AccountingGroup=["x"]),
    _job(NumShadowStarts=99_000),
    _job(NumShadowStarts=99_000, RemoteWallClockTime=50_000),
]
RAN = [("cms", 1, 60), ("atlas", 8, 62), *[("cms", 1, 30)] * 3, ("a b;\u202e", 1, 60), ("", 1, 60)]
CRASHED = [*[("cms", 1, 1)] * 60, *[("cms", 1, 500)] * 100]
LEFT_OUT = {file.HISTORY_NO_TIME: 3, file.NO_SLOT: 1, file.NO_CORES: 1, file.NO_SUBMISSION: 1}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ADS, indent=2),
        "[\n" + "\n,\n".join(json.dumps(ad, indent=2) for ad in ADS) + "\n]\n",
        "\n".join(map(json.dumps, ADS)),
        json.dumps(ADS),
    ],
)
def test_a_history_is_read_packed_or_not(tmp_path: Path, text: str) -> None:
    packed = tmp_path / "jobs.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (_written(tmp_path / "jobs.json", text), packed):
        left_out: Counter[str] = Counter()
        jobs = file.history_jobs(path, left_out)
        assert [(job.group, job.cores, job.run_seconds) for job in jobs] == [*RAN, *CRASHED]
        assert left_out == LEFT_OUT


def test_jobs_after_a_broken_one_are_read(tmp_path: Path) -> None:
    text = f'[\n{json.dumps(_job())}\n,\n{{"Cmd": five\n}}\n,\n{json.dumps(_job())}\n]\n'
    left_out: Counter[str] = Counter()
    jobs = file.history_jobs(_written(tmp_path / "jobs", text), left_out, skip=True)
    assert jobs == [LoggedJob(7, 60, 1, 0, "ann", "cms", "")] * 2
    assert left_out == {file.BROKEN: 1}


HOSTILE = """99000 -1 0 NaN Infinity -Infinity 1e308 1e-308 2.5 100000 true null [] {} 0x10 "x"
9223372036854775807 # -# #################""".replace("#", "9" * 309)
FIELDS = {
    **dict.fromkeys((*file.ATTRIBUTES, "NumJobStarts"), "100"),
    **dict.fromkeys(("AccountingGroup", "Owner", "User"), '"cms.prod"'),
    "QDate": "1700000000",
    "JobUniverse": "5",
}


@pytest.mark.parametrize("hostile", HOSTILE.split(), ids=lambda text: f"{text[:9]}-{len(text)}")
def test_a_number_of_any_size_makes_few_jobs_or_a_fault_with_its_place(
    tmp_path: Path, hostile: str
) -> None:
    path, faults, numbers = tmp_path / "rows", list[str](), list[int]()
    for attribute in FIELDS:
        ad = {**FIELDS, attribute: hostile}
        row = ", ".join(f'"{name}": {value}' for name, value in ad.items())
        _written(path, f"\n{{{row}}}\n")
        try:
            jobs = file.history_jobs(path, Counter())
            law_of(jobs).loading(60, 1200)
            numbers.append(len(jobs))
        except InputError as error:
            faults.append(str(error))
    assert max(numbers, default=0) <= 100
    assert len(numbers) + len(faults) == len(FIELDS)
    assert [fault for fault in faults if not fault.startswith(str(path))] == []
