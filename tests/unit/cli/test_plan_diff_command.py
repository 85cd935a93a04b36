"""``sharectl plan --diff``, and warnings of laws that fail."""

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
from tests.laws import install
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


@pytest.mark.parametrize("shadow", [False, True])
def test_a_failed_law_is_a_warning(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, shadow: bool
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, odd="tests.laws:broken")
    law = "{shadow: {law: odd}}" if shadow else "{law: odd}"
    with (tmp_path / "sharectl.yaml").open("a") as file:
        file.write(f"control: {law}\n")
    warnings = json.loads(plan("--json")[1])["warnings"]
    kinds = ("shadow law odd", "it steers nothing") if shadow else ("law odd", "nothing is moved")
    failed = [line for line in warnings if all(words in line for words in kinds)]
    assert len(failed) >= 2
    for how in ((), ("--diff",)):
        _, out, err = plan(*how)
        assert [line for line in failed if line not in err] == []
        assert ("the law of a group failed" in out + err) is not shadow
