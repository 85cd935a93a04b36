from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.adapters import sharectl_file
from sharectl.adapters.state_file import StateFile
from sharectl.cli.main import main
from sharectl.core.model import Plan, Target
from sharectl.core.plan import State

PLAN = Plan(5, 1, 2**33, ("alice", "cms"), (Target("wn-1", "alice", 0, "cms", 8),), "targets")
CYCLE = {
    "taken_at": 1,
    "seconds": 0.1,
    "complete": True,
    "problems": [],
    "errors": [],
    "plan": None,
    "warnings": ["group cmss has neither"],
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        "groups: {alice: {pledge_hs06: 1}, cms: {pledge_hs06: 1}}\n"
        "pool: {collector: '127.0.0.1:1', collector_deadline_seconds: 5}\n"
        f"publish: [{{file: {tmp_path}/sharectl.txt}}]\nstate_directory: {tmp_path}\n"
    )
    (tmp_path / "sharectl.txt").write_text(sharectl_file.render(PLAN))
    return path


@pytest.mark.parametrize(("last", "older"), [(4, False), (5, False), (6, True)])
def test_an_older_plan_is_a_problem_and_warnings_of_the_last_cycle_are_told(
    config: Path, capsys: pytest.CaptureFixture[str], *, last: int, older: bool
) -> None:
    store = StateFile(config.parent / "state.json")
    store.save(State(last))
    store.note_cycle(CYCLE)
    assert main(["status", "--json", "--config", str(config)]) == 1
    out, err = capsys.readouterr()
    assert ("an older plan stands there: sequence 5, and 6 was published last" in err) is older
    assert json.loads(out)["published"][0]["older"] is older
    assert "warning: group cmss has neither" in err
    assert "cmss" not in str(json.loads(out)["problems"])
    assert "collector: " in err


def test_a_withdrawn_plan_that_comes_back_is_a_problem_though_sharectl_is_disabled(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    StateFile(config.parent / "state.json").save(State(6, withdrawn=True))
    (config.parent / "disabled").touch()
    assert main(["status", "--config", str(config)]) == 1
    assert "an older plan stands there" in capsys.readouterr().err


def test_help_says_what_a_monitoring_system_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", "--help"])
    out = capsys.readouterr().out
    for words in ("exit codes", "1 at least one problem", "no-file", "stale", "No problem:"):
        assert words in out
