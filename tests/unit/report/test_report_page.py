from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from sharectl.ledger.series import Bucket, Series
from sharectl.report import series as curves
from sharectl.report.page import Subject, changes
from sharectl.report.scale import (
    Limits,
    Tick,
    number_ticks,
    rounded_limits,
    time_ticks,
)
from sharectl.report.svg import LAYERS
from tests.made_cycles import made
from tests.made_series import APRIL, page_of, series, ten_minutes

SUBJECT = Subject("t1", APRIL)
DAY = 86400


def changed(made: Series, last: int = 10**6, **fields: object) -> Series:
    """A series in whose buckets up to ``last`` groups have other ``fields``."""
    buckets = []
    for bucket in made.buckets[:last]:
        points = {name: replace(at, **fields) for name, at in bucket.groups.items()}  # type: ignore[arg-type]
        buckets.append(replace(bucket, groups=points))
    return replace(made, buckets=(*buckets, *made.buckets[last:]))


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
    notes = ["The ledger begins later: a < b."]
    lost = [
        replace(bucket, pool=replace(bucket.pool, complete_cycles=0), groups={})
        for bucket in series(0.2).buckets
    ]
    pages = {
        "ten minutes": ([ten_minutes({"cms": 1.35})], replace(SUBJECT, problems=notes)),
        "compared": ([series(2, TWO), series(3, TWO, since=APRIL + 40 * DAY)], SUBJECT),
        "unknown": ([series(0.5, TWO, unknown=True)], SUBJECT),
        "no pledges": ([series(0.1, {"cms": 0.0})], Subject("", APRIL, 3000.0)),
        "lost": ([replace(series(0.2), buckets=tuple(lost))], SUBJECT),
        "empty": ([Series(APRIL, APRIL + DAY, 300)], SUBJECT),
        "one empty": ([series(0.1, TWO), Series(APRIL + DAY, APRIL + 2 * DAY, 300)], SUBJECT),
        "last cycle": ([ten_minutes({"cms": 1.35})], replace(SUBJECT, last=made()[0])),
        "many": ([series(0.1, {f"g{number}": 100.0 for number in range(8)})], SUBJECT),
    }
    text: dict[str, None] = {}
    for name, (periods, subject) in pages.items():
        page = page_of(periods, subject)
        lines = [f"==== {name}", *Words(page).lines]
        identifiers = re.findall(r' id="([^"]*)"', page)
        assert len(identifiers) == len(set(identifiers)), name
        named = re.findall(r'aria-labelledby="([^"]*)"', page)
        links = {*re.findall(r'href="#([^"]*)"', page), *" ".join(named).split()}
        assert links <= set(identifiers), name
        # Descriptions of figures are those of the first page.
        text.update((line, None) for line in lines if not text or not line.startswith(DESCRIPTION))
    golden("report/page.txt", "\n".join([*text, ""]))


def test_more_sizes_than_patterns_share_the_last_layer() -> None:
    layers = curves.layers_of([series(1, sizes=tuple(range(1, 11)))])
    assert (len(layers), list(layers)[-1]) == (LAYERS, "others")
    assert sorted(size for sizes in layers.values() for size in sizes) == list(range(1, 11))


def test_layers_reach_the_floor_and_hide_the_foot_of_those_above() -> None:
    page = page_of([series(1, TWO, sizes=(1, 4, 8))], SUBJECT)
    (markup,) = re.findall(r'id="g1-running".*?</svg>', page, re.DOTALL)
    layers = re.findall(r'class="area (\w+)" d="M[0-9.]+ ([0-9.]+)[^V]*V([0-9.]+)H', markup)
    assert [layer for layer, _top, _floor in layers] == ["layer2", "layer1", "layer0"]
    tops = [float(top) for _layer, top, _floor in layers]
    assert (sorted(tops), {floor for *_, floor in layers}) == (tops, {"204"})


def test_means_are_weighed_by_cycles_and_what_is_unknown_stays_so() -> None:
    made = series(1)
    atlas, points = of_group(curves.summary(made), "atlas"), curves.points_of([made], "atlas")
    mean = sum(point.error_hs06 * point.cycles for point in points)
    assert atlas["error_hs06"] == pytest.approx(mean / sum(point.cycles for point in points))
    mean = sum((point.shortfall_squares or 0.0) * point.cycles for point in points)
    rms = (mean / sum(point.cycles for point in points)) ** 0.5
    assert atlas["shortfall_rms_hs06"] == pytest.approx(rms)
    assert atlas["shortfall_hs06"] < rms
    period: Mapping[str, Any] = curves.summary(series(1, unknown=True))
    of_pool = ("idle_cores", "idle_core_hours", "targets", "cycle_seconds", "shortfall_rms_hs06")
    assert [period["pool"][key] for key in of_pool] == [None] * 5
    lacks = ("due_hs06", "shortfall_hs06", "shortfall_rms_hs06")
    known = ("held_back_nodes", "helped_nodes", "output_hs06", "unplaceable_jobs", *lacks)
    assert [of_group(period, "cms")[key] for key in known] == [None] * 7


@pytest.mark.parametrize("knows_group", [True, False])
def test_lines_begin_where_their_group_or_value_is_known(knows_group: bool) -> None:  # noqa: FBT001
    made = series(2)
    half = len(made.buckets) // 2
    begin, late = made.buckets[half].start, changed(made, half, held_back_nodes=None)
    if not knows_group:
        older = [replace(bucket, groups={}) for bucket in made.buckets[:half]]
        late = replace(made, buckets=(*older, *made.buckets[half:]))

    def lines(bucket: Bucket) -> curves.Values:
        point = bucket.groups.get("cms")
        return {"nodes": point.held_back_nodes, "work": point.work_hs06_seconds} if point else {}

    places = [place for place, value in curves.curves(late, lines)["nodes"] if value is not None]
    assert places[0] >= begin
    place, value = curves.sums(late, lines)["work"][0]
    assert (place >= begin - 3600, value) == (not knows_group, 0)
    newer = replace(made, buckets=made.buckets[half:])
    means = [of_group(curves.summary(part), "cms")["held_back_nodes"] for part in (newer, late)]
    assert means[0] == means[1]


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        (number_ticks(Limits(-40_000, 80_000, 40_000)), ["\u221240k", "0", "40k", "80k"]),
        (number_ticks(Limits(0, 1500, 500)), ["0.0", "0.5k", "1.0k", "1.5k"]),
        (number_ticks(Limits(0, 3e6, 1.5e6)), ["0.0", "1.5M", "3.0M"]),
        (number_ticks(rounded_limits(0, 1, 4)), ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (time_ticks(APRIL, APRIL + DAY, 5), ["1 Apr", "06:00", "12:00", "18:00", "2 Apr"]),
        (time_ticks(APRIL, APRIL + 365 * DAY, 5), ["Apr", "Jul", "Oct", "2022", "Apr"]),
        (time_ticks(APRIL + 3700, APRIL + 4500, 5), ["1 Apr 01:05", "01:10", "01:15"]),
    ],
)
def test_labels_of_ticks(ticks: list[Tick], labels: list[str]) -> None:
    assert [tick.label for tick in ticks] == labels


def test_time_after_the_last_cycle_is_a_gap_and_subgroups_count_once() -> None:
    assert curves.gaps(Series(APRIL, APRIL + DAY, 300)) == [(APRIL, APRIL + DAY)]
    made = ten_minutes({"cms": 1.35, "cms.prod": 0.5})
    assert curves.gaps(made) == [(APRIL + 301, APRIL + 600)]
    page = page_of([made], SUBJECT)
    assert page.count('class="gap"') == page.count('class="figure"')
    assert "Not recorded: 4 min 59 s." in page
    (description,) = re.findall(r'<desc id="pool-power-d">([^<]*)', page)
    assert "pledge: from 100 to 100" in description


def test_the_deadband_is_shaded_and_incomplete_cycles_have_crosses() -> None:
    made = series(3, TWO, incomplete=[1.0])
    pages = [page_of([made], replace(SUBJECT, deadband_hs06=hs06)) for hs06 in (3000.0, 0.0)]
    assert [page.count('class="between"') for page in pages] == [len(TWO), 0]
    assert [page.count('class="cross"') for page in pages] == [1, 1]
    (cross,) = re.findall(r'class="cross" d="([^"]*)', pages[0])
    assert cross.count("M") == 1


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
    page = page_of([series(0.1, TWO)], replace(SUBJECT, mode="steer", marks=marks))
    assert "Mode: steer." in page
    broad, slim = page.count('class="axis mark"'), page.count(">observe</text>")
    assert (broad, slim) == (2 * len(marks), 2)
    assert page_of([series(0.1, TWO)], SUBJECT).count('class="axis mark"') == 0


def axis_of(page: str, figure: str) -> tuple[str, list[tuple[float, float]]]:
    """Markup of a figure, and the numbers of its vertical axis with their heights."""
    (markup,) = re.findall(rf'<svg class="figure"[^>]* id="{figure}".*?</svg>', page, re.DOTALL)
    ticks = re.findall(r'class="tick" [^>]*y="([0-9.]+)" text-anchor="end">([^<]*)', markup)
    numbers = ((re.sub("[^0-9.-]", "", text.replace("\u2212", "-")), y) for y, text in ticks)
    return markup, [(float(number), float(y) - 4) for number, y in numbers]


def drawn(page: str, figure: str, style: str) -> list[tuple[float, float, str]]:
    """Corners of a line: horizontal coordinate, value by the labels of the axis, M or l."""
    markup, [(low, low_y), *_, (high, high_y)] = axis_of(page, figure)
    (path,) = re.findall(rf'class="line {style}" d="([^"]*)', markup)
    corners, x, y = [], 0.0, 0.0
    for step, *parts in re.findall(r"([Ml])(-?[0-9.]+) ?(-?[0-9.]+)", path):
        across, down = map(float, parts)
        x, y = (across, down) if step == "M" else (x + across, y + down)
        corners.append((x, low + (high - low) * (y - low_y) / (high_y - low_y), step))
    return corners


def test_lines_end_where_the_numbers_say_and_are_open_in_a_gap() -> None:
    month = series(missing=[(9.0, 11.5)], points=250)
    page = page_of([month], SUBJECT)
    points = [bucket.groups["atlas"] for bucket in month.buckets if bucket.groups]
    last = points[-1]
    worked, due = (
        sum(getattr(point, f"{name}_hs06_seconds") for point in points) / 3600 / 1e6
        for name in ("work", "pledge")
    )
    present = next(b.pool.present_hs06 for b in month.buckets[::-1] if b.groups)
    short = 100 * (last.shortfall_hs06 or 0.0) / (present or 1.0)
    for figure, name, value, tolerance in (
        ("g1-work", "work", worked, 0.01 * worked),
        ("g1-work", "pledge", due, 0.01 * due),
        ("g1-error", "error", last.error_hs06 / 1000, 0.1),
        ("all-shortfall", "group0", short, 0.3),
        ("g1-targets", "held-back", last.held_back_nodes, 0.5),
    ):
        assert drawn(page, figure, name)[-1][1] == pytest.approx(value, abs=tolerance), name
    begin, end = (48 + 296 * day / 30 for day in (9.0, 11.5))
    corners = drawn(page, "g1-work", "work")
    assert corners[0][0] < begin < end < corners[-1][0]
    (x, *_, step) = next(corner for corner in corners if corner[0] > begin + 1)
    assert (x > end - 1, step) == (True, "M")


def test_two_periods_have_the_same_axes_and_the_shorter_one_a_gap() -> None:
    larger = {group: 3 * pledge for group, pledge in TWO.items()}
    page = page_of([series(30, TWO), series(20, larger, since=APRIL + 275 * DAY)], SUBJECT)
    for figure in ("all-shortfall", "g1-work", "g1-pending", "g1-targets"):
        (_, first), (later, second) = (axis_of(page, f"{figure}-{number}") for number in (1, 2))
        assert first == second
        assert len(first) >= 3
    assert later.count('class="gap"') == 1
    numbers = [number for number, _ in axis_of(page, "g1-work-2")[1]]
    assert drawn(page, "g1-work-2", "work")[-1][1] <= max(numbers)
