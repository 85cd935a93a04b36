"""Answers of CRIC: the figures of a period, or every problem with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharectl.errors import InputError
from sharectl.pledges.cric import promised
from sharectl.shares.pledges import Period

RECORDED = (Path(__file__).parents[2] / "golden" / "pledges" / "federations.json").read_text()
NOW = Period(2026, 3)
CNAF = "IT-INFN-CNAF"


def pledges(
    content: str = RECORDED,
    names: tuple[str, ...] = (CNAF,),
    vos: tuple[str, ...] = ("cms",),
    period: Period = NOW,
) -> dict[str, tuple[float, str]]:
    powers = promised(content, names, vos, period)
    return {vo: (power.hs06, power.place) for vo, power in powers.items()}


def problems(content: str, **wanted: Any) -> tuple[str, ...]:
    with pytest.raises(InputError) as raised:
        pledges(content, **wanted)
    return raised.value.problems


def with_cms(cms: Any) -> str:
    return json.dumps({CNAF: {"pledges": {"2026": {"Q3": {"cms": cms}}}}})


def test_a_recorded_answer() -> None:
    hs06 = {"alice": 71400, "atlas": 105300, "cms": 87100, "lhcb": 60000}
    assert pledges(vos=(*hs06, "dune")) == {
        vo: (power, f"CRIC.IT-INFN-CNAF.pledges.2026.Q3.{vo}.CPU") for vo, power in hs06.items()
    }
    assert pledges(period=Period(2025, 4))["cms"][0] == 78390


def test_federations_have_other_names_and_are_added_up() -> None:
    powers = pledges(names=("it-infn-cnaf", "T2_IT_ATLAS"), vos=("ATLAS", "cms"))
    places = ("CRIC.IT-INFN-CNAF", "CRIC.IT-ATLAS-federation")
    where = " + ".join(f"{place}.pledges.2026.Q3.atlas.CPU" for place in places)
    assert powers["ATLAS"] == (149300.0, where)
    assert powers["cms"][0] == 87100


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        *((text, "CRIC: is not JSON: ") for text in ("", "<html>", RECORDED[:-200], "\0{")),
        *((text, f"CRIC: {text} is not an object") for text in ("[]", "null")),
        (with_cms({"CPU": float("nan")}), "cms.CPU: nan is not a pledge"),
        ('{"a": ' * 100_000, "CRIC: is not JSON: "),
        (with_cms({"CPU": 0}).replace("0}", "9" * 5000 + "}"), "CRIC: is not JSON: "),
        ("{}", f'CRIC: there is no federation "{CNAF}"; see pledges.cric.federations'),
        (
            '{"x": {"name": "IT-INFN-CNAF"}, "y": {"accounting_name": "IT-INFN-CNAF"}}',
            f'CRIC: "{CNAF}" could be x, y; write one of them',
        ),
        ('{"IT-INFN-CNAF": []}', "CRIC.IT-INFN-CNAF: [] is not an object"),
        (
            '{"IT-INFN-CNAF": {"pledges": {}}}',
            "CRIC.IT-INFN-CNAF.pledges: has no 2026, which 2026 Q3 needs; there is nothing",
        ),
        (
            '{"IT-INFN-CNAF": {"pledges": {"2026": {"Q1": {}, "Q2": {}}}}}',
            "CRIC.IT-INFN-CNAF.pledges.2026: has no Q3, which 2026 Q3 needs; there is Q1, Q2",
        ),
        (with_cms(5), "Q3.cms: 5 is not an object"),
        *(
            (with_cms({"CPU": value}), f"Q3.cms.CPU: {json.dumps(value)} is not a number")
            for value in ("lots", "1e9", "-5", None, True, [1])
        ),
        (with_cms({"CPU": -1}), "Q3.cms.CPU: -1 is not a pledge; 0 to 1e+12 HS06 would be"),
        (with_cms({"CPU": 10**13}), "Q3.cms.CPU: 10000000000000 is not a pledge"),
        (with_cms({"CPU": 5}).replace("5", "1e999"), "cms.CPU: inf is not a pledge"),
    ],
)
def test_a_fault_has_its_place(content: str, problem: str) -> None:
    (line,) = problems(content)
    assert problem in line
    assert line.isprintable()
    assert len(line) < 400


def test_all_problems_at_once() -> None:
    quarter = {"cms": {"CPU": -1}, "atlas": {"CPU": "x"}}
    content = json.dumps({CNAF: {"pledges": {"2026": {"Q3": quarter}}}})
    lines = problems(content, vos=("cms", "atlas"), names=(CNAF, "NO"))
    assert [line.split(": ")[0] for line in lines] == [
        f"CRIC.{CNAF}.pledges.2026.Q3.cms.CPU",
        f"CRIC.{CNAF}.pledges.2026.Q3.atlas.CPU",
        "CRIC",
    ]


def test_other_parts_of_the_answer_are_not_looked_at() -> None:
    content = json.loads(RECORDED)
    content["XX"] = {"pledges": "nonsense"}
    content[CNAF]["pledges"]["2026"]["Q3"]["lhcb"] = {"CPU": "nonsense"}
    content[CNAF]["pledges"]["1999"] = [None]
    assert pledges(json.dumps(content))["cms"][0] == 87100


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (with_cms({"CPU": 5}).replace('"cms"', '"CMS": {"CPU": 7}, "cms"'), "ambiguous"),
        (with_cms({"CPU": 87, "CPU_unit": "kHS06"}), "CPU_unit"),
        (with_cms({"CPU": 87, "cpuUnit": None}), "cpuUnit"),
    ],
)
def test_an_answer_with_two_meanings_or_another_unit_is_refused(content: str, problem: str) -> None:
    (line,) = problems(content)
    assert problem in line


@pytest.mark.parametrize("unit", ["HS06", "HEP-SPEC06", "HEPscore23"])
def test_units_of_one_scale_are_read(unit: str) -> None:
    assert pledges(with_cms({"CPU": 5, "CPU_unit": unit}))["cms"][0] == 5


@pytest.mark.parametrize("vo", [{}, {"Disk": 5}])
def test_a_vo_without_power_is_absent(vo: dict[str, Any]) -> None:
    assert pledges(with_cms(vo)) == {}
