from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharectl.times import MAX_SECONDS, parse, shown

NOW = st.integers(0, MAX_SECONDS)


@given(NOW, NOW)
def test_what_is_shown_is_read_back(seconds: int, now: int) -> None:
    """A time as it is shown means itself, whatever the time is now."""
    assert parse(shown(seconds), now) == seconds


@given(st.text(), NOW)
def test_any_text_is_a_time_or_is_refused(text: str, now: int) -> None:
    """Whatever is written is a time within the years 1970 to 9999, or a ValueError."""
    try:
        found = parse(text, now)
    except ValueError:
        return
    assert 0 <= found <= MAX_SECONDS
