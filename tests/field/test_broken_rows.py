"""Logs in which some rows are no jobs: errors with their lines, or skipped and counted by a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.errors import InputError
from sharectl_lab.scenarios import file
from tests.field.simulated import POOL

JOB = json.dumps(
    {"AccountingGroup": "cms", "QDate": 1_700_000_000, "RequestCpus": 1, "RemoteWallClockTime": 60}
)
ROW = "1 0 0 3600 8 -1 -1 8 -1 -1 1 1 1 1 1 -1 -1 -1"
SWF = f"; a log\n{ROW}\n1 2 3\n{ROW.replace('3600', '-40')}\n{ROW}\n{ROW.replace(' 8 ', ' x ')}\n"
HISTORIES = {
    "JSON lines": f"{JOB}\n{JOB[:30]}\n{JOB}\nnothing\n{JOB}\n{JOB[:-1]}",
    "pretty": f"[\n{JOB},\n{JOB[:9]}!!,\n{JOB},\n<>,\n{JOB}\n,\n{{",
    "large": f"{JOB}\n{JOB[:-1]}\n{' ' * 2**20}\n{JOB}\n<<\n{' ' * 2**20}{JOB[:-1]}\n{JOB}\n{{",
}


def scenario(kind: str, *, skip: bool) -> str:
    more = ", skip_broken: true" if skip else ""
    return f'{POOL}warmup_hours: 0\n{kind}: {{file: log, groups: {{"*": cms}}{more}}}\n'


@pytest.mark.parametrize(
    ("kind", "text", "lines"),
    [
        ("swf", SWF, [3, 4, 6]),
        ("history", HISTORIES["JSON lines"], [2, 4, 6]),
        ("history", HISTORIES["pretty"], [3, 5, 8]),
        ("history", HISTORIES["large"], [2, 5, 6, 8]),
        ("history", HISTORIES["large"].replace("\n", "\r\n"), [2, 5, 6, 8]),
    ],
)
def test_they_are_errors_all_at_once_or_counted(
    tmp_path: Path, kind: str, text: str, lines: list[int]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(text.encode())
    with pytest.raises(InputError) as refused:
        file.parse(scenario(kind, skip=False), "mine.yaml", tmp_path)
    *problems, remedy = refused.value.problems
    words = " ".join(problems)
    assert [
        line for line in lines if f"{log}:{line}:" not in words and f" {line}" not in words
    ] == []
    assert remedy == f"{log}: skip_broken: true beside file: passes over such rows, and counts them"

    read = file.parse(scenario(kind, skip=True), "mine.yaml", tmp_path)
    count = len(lines)
    assert read.notes == (f"jobs left out: {count} (broken row, passed over by skip_broken)",)
    assert len(read.logged) == (2 if kind == "swf" else 3)
