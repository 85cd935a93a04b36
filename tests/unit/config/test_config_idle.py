from __future__ import annotations

import pytest

from sharectl.config.advice import idle
from sharectl.config.load import parse
from sharectl.config.text import render

PAIR = "groups: {{cms: {{pledge_hs06: 100{cms}}}, atlas: {{pledge_hs06: 100{atlas}}}}}\n{rest}"


def said(cms: str = "", atlas: str = "", rest: str = "") -> list[str]:
    return idle(parse(PAIR.format(cms=cms, atlas=atlas, rest=rest), "F"))


@pytest.mark.parametrize(
    ("parts", "beginning", "instead"),
    [
        (
            {"cms": ", max_lent_hs06: 500"},
            "groups.cms.max_lent_hs06: 500 bounds nothing",
            "write less",
        ),
        (
            {"cms": ", max_borrowed_hs06: 5"},
            "groups.cms.max_borrowed_hs06: has no effect",
            "write max_lent_hs06 for",
        ),
        (
            {"cms": ", max_borrowed_hs06: 5, max_lent_hs06: 5"},
            "groups.cms.max_borrowed_hs06: has no effect,",
            "write",
        ),
        (
            {"rest": "control: {carry_over: {repay_seconds: 60}}"},
            "control.carry_over: has no effect without an amount",
            "write pledge_hours",
        ),
        ({"rest": "control: {pid: {gain: 2}}"}, "control.pid: has no effect", "write law: pid"),
        (
            {
                "cms": ", control: {ewma: {half_life_seconds: 5}, law: pid}",
                "rest": "control: {law: ewma}",
            },
            "groups.cms.control.ewma: has no effect",
            "write law: ewma",
        ),
        (
            {"rest": "control: {dwell_seconds: 7200}\nvalidity_seconds: 60"},
            "control.dwell_seconds: 7200 is above validity_seconds, 60",
            "write a longer validity_seconds",
        ),
    ],
)
def test_a_setting_that_does_nothing_is_named_with_what_it_wants(
    parts: dict[str, str], beginning: str, instead: str
) -> None:
    (line,) = said(**parts)
    assert line.startswith(beginning)
    assert instead in line


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"cms": ", max_lent_hs06: 100", "atlas": ", max_borrowed_hs06: 5"},
        {"rest": "control: {carry_over: {pledge_hours: 24, repay_seconds: 60}}"},
        {"rest": "control: {law: pid, pid: {gain: 2}}"},
        {"cms": ", control: {law: pid}", "rest": "control: {pid: {gain: 2}}"},
        {
            "cms": ", groups: {prod: {share: 1, control: {law: ewma}}}",
            "rest": "control: {ewma: {half_life_seconds: 5}}",
        },
        {"cms": ", control: {pid: {gain: 2}}, groups: {prod: {share: 1, control: {law: pid}}}"},
        {"rest": "control: {dwell_seconds: 60}\nvalidity_seconds: 60"},
    ],
)
def test_one_that_does_something_is_not(parts: dict[str, str]) -> None:
    assert said(**parts) == []


def test_a_configuration_with_its_defaults_written_out_says_nothing() -> None:
    config = parse(PAIR.format(cms="", atlas="", rest=""), "F")
    assert idle(parse(render(config), "F")) == []
