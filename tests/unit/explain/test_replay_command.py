from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main
from sharectl.config.load import overridden, parse
from sharectl.cycle.record import record_of
from sharectl.errors import ConfigError
from sharectl.explain.again import Outcome, Replay, ReplayedCycle, replayed
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl.model import PendingJobs, Source
from sharectl.plan.plan import NOTHING_KNOWN, State, decide
from sharectl.plan.records import CycleRecord
from sharectl.report import plans
from tests.fakes import NOW
from tests.ledgers import PERIOD_SECONDS, busy, law, write

CONFIG = """
groups: {{alice: {{pledge_hs06: 71400}}, atlas: {{pledge_hs06: 105300}}, cms: {{pledge_hs06: 87100}}}}
control: {{strategy: pair, max_nodes: 4, give_up_seconds: 604800, probe_blocks: 1000}}
state_directory: {folder}
"""
CYCLES = 4


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharectl.yaml"
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    write(tmp_path, law(max_nodes=4), [busy(number) for number in range(CYCLES)])
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in ("replay", *arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    content: dict[str, Any] = json.loads(out)
    assert (content["schema_version"], content["kind"]) == (1, "replay")
    return content


def test_the_configuration_of_then_agrees_and_others_do_not(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    same = data(capsys, "--config", config)
    assert same["summary"]["agreement_ratio"] == 1.0
    assert (same["summary"]["identical"], len(same["cycles"])) == (CYCLES, CYCLES)
    assert "open loop" in same["note"]
    other = data(capsys, "--config", config, "--set", "control.max_nodes=2")
    assert other["summary"]["agreement_ratio"] == 0.5
    assert [cycle["would"]["targets"] for cycle in other["cycles"]] == [2] * CYCLES
    quiet = data(
        capsys, "--config", config, "--set", "control.deadband_hs06=100000", "--law", "pid"
    )
    assert quiet["summary"]["would"]["targets"] == 0
    assert {cycle["would"]["reason"] for cycle in quiet["cycles"]} == {"no-group-over"}


def test_nodes_for_multicore_jobs_alone_are_such_in_a_replay(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "sharectl.yaml"
    path.write_text(CONFIG.format(folder=tmp_path).replace("pair", "many"), encoding="utf-8")
    seen = [
        replace(
            taken,
            nodes=tuple(replace(node, multicore_only=only) for node in taken.nodes),
            pending=(PendingJobs("cms", 1, 40),),
        )
        for taken, only in ((busy(0), True), (busy(1), False))
    ]
    write(tmp_path, law("many", max_nodes=4), seen)
    content = data(capsys, "--config", path)
    targets = [(cycle["was"]["targets"], cycle["would"]["targets"]) for cycle in content["cycles"]]
    assert targets[0] == (0, 0)
    assert targets[1] == (4, 4)


def test_a_period_and_another_file_of_configuration(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    content = data(capsys, "--config", config, "--from", NOW + 1, "--to", NOW + 3 * PERIOD_SECONDS)
    assert [cycle["cycle"] for cycle in content["cycles"]] == [2, 3]
    # The targets of the cycle before stand already: nothing begins.
    assert (
        content["cycles"][0]["would"]["changed_nodes"]
        == content["cycles"][0]["was"]["changed_nodes"]
        == 0
    )
    other = tmp_path / "other.yaml"
    other.write_text(
        "groups: {alice: {pledge_hs06: 900000}, atlas: {pledge_hs06: 1}, cms: {pledge_hs06: 1}}\n"
        "control: {strategy: pair, give_up_seconds: 604800, probe_blocks: 1000}\n",
        encoding="utf-8",
    )
    own = data(capsys, "--config", config, "--with", other, "--pledges", "configured")
    assert {cycle["would"]["targets"] for cycle in own["cycles"]} == {2}
    theirs = data(capsys, "--config", config, "--with", other)
    assert min(cycle["would"]["targets"] for cycle in theirs["cycles"]) > 4


def test_csv_has_a_row_a_cycle(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    rows = list(
        csv.DictReader(
            io.StringIO(run(capsys, "--config", config, "--csv", "--strategy", "many")[1])
        )
    )
    assert [row["cycle"] for row in rows] == ["1", "2", "3", "4"]
    assert tuple(rows[0]) == plans.COLUMNS
    assert rows[0]["was_targets"] == "4"
    # The strategy of then does not estimate it: not known is not zero.
    assert rows[0]["was_idle_core_seconds"] == ""
    assert rows[0]["would_idle_core_seconds"] != ""


def test_text_is_one_screen_unless_all_is_wanted(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    out = run(capsys, "--config", config, "--set", "control.max_nodes=2")[1]
    assert len(out.splitlines()) < 24
    assert "the cycles that differ most" in out
    assert "50.0% on average, and all of them in 0 cycles" in " ".join(out.split())
    out = run(capsys, "--config", config, "--all")[1]
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows if row[1:2] == ["2023-11-14"]] == [
        str(k + 1) for k in range(CYCLES)
    ]
    assert max(map(len, out.splitlines())) <= 80
    assert str(NOW) not in out
    assert "open loop" in out


def test_long_settings_stay_within_the_screen(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    settings = [
        word
        for key in ("max_nodes=2", "deadband_hs06=1", "horizon_seconds=7200")
        for word in ("--set", f"control.{key}")
    ]
    out = run(capsys, "--config", config, *settings)[1]
    assert "control.horizon_seconds=7200" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_cycle_that_differs_most_is_first() -> None:
    outcome = Outcome("targets", 4, 4, 1, 320.0, None)
    cycles = [
        ReplayedCycle(k, NOW + k, outcome, outcome, same, 4) for k, same in enumerate((3, 4, 1, 2))
    ]
    to = io.StringIO()
    plans.write_text(cycles, {"decides": "law pid"}, to, everything=False)
    rows = [line.split() for line in to.getvalue().splitlines()]
    assert [row[0] for row in rows if row[1:2] == ["2023-11-14"]] == ["2", "3", "0"]


def test_no_cycle_is_one_message(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    code, out, err = run(capsys, "--config", config, "--from", "@1000", "--to", "@2000")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no cycle in that time" in err


def test_one_form_at_a_time(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        run(capsys, "--config", config, "--csv", "--json")
    assert ended.value.code == 2
    assert "choose one" in capsys.readouterr().err


def test_an_incomplete_cycle_is_a_row_and_decides_nothing(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    silent = Source("schedd ap-2", 60.0, "no answer")
    record = CycleRecord(NOW + CYCLES * PERIOD_SECONDS, 61.0, complete=False, sources=(silent,))
    Ledger(tmp_path / PLACE).record(record, replace(busy(CYCLES), sources=(silent,)))
    content = data(capsys, "--config", config)
    assert content["cycles"][-1]["would"] is None
    assert (content["summary"]["cycles"], content["summary"]["compared"]) == (CYCLES + 1, CYCLES)
    assert run(capsys, "--config", config, "--csv")[1].splitlines()[-1].endswith(",,,,,,")


def test_what_incomplete_cycles_withdraw_stands_no_more() -> None:
    config = law(max_nodes=4)
    stood = decide(config, State(), busy(0), NOW).state
    broken = CycleRecord(NOW + PERIOD_SECONDS, 1.0, complete=False)
    decision = decide(config, State(), busy(2), busy(2).taken_at)
    later = record_of(config, busy(2), decision, decision.plan, ())
    for withdraws, changed in ((False, 0), (True, 4)):
        how = Replay(config, NOTHING_KNOWN, decide, withdraws=withdraws)
        first, second = replayed(how, [broken, later], None, stood)
        assert first.would is None
        assert second.would is not None
        assert second.would.changed_nodes == changed


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--from", "2001-01-01", "--to", "2001-02-01"), 1, "no cycle in that time"),
        (("--set", "control.maxnodes=3"), 2, "max_nodes"),
        (("--set", "control.max_nodes=many"), 2, "control.max_nodes"),
        (("--set", "control.law"), 2, "write KEY=VALUE"),
        (("--set", "control.law.gain=1"), 2, "is no section"),
        (("--set", "control.law=[", "--set", "x\x1b[2J=1"), 2, "no YAML"),
        (("--with", "/nowhere.yaml"), 78, "there is no such file"),
    ],
)
def test_what_is_wrong_is_named(
    capsys: pytest.CaptureFixture[str],
    config: Path,
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    found, _, err = run(capsys, "--config", config, *arguments)
    assert (found, said in err) == (code, True), err
    assert "\x1b" not in err
    assert "--set:1" not in err


def test_a_period_that_ends_before_it_begins_is_a_wrong_usage(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(capsys, "--config", config, "--from", "now", "--to", "yesterday")
    assert caught.value.code == 2
    assert "--from is not before --to" in capsys.readouterr().err


def test_settings_reach_lists_and_groups() -> None:
    config = parse("groups: {alice: {pledge_hs06: 1}, cms: {pledge_hs06: 2}}", "F")
    changed = overridden(
        config, ["groups.cms.pledge_hs06=5", 'nodes.controlled=["cn-*"]', "control.pid.gain=0.5"]
    )
    assert changed.groups["cms"].pledge_hs06 == 5
    assert changed.control.pid.gain == 0.5
    assert overridden(config, []) is config
    with pytest.raises(ConfigError) as caught:
        overridden(config, ["control.law", "=3"])
    assert len(caught.value.problems) == 2
