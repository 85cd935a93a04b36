from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharectl.errors import InputError
from sharectl.pledges.cric import promised, read
from sharectl.shares.pledges import Period

RECORDED = (Path(__file__).parents[2] / "golden" / "pledges" / "federations.json").read_bytes()
NOW = Period(2026, 3)
CNAF = "IT-INFN-CNAF"


def pledges(
    content: bytes = RECORDED,
    names: tuple[str, ...] = (CNAF,),
    vos: tuple[str, ...] = ("cms",),
    period: Period = NOW,
) -> dict[str, tuple[float, str]]:
    found = promised(read(content, "A"), "A", names, vos, period)
    return {vo: (what.hs06, what.place) for vo, what in found.items()}


def problems(content: bytes, **asked: Any) -> tuple[str, ...]:
    with pytest.raises(InputError) as raised:
        pledges(content, **asked)
    return raised.value.problems


def with_cms(cms: Any) -> bytes:
    return json.dumps({CNAF: {"pledges": {"2026": {"Q3": {"cms": cms}}}}}).encode()


def test_a_recorded_answer() -> None:
    assert pledges(vos=("alice", "atlas", "cms", "lhcb", "dune")) == {
        "alice": (71400, "A.IT-INFN-CNAF.pledges.2026.Q3.alice.CPU"),
        "atlas": (105300, "A.IT-INFN-CNAF.pledges.2026.Q3.atlas.CPU"),
        "cms": (87100, "A.IT-INFN-CNAF.pledges.2026.Q3.cms.CPU"),
        "lhcb": (60000, "A.IT-INFN-CNAF.pledges.2026.Q3.lhcb.CPU"),
    }


def test_the_period_is_that_of_the_date() -> None:
    assert pledges(period=Period(2025, 4))["cms"][0] == 78390
    names = ("IT-ATLAS-federation",)
    assert [
        pledges(names=names, vos=("atlas",), period=Period(2026, n))["atlas"][0] for n in (2, 3)
    ] == [
        40000,
        44000,
    ]


def test_federations_are_found_by_accounting_name_too_and_added_up() -> None:
    found = pledges(names=("it-infn-cnaf", "T2_IT_ATLAS"), vos=("ATLAS", "cms"))
    assert found["ATLAS"] == (
        149300.0,
        (
            "A.IT-INFN-CNAF.pledges.2026.Q3.atlas.CPU + "
            "A.IT-ATLAS-federation.pledges.2026.Q3.atlas.CPU"
        ),
    )
    assert found["cms"][0] == 87100


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "A: is no JSON: "),
        (b"<html>", "A: is no JSON: "),
        (b"[]", "A: [] is no object"),
        (b"null", "A: null is no object"),
        (b'{"IT-INFN-CNAF": NaN}', "A: is no JSON: NaN is no number"),
        (b'{"IT-INFN-CNAF": -Infinity}', "A: is no JSON: -Infinity is no number"),
        (b'{"a": ' * 100_000, "A: is no JSON: it is nested too deeply"),
        (b"\xff\xfe{", "A: is no JSON: "),
        (RECORDED[:-200], "A: is no JSON: "),
        (b"{}", f'A: there is no federation "{CNAF}"; see pledges.cric.federations'),
        (
            b'{"x": {"name": "IT-INFN-CNAF"}, "y": {"accounting_name": "IT-INFN-CNAF"}}',
            f'A: "{CNAF}" could be x, y; write one of them',
        ),
        (b'{"IT-INFN-CNAF": []}', "A.IT-INFN-CNAF: [] is no object"),
        (
            b'{"IT-INFN-CNAF": {"name": 3}}',
            "A.IT-INFN-CNAF: has no pledges, which 2026 Q3 needs; there is name",
        ),
        (
            b'{"IT-INFN-CNAF": {"pledges": {}}}',
            "A.IT-INFN-CNAF.pledges: has no 2026, which 2026 Q3 needs; there is nothing",
        ),
        (
            b'{"IT-INFN-CNAF": {"pledges": {"2026": {"Q1": {}, "Q2": {}}}}}',
            "A.IT-INFN-CNAF.pledges.2026: has no Q3, which 2026 Q3 needs; there is Q1, Q2",
        ),
        (
            b'{"IT-INFN-CNAF": {"pledges": {"2026": {"Q3": 5}}}}',
            "pledges.2026.Q3: 5 is no object",
        ),
        (with_cms(5), "Q3.cms: 5 is no object"),
        (with_cms({"CPU": -1}), "Q3.cms.CPU: -1 is no pledge; 0 to 1e+12 HS06 would be"),
        (with_cms({"CPU": 10**13}), "Q3.cms.CPU: 10000000000000 is no pledge"),
        (with_cms({"CPU": 1e300}), "Q3.cms.CPU: 1e+300 is no pledge"),
        (with_cms({"CPU": "lots"}), 'Q3.cms.CPU: "lots" is no number'),
        (with_cms({"CPU": "1e9"}), 'Q3.cms.CPU: "1e9" is no number'),
        (with_cms({"CPU": "-5"}), 'Q3.cms.CPU: "-5" is no number'),
        (with_cms({"CPU": None}), "Q3.cms.CPU: null is no number"),
        (with_cms({"CPU": True}), "Q3.cms.CPU: true is no number"),
        (with_cms({"CPU": [1]}), "Q3.cms.CPU: [1] is no number"),
        (
            with_cms({"CPU": 1, "CPU unit": "kHS06"}),
            'Q3.cms.CPU unit: "kHS06" is neither HEP-SPEC06 nor HEPscore23',
        ),
        (
            b'{"IT-INFN-CNAF": {"pledges": {"2026": {"Q3": {"cms": {"CPU": 1e999}}}}}}',
            "cms.CPU: inf is no pledge",
        ),
        (
            b'{"IT-INFN-CNAF": {"pledges": {"2026": {"Q3": {"cms": {"CPU": '
            + b"9" * 5000
            + b"}}}}}}",
            "A: is no JSON: ",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(content: bytes, said: str) -> None:
    (problem,) = problems(content)
    assert said in problem
    assert problem.isprintable()
    assert len(problem) < 400


def test_a_site_is_told_its_federation() -> None:
    (problem,) = problems(RECORDED, names=("infn-t1",))
    assert "it is a site of IT-INFN-CNAF: write that, and pledges.cric.federation_ratio" in problem


def test_all_problems_at_once() -> None:
    content = json.dumps(
        {CNAF: {"pledges": {"2026": {"Q3": {"cms": {"CPU": -1}, "atlas": {"CPU": "x"}}}}}}
    ).encode()
    found = problems(content, vos=("cms", "atlas"), names=(CNAF, "NO"))
    assert [problem.split(": ")[0] for problem in found] == [
        f"A.{CNAF}.pledges.2026.Q3.cms.CPU",
        f"A.{CNAF}.pledges.2026.Q3.atlas.CPU",
        "A",
    ]


@pytest.mark.parametrize("unit", ["HEP-SPEC06", "HS06", "HEPscore23", "HEPScore 23"])
def test_both_units_are_on_one_scale(unit: str) -> None:
    assert pledges(with_cms({"CPU": 5, "CPU_unit": unit}))["cms"][0] == 5


def test_what_was_not_asked_for_is_not_looked_at() -> None:
    content = json.loads(RECORDED)
    content["XX"] = {"pledges": "nonsense"}
    content[CNAF]["pledges"]["2026"]["Q3"]["lhcb"] = {"CPU": "nonsense"}
    content[CNAF]["pledges"]["1999"] = [None]
    assert pledges(json.dumps(content).encode())["cms"][0] == 87100


@pytest.mark.parametrize("vo", [{}, {"Disk": 5}])
def test_a_vo_without_power_is_not_there(vo: dict[str, Any]) -> None:
    assert pledges(with_cms(vo)) == {}
