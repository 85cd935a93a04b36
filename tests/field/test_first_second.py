"""A job that is submitted in the first second of a log counts, as all later ones do."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.strategies import read_strategies
from sharectl_lab.study.run import simulate
from tests.field.simulated import POOL

ROW = "{0} {1} 0 3600 8 -1 -1 8 -1 -1 1 1 1 1 1 -1 -1 -1\n"


@pytest.mark.parametrize(
    ("submitted", "warmup_hours", "starts"),
    [((0, 600), 0, 2), ((0, 0, 1), 0, 3), ((0, 3600, 7200), 1, 2), ((0,), 0, 1)],
)
def test_its_start_and_its_wait_count(
    tmp_path: Path, submitted: tuple[int, ...], warmup_hours: int, starts: int
) -> None:
    """Also a job that is submitted, and starts, as the warm-up ends."""
    rows = [ROW.format(number, at) for number, at in enumerate(submitted, 1)]
    (tmp_path / "log.swf").write_text("".join(rows))
    text = f'{POOL}swf: {{file: log.swf, groups: {{"*": cms}}}}\nwarmup_hours: {warmup_hours}\n'
    outcome = simulate(file.parse(text, "mine", tmp_path), read_strategies("nothing")[0], 1)
    cms = outcome.groups["cms"]
    assert cms.starts_by_cores == {8: starts}
    assert cms.waits_by_cores[8].jobs == starts
    assert cms.waits_by_cores[8].longest_seconds < 90
