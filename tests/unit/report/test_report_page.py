from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from sharectl.ledger.series import Bucket, Series
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
from sharectl.report.svg import LAYERS
from tests.made_series import APRIL, PLEDGES, series, ten_minutes

SUBJECT = Subject("t1", APRIL)
DAY = 86400
LAST = CycleRecord(APRIL, 1.0, complete=True)
"""The last complete cycle."""


def changed(made: Series, first: int = 0, last: int = 10**6, **fields: object) -> Series:
    """A series in some of whose buckets groups have other ``fields``."""
    buckets = [
        replace(
            bucket,
            groups={
                name: replace(point, **fields)  # type: ignore[arg-type]
                for name, point in bucket.groups.items()
            },
        )
        if first <= number < last
        else bucket
        for number, bucket in enumerate(made.buckets)
    ]
    return replace(made, buckets=tuple(buckets))


def of_group(period: dict[str, Any], name: str) -> dict[str, Any]:
    (group,) = (dict(group) for group in period["groups"] if group["group"] == name)
    return group


def rows(page: str, section: str) -> list[list[str]]:
    """Words of each row of a section's tables."""
    part = page.partition(f'id="{section}"')[2].partition("</section>")[0]
    return [
        re.sub(r"<[^>]*>", " ", row).split()
        for row in re.findall(r"<tr[^>]*>(?:(?!</tr>).)*</tr>", part, re.DOTALL)
    ]


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


WAITS = (
    JobWaits("cms", 1, WaitTimes(9, 600, 7200), WaitTimes(1, 60, 90)),
    JobWaits("cms", 8, WaitTimes(40, 86_400, 300_000, sampled=True)),
)
HELD = (HeldJobs("cms", 8, 2, 60), HeldJobs("cms", 1, 3, 60))
ALONE = NodeRecord("wn-1", 32, 10.0, controlled=True, held=HELD, multicore_only=True)
NODES = (ALONE, replace(ALONE, node="wn-2", held=()), replace(ALONE, multicore_only=False))


@pytest.mark.parametrize(
    "periods",
    [
        [series(5)],
        [series(5, missing=[(1, 2)]), series(3, since=APRIL + 40 * DAY)],
        [Series(APRIL, APRIL + DAY, 300)],
        [series(1), Series(APRIL + 2 * DAY, APRIL + 3 * DAY, 300)],
        [series(1, imported=True, sizes=(1, 0))],
        [series(0.0118, points=1)],
    ],
)
def test_elements_close_and_each_identifier_is_there_once(periods: list[Series]) -> None:
    subject = replace(SUBJECT, last=replace(LAST, waits=WAITS, nodes=NODES), problems=["a < b"])
    page = report(periods, subject)
    assert report(periods, subject) == page, "the same ledger gives the same page"
    assert Balanced(page).open == []
    identifiers = re.findall(r' id="([^"]*)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(identifiers)
    for names in re.findall(r'aria-labelledby="([^"]*)"', page):
        assert set(names.split()) <= set(identifiers)


def test_waiting_times_are_of_the_last_cycle_the_longest_first() -> None:
    page = report([series(3)], replace(SUBJECT, last=replace(LAST, waits=WAITS)))
    _heading, first, second = rows(page, "waits")
    assert " ".join(first).startswith("cms, 8 cores &gt;= 3 d 11 h 1 d 40 (sample) unknown unknown")
    assert second[:6] == ["cms,", "1", "core", "2", "h", "10"]
    assert "Waiting times" not in report([series(3)], replace(SUBJECT, last=LAST))


def test_nodes_for_multicore_jobs_alone_are_counted_with_the_use_of_their_cores() -> None:
    subject = replace(SUBJECT, last=replace(LAST, nodes=NODES))
    counts = {"nodes": 2, "cores": 64, "multi_cores": 16, "single_cores": 3, "idle_cores": 45}
    assert as_content([series(3)], subject)["multicore_only"] == counts
    assert "with 64 cores: 16 held by multicore jobs, 3 by single" in report([series(3)], subject)
    others = replace(SUBJECT, last=replace(LAST, nodes=NODES[2:]))
    assert as_content([series(3)], others)["multicore_only"] is None
    assert "t1_MulticoreOnly" not in report([series(3)], others)


def test_all_groups_come_first_in_percent_of_their_shares_and_in_hs06() -> None:
    page = report([series(5), series(3, since=APRIL + 40 * DAY)], SUBJECT)
    assert page.index('id="all-groups"') < page.index('id="summary"') < page.index('id="pool"')
    figures = re.findall(r'<svg class="figure"[^>]* id="all-[^"]*".*?</svg>', page, re.DOTALL)
    assert len(figures) == 4
    for figure in figures:
        assert re.findall(r"<title>([a-z]+)</title>", figure) == list(PLEDGES)
    assert ">% of the share (above 0: over it)<" in figures[0]
    assert len(re.findall(r"off by [0-9.]+% of the shares", page)) == 2


def test_more_groups_than_colours_are_counted() -> None:
    pledges = {f"g{number}": 100.0 + number for number in range(LAYERS + 2)}
    page = report([series(2, pledges)], SUBJECT)
    assert f"The {LAYERS} of {LAYERS + 2} groups with the largest pledges." in page


def test_more_sizes_than_patterns_share_the_last_layer() -> None:
    layers = curves.layers_of([series(1, sizes=tuple(range(1, 11)))])
    assert (len(layers), list(layers)[-1]) == (LAYERS, "others")
    assert sorted(size for sizes in layers.values() for size in sizes) == list(range(1, 11))
    assert list(curves.layers_of([series(1, sizes=(8, 0, 1))])) == [
        "1 core",
        "8 cores",
        "multicore",
    ]


def test_an_error_in_percent_needs_a_share() -> None:
    (group, *_) = curves.summary(series(1))["groups"]
    share = group["power_hs06"] - group["error_hs06"]
    assert group["error_ratio"] == pytest.approx(group["error_hs06"] / share)
    (group, *_) = curves.summary(changed(series(1), power_hs06=5.0, error_hs06=5.0))["groups"]
    assert group["error_ratio"] is None


@pytest.mark.parametrize(("complete", "text"), [(0, "none of them complete"), (1, "no pledge")])
def test_a_missing_number_has_its_reason(complete: int, text: str) -> None:
    made = changed(series(0.2), pledge_hs06_seconds=0.0)
    buckets = [
        replace(
            bucket,
            pool=replace(bucket.pool, complete_cycles=complete),
            groups=bucket.groups if complete else {},
        )
        for bucket in made.buckets
    ]
    assert text in report([replace(made, buckets=tuple(buckets))], SUBJECT)


@pytest.mark.parametrize(("jobs", "shown"), [(12.0, "12"), (None, "unknown"), (0.0, "0")])
def test_pending_jobs_that_no_node_could_run_are_beside_all_that_wait(
    jobs: float | None, shown: str
) -> None:
    page = report([changed(series(1), unplaceable_jobs=jobs)], SUBJECT)
    assert [row[-1] for row in rows(page, "summary")[1:]] == [shown] * len(PLEDGES)


def test_the_summary_weighs_by_cycles() -> None:
    made = series(1)
    period = curves.summary(made)
    by_pledge = sorted(PLEDGES, key=lambda name: -PLEDGES[name])
    assert [group["group"] for group in period["groups"]] == by_pledge
    atlas, points = of_group(period, "atlas"), curves.points_of([made], "atlas")
    cycles = sum(point.cycles for point in points)
    mean = sum(point.error_hs06 * point.cycles for point in points) / cycles
    assert atlas["error_hs06"] == pytest.approx(mean)
    worked = sum(point.work_hs06_seconds for point in points) / 3600
    assert atlas["work_hs06_hours"] == pytest.approx(worked)
    assert atlas["over_ratio"] + atlas["under_ratio"] == pytest.approx(1.0)
    atlas = of_group(curves.summary(made, 1e9), "atlas")
    assert (atlas["over_ratio"], atlas["under_ratio"]) == (0, 0)


def test_imported_rows_leave_what_they_do_not_know_unknown() -> None:
    period = curves.summary(series(1, imported=True))
    unknown = ("idle_cores", "idle_core_hours", "targets", "cycle_seconds")
    assert [period["pool"][key] for key in unknown] == [None] * 4
    cms = of_group(period, "cms")
    assert (cms["held_back_nodes"], cms["helped_nodes"]) == (None, None)
    page = report([series(1, imported=True, sizes=(1, 0))], SUBJECT)
    for shown in ("<dd>unknown</dd>", "multicore", ">jobs</text>"):
        assert shown in page
    for absent in ('class="line held-back"', 'class="line helped"', "cores requested"):
        assert absent not in page


def held_back(bucket: Bucket) -> curves.Values:
    return {"cms": bucket.groups["cms"].held_back_nodes} if "cms" in bucket.groups else {}


def work(bucket: Bucket) -> curves.Values:
    return {"cms": bucket.groups["cms"].work_hs06_seconds} if "cms" in bucket.groups else {}


def test_targets_of_a_group_begin_where_they_are_known() -> None:
    made = series(2)
    half = len(made.buckets) // 2
    late = changed(made, 0, half, held_back_nodes=None)
    drawn = [value for value in curves.curves(late, held_back)["cms"] if value.mean is not None]
    assert drawn[0].place >= made.buckets[half].start
    newer = replace(made, buckets=made.buckets[half:])
    assert min(value.mean or 0.0 for value in drawn) > 0
    means = [of_group(curves.summary(part), "cms")["held_back_nodes"] for part in (newer, late)]
    assert means[0] == means[1]


def test_a_group_that_came_later_begins_where_it_came() -> None:
    made = series(2)
    half = len(made.buckets) // 2
    older = [
        replace(bucket, groups={"alice": bucket.groups["alice"]}) for bucket in made.buckets[:half]
    ]
    late = replace(made, buckets=(*older, *made.buckets[half:]))
    begin = made.buckets[half].start
    drawn = [value for value in curves.curves(late, held_back)["cms"] if value.mean is not None]
    assert drawn[0].place >= begin
    first = curves.sums(late, work)["cms"][0]
    assert (first.place >= begin - 3600, first.mean) == (True, 0)


def test_a_subgroup_is_counted_with_its_group_only() -> None:
    page = report([series(1, {"alice": 100.0, "alice.prod": 60.0, "cms": 50.0})], SUBJECT)
    (description,) = re.findall(r'<desc id="pool-power-d">([^<]*)', page)
    assert "pledge: from 150 to 150" in description


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


THOUSANDS = Limits(-40_000, 80_000, 40_000)
CORES = Limits(0, 1500, 500)


@pytest.mark.parametrize(
    ("limits", "unit", "labels"),
    [
        (THOUSANDS, unit_of(THOUSANDS, "HS06"), ["\u221240", "0", "40", "80"]),
        (CORES, unit_of(CORES, "cores", whole=True), ["0", "500", "1\u202f000", "1\u202f500"]),
        (rounded_limits(0, 1, 4), AxisUnit(1, "s"), ["0.00", "0.25", "0.50", "0.75", "1.00"]),
    ],
)
def test_ticks_of_numbers(limits: Limits, unit: AxisUnit, labels: list[str]) -> None:
    assert [tick.label for tick in number_ticks(limits, unit)] == labels


def test_numbers_are_of_equal_parts_and_unknown_in_a_gap() -> None:
    parts = numbers(series(30, missing=[(9, 15)]), "cms")
    assert [start for start, _part in parts][:3] == [APRIL + 2 * day * DAY for day in range(3)]
    unknown = [start for start, part in parts if part is None]
    assert unknown == [APRIL + 10 * DAY, APRIL + 12 * DAY]
    assert min(part["running_cores"] for _start, part in parts if part) > 0


def test_time_after_the_last_cycle_is_a_gap() -> None:
    made = ten_minutes({"cms": 1.35})
    assert curves.gaps(made) == [(APRIL + 301, APRIL + 600)]
    page = report([made], SUBJECT)
    assert page.count('class="gap"') == page.count('class="figure"')
    assert "Not recorded: 4 min 59 s." in page


def test_figures_and_tables_say_the_same_means() -> None:
    page = report([ten_minutes({"cms": 1.35})], SUBJECT)
    captions = ("1.6 nodes", "1.6 held back, 0.5 helped", "6.4 cores", "0.7 cores")
    for shown in ("<dd>1.6</dd>", "RMS error 1.5 HS06", "<span>13.5</span>"):
        assert shown in page
    assert [caption for caption in captions if f">mean {caption}<" not in page] == []


def test_small_sums_keep_their_digits() -> None:
    assert [significant(value) for value in (0, 0.0042, 0.5, 1.234, 12.34, 123.4, 12345)] == [
        *("0", "0.00420", "0.500", "1.23", "12.3", "123", "12\u202f345"),
    ]


def test_the_title_has_the_times_of_the_options_and_no_date_is_cut() -> None:
    page = report([ten_minutes({"cms": 1.35})], SUBJECT)
    assert "<title>Shares of t1, 2021-04-01 00:00 to 2021-04-01 00:10</title>" in page
    spans = [(APRIL + 40 * DAY + 60, APRIL + 43 * DAY), (APRIL + 1800, APRIL + 5 * DAY - 1800)]
    page = report([series(5), series(3, since=APRIL + 40 * DAY)], replace(SUBJECT, spans=spans))
    assert "2021-04-01 to 2021-04-05 beside 2021-05-11 to 2021-05-14</title>" in page
    assert ", 4 d 23 h." in page
    heading = page[page.index("<h1>") : page.index("</h1>")]
    assert re.sub(r'<span class="when">[-0-9]{10}</span>', "", heading).split() == [
        *("<h1>Shares", "of", "t1,", "to", "beside", "to"),
    ]
