from __future__ import annotations

import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sharectl.report.tables import print_table
from tests.verbs import Terminal

COLUMNS = ("first", "the second", "3rd")
CELLS = st.lists(
    st.text("abz019 .:=@/-,", max_size=30).map(lambda text: " ".join(text.split())),
    min_size=3,
    max_size=3,
)


@settings(max_examples=30)
@given(st.lists(CELLS, max_size=4), st.booleans())
def test_a_table_loses_no_character(rows: list[list[str]], terminal: bool) -> None:  # noqa: FBT001
    """Every character of every cell is printed as often as it is there, wrapped or not."""
    to = Terminal() if terminal else io.StringIO()
    print_table("", COLUMNS, rows, to)
    printed = re.sub(r"\x1b\[[0-9;]*m", "", to.getvalue())
    expected = "".join([*COLUMNS, *(cell for row in rows for cell in row)])
    assert sorted("".join(printed.split())) == sorted("".join(expected.split()))
