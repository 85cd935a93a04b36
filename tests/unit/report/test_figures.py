from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from poolbox.demo.figure import errors_and_cores
from sharectl.model import GroupError, GroupUsage

SVG = "{http://www.w3.org/2000/svg}"


def _row(moment: int, group: str, error_hs06: float, cores: int) -> tuple[int, GroupError]:
    return moment, GroupError(group, 600.0, 0.0, error_hs06, 0.0, GroupUsage(single_cores=cores))


ROWS = [
    *(_row(1000 + 60 * n, "alice", 600.0 - 100 * n + 7 * (n % 2), 96 - 8 * n) for n in range(5)),
    *(_row(1000 + 60 * n, "cms", -600.0 + 100 * n - 7 * (n % 2), 8 * n) for n in range(5)),
]


def _svg(rows: list[tuple[int, GroupError]]) -> ET.Element:
    return ET.fromstring(errors_and_cores(rows, {1090: "sharectl on"}))  # noqa: S314  # our own


def _texts(drawing: ET.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in drawing.iter(f"{SVG}text")]


def _heights(drawing: ET.Element, panel: str, style: str) -> list[float]:
    """Heights of a line's corners; SVG counts downwards."""
    (figure,) = (part for part in drawing.iter(f"{SVG}svg") if part.get("id") == panel)
    (line,) = (p for p in figure.iter(f"{SVG}path") if p.get("class") == f"line {style}")
    begin, *steps = re.findall(r"[Ml](?:-?[0-9.]+ ?)(-?[0-9.]+)", line.get("d", ""))
    heights = [float(begin)]
    for step in steps:
        heights.append(heights[-1] + float(step))
    return heights


def test_both_panels_name_their_groups_and_the_first_one_the_marks() -> None:
    texts = _texts(_svg(ROWS))
    assert [texts.count(name) for name in ("alice", "cms", "sharectl on")] == [2, 2, 1]
    assert "a$b_<i>" in _texts(_svg([_row(1000, "a$b_<i>", 1.0, 1)])), "a name is no markup"


def test_lines_go_through_the_values_of_their_rows_in_any_order() -> None:
    drawing = _svg(ROWS[::-2] + ROWS[::-1][1::2])
    alice, cms = (_heights(drawing, "error", style) for style in ("group0", "group1"))
    assert len(alice) == len(cms) == 5
    assert sorted((alice[0], cms[0])) == pytest.approx([61.6, 168.4], abs=0.1)
    assert min(abs(alice[0] - alice[-1]), abs(cms[0] - cms[-1])) > 30
