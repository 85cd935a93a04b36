from __future__ import annotations

import time

import pytest

from sharectl.cli.main import build_parser
from sharectl.times import parse, shown, span

NOW = 1_700_000_000  # 2023-11-14 22:13:20 UTC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1627101243", 1627101243),
        ("@0", 0),
        ("@2026", 2026),
        ("2023-11-14", 1_699_920_000),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-14 22:13:20 UTC", NOW),
        ("2023-11-14T22:13:20.999Z", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("2023-11-14t20:43:20-0130", NOW),
        ("2023-11-14 22:13", NOW - 20),
        ("now", NOW),
        ("today", 1_699_920_000),
        ("yesterday", 1_699_920_000 - 86_400),
        ("-2d", NOW - 2 * 86_400),
        ("2d", NOW - 2 * 86_400),
        ("now-2d", NOW - 2 * 86_400),
        ("2 days ago", NOW - 2 * 86_400),
        ("1h30m", NOW - 5400),
        ("1 hour and 30 minutes ago", NOW - 5400),
        ("1.5 Hours ago", NOW - 5400),
        ("-1y", NOW - 365 * 86_400),
    ],
)
def test_what_is_understood(text: str, expected: int) -> None:
    assert parse(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        "20260101",
        "2026-13-01",
        "2026-02-30",
        "2023-11-14T25:00",
        "2 fortnights ago",
        "-",
        "ago",
        "-5",
        "1627101243.5",
        "٢٠٢٦-01-01",
        "2d\x1b[31m",
        "9" * 400,
        "2023-11-14+01:00",
        "2023-11-14T22:13+99:00",
        "tomorrow",
    ],
)
def test_what_is_not_is_told_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time; write Unix seconds") as caught:
        parse(text, NOW)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("text", ["-99999y", "1969-12-31", "@999999999999999"])
def test_a_time_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="not between the years 1970 and 9999"):
        parse(text, NOW)


def test_times_and_spans_are_shown_in_words() -> None:
    assert shown(NOW) == "2023-11-14 22:13:20 UTC"
    assert shown(10**15) == "@1000000000000000"
    assert [span(n) for n in (0, 45, 1020, 3601, 5400, 183_600, -90)] == [
        "0 s",
        "45 s",
        "17 min",
        "1 h",
        "1 h 30 min",
        "2 d 3 h",
        "1 min 30 s",
    ]


def test_a_time_before_now_is_no_option() -> None:
    parser, _ = build_parser("report")
    words = ["report", "--from", "-2d", "--to", "-1h30m", "--compare", "-60d", "-30d", "-o", "x"]
    parsed, began = parser.parse_args(words), time.time()
    ago = [began - then for then in (parsed.since, parsed.until, *parsed.compare)]
    assert [round(seconds / 60) for seconds in ago] == [2880, 90, 86_400, 43_200]
