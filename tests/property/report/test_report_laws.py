from __future__ import annotations

import io
import re
from html import unescape

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sharectl.report import series as curves
from sharectl.report.page import Subject
from sharectl.report.scale import axis, time_ticks
from sharectl.report.tables import print_table
from sharectl.words import printable
from tests.made_series import APRIL, page_of, series, ten_minutes
from tests.verbs import Terminal


@given(st.floats(-1e9, 0), st.floats(0, 1e9))
def test_number_ticks(least: float, most: float) -> None:
    """An axis holds both values and has ticks with different labels, in order."""
    ticks = axis(least, most, 4)
    grace = 1e-6 * max(1, -least, most)
    assert ticks[0].value - grace <= least <= most <= ticks[-1].value + grace
    assert 2 <= len(ticks) <= 7
    assert len({tick.label for tick in ticks}) == len(ticks)
    assert [tick.value for tick in ticks] == sorted(tick.value for tick in ticks)


@given(st.integers(0, 4_000_000_000), st.integers(60, 2_000_000_000))
def test_time_ticks(since: int, span: int) -> None:
    """Ticks of a period lie within it, ascending, and are few."""
    ticks = time_ticks(since, since + span, 5)
    assert len(ticks) <= 7
    assert all(since <= tick.value <= since + span for tick in ticks)
    assert [tick.value for tick in ticks] == sorted({tick.value for tick in ticks})


@settings(max_examples=20)
@example("<script>document.title='x'</script><b a=\"\u202e\x00&amp;\">")
@given(st.text(min_size=1, max_size=40).filter(lambda name: name != "." and name.strip()))
def test_escaping(name: str) -> None:
    """A name is text wherever the page has it, whatever is in it."""
    plain, hostile = (
        page_of(ten_minutes({group: 1.0}), Subject(group, APRIL)) for group in ("GROUP", name)
    )
    shown = "\u202f".join(printable(part) for part in name.split("\u202f"))
    tags, headings = re.compile(r"<[a-z][^ >]*"), re.compile(r"<h2[^>]*>([^<]*)")
    assert tags.findall(hostile) == tags.findall(plain)
    expected = [heading.replace("GROUP", shown) for heading in headings.findall(plain)]
    assert [*map(unescape, headings.findall(hostile))] == expected


@given(
    st.floats(1, 40),
    st.lists(st.tuples(st.floats(0, 40), st.floats(0, 3)), max_size=3),
    st.lists(st.floats(0, 40), max_size=3),
)
def test_gaps(days: float, holes: list[tuple[float, float]], lost: list[float]) -> None:
    """Gaps lie within the period, apart and in order, and no value is drawn in one."""
    made = series(
        days, missing=[(begin, begin + length) for begin, length in holes], incomplete=lost
    )
    gaps = curves.gaps(made)
    ends = [made.since, *(moment for gap in gaps for moment in gap), made.until]
    assert ends == sorted(ends)
    drawn = [bucket.start for bucket in made.buckets if bucket.pool.complete_cycles]
    assert not any(
        begin <= start and start + made.bucket_seconds <= end
        for begin, end in gaps
        for start in drawn
    )


COLUMNS = ("first", "the second", "3rd")
CELLS = st.lists(
    st.text("abz019 .:=@/-,[]\x1b\u202e", max_size=30).map(lambda text: " ".join(text.split())),
    min_size=3,
    max_size=3,
)


@settings(max_examples=30)
@given(st.lists(CELLS, max_size=4), st.booleans())
def test_a_table_loses_no_character(rows: list[list[str]], terminal: bool) -> None:  # noqa: FBT001
    """Every character of every cell is printed as often as it is there, none as a control."""
    to = Terminal() if terminal else io.StringIO()
    print_table("[b]", COLUMNS, rows, to)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", to.getvalue())
    expected = "".join(["[b]", *COLUMNS, *(printable(cell) for row in rows for cell in row)])
    assert sorted("".join(printed.split())) == sorted("".join(expected.split()))
