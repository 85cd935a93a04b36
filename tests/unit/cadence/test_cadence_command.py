from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional
from xml.etree import ElementTree as ET

import pytest

from sharectl.cadence.run_times import loading_factor
from sharectl.cli.main import main
from sharectl.report.cadence import MOST_TEETH, sawteeth

SVG = "{http://www.w3.org/2000/svg}"
ROW = "1 0 -1 {} {} -1 -1 -1 100 -1 1 1 {} -1 -1 1 -1 -1\n"
"""Seconds, cores and group of a job in Standard Workload Format."""


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["cadence", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = _run(capsys, "--json", *arguments)
    assert (code, err) == (0, "")
    content: dict[str, Any] = json.loads(out)
    assert (content["kind"], content["schema_version"]) == ("cadence", 1)
    return content


def _log(folder: Path, *rows: tuple[int, int, int]) -> Path:
    path = folder / "log.swf"
    path.write_text("; made up\n" + "".join(ROW.format(*row) for row in rows))
    return path


def _factors(content: dict[str, Any], key: str) -> list[list[float]]:
    return [[round(at[key], 3) for at in load["intervals"]] for load in content["run_times"]]


PRINTED = (
    "--run-time constant:255 --interval 60,300",
    "--run-time exponential:900 --cores 1000 --cycle-duration 3",
    "--run-time exponential:900 --cores 1000 --cycle-duration 3 --claim-worklife -1",
    "--run-time exponential:900 --cores 5000 --cycle-duration 30",
    "--run-time constant:60 --cores 10 --cycle-duration 2",
    "--run-time constant:50 --cycle-duration 1 --interval 50,60 --claim-worklife 0",
    "--run-time constant:255 --run-time normal:60,20 --cycle-duration 400",
    "--swf log.swf --by group --cores 9 --cycle-duration 1 --interval 30,300 --limit 3",
)


def test_what_is_printed(
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    _log(tmp_path, (300, 8, 1), (30, 1, 2), (-1, 1, 2), (9, 1, 3))
    monkeypatch.chdir(tmp_path)
    parts = []
    for words in PRINTED:
        code, out, err = _run(capsys, *words.split())
        assert (code, err) == (0, "")
        parts.append(f"$ sharectl cadence {words}\n{out}")
    golden("cadence/printed.txt", "\n".join(parts))


REFUSED = (
    "--interval 0",
    "--interval 60,x",
    "--interval 99999",
    "--interval 60.5",
    "--claim-worklife x",
    "--claim-worklife 1e10",
    "--cores 0",
    "--cycle-duration -1",
    "--cycle-duration inf",
    "--most-negotiating 1",
    "--tolerance 0%",
    "--plot teeth.png",
    "--run-time uniform:1,2",
    "--run-time normal:255",
    "--run-time exponential:1e18",
    "--run-time normal:255,1e-10",
    "--run-time constant:nan",
    "--swf a --history b",
    "--run-time constant:9 --by size --limit 1 --config x --negotiator y",
    "--history none --negotiator x",
    "--swf none --config none --negotiator x",
)


def test_bad_options_say_what_to_write(
    capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    lines = []
    for words in REFUSED:
        with pytest.raises(SystemExit) as ended:
            main(["cadence", *words.split()])
        assert ended.value.code == 2, words
        error = capsys.readouterr().err.strip().splitlines()[-1].partition("error: ")[2]
        lines.append(f"{words[:60]}\n    {error}")
    golden("cadence/refused.txt", "\n".join([*lines, ""]))


def test_a_recommendation_has_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    content = _json(
        capsys,
        *[
            "--run-time",
            "exponential:900",
            "--cores",
            "1000",
            "--cycle-duration",
            "3",
            "--claim-worklife",
            "0",
        ],
    )
    best = content["recommendation"]
    assert best["NEGOTIATOR_INTERVAL"] == 30
    assert best["by_column"] == "one job a claim"
    at = next(at for at in content["run_times"][0]["intervals"] if at["interval_seconds"] == 30)
    assert at["idle_core_hours_per_day"] == pytest.approx((1 - at["loading_factor"]) * 24_000)
    assert best["negotiating_ratio"] == at["negotiating_ratio"] == 0.1
    assert at["cycles_per_day"] == 2880
    # 30 s loses 1.6 % of 24,000 core-hours and 60 s 3.3 %; cycles of 3 s take 10 % and 5 % of the
    # time.
    assert best["beside_default"] == {
        "idle_ratio": pytest.approx(-0.0161, abs=1e-4),
        "negotiating_hours_per_day": pytest.approx(1.2),
        "idle_core_hours_per_day": pytest.approx(-387, abs=2),
    }


@pytest.mark.parametrize(
    ("options", "interval"),
    [
        ("--run-time exponential:900 --cores 5000 --cycle-duration 30", None),
        ("--run-time constant:255 --cycle-duration 400", None),
        ("--run-time constant:255 --run-time constant:60 --cycle-duration 1", None),
        ("--run-time constant:60 --cores 10 --cycle-duration 2", 180),
        ("--run-time constant:60 --cores 10 --cycle-duration 2 --claim-worklife 0", 60),
    ],
)
def test_recommended_intervals(
    capsys: pytest.CaptureFixture[str], options: str, interval: Optional[int]
) -> None:
    content = _json(capsys, *options.split())
    best = content["recommendation"]
    assert (best and best["NEGOTIATOR_INTERVAL"]) == interval
    warned = [note for note in content["notes"] if note.startswith("warning: claim reuse")]
    assert len(warned) == (interval == 180), "only claim reuse makes 180 s cheap"


def test_shares_may_be_written_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--run-time", "exponential:900", "--cycle-duration", 3]
    plain = _json(capsys, *options, "--tolerance", "0.02", "--most-negotiating", "0.125")
    assert plain == _json(capsys, *options, "--tolerance", "2%", "--most-negotiating", "12.5 %")


def test_an_interval_that_cannot_be_kept_shows_what_happens_instead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = _json(
        capsys,
        *["--run-time", "exponential:900", "--cycle-duration", "200", "--interval", "20,220,300"],
    )
    late, soonest, kept = content["run_times"][0]["intervals"]
    assert (late.pop("interval_seconds"), late.pop("kept")) == (20, False)
    assert (soonest.pop("interval_seconds"), soonest.pop("kept"), kept["kept"]) == (220, True, True)
    assert late == soonest
    assert late["cycles_begin_seconds_apart"] == 220


def test_an_interval_that_may_be_recommended_can_be_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = _json(
        capsys, *["--run-time", "exponential:60", "--cycle-duration", "5", "--interval", "19,20"]
    )
    assert [at["kept"] for at in content["run_times"][0]["intervals"]] == [False, True]
    assert content["recommendation"]["NEGOTIATOR_CYCLE_DELAY"] == 15


def test_jobs_of_a_log_by_group(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = _log(tmp_path, (300, 8, 10), (30, 1, 2), (-1, 1, 2))
    options = ["--swf", path, "--by", "group", "--interval", "300"]
    content = _json(capsys, *options, "--cores", 9)
    assert [(load["name"], load["jobs"]) for load in content["run_times"]] == [
        ("all", 2),
        ("group 10", 1),
        ("group 2", 1),
    ]
    assert _factors(content, "loading_factor") == [[0.9], [1.0], [0.1]]
    assert _run(capsys, "--swf", tmp_path / "none")[0] == 65
    without = _json(capsys, *options)["run_times"][1]["intervals"][0]
    assert without["idle_core_hours_per_day"] is None


def test_idle_hours_of_groups_add_up_to_those_of_the_pool(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = _log(tmp_path, *((30 * group, 1 + group % 3, group) for group in range(1, 26)))
    options = ["--swf", path, "--by", "group", "--cores", 1000, "--cycle-duration", 3]
    every, *groups = _json(capsys, *options)["run_times"]
    assert (len(groups), groups[-1]["name"]) == (20, "others (6)")
    assert sum(group["share_of_core_seconds"] for group in groups) == pytest.approx(1)
    for key in ("idle_core_hours_per_day", "idle_core_hours_per_day_claims_reused"):
        for at, interval in enumerate(every["intervals"]):
            total = sum(group["intervals"][at][key] for group in groups)
            assert total == pytest.approx(interval[key])
    _, out, _ = _run(capsys, *options)
    assert len([line for line in out.splitlines() if line.startswith(("group", "others"))]) == 20


def test_the_plot_has_a_line_for_each_interval(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "teeth.svg"
    options = ["--run-time", "constant:255", "--interval", "60,300", "--plot"]
    assert _run(capsys, *options, path)[0] == 0
    drawing = ET.parse(path)  # noqa: S314  # our own
    texts = ["".join(text.itertext()).strip() for text in drawing.iter(f"{SVG}text")]
    assert [texts.count(text) for text in ("60 s", "300 s", "seconds")] == [1] * 3
    lines = [
        line.get("class")
        for line in drawing.iter(f"{SVG}path")
        if line.find(f"{SVG}title") is not None
    ]
    assert lines == ["line group0", "line group1"], "lines can be told apart without colour"
    assert _run(capsys, *options, tmp_path / "none" / "teeth.svg")[0] == 74


def test_the_corners_of_the_teeth_are_the_formula() -> None:
    corners = sawteeth(60, 250)
    assert corners[:5] == [(0.0, 0.0), (60.0, 1.0), (60.0, 0.5), (120.0, 1.0), (120.0, 2 / 3)]
    assert corners[-1] == (250.0, loading_factor(250, 60))
    assert len(sawteeth(1, 1e9)) <= 2 * MOST_TEETH + 1
