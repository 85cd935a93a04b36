from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from sharectl.ledger.series import Series
from sharectl.model import LimitNote
from sharectl.report import series as curves
from sharectl.report.page import Subject, changes
from tests.made_cycles import made
from tests.made_series import APRIL, page_of, series, ten_minutes

SUBJECT = Subject("t1", APRIL)
DAY = 86400


def of_group(period: Mapping[str, Any], name: str) -> dict[str, Any]:
    (group,) = (dict(group) for group in period["groups"] if group["group"] == name)
    return group


class Words(HTMLParser):
    """Words of a page, a line a block; raises where elements do not close as they opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.lines: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if self.words and tag in BLOCKS:
            self.lines.append(" | ".join(self.words))
            self.words = []

    def handle_data(self, data: str) -> None:
        hidden = {"style", "svg"} & {*self.open} and self.open[-1] != "desc"
        if data.strip() and not hidden:
            self.words.append(" ".join(data.split()))


TWO = {"atlas": 105300.0, "cms": 87100.0}
DESCRIPTION = "From "
BLOCKS = {"title", "h1", "h2", "p", "div", "tr", "caption", "figcaption", "desc", "summary"}


def test_the_words_of_a_page(golden: Callable[[str, str], None]) -> None:
    bare = replace(made()[0], limits=(LimitNote("dwell", 3),), group_reasons={})
    lost = [
        replace(bucket, pool=replace(bucket.pool, complete_cycles=0), groups={})
        for bucket in series(0.2).buckets
    ]
    pages = {
        "ten minutes": (ten_minutes({"cms": 1.35}), SUBJECT),
        "days": (series(3, TWO), SUBJECT),
        "unknown": (series(0.5, TWO, unknown=True), SUBJECT),
        "no pledges": (series(0.1, {"cms": 0.0}), Subject("", APRIL)),
        "lost": (replace(series(0.2), buckets=tuple(lost)), SUBJECT),
        "empty": (Series(APRIL, APRIL + DAY, 300), SUBJECT),
        "last cycle": (ten_minutes({"cms": 1.35}), replace(SUBJECT, last=made()[0])),
        "no reasons": (ten_minutes({"cms": 1.35}), replace(SUBJECT, last=bare)),
        "many": (series(0.1, {f"g{number}": 100.0 for number in range(10)}), SUBJECT),
    }
    text: dict[str, None] = {}
    for name, (period, subject) in pages.items():
        page = page_of(period, subject)
        lines = [f"==== {name}", *Words(page).lines]
        identifiers = re.findall(r' id="([^"]*)"', page)
        assert len(identifiers) == len(set(identifiers)), name
        named = re.findall(r'aria-labelledby="([^"]*)"', page)
        links = {*re.findall(r'href="#([^"]*)"', page), *" ".join(named).split()}
        assert links <= set(identifiers), name
        # Descriptions of figures are those of the first page.
        text.update((line, None) for line in lines if not text or not line.startswith(DESCRIPTION))
    golden("report/page.txt", "\n".join([*text, ""]))


def test_means_are_weighed_by_cycles_and_what_is_unknown_stays_so() -> None:
    made = series(1)
    atlas = of_group(curves.summary(made), "atlas")
    points = [bucket.groups["atlas"] for bucket in made.buckets]
    mean = sum(point.error_hs06 * point.cycles for point in points)
    assert atlas["error_hs06"] == pytest.approx(mean / sum(point.cycles for point in points))
    mean = sum((point.shortfall_squares or 0.0) * point.cycles for point in points)
    rms = (mean / sum(point.cycles for point in points)) ** 0.5
    assert atlas["shortfall_rms_hs06"] == pytest.approx(rms)
    assert atlas["shortfall_hs06"] < rms
    period: Mapping[str, Any] = curves.summary(series(1, unknown=True))
    of_pool = ("idle_cores", "idle_core_hours", "targets", "cycle_seconds", "shortfall_hs06")
    assert [period["pool"][key] for key in of_pool] == [None] * 5
    lacks = ("due_hs06", "shortfall_hs06", "shortfall_rms_hs06")
    known = ("held_back_nodes", "helped_nodes", "output_hs06", "unplaceable_jobs", *lacks)
    assert [of_group(period, "cms")[key] for key in known] == [None] * 7


def test_time_after_the_last_cycle_is_a_gap_and_subgroups_count_once() -> None:
    assert curves.gaps(Series(APRIL, APRIL + DAY, 300)) == [(APRIL, APRIL + DAY)]
    made = ten_minutes({"cms": 1.35, "cms.prod": 0.5})
    assert curves.gaps(made) == [(APRIL + 301, APRIL + 600)]
    page = page_of(made, SUBJECT)
    assert page.count('class="gap"') == page.count('class="figure"')
    assert "Not recorded: 4 min 59 s." in page
    (description,) = re.findall(r'<desc id="pool-power-d">([^<]*)', page)
    assert "pledge: from 100 to 100" in description


def test_changes_of_mode_switch_and_configuration_are_marks_of_the_main_figure() -> None:
    first, _ = made()
    states: list[dict[str, Any]] = [
        {"reason": "targets"},
        {"observed": True},
        {"reason": "disabled"},
        {"reason": "disabled", "configuration": "another"},
        {"configuration": "another"},
    ]
    records = [
        replace(first, taken_at=APRIL + 1000 * number, **state)
        for number, state in enumerate(states)
    ]
    marks = [*changes(records)]
    assert [(at - APRIL, word) for at, word in marks] == [
        *((1000, "observe"), (2000, "off"), (3000, "configured"), (4000, "on")),
    ]
    page = page_of(series(0.1, TWO), replace(SUBJECT, mode="steer", marks=marks))
    assert "Mode: steer." in page
    broad, slim = page.count('class="axis mark"'), page.count(">observe</text>")
    assert (broad, slim) == (2 * len(marks), 2)
    assert page_of(series(0.1, TWO), SUBJECT).count('class="axis mark"') == 0


def drawn(page: str, figure: str, style: str) -> list[tuple[float, float, str]]:
    """Corners of a line: horizontal coordinate, value by the labels of the axis, M or l."""
    (markup,) = re.findall(rf'<svg class="figure"[^>]* id="{figure}".*?</svg>', page, re.DOTALL)
    ticks = re.findall(r'class="tick" [^>]*y="([0-9.]+)" text-anchor="end">([^<]*)', markup)
    numbers = ((re.sub("[^0-9.-]", "", text.replace("\u2212", "-")), y) for y, text in ticks)
    (low, low_y), *_, (high, high_y) = [(float(value), float(y) - 4) for value, y in numbers]
    (path,) = re.findall(rf'class="line {style}" d="([^"]*)', markup)
    corners, x, y = [], 0.0, 0.0
    for step, *parts in re.findall(r"([Ml])(-?[0-9.]+) ?(-?[0-9.]+)", path):
        across, down = map(float, parts)
        x, y = (across, down) if step == "M" else (x + across, y + down)
        corners.append((x, low + (high - low) * (y - low_y) / (high_y - low_y), step))
    return corners


def test_lines_end_where_the_numbers_say_and_are_open_in_a_gap() -> None:
    month = series(missing=[(9.0, 11.5)], points=250)
    page = page_of(month, SUBJECT)
    last = next(b for b in month.buckets[::-1] if b.groups)
    atlas = last.groups["atlas"]
    for figure, name, value, tolerance in (
        ("g1-power", "power", atlas.power_hs06 / 1000, 0.5),
        ("g1-power", "pledge", 105.3, 0.5),
        ("g1-power", "due", (atlas.due_hs06 or 0.0) / 1000, 0.5),
        ("g1-error", "error", atlas.error_hs06 / 1000, 0.1),
        ("all-shortfall", "group0", 100 * (atlas.shortfall_hs06 or 0.0) / 327_300, 0.3),
        ("g1-targets", "held-back", atlas.held_back_nodes, 0.5),
    ):
        assert drawn(page, figure, name)[-1][1] == pytest.approx(value, abs=tolerance), name
    begin, end = (48 + 296 * day / 30 for day in (9.0, 11.5))
    corners = drawn(page, "g1-power", "power")
    assert corners[0][0] < begin < end < corners[-1][0]
    (x, *_, step) = next(corner for corner in corners if corner[0] > begin + 1)
    assert (x > end - 1, step) == (True, "M")
