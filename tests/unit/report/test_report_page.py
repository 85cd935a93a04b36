from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from math import isclose

import pytest

from sharectl.ledger.series import Series
from sharectl.model import JobWaits, WaitTimes
from sharectl.plan.records import CycleRecord, HeldJobs, NodeRecord
from sharectl.report import series as curves
from sharectl.report.page import Subject, as_content, numbers, report
from sharectl.report.scale import (
    AxisUnit,
    Limits,
    number_ticks,
    rounded_limits,
    significant,
    time_ticks,
    unit_of,
)
from sharectl.report.series import summarized
from sharectl.report.svg import LAYERS
from tests.made_series import APRIL, PLEDGES, series, ten_minutes

SUBJECT = Subject("t1", APRIL)
DAY = 86400


def line(name: str, value: curves.OfGroup) -> curves.Line:
    """Line of the group cms."""
    return curves.Line(name, curves.of_group("cms", value))


class Balanced(HTMLParser):
    """Raises where elements do not close as they opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    "periods",
    [
        [series(5)],
        [series(5, missing=[(1, 2)]), series(3, since=APRIL + 40 * DAY)],
        [Series(APRIL, APRIL + DAY, 300)],
        [series(1, imported=True, sizes=(1, 0))],
        [series(0.0118, points=1)],
    ],
)
def test_elements_close_and_each_identifier_is_there_once(periods: list[Series]) -> None:
    page = report(periods, SUBJECT)
    assert report(periods, SUBJECT) == page, "the same ledger gives the same page"
    assert Balanced(page).open == []
    found = re.findall(r' id="([^"]*)"', page)
    assert len(found) == len(set(found))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(found)
    for named in re.findall(r'aria-labelledby="([^"]*)"', page):
        assert set(named.split()) <= set(found)


def test_waiting_times_are_of_the_last_cycle_the_longest_first() -> None:
    waits = (
        JobWaits("cms", 1, WaitTimes(9, 600, 7200), WaitTimes(1, 60, 90)),
        JobWaits("cms", 8, WaitTimes(40, 86_400, 300_000, sampled=True)),
    )
    last = CycleRecord(APRIL, 1.0, complete=True, waits=waits)
    page = report([series(3)], replace(SUBJECT, last=last))
    assert Balanced(page).open == []
    rows = re.findall(r"<tr[^>]*>(?:(?!</tr>).)*</tr>", page.partition('id="waits"')[2], re.DOTALL)
    texts = [re.sub(r"<[^>]*>", " ", row).split() for row in rows]
    assert texts[1] == "cms, 8 cores at least 3 d 11 h 1 d 40 of more unknown unknown -".split()  # noqa: SIM905
    assert texts[2][:6] == ["cms,", "1", "core", "2", "h", "10"]
    assert "Waiting times" not in report(
        [series(3)], replace(SUBJECT, last=replace(last, waits=()))
    )


def test_all_groups_come_first_in_percent_of_their_shares_and_in_hs06() -> None:
    page = report([series(5), series(3, since=APRIL + 40 * DAY)], SUBJECT)
    assert page.index('id="all-groups"') < page.index('id="summary"') < page.index('id="pool"')
    shares, absolute = re.findall(
        r'<svg class="figure"[^>]* id="all-[^"]*".*?</svg>', page, re.DOTALL
    )
    for figure in (shares, absolute):
        assert re.findall(r"<title>([a-z]+)</title>", figure) == list(PLEDGES)[: len(PLEDGES)]
    assert ">% of the share (above 0: over it)<" in shares
    assert len(re.findall(r"[AB] off by [0-9.]+% of the shares", page)) == 2


def test_more_groups_than_colours_are_counted() -> None:
    pledges = {f"g{number}": 100.0 + number for number in range(LAYERS + 2)}
    page = report([series(2, pledges)], SUBJECT)
    assert f"The {LAYERS} of {LAYERS + 2} groups with the largest pledges." in page


def test_an_error_in_percent_needs_a_share() -> None:
    (group, *_) = summarized(series(1)).groups
    share = group.power_hs06 - group.error_hs06
    assert group.error_ratio == pytest.approx(group.error_hs06 / share)
    assert replace(group, power_hs06=5.0, error_hs06=5.0).error_ratio is None


def test_all_cycles_incomplete_is_said() -> None:
    lost = [
        replace(bucket, pool=replace(bucket.pool, complete_cycles=0), groups={})
        for bucket in series(0.2).buckets
    ]
    page = report([replace(series(0.2), buckets=tuple(lost))], SUBJECT)
    assert "none of them complete" in page


def test_nodes_for_multicore_jobs_alone_are_counted_with_the_use_of_their_cores() -> None:
    held = (HeldJobs("cms", 8, 2, 60), HeldJobs("cms", 1, 3, 60))
    alone = NodeRecord("wn-1", 32, 10.0, controlled=True, held=held, multicore_only=True)
    nodes = (
        alone,
        replace(alone, node="wn-2", held=()),
        replace(alone, node="wn-3", multicore_only=False),
    )
    last = CycleRecord(APRIL, 1.0, complete=True, nodes=nodes)
    page = report([series(3)], replace(SUBJECT, last=last))
    assert Balanced(page).open == []
    sentence = (
        "2 nodes took multicore jobs alone (t1_MulticoreOnly), with 64 cores: 16 held by "
        "multicore jobs, 3 by "
    )
    assert f"{sentence}single-core jobs, 45 idle." in page
    counts = {"nodes": 2, "cores": 64, "multi_cores": 16, "single_cores": 3, "idle_cores": 45}
    assert as_content([series(3)], replace(SUBJECT, last=last))["multicore_only"] == counts
    others = replace(SUBJECT, last=replace(last, nodes=nodes[2:]))
    assert "t1_MulticoreOnly" not in report([series(3)], others)
    assert as_content([series(3)], others)["multicore_only"] is None


def test_pending_jobs_that_no_node_could_run_are_beside_all_that_wait() -> None:
    made = series(1)
    points = {
        "cms": {"unplaceable_jobs": 12.0},
        "alice": {"unplaceable_jobs": None},
    }
    buckets = tuple(
        replace(
            bucket,
            groups={
                name: replace(point, **points.get(name, {}))  # type: ignore[arg-type]
                for name, point in bucket.groups.items()
            },
        )
        for bucket in made.buckets
    )
    page = report([replace(made, buckets=buckets)], SUBJECT)
    rows = re.findall(
        r"<tr[^>]*>(?:(?!</tr>).)*</tr>", page.partition('id="summary"')[2], re.DOTALL
    )
    last = {words[0]: words[-1] for row in rows if (words := re.sub(r"<[^>]*>", " ", row).split())}
    assert (last["cms"], last["alice"], last["atlas"]) == ("12", "unknown", "0")


def test_the_summary_weighs_by_cycles() -> None:
    made = series(1)
    period = summarized(made)
    atlas = period.of("atlas")
    assert atlas is not None
    assert [group.group for group in period.groups] == sorted(
        PLEDGES, key=lambda name: -PLEDGES[name]
    )
    points = [bucket.groups["atlas"] for bucket in made.buckets]
    cycles = sum(point.cycles for point in points)
    assert isclose(
        atlas.error_hs06, sum(point.error_hs06 * point.cycles for point in points) / cycles
    )
    assert isclose(atlas.work_hs06_hours, sum(point.work_hs06_seconds for point in points) / 3600)
    assert atlas.over_ratio + atlas.under_ratio == pytest.approx(1.0)
    with_deadband = summarized(made, 1e9).of("atlas")
    assert with_deadband is not None
    assert (with_deadband.over_ratio, with_deadband.under_ratio) == (0, 0)
    assert period.of("nobody") is None


def test_imported_rows_leave_what_they_do_not_know_unknown() -> None:
    pool = summarized(series(1, imported=True)).pool
    assert (pool.idle_cores, pool.idle_core_hours, pool.targets, pool.cycle_seconds) == (
        None,
        None,
        None,
        None,
    )
    for group in summarized(series(1, imported=True)).groups:
        assert (group.held_back_nodes, group.helped_nodes) == (None, None)
    page = report([series(1, imported=True, sizes=(1, 0))], SUBJECT)
    assert 'class="line held-back"' not in page
    assert 'class="line helped"' not in page
    assert "<dd>unknown</dd>" in page
    assert "multicore" in page
    assert ">jobs</text>" in page
    assert "cores requested" not in page


def test_targets_of_a_group_begin_where_they_are_known() -> None:
    made = series(2)
    half = len(made.buckets) // 2
    older = [
        replace(
            bucket,
            groups={
                name: replace(point, held_back_nodes=None, helped_nodes=None)
                for name, point in bucket.groups.items()
            },
        )
        for bucket in made.buckets[:half]
    ]
    both = replace(made, buckets=(*older, *made.buckets[half:]))
    curve = curves.curve(both, line("held back", lambda point: point.held_back_nodes))
    assert (curve.name, curve.style) == ("held back", "held-back")
    drawn = [value for value in curve.values if value.mean is not None]
    assert drawn[0].place >= made.buckets[half].start
    assert min(value.mean or 0.0 for value in drawn) > 0
    newer = summarized(replace(made, buckets=made.buckets[half:])).of("cms")
    whole = summarized(both).of("cms")
    assert newer is not None
    assert whole is not None
    assert (whole.held_back_nodes, whole.helped_nodes) == (
        newer.held_back_nodes,
        newer.helped_nodes,
    )


def test_a_group_that_came_later_begins_where_it_came() -> None:
    made = series(2)
    half = len(made.buckets) // 2
    older = [
        replace(
            bucket,
            groups={name: point for name, point in bucket.groups.items() if name != "cms"},
        )
        for bucket in made.buckets[:half]
    ]
    late = replace(made, buckets=(*older, *made.buckets[half:]))
    begin = made.buckets[half].start
    error = curves.curve(late, line("error", lambda point: point.error_hs06))
    assert next(value.place for value in error.values if value.mean is not None) >= begin
    work = curves.cumulative(late, line("work", lambda point: point.work_hs06_seconds))
    assert (work.values[0].place >= begin - 3600, work.values[0].mean) == (True, 0)


def test_more_sizes_than_patterns_share_the_last_layer() -> None:
    layers = curves.layers_of([series(1, sizes=tuple(range(1, 11)))])
    assert len(layers.names) == LAYERS
    assert layers.names[-1] == "others"
    by_size = dict.fromkeys(range(1, 11), 1.0)
    assert sum(layers.amount(by_size, size) for size in layers.sizes) == 10
    assert curves.layers_of([series(1, sizes=(8, 0, 1))]).names == [
        "1 core",
        "8 cores",
        "multicore",
    ]


def test_a_subgroup_is_counted_with_its_group_only() -> None:
    page = report([series(1, {"alice": 100.0, "alice.prod": 60.0, "cms": 50.0})], SUBJECT)
    (told,) = re.findall(r'<desc id="pool-power-d">([^<]*)', page)
    assert "pledge: from 150 to 150" in told


@pytest.mark.parametrize(
    ("since", "until", "labels"),
    [
        (APRIL, APRIL + DAY, ["1 Apr", "06:00", "12:00", "18:00", "2 Apr"]),
        (APRIL, APRIL + 365 * DAY, ["Apr", "Jul", "Oct", "2022", "Apr"]),
        (APRIL + 3700, APRIL + 5000, ["1 Apr 01:05", "01:10", "01:15", "01:20"]),
    ],
)
def test_ticks_of_times(since: int, until: int, labels: list[str]) -> None:
    assert [tick.label for tick in time_ticks(since, until, 5)] == labels


@pytest.mark.parametrize(
    ("limits", "unit", "labels"),
    [
        (Limits(-40_000, 80_000, 40_000), unit_of(87_000, "HS06"), ["\u221240", "0", "40", "80"]),
        (
            Limits(0, 1500, 500),
            unit_of(1500, "cores", whole=True),
            ["0", "500", "1\u202f000", "1\u202f500"],
        ),
        (rounded_limits(0, 1, 4), unit_of(1, "s"), ["0.00", "0.25", "0.50", "0.75", "1.00"]),
    ],
)
def test_ticks_of_numbers(limits: Limits, unit: AxisUnit, labels: list[str]) -> None:
    assert [tick.label for tick in number_ticks(limits, unit)] == labels


def test_units_of_large_numbers_have_few_digits() -> None:
    assert unit_of(87_000, "HS06").words == "thousand HS06"
    assert unit_of(9_000, "cores", whole=True).words == "cores"


def test_rows_of_numbers_are_of_the_same_time_and_unknown_in_a_gap() -> None:
    rows = numbers(series(30, missing=[(9, 15)]), "cms", "").rows
    assert [when for when, _cells in rows][:3] == [
        "2021-04-01 00:00",
        "2021-04-03 00:00",
        "2021-04-05 00:00",
    ]
    unknown = [when[:10] for when, cells in rows if set(cells) == {"unknown"}]
    assert unknown == ["2021-04-11", "2021-04-13"]
    assert [cells for _when, cells in rows if "0" in cells] == []


def test_time_after_the_last_cycle_is_a_gap() -> None:
    made = ten_minutes({"cms": 1.35})
    assert curves.gaps(made) == [(APRIL + 301, APRIL + 600)]
    page = report([made], SUBJECT)
    assert page.count('class="gap"') == page.count('class="figure"')
    assert "Not recorded: 4 min 59 s." in page


def test_figure_and_header_say_the_same_mean() -> None:
    page = report([ten_minutes({"cms": 1.35})], SUBJECT)
    assert "<dd>1.6</dd>" in page
    assert "mean 1.6 nodes" in page
    assert "mean 1.6 held back, 0.5 helped" in page
    assert "mean 6.4 cores" in page
    assert "RMS error 1.5 HS06" in page
    assert "<span>13.5</span>" in page


def test_small_sums_keep_their_digits() -> None:
    assert [significant(value) for value in (0, 0.0042, 0.5, 1.234, 12.34, 123.4, 12345)] == [
        *("0", "0.00420", "0.500", "1.23", "12.3", "123", "12\u202f345"),
    ]


def test_the_title_has_what_was_asked_for_and_no_date_is_cut() -> None:
    page = report([ten_minutes({"cms": 1.35})], SUBJECT)
    assert "<title>Shares of t1, 2021-04-01 00:00 to 2021-04-01 00:10</title>" in page
    asked = [(APRIL + 40 * DAY + 60, APRIL + 43 * DAY), (APRIL + 1800, APRIL + 5 * DAY - 1800)]
    page = report([series(5), series(3, since=APRIL + 40 * DAY)], replace(SUBJECT, spans=asked))
    assert "2021-04-01 to 2021-04-05 beside 2021-05-11 to 2021-05-14</title>" in page
    assert ", 4 d 23 h." in page
    head = page[page.index("<h1>") : page.index("</h1>")]
    assert re.sub(r'<span class="when">[-0-9]{10}</span>', "", head).split() == [
        *("<h1>Shares", "of", "t1,", "to", "beside", "to"),
    ]
