"""Jobs that no node can run, for cores, memory, disk or GPUs: told, and no idle cores."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from tests.field.simulated import POOL, Simulate, is_shown, notes, simulate

__all__ = ["simulate"]
ROW = "{0} 0 0 86000 {1} -1 -1 {1} -1 {2} 1 1 1 1 1 -1 -1 -1\n"
SWF = f'{POOL}swf: {{file: log.swf, groups: {{"*": cms}}}}\nwarmup_hours: 0\n'
THIN = "}, {name: thin, cores: 32, memory_mib: 400"
KIB = 2_000_000
"""Memory of a core."""


def write(folder: Path, *rows: tuple[int, int]) -> None:
    lines = [ROW.format(number, *row) for number, row in enumerate(rows, 1)]
    (folder / "log.swf").write_text("".join(lines))


def test_a_job_of_a_log_that_fits_on_no_node_is_told(simulate: Simulate, tmp_path: Path) -> None:
    write(tmp_path, (100, -1), (4, -1))
    simulated = simulate(SWF)
    note = (
        "no node fits 1 of 2 jobs of the log: they never start (cores: 100, and the largest slot "
        "has 16)"
    )
    assert (simulated.code, simulated.notes) == (0, [note])
    assert is_shown(simulated, note)
    idle = simulated.strategy
    assert idle["idle_core_hours"]["mean"] < 1
    by_cause = idle["idle_core_hours_by_cause"]
    assert by_cause["unmatchable"]["mean"] == pytest.approx(28 * 24, rel=0.01)
    assert by_cause["no-jobs"]["mean"] < 5


def test_nothing_that_fits_is_nothing_to_compare(simulate: Simulate, tmp_path: Path) -> None:
    write(tmp_path, (17, -1), (100, -1))
    simulated = simulate(SWF)
    assert simulated.code == 65
    assert simulated.notes[0].startswith("no node fits 2 of 2 jobs of the log")


@pytest.mark.parametrize(
    ("jobs", "factor", "asks"),
    [
        (((1, KIB * 1024), *((1, KIB),) * 19), 1, False),
        (((1, KIB * 1024), *((1, KIB),) * 18), 1, True),
        (((1, KIB * 1024),) * 2, 1 / 1024, False),
    ],
    ids=["5 %", "more", "the remedy"],
)
def test_much_memory_asks_after_its_unit(
    tmp_path: Path, jobs: tuple[tuple[int, int], ...], factor: float, *, asks: bool
) -> None:
    write(tmp_path, *jobs)
    text = SWF.replace("file:", f"memory_factor: {factor}, file:")
    seen = notes(text, tmp_path)
    assert len([note for note in seen if "fits" in note]) == (factor == 1)
    asked = (
        "more than 5 % need more memory than any node has: does the log have bytes where SWF has "
        "KiB? Then write memory_factor: 0.0009765625 in swf"
    )
    assert [note for note in seen if "more than" in note] == ([asked] if asks else [])


@pytest.mark.parametrize(
    ("job", "node", "words"),
    [
        ("cores: 17", "", "no node fits jobs of cms: they never start (cores: 17, and the"),
        ("memory_mib: 70000", "", "memory MiB: 70000, and the largest slot has 65536"),
        ("disk_mib: 3", ", disk_mib: 2", "disk KiB: 3072, and the largest slot has 2048"),
        ("custom: {gpus: 2}", ", custom: {gpus: 1}", "gpus: 2, and the largest slot has 1"),
        ("cores: 9", ", slots: 2", "cores: 9, and the largest slot has 8"),
        ("cores: 16, memory_mib: 500", THIN, None),
        ("cores: 32, memory_mib: 500", THIN, "no slot has enough of all resources together"),
        ("cores: 16", "", None),
    ],
)
def test_each_resource_of_streams(job: str, node: str, words: Optional[str]) -> None:
    pool = POOL.replace("16}", f"16{node}}}")
    seen = notes(f"{pool}jobs: [{{group: cms, keep_pending: 3, {job}}}]\n")
    assert len(seen) == (words is not None)
    assert [note for note in seen if str(words) not in note] == []
