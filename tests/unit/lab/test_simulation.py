from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace

from sharectl.report import as_json
from sharectl_lab.pages.simulation import (
    MOST_COLUMNS,
    Simulation,
    as_content,
    print_simulation,
    verdict,
    with_series,
)
from sharectl_lab.pages.simulation_page import BEGIN, page
from sharectl_lab.twin.bound import Bound
from tests.made_outcomes import compared, outcome, simulation
from tests.unit.report.test_report_page import Words

HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J"


def tables(simulated: Simulation) -> str:
    to = io.StringIO()
    print_simulation(simulated, to)
    return to.getvalue()


def interrupted() -> Simulation:
    halved = outcome("defrag", days=1.0, complete=False)
    names = {"nothing": "x", "defrag": "y", "live": "z"}
    return replace(simulation([outcome("nothing"), halved]), strategies=names)


def test_the_tables(golden: Callable[[str, str], None]) -> None:
    groups = {f"g{number}": 100.0 - number for number in range(MOST_COLUMNS + 2)}
    cases = {
        "three seeds": compared(),
        "one seed": compared((7,)),
        "interrupted": interrupted(),
        "many groups": simulation([outcome(pledges=groups)]),
        "nobody waits": simulation([outcome(idle=())]),
        "with a bound": with_bound(),
        "nothing begun": replace(compared(), outcomes=[]),
    }
    text = "".join(f"==== {name}\n{tables(case)}\n" for name, case in cases.items())
    golden("report/simulation.txt", text)


def test_the_words_of_the_page(golden: Callable[[str, str], None]) -> None:
    lines: dict[str, None] = {}
    for case in (with_bound(), interrupted(), simulation([outcome(idle=())])):
        made = page(case)
        assert made.startswith(BEGIN)
        identifiers = re.findall(r' id="([^"]*)"', made)
        assert len(identifiers) == len(set(identifiers))
        named = " ".join(re.findall(r'aria-labelledby="([^"]*)"', made)).split()
        assert {*re.findall(r'href="#([^"]*)"', made), *named} <= set(identifiers)
        banned = ("<script", "http:", "https:", "url(h", "@import", "style=", "onload")
        assert [word for word in banned if word in made] == []
        lines.update(dict.fromkeys(Words(made).lines))
    golden("report/simulation_page.txt", "\n".join([*lines, ""]))


def with_bound() -> Simulation:
    bounds = tuple(Bound((0.0, 600.0), (30.0 + n, 20.0 + n), 10.0 + n) for n in range(3))
    return replace(compared(), bounds=bounds)


def test_figures_have_a_line_a_strategy() -> None:
    made = page(with_bound())
    figures = dict(re.findall(r'<svg[^>]* id="([^"]*)"(.*?)</svg>', made, re.DOTALL))
    assert list(figures) == ["price", "shortfall", "g1", "g2", "g3"]
    names = ["nothing", "defrag", "live:law=pid"]
    for key, figure in figures.items():
        drawn = re.findall(r'<path class="line (?!sample)[^>]*><title>([^<]*)', figure)
        assert drawn == ([*names, "bound"] if key == "price" else names), key


def better(strategy: str, swing: float, idle: tuple[str, ...] = ("cadence",)) -> Simulation:
    """It beside `nothing`, with three seeds."""
    runs = [outcome("nothing", seed, swing=0.4) for seed in (1, 2, 3)]
    return simulation([*runs, *(outcome(strategy, s, swing=swing, idle=idle) for s in (1, 2, 3))])


def test_the_verdict_has_gain_cost_and_bound() -> None:
    words = " ".join(verdict(with_bound()))
    assert "Best is live:law=pid: its shortfall is " in words
    assert "gets below 11.0±1.0 HS06 from this start" in words
    (killing,) = (line for line in verdict(better("x", 0.0, ("drain",))) if "kills" in line)
    assert killing == "It kills 2.0±1.0 jobs, which lose 4.0±2.0 core-hours."


def test_a_difference_within_the_spread_is_none() -> None:
    alike = verdict(better("live", 0.4, ("cadence", "fragmentation")))
    assert alike[0].startswith("No strategy has a smaller shortfall than nothing: ")
    assert alike[1:] == ["No difference in shortfall beyond the spread: live."]
    noisy = [
        outcome("live", seed, swing=0.4 + 0.1 * sign) for seed, sign in ((1, -3), (2, 1), (3, 1))
    ]
    runs = [outcome("nothing", seed, swing=0.4) for seed in (1, 2, 3)]
    assert verdict(simulation([*runs, *noisy]))[0].startswith("No strategy has a smaller")


def test_one_seed_and_one_strategy_are_no_comparison() -> None:
    assert verdict(compared((7,)))[-1].startswith("One seed shows no spread")
    assert verdict(simulation([outcome("nothing")])) == []


def test_names_are_text_everywhere() -> None:
    hostile = outcome(HOSTILE, pledges={HOSTILE: 1.0, "b": 2.0})
    made = page(simulation([hostile]))
    assert "<script" not in made
    assert "\x1b" not in made
    assert "\x1b" not in tables(simulation([hostile]))


def test_json_has_all_figures_with_their_spread() -> None:
    simulated = compared()
    content = json.loads(as_json.dumps("simulation", as_content(simulated)))
    assert (content["kind"], content["schema_version"]) == ("simulation", 1)
    assert (content["complete"], content["seeds"]) == (True, [1, 2, 3])
    nothing = content["strategies"][0]
    assert [run["seed"] for run in nothing["runs"]] == [1, 2, 3]
    assert nothing["refusals"] == {"mean": 6.0, "sd": 3.0, "least": 3, "most": 9}
    assert nothing["groups"]["cms"]["waits_by_cores"]["8"]["p95_seconds"]["mean"] == 7200
    whole = json.loads(as_json.dumps("simulation", with_series(simulated)))
    assert len(whole["outcomes"]) == 9
    assert len(whole["outcomes"][0]["groups"]["cms"]["due_hs06"]) == 48
