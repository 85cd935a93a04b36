"""Answers of CRIC: the figures of a period, or every problem with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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


def outcome(content: str) -> list[str]:
    """Problems of an answer, or its pledges of two VOs."""
    try:
        powers = pledges(content, vos=("cms", "atlas")).items()
    except InputError as error:
        return list(error.problems)
    return [f"{vo}: {hs06:g} HS06 of {place}" for vo, (hs06, place) in powers] or ["no pledge"]


def test_federations_have_other_names_and_are_added_up() -> None:
    powers = pledges(names=("it-infn-cnaf", "T2_IT_ATLAS"), vos=("ATLAS", "cms", "lhcb", "dune"))
    places = ("CRIC.IT-INFN-CNAF", "CRIC.IT-ATLAS-federation")
    where = " + ".join(f"{place}.pledges.2026.Q3.atlas.CPU" for place in places)
    assert powers.pop("ATLAS") == (149300.0, where)
    assert {vo: hs06 for vo, (hs06, _) in powers.items()} == {"cms": 87100, "lhcb": 60000}
    assert pledges(period=Period(2025, 4))["cms"][0] == 78390


def test_an_answer_has_pledges_or_all_its_problems(
    listing: Callable[[str, Callable[[str], list[str]]], None],
) -> None:
    listing("pledges/cric.txt", outcome)


def test_other_parts_of_the_answer_are_not_looked_at() -> None:
    content = json.loads(RECORDED)
    content["XX"] = {"pledges": "nonsense"}
    content[CNAF]["pledges"]["2026"]["Q3"]["lhcb"] = {"CPU": "nonsense"}
    assert pledges(json.dumps(content))["cms"][0] == 87100
