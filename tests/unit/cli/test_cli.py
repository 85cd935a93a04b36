from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Callable

import pytest

from sharectl.cli.main import VERBS, main
from sharectl.model import Source
from sharectl.publish import text as sharectl_file
from sharectl.report import as_json
from sharectl.report.pool import snapshot_tables
from tests.fakes import NOW, snapshot

TARGET = {"held_back": "alice", "cap_cores": 1, "helped": "cms", "request_cores": 8}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(
        f"""
groups:
  alice: {{pledge_hs06: 100}}
  cms: {{pledge_hs06: 300}}
nodes: {{controlled: "cn-*"}}
publish:
  - file: {tmp_path}/sharectl.txt
history: {{jobs_file: {tmp_path}/jobs, errors_log: {tmp_path}/log}}
state_directory: {tmp_path}
""",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "AcctGroup_hs06.txt"
    rows = (
        ["2 cn-1 alice 60 1 10"] * 64
        + ["2 cn-2 Alice.prod 60 8 12.5"] * 2
        + ["2 vm-1 alice 60 1 10"] * 64
    )
    rows += ["2 cn-1 nobody 60 1 10"] * 5 + ["1 PEND cms 0 8 10"] * 3 + ["1 PEND cms 0 1 10"]
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command; it returns its exit code, output and errors."""

    def ended(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return ended


def test_errors_prints_the_header_and_the_rows(run: Run, config: Path, jobs: Path) -> None:
    code, out, _ = run("errors", "--jobs", jobs, "--config", config, "--taken-at", NOW)
    assert code == 0
    # alice: 64 * 10 + 16 * 12.5 + 64 * 10 = 1480 HS06, of which three quarters are due to cms.
    header = "# T0 VO PLEDGE DC SC MC DHS DPHS PSC PMC\n"
    assert out == (
        f"{header}{NOW} alice 100 108 128 16 1110 1380 0 0\n{NOW} cms 300 -108 0 0 -1110 -300 1 3\n"
    )


def test_plan_prints_the_lines_of_sharectl_txt_and_nothing_else(
    run: Run, config: Path, jobs: Path
) -> None:
    code, out, _ = run("plan", "--jobs", jobs, "--config", config)
    assert code == 0
    assert out == "cn-2 alice 8 cms 8\ncn-1 alice 56 cms 8\n"


def test_json_is_a_plan_that_publish_takes(
    run: Run, config: Path, jobs: Path, tmp_path: Path
) -> None:
    taken = int(jobs.stat().st_mtime)
    _, out, _ = run("plan", "--jobs", jobs, "--config", config, "--json")
    plan = tmp_path / "plan.json"
    plan.write_text(out, encoding="utf-8")
    code, text, _ = run("publish", "--plan", plan, "--config", config, "--dry-run")
    assert code == 0
    assert not (tmp_path / "sharectl.txt").exists()
    assert run("publish", "--plan", plan, "--config", config)[0] == 0
    published = tmp_path / "sharectl.txt"
    assert published.read_text(encoding="ascii") == text
    content = sharectl_file.read(published)
    assert len(content.targets) == 2
    assert (content.generated_at, content.valid_until) == (taken, taken + 3060)
    code, _, err = run("publish", "--plan", plan, "--config", config)
    assert (code, "published already" in err) == (65, True)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "errors"},
        {"valid_until": 1, "generated_at": 0},
        {"groups": ["alice", "cms", "lhcb"]},
        {"targets": [{**TARGET, "node": "x\nevil"}]},
    ],
)
def test_a_plan_that_was_tampered_with_is_refused(
    run: Run,
    config: Path,
    jobs: Path,
    tmp_path: Path,
    change: dict[str, object],
) -> None:
    _, out, _ = run("plan", "--jobs", jobs, "--config", config, "--json")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({**json.loads(out), **change}), encoding="utf-8")
    code, _, err = run("publish", "--plan", plan, "--config", config)
    assert (code, str(plan) in err) == (65, True)
    assert not (tmp_path / "sharectl.txt").exists()


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ('"cn-*"', '"Memory > 1000"', "nodes.controlled"),
        # Nodes without known cores would make every setpoint 0.
        ("groups:", "control: {setpoint: present}\ngroups:", "control.setpoint"),
    ],
)
def test_a_file_of_jobs_is_not_enough_for_every_configuration(
    run: Run,
    config: Path,
    jobs: Path,
    before: str,
    after: str,
    place: str,
) -> None:
    config.write_text(config.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    code, out, err = run("plan", "--jobs", jobs, "--config", config)
    assert (code, out, place in err) == (78, "", True)
    code, _, _ = run("errors", "--jobs", jobs, "--config", config)
    assert code == (0 if place == "control.setpoint" else 78)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"2 cn-1 alice 60 1\n", ":1: needs 6 columns"),
        (b"\x1f\x8b\x08\0\xff\x1b[31m\n" * 30, ":1: is no text"),
    ],
)
def test_a_bad_jobs_file_is_named(
    run: Run, config: Path, jobs: Path, content: bytes, problem: str
) -> None:
    jobs.write_bytes(content)
    code, out, err = run("errors", "--jobs", jobs, "--config", config)
    assert (code, out, len(err.splitlines())) == (65, "", 1)
    assert f"{jobs}{problem}" in err
    assert err.rstrip().isprintable()


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b" \n", "standard input: is empty"), (b"\x7fELF\0\xff\x1b[31m", "-: is no text")],
)
def test_input_that_is_no_plan_is_named(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, problem: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, err = run("publish", "--config", config)
    assert (code, out, problem in err) == (65, "", True)
    assert err.rstrip().isprintable()


def test_a_setting_is_judged_before_the_pool_is_asked(run: Run, config: Path) -> None:
    """No pool is there: what is told is the setting."""
    code, out, err = run("plan", "--diff", "--set", "control.max_node=1", "--config", config)
    assert (code, out, "max_node" in err, "collector" in err) == (2, "", True, False)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    assert "usage: sharectl" in capsys.readouterr().out


def test_control_characters_of_a_message_do_not_reach_the_terminal(
    run: Run, tmp_path: Path
) -> None:
    _, _, err = run("errors", "--config", tmp_path / "no\x1b[31m")
    assert "\x1b" not in err


def test_what_a_replay_assumes_is_said_beside_the_rows(run: Run, config: Path, jobs: Path) -> None:
    jobs.write_text("2 cn-1 alice 60 1 undefined\n2 undefined cms 60 1 10\n", encoding="utf-8")
    code, out, err = run("errors", "--jobs", jobs, "--config", config)
    assert (code, len(out.splitlines())) == (0, 3)
    assert "1 running jobs count by default" in err
    assert "1 rows left out" in err
    jobs.write_text("", encoding="utf-8")
    assert "no job is in it" in run("errors", "--jobs", jobs, "--config", config)[2]


def test_a_time_before_1970_is_a_usage_error(run: Run, config: Path, jobs: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        run("errors", "--jobs", jobs, "--config", config, "--taken-at=-5")
    assert caught.value.code == 2


def test_a_snapshot_of_nothing_shows_no_zeros(capsys: pytest.CaptureFixture[str]) -> None:
    content = as_json.snapshot(
        snapshot(sources=[Source("collector", 1.0, "no answer")]), ("alice",)
    )
    assert (content["nodes"], content["pending"]) == (None, None)
    assert {*content["groups"]["alice"].values()} == {None}
    snapshot_tables(content, sys.stdout)
    out = capsys.readouterr().out
    assert "no answer" in out
    assert "alice" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "VERB"),
        (["erors"], "there is no verb 'erors'; write errors"),
        (["xyzzy"], "it is one of snapshot, errors, "),
        (
            ["--config", "x", "errors"],
            "options are written behind the verb: sharectl errors --config ...",
        ),
        (
            ["ledger", "--config=x", "info"],
            "options are written behind the second word: sharectl ledger WORD --config ",
        ),
        (["check", "--config", "x"], "`sharectl check --help` has the words"),
        (
            ["errors", "--jbs", "x"],
            "there is no option --jbs; write --jobs (`sharectl errors --help` ",
        ),
        (["errors", "--jbs=x", "--taken=1", "-q"], "--jbs; write --jobs; there is no option -q ("),
        (["errors", "x"], "'x' is one word too many (`sharectl errors --help` "),
        (["ledger", "export", "--teapot"], "no option --teapot (`sharectl ledger export --help` "),
    ],
)
def test_a_slip_of_the_pen_is_told_what_to_write(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
