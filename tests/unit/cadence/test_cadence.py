from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp
from pathlib import Path

import pytest

from sharectl.cadence.laws import LoggedJob, constant, law_of, parse
from sharectl.cli.main import main
from sharectl.condor.negotiator import Cycle, cycles_of


@pytest.mark.parametrize(
    ("run_time", "cadence", "factor"),
    [
        # The examples of Erlandson's text.
        (255, 60, 0.85),
        (255, 300, 0.85),
        (601, 60, 601 / 660),
        (90, 50, 0.9),
        (3 * 0.1, 0.1, 1.0),
        (5e-324, 300, 0.0),
    ],
)
def test_known_values(run_time: float, cadence: float, factor: float) -> None:
    assert constant(run_time).loading(cadence) == pytest.approx(factor, abs=1e-12)


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize(
    ("cadence", "worklife"), [(60, 0), (300, 0), (60, 1200), (300, 1200), (45, 300)]
)
def test_exponential_run_times_have_their_law(cadence: int, worklife: int, start: int) -> None:
    """P(claim > t) = exp((W - t) / mean) from t = W on: the sum over cycles, term by term."""
    ends = (cycle * cadence - start - worklife for cycle in range(2000))
    held = sum(exp(-max(0, end) / 255) for end in ends)
    loading = parse("exponential:255").loading(cadence, worklife, start)
    assert loading == pytest.approx((worklife + 255) / (cadence * held), abs=1.2e-3)


def test_jobs_count_by_their_cores() -> None:
    jobs = [
        LoggedJob(0, 30 * number, number % 9, 0, "user", "cms", "")
        for number in range(1, 60)
        if number % 9
    ]
    work = sum(job.run_seconds * job.cores for job in jobs)
    held = sum(300 * ceil(job.run_seconds / 300) * job.cores for job in jobs)
    assert law_of(jobs).loading(300) == pytest.approx(work / held)


def test_cycles_of_a_negotiator_with_a_short_or_invalid_ad() -> None:
    assert cycles_of({}) == []
    ad = {
        "LastNegotiationCycleDuration0": 3,
        "LastNegotiationCycleNumIdleJobs0": 5,
        "LastNegotiationCycleDuration1": 2,
        "LastNegotiationCycleDuration2": "long",
        "LastNegotiationCycleDuration3": -5,
    }
    assert cycles_of(ad) == [Cycle(3, 5), Cycle(2, None)]


# ---- the verb

PRINTED = Path(__file__).parents[2] / "golden" / "cadence" / "printed.txt"


def test_tables_notes_and_reasons(
    capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    lines = PRINTED.read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line.startswith("$ sharectl cadence ")]
    assert len(commands) == 8
    parts = []
    for command in commands:
        assert main(command.split()[2:]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        parts.append(f"{command}\n{printed.out}")
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
