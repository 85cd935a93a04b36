"""The page of `sharectl report` in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sharectl.ledger.series import Series
from sharectl.report.page import Subject
from tests.browser import page_looks as looks
from tests.browser.conftest import Chromium
from tests.made_series import APRIL, page_of, series, ten_minutes
from tests.simulated import cycles

SUBJECT = Subject("t1", APRIL + 40 * 86400)
HOSTILE = '<script>document.title="owned"</script>"\'&\u202e\x00<img src=http://127.0.0.1:9/x>'
GAP_DAYS = (9.0, 11.5)
TWO_GROUPS: Mapping[str, float] = {"atlas": 105300.0, "cms": 87100.0}
PAGES: Mapping[str, Series] = {
    "month": series(missing=[GAP_DAYS], incomplete=[3.1, 17.5]),
    "year": series(365, TWO_GROUPS),
    "single": series(0.0118, TWO_GROUPS, points=1),
    "short": ten_minutes({"alice": 1.8, "cms": 0.4, "lhcb": 0.0}),
    "unknown": series(3, TWO_GROUPS, unknown=True),
    "hostile": series(2, {HOSTILE: 100.0, "alice.prod": 50.0, "alice": 80.0}),
    "empty": Series(APRIL, APRIL + 86400, 300),
}
LOOKS = {
    "light": {"width": 1200},
    "dark": {"width": 1200, "dark": True},
    "narrow": {"width": 375},
    "paper": {"width": 688, "paper": True, "dark": True},
}
MARKS = [(APRIL + 86400.0 * day, word) for day, word in ((2, "observe"), (2.1, "off"), (20, "on"))]
LOOKED_AT = {
    "month": "light dark narrow paper",
    "year": "dark paper",
    "single": "light",
    "short": "light narrow paper",
    "unknown": "dark paper",
    "hostile": "narrow paper",
    "empty": "narrow",
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    *_, (record, _) = cycles(0.2)
    for name, period in PAGES.items():
        last = record if name == "month" else None
        subject = replace(SUBJECT, last=last, mode="observe", marks=MARKS)
        (folder / f"{name}.html").write_text(page_of(period, subject), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.mark.parametrize(
    ("name", "look"),
    [(name, look) for name, shown in LOOKED_AT.items() for look in shown.split()],
)
def test_what_is_drawn(browser: Chromium, pages: dict[str, Path], name: str, look: str) -> None:
    browser.look(**LOOKS[look])  # type: ignore[arg-type]  # a table of keywords
    browser.open(pages[name])
    assert looks.faults(browser) == []
    ground = looks.rgb(browser.evaluate(looks.GROUND))
    assert (max(ground) < 50, min(ground) > 200) == (look == "dark", look != "dark")


def test_a_hostile_name_is_text_and_the_policy_stops_what_gets_past_that(
    browser: Chromium, pages: dict[str, Path]
) -> None:
    browser.look()
    browser.open(pages["hostile"])
    counts = "[document.scripts.length, document.images.length, document.title.slice(0, 6)]"
    assert browser.evaluate(counts) == [0, 0, "Shares"]
    name = browser.evaluate("document.querySelector('section.group h2').textContent")
    assert name == HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\x00")
    inserted = (
        "<body><script>document.title='owned'</script><style>body{color:red}</style><img "
        "src='http://127.0.0.1:9/x'>"
    )
    copy = pages["empty"].with_name("inserted.html")
    text = pages["empty"].read_text(encoding="utf-8")
    copy.write_text(text.replace("<body>", inserted), encoding="utf-8")
    browser.open(copy)
    assert browser.evaluate("document.title").startswith("Shares")
    assert browser.evaluate("getComputedStyle(document.body).color") == "rgb(26, 32, 39)"
    assert sum("Content Security Policy" in said for said in browser.complaints) == 3


def test_without_a_mouse_and_without_sight(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.look()
    browser.open(pages["month"])
    browser.page.keyboard.press("Tab")
    focus = browser.evaluate("document.activeElement.className")
    top = browser.evaluate("document.activeElement.getBoundingClientRect().top")
    assert (focus, top >= 0) == ("skip", True)
    devtools = browser.page.context.new_cdp_session(browser.page)
    images = [
        node
        for node in devtools.send("Accessibility.getFullAXTree")["nodes"]
        if node.get("role", {}).get("value") in ("image", "img") and not node["ignored"]
    ]
    shown = "[...document.querySelectorAll('svg.figure')].filter(e => e.checkVisibility()).length"
    assert len(images) == browser.evaluate(shown) == 23
    assert not [
        node for node in images if not (node["name"]["value"] and node["description"]["value"])
    ]
