from __future__ import annotations

import pytest

from sharectl.times import parse, shown, span

NOW = 1_700_000_000  # 2023-11-14 22:13:20 UTC
TIMES = {
    1627101243: "1627101243",
    1_699_920_000: "2023-11-14",
    NOW: "now|2023-11-14T22:13:20|2023-11-14 22:13:20 UTC|2023-11-14T22:13:20.999Z|"
    "2023-11-14T23:13:20+01:00|2023-11-14t20:43:20-01:30",
    NOW - 20: "2023-11-14 22:13",
    NOW - 2 * 86_400: "-2d|2d",
    NOW - 5400: "1h30m|-1.5H",
    NOW - 365 * 86_400: "-1y",
}
NO_TIMES = (
    "|2026|20260101|@1627101243|2026-13-01|2026-02-30|2023-11-14T25:00|2 fortnights|2 days ago|-|"
    "--2d|-5|1627101243.5|٢٠٢٦-01-01|2d\x1b[31m|2023-11-14+01:00|2023-11-14T22:13+99:00|tomorrow"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(text, seconds) for seconds, texts in TIMES.items() for text in texts.split("|")],
)
def test_what_is_understood(text: str, expected: int) -> None:
    assert parse(text, NOW) == expected


@pytest.mark.parametrize("text", [*NO_TIMES.split("|"), "9" * 400])
def test_what_is_not_is_told_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time; write Unix seconds") as caught:
        parse(text, NOW)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("text", ["-99999y", "1969-12-31", "999999999999999"])
def test_a_time_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="not between the years 1970 and 9999"):
        parse(text, NOW)


def test_times_and_spans_are_shown_in_words() -> None:
    assert shown(NOW) == "2023-11-14 22:13:20 UTC"
    assert shown(10**15) == "@1000000000000000"
    spans = "0 s|45 s|17 min|1 h|1 h 30 min|2 d 3 h|1 min 30 s"
    assert "|".join(map(span, (0, 45, 1020, 3601, 5400, 183_600, -90))) == spans
