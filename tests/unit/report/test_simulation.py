from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace

from sharectl.report import as_json
from sharectl.report.simulation import (
    BEGIN,
    MOST_COLUMNS,
    Simulation,
    as_content,
    page,
    print_simulation,
    with_series,
)
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
        "nothing begun": replace(compared(), outcomes=[]),
    }
    text = "".join(f"==== {name}\n{tables(case)}\n" for name, case in cases.items())
    golden("report/simulation.txt", text)


def test_the_words_of_the_page(golden: Callable[[str, str], None]) -> None:
    lines: dict[str, None] = {}
    for case in (compared(), interrupted(), simulation([outcome(idle=())])):
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


def test_a_strategy_has_a_figure_in_each_section_on_the_same_axes() -> None:
    made = page(compared())
    sections = ("shortfall", "missing", "idle", "g1", "g2", "g3")
    for section in sections:
        figures = re.findall(rf'<svg[^>]* id="{section}-\d".*?</svg>', made, re.DOTALL)
        assert len(figures) == 3
        ticks = {tuple(re.findall(r'class="tick"[^>]*>([^<]*)', figure)) for figure in figures}
        assert len(ticks) == 1, section
    assert made.count('class="figure"') == 3 * len(sections)


def test_more_causes_than_patterns_share_the_last_layer() -> None:
    causes = ("cadence", "grace", "target", "drain", "start", "fragmentation", "quota")
    made = page(simulation([outcome(idle=causes)]))
    (figure,) = re.findall(r'id="idle-1".*?</svg>', made, re.DOTALL)
    names = re.findall(r'class="label"[^>]*>([^<]*)', figure)
    assert (len(names), names[0]) == (6, "others")


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


def test_an_interrupted_simulation_says_so() -> None:
    content = as_content(interrupted())
    assert not content["complete"]
    assert [row["complete"] for row in content["strategies"]] == [True, False]
    assert "defrag (1.0 of 2 days)" in tables(interrupted())
