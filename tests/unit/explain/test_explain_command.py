from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.control.laws import Control
from sharectl.control.steering import SteeringConfig
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import Source, Target
from sharectl.plan.records import CycleRecord, HeldJobs, NodeRecord
from tests.fakes import NOW
from tests.ledgers import PERIOD_SECONDS, busy, law, write

CONFIG = """
groups: {{alice: {{pledge_hs06: 71400}}, atlas: {{pledge_hs06: 105300}}, cms: {{pledge_hs06: 87100}}}}
control: {{strategy: pair, max_nodes: {max_nodes}, give_up_seconds: 604800, probe_blocks: 1000}}
state_directory: {folder}
"""
LEFT_OUT = "otherwise left out: it would tell of that other decision, and not of this one"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(CONFIG.format(folder=tmp_path, max_nodes=4), encoding="utf-8")
    return path


@pytest.fixture
def kept(tmp_path: Path) -> list[CycleRecord]:
    return write(tmp_path, law(max_nodes=4), [busy(number) for number in range(3)])


def incomplete(folder: Path, number: int) -> None:
    silent = Source("schedd ap-2", 60.0, "no answer \x1b[31mwithin 60 s")
    record = CycleRecord(
        NOW + number * PERIOD_SECONDS, 61.0, complete=False, sources=(silent,), problems=("x\ny",)
    )
    Ledger(folder / PLACE).record(record, replace(busy(number), sources=(silent,)))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    content: dict[str, Any] = json.loads(out)
    assert content["schema_version"] == 1
    return content


@pytest.mark.usefixtures("kept")
def test_the_latest_cycle_is_explained_unless_another_is_named(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    asked = ("explain", "group", "alice", "--config", config)
    assert data(capsys, *asked)["cycle"] == 3
    assert data(capsys, *asked, "--cycle", "latest")["cycle"] == 3
    assert data(capsys, *asked, "--cycle", 1)["cycle"] == 1
    assert data(capsys, *asked, "--at", NOW + PERIOD_SECONDS + 5)["cycle"] == 2
    assert data(capsys, *asked, "--at", "2023-11-14T22:30:20Z")["taken_at"] == NOW + PERIOD_SECONDS
    for which, number in (("2", 2), (str(NOW), 1), ("latest", 3), ("2023-11-14 22:31", 2)):
        assert data(capsys, "explain", "cycle", which, "--config", config)["cycle"] == number


@pytest.mark.usefixtures("kept")
def test_a_time_before_all_cycles_is_no_number_of_one(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    code, _, err = run(capsys, "explain", "group", "alice", "--at", "@2", "--config", config)
    assert code == 1
    assert "no cycle at or before 1970-01-01" in err


@pytest.mark.usefixtures("kept")
def test_deciding_again_agrees_as_long_as_the_configuration_is_the_same(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    asked = ("explain", "group", "cms", "--config", config)
    assert data(capsys, *asked)["agrees"] is True
    config.write_text(CONFIG.format(folder=tmp_path, max_nodes=2), encoding="utf-8")
    content = data(capsys, *asked)
    assert (content["agrees"], content["would_change"]) == (False, None)
    out = " ".join(run(capsys, *asked)[1].split())
    assert "deciding again now comes to something else" in out
    assert LEFT_OUT in out


@pytest.mark.usefixtures("kept")
def test_a_cycle_tells_what_would_change_it_unless_it_would_have_other_targets_now(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    asked = ("explain", "cycle", "--config", config)

    def of_limit() -> list[tuple[float, float | None, str]]:
        told = data(capsys, *asked)["would_change"]
        return [(f["value"], f["becomes"], f["outcome"]) for f in told if f["code"] == "max-nodes"]

    assert of_limit() == [(4.0, 5.0, "5 targets"), (4.0, None, "7 targets")]
    assert "deciding again now" not in run(capsys, *asked)[1]
    config.write_text(CONFIG.format(folder=tmp_path, max_nodes=2), encoding="utf-8")
    content = data(capsys, *asked)
    assert (content["agrees"], content["decided_again"], len(content["targets"])) == (
        False,
        "2 targets",
        4,
    )
    assert content["would_change"] is None
    out = " ".join(run(capsys, *asked)[1].split())
    assert "deciding again now comes to something else" in out
    assert LEFT_OUT in out


@pytest.mark.parametrize("strategy", ["pair", "many"])
def test_a_cycle_without_targets_tells_what_would_bring_some(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path, strategy: str
) -> None:
    config.write_text(config.read_text().replace("pair", strategy))
    write(tmp_path, law(strategy, max_nodes=4), [busy(0, waiting=0)])
    content = data(capsys, "explain", "cycle", "--config", config)
    assert (content["targets"], content["decided_again"]) == ([], "no target")
    told = {flip["what"]: (flip["becomes"], flip["outcome"]) for flip in content["would_change"]}
    assert told["8-core jobs of cms that wait"] == (1.0, "1 target")


def test_a_group_whose_law_was_given_nothing_says_so(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    config.write_text(config.read_text().replace("strategy:", "law: ewma, strategy:"))
    ewma = replace(law(max_nodes=4), steering=SteeringConfig(Control("ewma")))
    taken = busy(0)
    waiting = tuple(jobs for jobs in taken.pending if jobs.group != "cms")
    write(tmp_path, ewma, [replace(taken, pending=waiting)])
    groups = {
        each["group"]: each
        for each in data(capsys, "explain", "cycle", "--config", config)["groups"]
    }
    cms = groups["cms"]
    assert (round(cms["control_error_hs06"]), cms["given_hs06"], cms["output_hs06"]) == (
        -992,
        0.0,
        0.0,
    )
    out = " ".join(run(capsys, "explain", "cycle", "--config", config)[1].split())
    assert (
        "cms: uses 1280 HS06, is due 2272: error -992, of which the law is given 0, output +0 HS06"
        in out
    )
    out = " ".join(run(capsys, "explain", "group", "cms", "--config", config)[1].split())
    assert "power - setpoint; the law is given 0" in out


@pytest.mark.usefixtures("kept")
def test_an_incomplete_cycle_explains_itself_and_a_group_is_of_the_one_before(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    incomplete(tmp_path, 5)
    code, out, err = run(capsys, "explain", "group", "alice", "--config", config)
    assert (code, "cycle 3" in out, "cycle 4 was not complete: this is cycle 3" in err) == (
        0,
        True,
        True,
    )
    code, out, err = run(capsys, "explain", "node", "cn-01", "--cycle", 4, "--config", config)
    assert (code, out) == (1, "")
    assert "cycle 4 was not complete, so there is no decision to explain" in err
    code, out, _ = run(capsys, "explain", "cycle", "--config", config)
    assert code == 0
    assert "no: missing data is never zero" in out
    assert "\x1b" not in out
    assert r"no answer \x1b[31mwithin 60 s" in out
    content = data(capsys, "explain", "cycle", "--config", config)
    assert (content["complete"], content["reason"], content["changes"]) == (False, None, None)
    # What it would have told nobody knows, and nothing was decided again.
    assert (content["agrees"], content["decided_again"]) == (None, None)
    assert [flip["code"] for flip in content["would_change"]] == ["answering"]
    assert "if schedd ap-2 answers: a decision; which one is not known" in " ".join(out.split())


@pytest.mark.usefixtures("kept")
def test_an_imported_cycle_is_said_to_be_one(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    log = tmp_path / "errors.log"
    log.write_text(f"{NOW + 5 * PERIOD_SECONDS} cms 87100 -542 0 4888 -3321 -29403 0 12784\n")
    config.write_text(config.read_text() + "ledger: {keep_days: 36500}\n")
    assert run(capsys, "ledger", "import", log, "--config", config)[0] == 0
    code, out, err = run(capsys, "explain", "group", "cms", "--config", config)
    assert (code, "cycle 3" in out) == (0, True)
    assert "cycle 4 was imported, with no jobs by node: this is cycle 3" in err
    code, out, err = run(capsys, "explain", "group", "cms", "--cycle", 4, "--config", config)
    assert (code, out) == (1, "")
    assert "cycle 4 was imported, with no jobs by node, so there is no decision" in err
    code, out, err = run(capsys, "explain", "cycle", 4, "--config", config)
    assert (code, err) == (0, "")
    assert "from a shares_Error.log: nodes, outputs and plan are not known" in out
    assert not [word for word in ("took", "answered", "output +", "stands until") if word in out], (
        out
    )
    content = data(capsys, "explain", "cycle", 4, "--config", config)
    assert (content["seconds"], content["idle_cores"]) == (None, None)
    assert (content["groups"][0]["output_hs06"], content["groups"][0]["law"]) == (None, None)
    assert (content["would_change"], content["groups"][0]["given_hs06"]) == (None, None)
    assert "otherwise" not in out


def test_a_broken_ledger_is_told_once_with_what_becomes_of_it(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    path = tmp_path / PLACE
    path.parent.mkdir()
    path.write_bytes(b"broken" * 9999)
    code, out, err = run(capsys, "explain", "group", "cms", "--config", config)
    assert (code, out, err.count("file is not a database")) == (74, "", 1)
    assert f"moves it to {path}.broken-DATE" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("group", "alcie"), 1, "did you mean alice?"),
        (("group", "grp"), 1, "its groups are alice, atlas, cms"),
        (("node", "rack"), 1, "nodes there are "),
        (("group", "\x1b[2J"), 1, "no group"),
        (("node", "cn-1"), 1, "did you mean cn-"),
        (("node", "x" * 5000), 1, "no node"),
        (
            ("group", "alice", "--cycle", "77"),
            1,
            "no cycle 77: it has cycles from 2023-11-14 22:13:20 UTC",
        ),
        (("cycle", "2001-01-01"), 1, "no cycle at or before 2001-01-01 00:00:00 UTC"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_what_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str],
    config: Path,
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    found, out, err = run(capsys, "explain", *arguments, "--config", config)
    assert (found, out) == (code, "")
    assert said in err
    assert "\x1b" not in err
    assert len(err) < 500


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("group", "alice", "--cycle", "1", "--live"), "--cycle and --live say different things"),
        (("node", "cn-1", "--at", "soon"), "is no time; write Unix seconds"),
        (("cycle", "three"), "is no time"),
        (("group", "alice", "--cycle", "2023-01-01"), "for times there is --at"),
        (("teapot",), "invalid choice"),
    ],
)
def test_what_cannot_be_meant_is_a_wrong_usage(
    capsys: pytest.CaptureFixture[str], config: Path, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["explain", *arguments, "--config", str(config)])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_without_a_ledger_the_remedy_is_told(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    code, _, err = run(capsys, "explain", "cycle", "--config", config)
    assert (code, "there is no ledger yet: `sharectl cycle` begins it" in err) == (1, True)


def test_a_file_of_jobs_is_decided_anew(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    jobs = tmp_path / "jobs"
    rows = ["2 cn-1 alice 60 1 10"] * 64 + ["1 PEND cms 0 8 10"] * 3
    jobs.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    asked = ("--jobs", jobs, "--taken-at", NOW, "--config", config)
    content = data(capsys, "explain", "group", "cms", *asked)
    assert (content["cycle"], content["source"], content["agrees"]) == (None, str(jobs), True)
    assert content["receives"][0]["nodes"] == ["cn-1"]
    out = run(capsys, "explain", "node", "cn-1", *asked)[1]
    assert "alice <= 56, cms by 8" in out
    assert "says now" not in out


def test_a_cycle_that_was_kept_from_publishing_tells_so(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    (record,) = write(tmp_path, law(max_nodes=4), [busy(0)])
    nodes = tuple(replace(node, target=None) for node in record.nodes)
    off = replace(
        record,
        taken_at=NOW + 60,
        number=0,
        reason="disabled",
        sequence=None,
        nodes=nodes,
        published=(),
    )
    Ledger(tmp_path / PLACE).record(off, busy(0))
    for subject in (("group", "alice"), ("node", "cn-01")):
        out = " ".join(run(capsys, "explain", *subject, "--config", config)[1].split())
        assert "disabled: targets were withdrawn since sharectl is disabled" in out
        assert "as if sharectl had not been kept from publishing" in out
    content = data(capsys, "explain", "cycle", "--config", config)
    assert content["changes"]["counts"]["dropped"] == 4
    first = content["would_change"][0]
    assert (first["code"], first["outcome"], content["decided_again"]) == (
        "enabled",
        "4 targets",
        "4 targets",
    )
    out = " ".join(run(capsys, "explain", "cycle", "--config", config)[1].split())
    assert "if sharectl is enabled (`sharectl enable`): 4 targets" in out
    assert "as if sharectl had not been kept from publishing" in out


def test_a_group_tells_of_those_within_it(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    config.write_text(
        "groups: {alice: {pledge_hs06: 100, groups: {prod: {share: 0.7}}}, cms: {pledge_hs06: "
        "300}}\n"
        f"state_directory: {tmp_path}\n",
        encoding="utf-8",
    )
    jobs = tmp_path / "jobs"
    rows = ["2 cn-1 alice.prod.x 60 1 10"] * 64 + ["1 PEND cms 0 8 10"] * 3
    jobs.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    asked = ("--jobs", jobs, "--taken-at", NOW, "--config", config)
    out = run(capsys, "explain", "group", "Alice", *asked)[1]
    assert "alice.prod to cms on 1 node" in out
    assert "none of its own; the groups within it have controllers" in " ".join(out.split())
    content = data(capsys, "explain", "group", "alice.prod", *asked)
    assert (content["decided_again"], content["gives"][0]["held_back"]) == ("gives", "alice.prod")
    assert content["would_change"]


def test_names_of_outside_origin_steer_no_terminal(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    """A node, a group or a code of another version is shown with what could steer a terminal escaped."""
    (record,) = write(tmp_path, law(), [busy(0)])
    evil = NodeRecord(
        "evil\x1b]0;x\x07",
        64,
        10.0,
        controlled=True,
        held=(HeldJobs("a\nb", 1, 3, 60),),
        target=Target("evil\x1b]0;x\x07", "ali\x1bce", 1, "cms", 8),
        reason="beca\x1buse",
    )
    later = replace(
        record, taken_at=NOW + 60, nodes=(*record.nodes, evil), reason="\x1b[31m", number=0
    )
    Ledger(tmp_path / PLACE).record(later, busy(0))
    for asked in (("cycle", "--all"), ("node", evil.node), ("cycle", "--json"), ("group", "alice")):
        code, out, err = run(capsys, "explain", *asked, "--config", config)
        assert code == 0, err
        assert all(character.isprintable() or character == "\n" for character in out + err)


def test_codes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "codes", "deadband", "uncontrolled")
    assert code == 0
    assert "it is not under control (nodes.controlled)" in " ".join(out.split())
    assert run(capsys, "explain", "codes", "teapot")[0] == 1
    assert data(capsys, "explain", "codes")["codes"]["plan"]["no-room"]


def test_a_cycle_lists_all_its_sources_or_says_which(
    capsys: pytest.CaptureFixture[str], config: Path, kept: list[CycleRecord], tmp_path: Path
) -> None:
    sources = tuple(Source(f"schedd ap-{number}", float(number)) for number in range(1, 4))
    later = replace(
        kept[-1], number=0, taken_at=kept[-1].taken_at + PERIOD_SECONDS, sources=sources
    )
    Ledger(tmp_path / PLACE).record(later, replace(busy(3), sources=sources))
    shown = " ".join(run(capsys, "explain", "cycle", "--config", config)[1].split())
    assert "yes, 3 sources answered, the slowest 2: schedd ap-3 3.00 s, schedd ap-2 2.00 s" in shown
    shown = " ".join(run(capsys, "explain", "cycle", "--all", "--config", config)[1].split())
    assert "yes, 3 sources answered: schedd ap-3" in shown
