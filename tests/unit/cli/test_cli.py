from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.cli.main import build_parser, main
from sharectl.model import Source, UnplaceableJobs
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


def test_what_a_replay_assumes_is_said_beside_the_rows(run: Run, jobs: Path) -> None:
    jobs.write_text("2 cn-1 alice 60 1 undefined\n2 undefined cms 60 1 10\n", encoding="utf-8")
    code, out, err = run("errors", "--jobs", jobs)
    assert (code, len(out.splitlines())) == (0, 3)
    assert "1 running jobs count by default" in err
    assert "1 rows left out" in err
    jobs.write_text("", encoding="utf-8")
    assert "no job is in it" in run("errors", "--jobs", jobs)[2]


def test_control_characters_of_a_message_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["errors", "--config", "no\x1b[31m"]) == 78
    assert "\x1b" not in capsys.readouterr().err


def test_a_snapshot_of_nothing_shows_no_zeros(capsys: pytest.CaptureFixture[str]) -> None:
    taken = snapshot(sources=[Source("collector", 1.0, "no answer")])
    content = as_json.snapshot(taken, ("alice",))
    assert (content["nodes"], content["pending"]) == (None, None)
    assert {*content["groups"]["alice"].values()} == {None}
    snapshot_tables(content, sys.stdout)
    out = capsys.readouterr().out
    assert ("no answer" in out, "alice" in out) == (True, False)


def test_jobs_before_their_time_are_not_among_those_that_no_node_could_run() -> None:
    rows = [UnplaceableJobs("cms", n, 1, f"ap#{n}.0", later=n == 1) for n in (1, 8)]
    to = io.StringIO()
    taken = replace(snapshot(), unplaceable=tuple(rows))
    snapshot_tables(as_json.snapshot(taken, ("cms",)), to)
    never, _, later = to.getvalue().partition("pending jobs whose time has not come")
    assert ("ap#8.0" in never, "ap#1.0" in never) == (True, False)
    assert ("ap#8.0" in later, "ap#1.0" in later) == (False, True)


SLIPS = {
    "": "VERB",
    "erors": '"erors" is invalid; did you mean errors?',
    "--config x errors": "options are written behind the verb: sharectl errors --config ...",
    "ledger --config=x check": "options are written behind the action: sharectl ledger check --co",
    "explain --config x group cms": "behind the subject: sharectl explain group --config ...",
    "check --json pool": "options are written behind the check: sharectl check pool --json ...",
    "errors --jbs=x": "errors: error: unrecognized arguments: --jbs=x; did you mean --jobs?",
}


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_of_the_pen_is_told_what_to_write(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert SLIPS[words] in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "report -o -", "simulate small-site -o -", "tune small-site --over control.law -o -",
        "learn small-site -o -", "snippets install --config-dir=-", "errors --jobs -",
        "check snippets -",
    ],
)  # fmt: skip
def test_a_minus_is_no_folder_or_file_of_that_name(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert (ended.value.code, list(tmp_path.iterdir())) == (2, [])
    assert "'-' is no path here: write that of a file or folder" in capsys.readouterr().err


def test_a_minus_is_standard_output_where_one_document_is_written() -> None:
    assert build_parser("init").parse_args(["init", "-o", "-"]).output is None
    export = ["ledger", "export", "-o", "-"]
    assert build_parser("ledger").parse_args(export).output is None
