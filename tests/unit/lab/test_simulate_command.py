"""`sharectl simulate` on a pool of two nodes and an hour."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.cli.main import main
from sharectl.ledger.ledger import PLACE, Ledger
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.strategies import USUAL
from sharectl_lab.verbs.simulate import INDEX, OUTCOME
from tests.made_cycles import made
from tests.simulated import SMALL
from tests.unit.cli.conftest import configured

CHECKOUT = Path(__file__).parents[3]
SIMULATING_SECONDS = 3.0
"""Processor time after which a process is past its imports, and simulates."""
Ended = tuple[int, str, str]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str], scenario: Path) -> Callable[..., Ended]:
    """The command on the scenario; or on none if the first argument is an option."""

    def ended(*arguments: object, alone: bool = False) -> Ended:
        words = [] if alone else [str(scenario), "--jobs", "1"]
        try:
            code = main(["simulate", *words, *map(str, arguments)])
        except SystemExit as error:
            code = int(error.code or 0)
        return (code, *capsys.readouterr())

    return ended


def test_a_table_json_and_a_page(simulate: Callable[..., Ended], tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    code, table, problems = simulate("--strategies", "nothing,live", "-o", out)
    assert (code, problems) == (0, "")
    assert table.startswith("two: 0.1 days, seed 1; 32 cores, 320 HS06\n")
    assert re.findall(r"^(\w+)  .*\d$", table, re.MULTILINE)[:2] == ["nothing", "live"]
    assert sorted(path.name for path in out.iterdir()) == [INDEX, OUTCOME]
    whole = json.loads((out / OUTCOME).read_text())
    assert [outcome["strategy"] for outcome in whole["outcomes"]] == ["nothing", "live"]
    assert "live" in (out / INDEX).read_text()
    code, printed, _ = simulate("--strategies", "nothing,live", "--json", "-o", out)
    content = json.loads(printed)
    assert (code, content["kind"], content["complete"]) == (0, "simulation", True)
    assert {key: whole[key] for key in content} == content
    assert content["strategies"][0]["used_ratio"]["mean"] > 0.5


def test_the_bound_is_below_all_strategies_from_one_start(
    simulate: Callable[..., Ended], tmp_path: Path
) -> None:
    outage = tmp_path / "outage.yaml"
    phases = "keep_pending: 2, phases: [{length_hours: 1, factor: 0}]}"
    outage.write_text(SMALL.replace("keep_pending: 2}", phases))
    words = (str(outage), "--strategies", "nothing,static", "--bound", "--seeds", "2")
    code, printed, _ = simulate(*words, "--json", alone=True)
    content = json.loads(printed)
    nothing, static = (row["shortfall_rms_hs06"]["least"] for row in content["strategies"])
    least = [spread["mean"] for spread in content["bound"]["shortfall_rms_hs06"]]
    assert code == 0
    assert len(least) == len(content["bound"]["idle_core_hours"])
    assert 0 < content["bound"]["any_idle_rms_hs06"]["mean"] <= min(least) <= static < nothing
    prepared = json.loads(simulate(*words[:3], "--json", alone=True)[1])["strategies"][1]
    assert prepared["shortfall_rms_hs06"]["mean"] < static, "the static node was empty before"
    assert "(bound) " in simulate(*words, alone=True)[1]


def test_processes_do_not_change_a_byte(simulate: Callable[..., Ended]) -> None:
    words = ("--strategies", "grace,static:ratio=0.5", "--seeds", "2", "--set", "seed=5", "--json")
    code, printed, _ = simulate(*words)
    assert (code, json.loads(printed)["seeds"]) == (0, [5, 6])
    assert simulate(*words, "--jobs", "2") == (0, printed, "")


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("--strategies", "lve"), 2, '"lve" is no strategy; did you mean live?'),
        (("--set", "negotiator.intervl_seconds=3"), 2, "did you mean interval_seconds?"),
        (("--days", "0"), 2, "write a number from 0.0001 to 1000000"),
        (("--seeds", "0"), 2, "write a whole number from 1"),
        (("--from-config", "/none.yaml"), 78, "/none.yaml: there is no such file"),
    ],
)
def test_errors_name_the_remedy(
    simulate: Callable[..., Ended], words: tuple[str, ...], code: int, problem: str
) -> None:
    ended, out, problems = simulate(*words)
    assert (ended, out) == (code, "")
    assert problem in problems
    assert "Traceback" not in problems


def test_a_scenario_is_a_name_or_a_file(simulate: Callable[..., Ended], tmp_path: Path) -> None:
    code, _, problems = simulate(alone=True)
    assert (code, "name a scenario: --list shows" in problems) == (2, True)
    code, _, problems = simulate("smal-site", alone=True)
    assert (code, "did you mean small-site?" in problems) == (2, True)
    code, text, _ = simulate("--show", "small-site", alone=True)
    assert (code, text) == (0, file.shipped_text("small-site"))
    own = tmp_path / "own.yaml"
    own.write_text(simulate("small-site", "--show", "--set", "days=3", alone=True)[1])
    assert file.load(str(own)) == replace(file.load("small-site"), days=3.0, name="own")
    code, names, _ = simulate("--list", alone=True)
    assert all(re.search(rf"^{re.escape(name)} ", names, re.MULTILINE) for name in USUAL)
    assert code == 0
    assert {"small-site", "live", "defrag"} <= {
        line.partition(" ")[0] for line in names.split("\n")
    }


@pytest.mark.parametrize("name", [INDEX, OUTCOME])
def test_a_foreign_file_is_not_replaced(
    simulate: Callable[..., Ended], tmp_path: Path, name: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("<html>home</html>")
    code, out, problems = simulate("--strategies", "nothing", "-o", tmp_path / "out")
    assert (code, out, f"{name}: not replaced" in problems) == (74, "", True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]


def test_a_site_of_a_configuration_and_its_ledger(
    simulate: Callable[..., Ended], tmp_path: Path
) -> None:
    config = configured(tmp_path)
    words = ("--from-config", config, "--strategies", "live", "--json", "--days", "0.1")
    code, printed, _ = simulate(*words)
    groups = json.loads(printed)["strategies"][0]["groups"]
    assert code == 0
    assert groups["cms"]["pledge_hs06"]["mean"] == 300, "that of the configuration"
    code, _, problems = simulate(*words, alone=True)
    assert (code, "cycle" in problems) == (1, True)
    ledger = Ledger(tmp_path / PLACE)
    for number in range(3):
        ledger.record(*made(number))
    more = ("--jobs", "1", "--set", "warmup_hours=1")
    code, printed, problems = simulate(*words, *more, alone=True)
    assert code == 0, problems
    content = json.loads(printed)
    notes = " ".join(content["notes"])
    assert "the negotiator has HTCondor's defaults" in notes
    assert "a cycle of sharectl every 300 s" in notes
    assert (content["scenario"], content["pool_cores"]) == ("from-config", 5 * 64)


FIGURES_SHA256 = "43ae0a4f3c8f6ac6e540fca47f859099a8b7f17cb730380cbefa00dea803f5f1"
"""Of the figures below, on every version of Python: to be written anew where the twin changes."""


def test_a_seed_gives_the_same_figures_on_every_python(
    simulate: Callable[..., Ended], tmp_path: Path
) -> None:
    strategies = "grace,defrag,static,cron,live,live:law=pid"
    code, _, _ = simulate("--strategies", strategies, "--seeds", "2", "-o", tmp_path / "out")
    figures = (tmp_path / "out" / OUTCOME).read_bytes()
    assert (code, hashlib.sha256(figures).hexdigest()) == (0, FIGURES_SHA256)


HOSTILE = {
    "empty": b"",
    "binary": bytes(range(256)) * 9,
    "not closed": b"nodes: [{name: wn, count: 2",
    "no mapping": b"- 1\n",
    "bomb": b"a: &a [x]\nb: &b [*a, *a]\nnodes: *b\n",
    "names": b"nodes: [{name: 1, count: x, cores: -3, power: {}}]\ngroups: {}\njobs: 7\n",
    "numbers": SMALL.replace("count: 2", "count: 1.0e+400").encode(),
    "nan": SMALL.replace("pledge_hs06: 200", "pledge_hs06: .nan").encode(),
    "many": SMALL.replace("count: 2", f"count: {10**30}").encode(),
    "run time": SMALL.replace("exponential:900", "exponential:-1,nan").encode(),
    "no log": SMALL.replace("warmup_hours", "swf: {file: none.swf.gz}\nwarmup_hours").encode(),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("verb", ["simulate", "tune", "learn"])
def test_a_hostile_scenario_is_refused_with_its_place(
    verb: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_bytes(HOSTILE[kind])
    more = {"tune": ["--over", "control.law"], "learn": ["-o", str(tmp_path / "policy.json")]}
    code = main([verb, str(path), *more.get(verb, [])])
    said = capsys.readouterr().err
    assert (code, "hostile.yaml" in said, "Traceback" in said) == (78, True, False), said


@pytest.mark.parametrize("verb", ["simulate", "tune", "learn"])
@pytest.mark.parametrize("place", ["file/out", "/proc/out"])
def test_an_output_that_cannot_be_is_refused_before_the_work(
    verb: str, place: str, tmp_path: Path, scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    more = ["--over", "control.law"] if verb == "tune" else []
    # Hours of work, if it began.
    more += ["--hours", "9999"] if verb == "learn" else ["--days", "5000"]
    code = main([verb, str(scenario), *more, "-o", str(tmp_path / place)])
    said = capsys.readouterr().err
    assert (code, "/out: " in said, "Traceback" in said) == (74, True, False), said


def processor_seconds(parent: int) -> list[float]:
    """Processor time of each child of a process, in s."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    stats = (Path(f"/proc/{child}/stat").read_text().rpartition(")")[2] for child in children)
    return [int(stat.split()[11]) / os.sysconf("SC_CLK_TCK") for stat in stats]


def test_an_interrupt_leaves_a_usable_result(tmp_path: Path, scenario: Path) -> None:
    out = tmp_path / "out"
    words = ("simulate", str(scenario), "--days", "400", "--strategies", "nothing,grace,live")
    parent = subprocess.Popen(
        [sys.executable, "-m", "sharectl", *words, "--jobs", "2", "--json", "-o", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "central")},
        start_new_session=True,
    )
    deadline = time.monotonic() + HANG_SECONDS
    while sum(seconds > SIMULATING_SECONDS for seconds in processor_seconds(parent.pid)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(parent.pid, signal.SIGINT)
    printed, problems = parent.communicate(timeout=HANG_SECONDS)
    assert (parent.returncode, problems.count("\n")) == (130, 1)
    assert "interrupted: the figures are of what was simulated until then" in problems
    content = json.loads(printed)
    assert not content["complete"]
    assert len(content["strategies"]) == 2
    for strategy in content["strategies"]:
        assert 0 < strategy["runs"][0]["seconds"] < 400 * 86_400
    assert (out / INDEX).exists()
