from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.model import Standing, Target
from sharectl.plan.plan import State
from sharectl.publish.state import StateFile
from tests.fakes import NOW


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        f"groups: {{alice: {{pledge_hs06: 100}}, cms: {{pledge_hs06: 300}}}}\nstate_directory: "
        f"{tmp_path}\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs"
    rows = ["2 cn-1 alice 60 1 10"] * 64 + ["2 cn-2 alice 60 8 10"] * 2 + ["1 PEND cms 0 8 10"] * 3
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What is printed, as if it were on one line."""
    return " ".join(run(capsys, *arguments)[1].split())


def offline(config: Path, jobs: Path) -> list[object]:
    return ["plan", "--jobs", jobs, "--config", config, "--taken-at", NOW]


def test_beside_what_is_published(
    capsys: pytest.CaptureFixture[str], config: Path, jobs: Path
) -> None:
    standing = (
        Standing(Target("cn-1", "alice", 56, "cms", 8), NOW - 60),
        Standing(Target("cn-9", "alice", 0, "cms", 8), NOW - 60),
    )
    StateFile(config.parent / "state.json").save(
        State(sequence=7, standing=standing, standing_until=NOW + 60)
    )
    code, out, _ = run(capsys, *offline(config, jobs), "--diff")
    assert code == 0
    assert " ".join(out.split()).startswith(
        "beside what is published: sequence 7: 0 added, 1 kept, 1 moved, 0 altered, 0 dropped a "
        "group"
    )
    assert "moved   cn-9 -> cn-2  alice <= 0, cms by 8  alice <= 8, cms by 8" in out
    assert "alice -80, cms +80" in out
    content = json.loads(run(capsys, *offline(config, jobs), "--diff", "--json")[1])
    assert (content["kind"], content["schema_version"]) == ("plan_diff", 1)
    assert content["counts"] == {"added": 0, "kept": 1, "moved": 1, "altered": 0, "dropped": 0}


def test_beside_nothing_and_beside_what_ran_out(
    capsys: pytest.CaptureFixture[str], config: Path, jobs: Path
) -> None:
    assert "no plan was published yet: 2 added" in said(capsys, *offline(config, jobs), "--diff")
    standing = (Standing(Target("cn-1", "alice", 56, "cms", 8), NOW - 60),)
    StateFile(config.parent / "state.json").save(
        State(sequence=7, standing=standing, standing_until=NOW - 5)
    )
    assert "sequence 7, which ran out 5 s ago: 2 added" in said(
        capsys, *offline(config, jobs), "--diff"
    )


def test_beside_another_plan_and_beside_a_file_of_targets(
    capsys: pytest.CaptureFixture[str], config: Path, jobs: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(run(capsys, *offline(config, jobs), "--json")[1], encoding="utf-8")
    assert "0 added, 2 kept, 0 moved" in said(capsys, *offline(config, jobs), "--diff", plan)
    text = tmp_path / "sharectl.txt"
    text.write_text("cn-1 alice 57 cms 8\ncn-3 lhcb 1 cms 8\n", encoding="utf-8")
    assert "1 added, 0 kept, 0 moved, 1 altered, 1 dropped" in said(
        capsys, *offline(config, jobs), "--diff", text
    )


@pytest.mark.parametrize("content", [None, "{", "cn-1 alice\n", "\x1b[2J evil 1 cms 8\n"])
def test_what_is_no_plan_is_refused(
    capsys: pytest.CaptureFixture[str], config: Path, jobs: Path, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "other"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    code, out, err = run(capsys, *offline(config, jobs), "--diff", path)
    assert (code, out) == (65, "")
    assert str(path) in err
    assert "\x1b" not in err


def test_many_changes_are_one_screen_unless_all_are_wanted(
    capsys: pytest.CaptureFixture[str], config: Path, jobs: Path, tmp_path: Path
) -> None:
    text = tmp_path / "sharectl.txt"
    text.write_text("".join(f"old-{n:02} lhcb 1 cms 8\n" for n in range(40)), encoding="utf-8")
    out = said(capsys, *offline(config, jobs), "--diff", text)
    out = run(capsys, *offline(config, jobs), "--diff", text)[1]
    assert "more: --all" in out
    assert len(run(capsys, *offline(config, jobs), "--diff", text, "--all")[1].splitlines()) > 40


def test_the_reason_is_said_once(
    capsys: pytest.CaptureFixture[str], config: Path, jobs: Path
) -> None:
    code, out, err = run(capsys, *offline(config, jobs), "--diff")
    assert code == 0
    assert f"{out}{err}".count("a group over its share gives way to one under it") == 1
    assert "gives way" in run(capsys, *offline(config, jobs))[2]


def test_a_file_that_is_no_plan_is_one_message(
    capsys: pytest.CaptureFixture[str], config: Path, jobs: Path
) -> None:
    code, _, err = run(capsys, *offline(config, jobs), "--diff", config)
    assert (code, err.count(str(config))) == (65, 2)
    assert "neither what `sharectl plan --json` printed nor a sharectl.txt" in err
    assert len(err.splitlines()) == 1
