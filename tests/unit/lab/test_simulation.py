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
from sharectl_lab.twin.records import Outcome
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
    swings = [(1, 0.1), (2, 0.5), (3, 0.5)]
    noisy = [outcome("live", seed, swing=swing) for seed, swing in swings]
    verdicts = {
        "killing": better(*(outcome("x", n, swing=0.0, idle=["drain"]) for n in (1, 2, 3))),
        "alike": better(*(outcome("live", n, swing=0.4) for n in (1, 2, 3))),
        "noisy": better(*noisy),
        "one strategy": simulation([outcome("nothing")]),
    }
    text += "".join(f"==== {name}\n{verdict(case)}\n" for name, case in verdicts.items())
    golden("report/simulation.txt", text)


def better(*others: Outcome) -> Simulation:
    """Outcomes beside those of `nothing`, with three seeds."""
    return simulation([*(outcome("nothing", seed, swing=0.4) for seed in (1, 2, 3)), *others])


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
