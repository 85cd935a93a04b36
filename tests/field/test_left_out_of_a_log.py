"""A history of which the twin can take one job: one has no number of cores, one needs no slot.

Jobs that are left out are told on the screen, on the page and in JSON.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Optional

import pytest

from sharectl.cadence.file import JOBS_COMMAND
from sharectl.errors import InputError
from sharectl_lab.scenarios import file
from tests.field.simulated import POOL, Simulate, is_shown, notes, simulate

__all__ = ["simulate"]
NO_CORES = "jobs left out: 1 (neither CpusProvisioned nor RequestCpus)"
NO_SLOT = "jobs left out: 1 (its universe needs no slot)"
NO_TIME = "jobs left out: 1 (RemoteWallClockTime 0 or not there: it never ran)"
OTHER = (
    "1 of 2 jobs of the log count as other, because groups does not have: {}; write it there, or a "
    "group of the scenario in history.groups"
)
AT = 1_700_000_000
SCENARIO = f"{POOL}history: {{file: jobs.json}}\nwarmup_hours: 0\n"


def job(**attributes: Any) -> dict[str, Any]:
    usual = {"AccountingGroup": "cms.a", "JobUniverse": 5, "QDate": AT, "RequestCpus": 1}
    return {**usual, "RemoteWallClockTime": 50_000.0, **attributes}


def test_jobs_that_are_left_out_are_told(simulate: Simulate, tmp_path: Path) -> None:
    expression = job(RequestCpus="\\/Expr(TARGET.TotalCpus)\\/")
    jobs = [job(), expression, job(JobUniverse=7)]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs, indent=1))
    simulated = simulate(SCENARIO)
    assert (simulated.code, simulated.notes) == (0, [NO_CORES, NO_SLOT])
    assert [is_shown(simulated, note) for note in (NO_CORES, NO_SLOT)] == [True, True]


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (job(RemoteWallClockTime=0), NO_TIME),
        (job(RemoteWallClockTime=-5.0), NO_TIME),
        (job(RemoteWallClockTime=None, JobStatus=2), NO_TIME),
        (job(QDate=None), "jobs left out: 1 (no QDate: when it was submitted is not known)"),
        (job(QDate=-1), "jobs left out: 1 (no QDate: when it was submitted is not known)"),
        (
            job(QDate=AT + 86_400),
            "jobs left out: 1 (submitted after the days that are simulated)",
        ),
        (job(AccountingGroup="lhcb.b"), OTHER.format("lhcb")),
        (job(AccountingGroup=None), OTHER.format("no group")),
        (job(AccountingGroup="CMS.b", QDate=AT - 600), None),
        (job(AccountingGroup="cms.b", Owner="bob"), None),
    ],
)
def test_each_reason_has_its_note(
    tmp_path: Path, other: dict[str, Any], note: Optional[str]
) -> None:
    (tmp_path / "jobs.json").write_text(json.dumps([job(), other]))
    assert notes(SCENARIO, tmp_path) == ([note] if note else [])


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([job(), job(JobUniverse=7)], indent=1).replace("\n", "\r\n").encode(),
        gzip.compress(json.dumps([job(), job(JobUniverse=7)]).encode()),
        b"\xef\xbb\xbf" + json.dumps([job(), job(JobUniverse=7)]).encode(),
        f"{json.dumps(job())}\r\n{json.dumps(job(JobUniverse=7))}\r\n".encode(),
    ],
    ids=["CR LF", "packed", "byte order mark", "JSON lines"],
)
def test_a_log_of_any_form_is_told_of(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "jobs.json").write_bytes(content)
    assert notes(SCENARIO, tmp_path) == [NO_SLOT]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no job with a known run time is in it (no job)"),
        ("[]", "no job with a known run time is in it (no job)"),
        (json.dumps([job(JobUniverse=7)]), "(1 left out: its universe needs no slot)"),
        (json.dumps([job(QDate=None)]), f"is not known); make the file with {JOBS_COMMAND}"),
        ('AccountingGroup = "cms"\nQDate = 17\n\n', f"; make the file with {JOBS_COMMAND}"),
    ],
    ids=["empty", "no job", "universe", "cadence's attributes", "condor_history -l"],
)
def test_a_log_without_a_job_is_an_error(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "jobs.json").write_text(content)
    with pytest.raises(InputError) as refused:
        file.parse(SCENARIO, "mine.yaml", tmp_path)
    assert words in str(refused.value)
