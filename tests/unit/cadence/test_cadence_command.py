from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from sharectl.cadence.asks import no_negotiator
from sharectl.cadence.loading import loading_factor
from sharectl.cli.main import main
from sharectl.condor.deadline import Answer
from sharectl.model import Source
from sharectl.report.cadence import MOST_TEETH, chart, sawteeth

SVG = "{http://www.w3.org/2000/svg}"


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["cadence", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = _run(capsys, "--json", *arguments)
    assert (code, err) == (0, "")
    told: dict[str, Any] = json.loads(out)
    assert (told["kind"], told["schema_version"]) == ("cadence", 1)
    return told


def _help(capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main(["cadence", "--help"])
    return " ".join(capsys.readouterr().out.split())


def _factors(told: dict[str, Any], key: str) -> list[list[float]]:
    return [[round(at[key], 3) for at in load["intervals"]] for load in told["run_times"]]


def test_the_golden_cases(capsys: pytest.CaptureFixture[str]) -> None:
    told = _json(
        capsys,
        "--run-time",
        "constant:255",
        "--run-time",
        "exponential:255",
        "--interval",
        "300,60",
    )
    assert [load["name"] for load in told["run_times"]] == ["constant:255", "exponential:255"]
    assert _factors(told, "loading_factor") == [[0.85, 0.85], [0.891, 0.588]]
    assert _factors(told, "loading_factor_claims_reused")[0] == [0.966, 0.85]


def test_what_is_not_known_is_said_and_nothing_is_recommended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = _json(capsys, "--run-time", "constant:255")
    assert (told["recommendation"], told["cores"], told["cycle_duration_seconds"]) == (
        None,
        None,
        None,
    )
    assert told["run_times"][0]["intervals"][0]["idle_core_hours_per_day"] is None
    assert told["run_times"][0]["intervals"][0]["negotiating_ratio"] is None
    notes = " ".join(told["notes"])
    assert "how many cores the pool has is not known" in notes
    assert "how long a negotiation cycle takes is not known" in notes
    assert notes.count("as no pool is asked with --run-time") == 2
    code, out, _ = _run(capsys, "--run-time", "constant:255")
    assert code == 0
    assert "NEGOTIATOR_INTERVAL" not in out


def test_what_is_recommended_is_configuration_with_its_reasons(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [
        "--run-time",
        "exponential:900",
        "--cores",
        1000,
        "--cycle-duration",
        3,
        "--claim-worklife",
        0,
    ]
    told = _json(capsys, *options)
    best = told["recommendation"]
    assert best["NEGOTIATOR_INTERVAL"] == 30
    at = next(at for at in told["run_times"][0]["intervals"] if at["interval_seconds"] == 30)
    assert at["idle_core_hours_per_day"] == pytest.approx((1 - at["loading_factor"]) * 24_000)
    assert best["negotiating_ratio"] == at["negotiating_ratio"] == 0.1
    assert at["cycles_per_day"] == 2880
    _, out, _ = _run(capsys, *options)
    lines = out[out.index("\n\n") :].splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]
    assert settings == [
        "NEGOTIATOR_INTERVAL = 30",
        "NEGOTIATOR_CYCLE_DELAY = 20",
        "NEGOTIATOR_MIN_INTERVAL = 5",
    ]
    assert any("idle core-hours a day on 1000 cores" in line for line in lines)
    # 30 s loses 1.6 % of 24,000 core-hours and 60 s 3.3 %; cycles of 3 s take 10 % and 5 % of the
    # time.
    assert best["beside_default"] == {
        "idle_ratio": pytest.approx(-0.0161, abs=1e-4),
        "negotiating_hours_per_day": pytest.approx(1.2),
        "idle_core_hours_per_day": pytest.approx(-387, abs=1),
    }
    assert (
        "it loses 387 idle core-hours a day less, and the negotiator negotiates 1.2 h a day more"
        in " ".join(best["why"])
    )


def test_nothing_is_recommended_that_costs_more_than_it_saves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--run-time", "exponential:900", "--cores", 5000, "--cycle-duration", 30]
    told = _json(capsys, *options)
    assert told["recommendation"] is None
    assert "costs more idle core-hours than it saves beside HTCondor's default" in " ".join(
        told["notes"]
    )


def test_an_interval_that_only_claim_reuse_makes_cheap_is_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--run-time", "constant:60", "--cores", 10, "--cycle-duration", 2]
    told = _json(capsys, *options)
    assert told["recommendation"]["NEGOTIATOR_INTERVAL"] == 180
    (warning,) = [note for note in told["notes"] if note.startswith("warning: claim reuse")]
    # One job a claim: a third of the time at 180 s, all of it at 60 s.
    assert "loses 160 idle core-hours a day more than HTCondor's default" in warning
    assert "for 1200 s (CLAIM_WORKLIFE)" in warning
    alone = _json(capsys, *options, "--claim-worklife", 0)
    assert alone["recommendation"]["NEGOTIATOR_INTERVAL"] == 60
    assert not [note for note in alone["notes"] if "warning" in note]


def test_shares_may_be_written_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--run-time", "exponential:900", "--cycle-duration", 3]
    plain = _json(capsys, *options, "--tolerance", "0.02", "--most-negotiating", "0.125")
    assert plain == _json(capsys, *options, "--tolerance", "2%", "--most-negotiating", "12.5 %")
    why = " ".join(plain["recommendation"]["why"])
    assert "is to take at most 12.5% of the negotiator's time" in why
    assert "loses at most 2% of the cores' time more" in why


def test_help_says_how_shares_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    said = _help(capsys)
    assert "such as 0.25 or 25% (default: 0.25)" in said
    assert "such as 0.01 or 1% (default: 0.01)" in said


def test_all_options_without_effect_are_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "cadence",
                "--run-time",
                "constant:9",
                "--by",
                "size",
                "--limit",
                "1",
                "--negotiator",
                "x",
            ]
        )
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert [f"leave {option} out" in said for option in ("--by", "--limit", "--negotiator")] == [
        True
    ] * 3


def test_help_says_when_defaults_hold(capsys: pytest.CaptureFixture[str]) -> None:
    said = _help(capsys)
    assert (
        "(default: live, what the collector knows; else not known, and idle time is told for "
        "one core)" in said
    )
    assert "else not known, and no interval is recommended)" in said
    assert "With a law or a file no pool is asked, even where there is one" in said


@pytest.mark.parametrize(
    ("names", "wanted", "said"),
    [
        (
            ["cm-2", "cm-1"],
            "nosuch",
            "the collector knows none named 'nosuch', only cm-1, cm-2; give --negotiator",
        ),
        ([], "nosuch", "the collector does not know it"),
        ([], None, "the collector does not know it"),
    ],
)
def test_a_negotiator_that_is_not_there_is_named(
    names: list[str], wanted: str | None, said: str
) -> None:
    answer = Answer(Source("negotiators", 0.1), [{"Name": name} for name in names])
    source = no_negotiator(answer, wanted)
    assert (source.name, said in str(source.problem)) == ("negotiator", True)


def test_a_negotiator_too_slow_for_all_intervals_gets_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = _json(capsys, "--run-time", "constant:255", "--cycle-duration", 400)
    assert told["recommendation"] is None
    assert "at none of these intervals" in " ".join(told["notes"])


def test_an_interval_that_cannot_be_kept_shows_what_happens_instead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--run-time", "exponential:900", "--cycle-duration", 200, "--interval", "20,220,300"]
    told = _json(capsys, *options)
    late, soonest, kept = told["run_times"][0]["intervals"]
    assert (late.pop("interval_seconds"), late.pop("kept")) == (20, False)
    assert (soonest.pop("interval_seconds"), soonest.pop("kept"), kept["kept"]) == (220, True, True)
    assert late == soonest
    assert late["cycles_begin_seconds_apart"] == 220
    assert any("NEGOTIATOR_INTERVAL = 20 cannot be kept" in note for note in told["notes"])
    out = _run(capsys, *options)[1]
    assert out.count("cannot be kept: cycles would begin 220 s apart") == 1
    assert "cannot be kept" not in _run(capsys, *options[:2], "--cycle-duration", 1)[1]


def test_an_interval_that_may_be_recommended_can_be_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = _json(
        capsys, "--run-time", "exponential:60", "--cycle-duration", 5, "--interval", "19,20"
    )
    assert [at["kept"] for at in told["run_times"][0]["intervals"]] == [False, True]
    assert told["recommendation"]["NEGOTIATOR_CYCLE_DELAY"] == 15


def test_several_laws_get_no_common_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    told = _json(
        capsys, "--run-time", "constant:255", "--run-time", "constant:60", "--cycle-duration", 1
    )
    assert told["recommendation"] is None
    assert any("no interval is recommended for several laws" in note for note in told["notes"])


def test_jobs_of_a_log_by_group(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    row = "1 0 -1 {} {} -1 -1 -1 100 -1 1 1 {} -1 -1 1 -1 -1\n"
    path.write_text(
        "; made up\n" + row.format(300, 8, 1) + row.format(30, 1, 2) + row.format(-1, 1, 2)
    )
    told = _json(capsys, "--swf", path, "--by", "group", "--interval", "300", "--cores", 9)
    assert [(load["name"], load["jobs"]) for load in told["run_times"]] == [
        ("all", 2),
        ("group 1", 1),
        ("group 2", 1),
    ]
    assert _factors(told, "loading_factor") == [[0.9], [1.0], [0.1]]
    assert "jobs left out: 1 (run time 0 or not known)" in told["notes"]


def test_idle_hours_of_groups_add_up_to_those_of_the_pool(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    row = "1 0 -1 {} {} -1 -1 -1 100 -1 1 1 {} -1 -1 1 -1 -1\n"
    path.write_text("".join(row.format(30 * group, 1 + group % 3, group) for group in range(1, 26)))
    options = ["--swf", path, "--by", "group", "--cores", 1000, "--cycle-duration", 3]
    every, *groups = _json(capsys, *options)["run_times"]
    assert (len(groups), groups[-1]["name"]) == (20, "others (6)")
    assert sum(group["share_of_core_seconds"] for group in groups) == pytest.approx(1)
    for key in ("idle_core_hours_per_day", "idle_core_hours_per_day_claims_reused"):
        for at, interval in enumerate(every["intervals"]):
            assert sum(group["intervals"][at][key] for group in groups) == pytest.approx(
                interval[key]
            )
    code, out, _ = _run(capsys, *options)
    assert code == 0
    table = out[
        out.index("the same by group or size at ") : out.index("# idle core-hours of a group")
    ]
    assert "which is recommended" in table
    assert len(table.splitlines()) == 2 + 20


def test_one_is_not_many(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("1 0 -1 3600 1 -1 -1 -1 100 -1 1 1 1 -1 -1 1 -1 -1\n")
    assert "run times of 1 job, 1 core-hour" in _json(capsys, "--swf", path)["notes"]


def test_groups_without_cores_get_the_idle_hours_of_one_core(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    path.write_text("1 0 -1 300 8 -1 -1 -1 100 -1 1 1 1 -1 -1 1 -1 -1\n")
    options = ["--swf", path, "--by", "group"]
    assert (
        _json(capsys, *options)["run_times"][1]["intervals"][0]["idle_core_hours_per_day"] is None
    )
    _, out, _ = _run(capsys, *options)
    row = next(line for line in out.splitlines() if line.startswith("group 1"))
    assert row.split()[:5] == ["group", "1", "1", "300", "100.0"]
    assert "idle h/day of a core" in out
    # 300 s at 600 s
    assert row.split()[5:7] == ["50.0", "12"]


def test_groups_that_are_numbers_sort_as_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    row = "1 0 -1 300 1 -1 -1 -1 100 -1 1 1 {} -1 -1 1 -1 -1\n"
    path.write_text("".join(map(row.format, (10, 2, 1))))
    told = _json(capsys, "--swf", path, "--by", "group")["run_times"]
    assert [load["name"] for load in told[1:]] == ["group 1", "group 2", "group 10"]


def test_a_limit_says_which_jobs_were_looked_at(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    path.write_text("1 0 -1 300 1 -1 -1 -1 100 -1 1 1 1 -1 -1 1 -1 -1\n" * 2)
    notes = _json(capsys, "--swf", path, "--limit", 1)["notes"]
    assert f"no more than 1 job looked at (--limit): the first of {path}" in notes


@pytest.mark.parametrize(
    ("worklife", "column"),
    [(1200, "claims reused 1200 s"), (-1, "claims reused for ever"), (0, "one job a claim")],
)
def test_the_column_that_is_recommended_by_is_named(
    capsys: pytest.CaptureFixture[str], worklife: int, column: str
) -> None:
    options = [
        "--run-time",
        "exponential:900",
        "--cycle-duration",
        3,
        f"--claim-worklife={worklife}",
    ]
    told = _json(capsys, *options)["recommendation"]
    assert told["by_column"] == column
    out = _run(capsys, *options)[1]
    assert f"# By the column '{column}' (--claim-worklife)." in out
    assert f"{column} %" in out


def test_a_bad_log_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("rubbish\n")
    code, out, err = _run(capsys, "--swf", path)
    assert (code, out) == (65, "")
    assert f"{path}:1: 'rubbish': this is no log in Standard Workload Format" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--run-time", "uniform:1"], "is no law of run times"),
        (["--interval", "60,0"], "'0': write up to 30 intervals in whole seconds"),
        (["--interval", ",".join(["60"] * 31)], "31 intervals"),
        (["--plot", "teeth.gif"], "write a name that ends in .svg"),
        (["--cores", "none"], "write a whole number above 0"),
        (["--cycle-duration", "-1"], "write seconds from 0 on"),
        (["--cores", "1000000000"], "write a whole number above 0 and below 1000000000"),
        (["--cycle-duration", "1e18"], "'1e18': write seconds up to 1000000000"),
        (["--most-negotiating", "2"], "write a share between 0 and 1, such as 0.25 or 25%"),
        (["--most-negotiating", "25"], "write a share between 0 and 1, such as 0.25 or 25%"),
        (["--tolerance", "100%"], "write a share between 0 and 1, such as 0.25 or 25%"),
        (["--tolerance", "much"], "write a share between 0 and 1, such as 0.25 or 25%"),
        (["--tolerance", "1%%"], "write a share between 0 and 1, such as 0.25 or 25%"),
        (["--tolerance", "nan%"], "write a share between 0 and 1, such as 0.25 or 25%"),
        (
            ["--run-time", "exponential:1e18"],
            "'1e18' is too long; write at most 1000000000 seconds",
        ),
        (["--run-time", "normal:255,1e-10"], "'1e-10' is too short; write at least 1e-09 seconds"),
        (["--run-time", "constant:0"], "'0' is no time; write seconds above 0"),
        (["--run-time", "constant:nan"], "'nan' is no time; write seconds above 0"),
        (["--swf", "a", "--history", "b"], "not allowed with"),
        (["--run-time", "constant:9", "--by", "group"], "--by does nothing with --run-time"),
        (["--run-time", "constant:9", "--limit", "9"], "--limit does nothing with --run-time"),
        (["--run-time", "constant:9", "--config", "none"], "--config does nothing with --run-time"),
        (
            ["--run-time", "constant:9", "--negotiator", ""],
            (
                "--negotiator does nothing with --run-time: no pool is asked (--cores and "
                "--cycle-duration say what"
            ),
        ),
        (["--history", "none", "--negotiator", "x"], "--negotiator does nothing with --history"),
        (["--swf", "none", "--negotiator", "x"], "--negotiator does nothing with --swf"),
        (
            ["--swf", "none", "--config", "none"],
            "--config does nothing with --swf: groups of such a log are numbers",
        ),
        (["--run-time", "constant:9", "--json", "--chart"], "--chart does nothing with --json"),
    ],
)
def test_bad_options_say_what_to_write(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["cadence", *arguments])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_plot_has_a_line_for_each_interval_and_one_in_cycles(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "teeth.svg"
    assert (
        _run(capsys, "--run-time", "constant:255", "--interval", "60,300", "--plot", path)[0] == 0
    )
    drawing = ET.parse(path)  # noqa: S314  # our own
    texts = ["".join(text.itertext()).strip() for text in drawing.iter(f"{SVG}text")]
    for text in ("60 s", "300 s", "any", "seconds", "cycles"):
        assert texts.count(text) == 1
    lines = [
        path.get("class")
        for path in drawing.iter(f"{SVG}path")
        if path.find(f"{SVG}title") is not None
    ]
    assert lines == ["line group0", "line group1"] * 2, "lines can be told apart without colour"


def test_a_plot_that_cannot_be_written_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = _run(
        capsys, "--run-time", "constant:255", "--plot", tmp_path / "none" / "teeth.svg"
    )
    assert (code, "cannot be written: No such file" in err) == (74, True)


def test_the_corners_of_the_teeth_are_the_formula() -> None:
    corners = sawteeth(60, 250)
    assert corners[:5] == [(0.0, 0.0), (60.0, 1.0), (60.0, 0.5), (120.0, 1.0), (120.0, 2 / 3)]
    assert corners[-1] == (250.0, loading_factor(250, 60))
    assert len(sawteeth(1, 1e9)) <= 2 * MOST_TEETH + 1


def test_a_chart_has_the_intervals_of_the_table_and_says_what_it_is_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    path.write_text("1 0 -1 150 1 -1 -1 -1 100 -1 1 1 1 -1 -1 1 -1 -1\n")
    out = _run(capsys, "--swf", path, "--chart", "--claim-worklife", 0, "--interval", "150,300")[1]
    bars = [" ".join(line.split()) for line in out.splitlines() if " s |" in line]
    assert [(bar.split(" |")[0], bar.split()[-1]) for bar in bars] == [
        ("150 s", "100.0%"),
        ("300 s", "50.0%"),
    ]
    assert [sum(bar.count(block) for block in "█#") for bar in bars] == [50, 25]
    assert "all: loading factor at each interval, one job a claim" in out
    assert "is of the formula, for jobs of one run time each, not of the run times above" in out
    law = _run(capsys, "--run-time", "exponential:255", "--chart")[1]
    assert law.count(" s |") == 10


def test_the_chart_rises_to_each_cycle_and_falls_after_it() -> None:
    rows = chart(60, 4, "s", blocks=False).splitlines()
    top, bottom = rows[1].ljust(70), rows[10].ljust(70)
    # 64 columns for four cycles: a tooth's tip is every 16th.
    assert [top[6 + column] for column in (14, 15, 16, 31, 32, 63)] == [
        " ",
        "#",
        " ",
        "#",
        " ",
        "#",
    ]
    assert bottom[7:70].strip("#") == ""
    assert rows[-1].split() == ["0", "60", "120", "180", "240"]
    assert "█" in chart(60, 4, "s", blocks=True)
