"""``sharectl plan --diff``, and with ``--set`` a change of the configuration that is tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import pytest

from sharectl.cli.main import main
from sharectl.model import Standing, Target
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.fakes import NOW

Plan = Callable[..., tuple[int, str, str]]
STOOD = Standing(Target("cn-1", "alice", 56, "cms", 8), NOW - 60)
GONE = Standing(Target("cn-9", "alice", 0, "cms", 8), NOW - 60)
ROWS = ["2 cn-1 alice 60 1 10"] * 64 + ["2 cn-2 alice 60 8 10"] * 2 + ["1 PEND cms 0 8 10"] * 3


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Plan:
    """Run ``sharectl plan`` on a list of jobs: exit code, output and errors."""
    config, jobs = tmp_path / "sharectl.yaml", tmp_path / "jobs"
    config.write_text(
        "groups: {alice: {pledge_hs06: 100}, cms: {pledge_hs06: 300}}\n"
        f"state_directory: {tmp_path}\n",
        encoding="utf-8",
    )
    jobs.write_text("".join(f"{row}\n" for row in ROWS), encoding="utf-8")
    look = ["--jobs", str(jobs), "--taken-at", str(NOW), "--config", str(config)]

    def ended(*words: object) -> tuple[int, str, str]:
        try:
            code = main(["plan", *look, *map(str, words)])
        except SystemExit as error:
            code = int(error.code or 0)
        return (code, *capsys.readouterr())

    return ended


def data(ended: tuple[int, str, str]) -> dict[str, Any]:
    assert ended[0] == 0, ended[2]
    content: dict[str, Any] = json.loads(ended[1])
    assert (content["kind"], content["schema_version"]) == ("plan_diff", 1)
    return content


def counts(ended: tuple[int, str, str]) -> dict[str, int]:
    return {kind: count for kind, count in data(ended)["counts"].items() if count}


@pytest.mark.parametrize(
    ("standing", "until", "beside", "expected"),
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
    expected: dict[str, int],
) -> None:
    if standing is not None:
        state = State(sequence=7, standing=standing, standing_until=until)
        StateFile(tmp_path / "state.json").save(state)
    assert beside in data(plan("--diff", "--json"))["beside"]
    assert counts(plan("--diff", "--json")) == expected


def test_beside_another_plan_and_beside_a_file_of_targets(plan: Plan, tmp_path: Path) -> None:
    other = tmp_path / "plan.json"
    other.write_text(plan("--json")[1], encoding="utf-8")
    assert counts(plan("--json", "--diff", other)) == {"kept": 2}
    text = tmp_path / "sharectl.txt"
    text.write_text("cn-1 alice 57 cms 8\ncn-3 lhcb 1 cms 8\n", encoding="utf-8")
    assert counts(plan("--json", "--diff", text)) == {"added": 1, "altered": 1, "dropped": 1}


@pytest.mark.parametrize("content", [None, "{", "cn-1 alice\n", "\x1b[2J evil 1 cms 8\n", "a: b\n"])
def test_other_files_are_refused_in_one_message(
    plan: Plan, tmp_path: Path, content: Optional[str]
) -> None:
    path = tmp_path / "other"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    code, out, err = plan("--diff", path)
    assert (code, out) == (65, "")
    assert str(path) in err
    assert "\x1b" not in err


def test_many_changes_are_one_screen_unless_all_are_wanted(plan: Plan, tmp_path: Path) -> None:
    text = tmp_path / "sharectl.txt"
    text.write_text("".join(f"old-{n:02} lhcb 1 cms 8\n" for n in range(40)), encoding="utf-8")
    screen, everything = plan("--diff", text)[1], plan("--diff", text, "--all")[1]
    assert len(screen.splitlines()) <= 26  # the path of the file may be long
    assert "--all" in screen
    assert len(everything.splitlines()) > 40


def test_a_change_is_told_beside_the_plan_without_it(plan: Plan) -> None:
    content = data(plan("--set", "control.max_nodes=1", "--diff", "--json"))
    assert content["beside"] == "the plan without --set control.max_nodes=1"
    assert counts(plan("--set", "control.max_nodes=1", "--diff", "--json")) == {
        "dropped": 1,
        "kept": 1,
    }
    assert counts(plan("--set", "control.max_nodes=9", "--diff", "--json")) == {"kept": 2}
    pledge = ("--set", "groups.cms.pledge_hs06=0.001")
    assert counts(plan(*pledge, "--diff", "--json")) == {"dropped": 2}


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "control.max_nodes=2"),
        ("--set", "control.max_nodes=2", "--diff", "file"),
        ("--set", "control.max_node=2", "--diff"),
        ("--set", "nodes.controlled=x", "--diff"),
        ("--set", "max_nodes", "--diff"),
    ],
)
def test_settings_that_cannot_be_tried_are_wrong_usage(plan: Plan, words: tuple[str, ...]) -> None:
    code, out, err = plan(*words)
    assert (code, out) == (2, "")
    assert "--set" in err
