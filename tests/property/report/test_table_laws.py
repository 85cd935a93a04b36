from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sharectl.report.tables import laid_out

CELLS = st.lists(
    st.text("abz019 .:=@/-,", max_size=30).map(lambda text: " ".join(text.split())),
    min_size=3,
    max_size=3,
)


@given(st.lists(CELLS, max_size=4), st.one_of(st.none(), st.integers(1, 100)))
def test_a_table_loses_no_character(rows: list[list[str]], width: int | None) -> None:
    """Every character of every cell is printed, as often as it is there, at any width."""
    columns = ["first", "the second", "3rd"]
    lines = laid_out(columns, rows, width)
    stacked = not lines[0]
    for row, printed in zip(rows, lines[1:]):
        expected = "".join([*(columns if stacked else []), *row]).replace(" ", "")
        assert sorted("".join(printed).replace(" ", "")) == sorted(expected)


@given(st.lists(CELLS, max_size=4), st.integers(1, 100))
def test_lines_that_are_not_stacked_fit(rows: list[list[str]], width: int) -> None:
    """No line of a table with a heading is longer than the width."""
    lines = laid_out(["first", "the second", "3rd"], rows, width)
    if lines[0]:
        assert all(len(line) <= width for row in lines for line in row)
