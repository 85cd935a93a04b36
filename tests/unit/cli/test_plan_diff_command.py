"""``sharectl plan --diff`` beside what is published."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Optional

import pytest

from sharectl.model import Standing, Target
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.fakes import NOW
from tests.unit.cli.conftest import Run

STOOD = Standing(Target("cn-1", "alice", 56, "cms", 8), NOW - 60)
GONE = Standing(Target("cn-9", "alice", 0, "cms", 8), NOW - 60)


@pytest.mark.parametrize(
    ("standing", "until", "beside", "counts"),
    [
        ((STOOD, GONE), NOW + 60, "what is published: sequence 7", {"kept": 1, "moved": 1}),
        ((STOOD,), NOW - 5, "sequence 7, which ran out 5 s ago", {"added": 2}),
        (None, 0, "nothing: no plan was published yet", {"added": 2}),
    ],
)
def test_beside_targets_that_stand(
    run: Run,
    jobs: Path,
    tmp_path: Path,
    standing: Optional[tuple[Standing, ...]],
    until: int,
    beside: str,
    counts: dict[str, int],
) -> None:
    if standing is not None:
        state = State(sequence=7, standing=standing, standing_until=until)
        StateFile(tmp_path / "state.json").save(state)
    os.utime(jobs, (NOW, NOW))
    code, out, err = run("plan", "--jobs", jobs, "--json", "--diff")
    assert code == 0, err
    content = json.loads(out)
    assert (content["kind"], content["schema_version"]) == ("plan_diff", 1)
    assert beside in content["beside"]
    assert {kind: count for kind, count in content["counts"].items() if count} == counts
