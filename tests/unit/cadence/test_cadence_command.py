from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sharectl.cli.main import main

Cadence = Callable[[str], tuple[int, str]]
"""Runs the verb with options: exit code and output."""


@pytest.fixture
def cadence(capsys: pytest.CaptureFixture[str]) -> Cadence:
    """The verb; standard error must be empty unless it fails."""

    def run(options: str) -> tuple[int, str]:
        code = main(["cadence", *options.split()])
        out, err = capsys.readouterr()
        assert (code == 0) == (err == "")
        return code, out

    return run


def _json(cadence: Cadence, options: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(cadence(f"--json {options}")[1])
    assert (content["kind"], content["schema_version"]) == ("cadence", 1)
    return content


PRINTED = Path(__file__).parents[2] / "golden" / "cadence" / "printed.txt"


def test_tables_notes_and_reasons(cadence: Cadence, golden: Callable[[str, str], None]) -> None:
    command = "$ sharectl cadence "
    lines = PRINTED.read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line.startswith(command)]
    assert len(commands) == 8
    parts = [f"{line}\n{cadence(line[len(command) :])[1]}" for line in commands]
    golden("cadence/printed.txt", "\n".join(parts))


def test_bad_options_say_what_to_write(
    capsys: pytest.CaptureFixture[str],
    listing: Callable[[str, Callable[[str], list[str]], int], None],
) -> None:
    def refused(words: str) -> list[str]:
        with pytest.raises(SystemExit, match="2"):
            main(["cadence", *words.split()])
        return [capsys.readouterr().err.strip().splitlines()[-1].partition("error: ")[2]]

    listing("cadence/refused.txt", refused, 15)


def test_a_recommendation_has_its_cost(cadence: Cadence) -> None:
    options = "--run-time exponential:900 --cores 1000 --cycle-duration 3 --claim-worklife 0"
    content = _json(cadence, options)
    best = content["recommendation"]
    assert (best["NEGOTIATOR_INTERVAL"], best["by_column"]) == (30, "one job a claim")
    at = next(at for at in content["intervals"] if at["interval_seconds"] == 30)
    assert at["idle_core_hours_per_day"] == pytest.approx((1 - at["loading_factor"]) * 24_000)
    assert best["negotiating_ratio"] == at["negotiating_ratio"] == 0.1
    assert at["cycles_per_day"] == 2880
    # 30 s loses 2.0 % of 24,000 core-hours and 60 s 3.6 %; cycles of 3 s take 10 % and 5 % of the
    # time.
    assert best["beside_default"] == {
        "idle_ratio": pytest.approx(-0.0159, abs=1e-4),
        "negotiating_hours_per_day": pytest.approx(1.2),
        "idle_core_hours_per_day": pytest.approx(-382, abs=2),
    }


def test_an_interval_that_cannot_be_kept_shows_what_happens_instead(cadence: Cadence) -> None:
    law = "--run-time exponential:900 --cycle-duration 200 --interval 20,220,300"
    late, soonest, kept = _json(cadence, law)["intervals"]
    assert [late.pop("interval_seconds"), soonest.pop("interval_seconds")] == [20, 220]
    assert late == soonest
    assert (late["period_seconds"], kept["period_seconds"]) == (220, 300)
    content = _json(cadence, "--run-time exponential:60 --cycle-duration 5 --interval 19,20")
    assert [at["period_seconds"] for at in content["intervals"]] == [25, 20]
    assert content["recommendation"]["NEGOTIATOR_CYCLE_DELAY"] == 15, "it brings its delay"
