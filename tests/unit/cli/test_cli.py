from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.model import Source
from sharectl.report import as_json
from sharectl.report.pool import snapshot_tables
from tests.fakes import snapshot
from tests.unit.cli.conftest import Run


def test_only_controlled_nodes_get_targets(run: Run, jobs: Path) -> None:
    with jobs.open("a") as file:
        file.write("2 vm-1 alice 60 1 10\n" * 64)
    assert run("plan", "--jobs", jobs)[:2] == (0, "cn-2 alice 8 cms 8\ncn-1 alice 56 cms 8\n")


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ('"cn-*"', '"Memory > 1000"', "nodes.controlled"),
        # Nodes without known cores would make every setpoint 0.
        ("groups:", "control: {setpoint: present}\ngroups:", "control.setpoint"),
    ],
)
def test_a_file_of_jobs_is_not_enough_for_every_configuration(
    run: Run, config: Path, jobs: Path, before: str, after: str, place: str
) -> None:
    config.write_text(config.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    code, out, err = run("plan", "--jobs", jobs)
    assert (code, out, place in err) == (78, "", True)
    assert run("errors", "--jobs", jobs)[0] == (0 if place == "control.setpoint" else 78)


@pytest.mark.parametrize(
    ("words", "content", "problem"),
    [
        ("errors --jobs", b"2 cn-1 alice 60 1\n", ":1: needs 6 columns"),
        ("errors --jobs", b"\x1f\x8b\x08\0\xff\x1b[31m\n" * 30, ":1: is no text"),
    ],
)
def test_a_bad_file_is_named(
    run: Run, jobs: Path, words: str, content: bytes, problem: str
) -> None:
    jobs.write_bytes(content)
    code, out, err = run(*words.split(), jobs)
    assert (code, out, len(err.splitlines())) == (65, "", 1)
    assert f"{jobs}{problem}" in err
    assert err.rstrip().isprintable()


def test_what_a_file_of_jobs_leaves_open_is_said_beside_the_rows(run: Run, jobs: Path) -> None:
    jobs.write_text("2 cn-1 alice 60 1 undefined\n2 undefined cms 60 1 10\n", encoding="utf-8")
    code, out, err = run("errors", "--jobs", jobs)
    assert (code, len(out.splitlines())) == (0, 3)
    assert "1 running jobs count by default" in err
    assert "1 rows left out" in err
    jobs.write_text("", encoding="utf-8")
    assert "no job is in it" in run("errors", "--jobs", jobs)[2]


def test_a_snapshot_of_nothing_shows_no_zeros(capsys: pytest.CaptureFixture[str]) -> None:
    taken = snapshot(sources=[Source("collector", 1.0, "no answer")])
    content = as_json.snapshot(taken, ("alice",))
    assert (content["nodes"], content["pending"]) == (None, None)
    assert {*content["groups"]["alice"].values()} == {None}
    snapshot_tables(content, sys.stdout)
    out = capsys.readouterr().out
    assert ("no answer" in out, "alice" in out) == (True, False)


SLIPS = {
    "": "VERB",
    "erors": '"erors" is invalid; did you mean errors?',
    "check --json pool": "check: error: unrecognized arguments: --json; see --help, and write opti",
    "errors --jbs=x": "errors: error: unrecognized arguments: --jbs=x; see --help",
}


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_of_the_pen_is_told_what_to_write(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert SLIPS[words] in capsys.readouterr().err
