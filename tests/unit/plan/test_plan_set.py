"""``sharectl plan --set KEY=VALUE --diff``: a change of the configuration, tried on one look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.cli.main import main
from tests.fakes import NOW

CONFIG = """
groups: {{alice: {{pledge_hs06: 100}}, cms: {{pledge_hs06: 100}}}}
control: {{max_nodes: 1}}
state_directory: {folder}
"""
JOBS = ["2 cn-1 alice 60 1 10"] * 64 + ["2 cn-2 alice 60 1 10"] * 64 + ["1 PEND cms 0 8 10"] * 9


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    config, jobs = tmp_path / "sharectl.yaml", tmp_path / "jobs"
    config.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    jobs.write_text("".join(f"{row}\n" for row in JOBS), encoding="utf-8")
    return ["plan", "--jobs", str(jobs), "--taken-at", str(NOW), "--config", str(config)]


def test_a_change_is_told_beside_the_plan_without_it(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--set", "control.max_nodes=2", "--diff", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["beside"] == "the plan without --set control.max_nodes=2"
    assert (content["counts"]["added"], content["counts"]["kept"]) == (1, 1)
    assert main([*words, "--set", "control.max_nodes=1", "--diff", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {kind for kind, count in content["counts"].items() if count} == {"kept"}


def test_pledges_can_be_tried(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "groups.cms.pledge_hs06=0.001", "--set", "control.max_nodes=2"]
    assert main([*words, *settings, "--diff", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["dropped"] == 1


@pytest.mark.parametrize(
    "more",
    [
        ["--set", "control.max_nodes=2"],
        ["--set", "control.max_nodes=2", "--diff", "file"],
        ["--set", "control.max_node=2", "--diff"],
        ["--set", "nodes.controlled=x", "--diff"],
        ["--set", "max_nodes", "--diff"],
    ],
)
def test_settings_that_cannot_be_tried_are_wrong_usage(
    words: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main([*words, *more])
    except SystemExit as error:
        code = int(error.code or 0)
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert "--set" in said.err
