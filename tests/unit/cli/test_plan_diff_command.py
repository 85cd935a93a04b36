"""``sharectl plan --diff``, and warnings of a shadow that cannot be loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Optional

import pytest

from sharectl.model import Standing, Target
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.fakes import NOW
from tests.unit.cli.conftest import Run

Plan = Callable[..., tuple[int, str, str]]
STOOD = Standing(Target("cn-1", "alice", 56, "cms", 8), NOW - 60)
GONE = Standing(Target("cn-9", "alice", 0, "cms", 8), NOW - 60)


@pytest.fixture
def plan(run: Run, jobs: Path) -> Plan:
    """Run ``sharectl plan`` on a list of jobs: exit code, output and errors."""
    os.utime(jobs, (NOW, NOW))
    return partial(run, "plan", "--jobs", jobs)


def diff(plan: Plan, *words: object) -> tuple[str, dict[str, int]]:
    """Words for the other plan, and counts by kind of change."""
    code, out, err = plan("--json", *words)
    assert code == 0, err
    content = json.loads(out)
    assert (content["kind"], content["schema_version"]) == ("plan_diff", 1)
    return content["beside"], {kind: count for kind, count in content["counts"].items() if count}


@pytest.mark.parametrize(
    ("standing", "until", "beside", "counts"),
    [
        ((STOOD, GONE), NOW + 60, "what is published: sequence 7", {"kept": 1, "moved": 1}),
        ((STOOD,), NOW - 5, "sequence 7, which ran out 5 s ago", {"added": 2}),
        (None, 0, "nothing: no plan was published yet", {"added": 2}),
    ],
)
def test_beside_targets_that_stand(
    plan: Plan,
    tmp_path: Path,
    standing: Optional[tuple[Standing, ...]],
    until: int,
    beside: str,
    counts: dict[str, int],
) -> None:
    if standing is not None:
        state = State(sequence=7, standing=standing, standing_until=until)
        StateFile(tmp_path / "state.json").save(state)
    words, kinds = diff(plan, "--diff")
    assert beside in words
    assert kinds == counts


def test_a_state_that_cannot_be_read_is_told_once_and_is_74(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"schema_version": 1, "sequ')
    code, out, err = plan("--diff")
    assert (code, err.count("state.json: cannot be read"), "cn-1" in out) == (74, 1, True)


def test_a_shadow_that_cannot_be_loaded_is_a_warning(plan: Plan, tmp_path: Path) -> None:
    with (tmp_path / "sharectl.yaml").open("a") as file:
        file.write("control: {shadow: {law: learned}}\n")
    warnings = json.loads(plan("--json")[1])["warnings"]
    (failed,) = (line for line in warnings if line.endswith("; cycles leave the shadow out"))
    for how in ((), ("--diff",)):
        assert failed in plan(*how)[2]
