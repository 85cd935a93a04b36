from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from sharectl.model import GroupError, GroupUsage
from sharectl.report.plots import errors_and_cores

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def _row(moment: int, group: str, error_hs06: float, cores: int) -> tuple[int, GroupError]:
    return moment, GroupError(group, 600.0, 0.0, error_hs06, 0.0, GroupUsage(single_cores=cores))


ROWS = [
    *(_row(1000 + 60 * n, "alice", 600.0 - 100 * n, 96 - 8 * n) for n in range(5)),
    *(_row(1000 + 60 * n, "cms", -600.0 + 100 * n, 8 * n) for n in range(5)),
]


def _svg(rows: list[tuple[int, GroupError]]) -> ET.Element:
    return ET.fromstring(errors_and_cores(rows, {1090: "sharectl on"}, "svg"))  # noqa: S314  # our own


def _texts(drawing: ET.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in drawing.iter(f"{SVG}text")]


def _points(drawing: ET.Element, name: str) -> list[tuple[float, float]]:
    (line,) = (group for group in drawing.iter(f"{SVG}g") if group.get("id") == name)
    path = next(line.iter(f"{SVG}path")).get("d", "")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", path)]


def test_every_group_and_every_mark_is_named() -> None:
    texts = _texts(_svg(ROWS))
    assert [texts.count(name) for name in ("alice", "cms", "sharectl on")] == [1, 1, 1]


def test_a_line_goes_through_the_values_of_its_rows() -> None:
    drawing = _svg(ROWS)
    for name, rises in (
        ("error-alice", False),
        ("error-cms", True),
        ("cores-alice", False),
        ("cores-cms", True),
    ):
        points = _points(drawing, name)
        steps = [after[1] - before[1] for before, after in zip(points, points[1:])]
        assert len(points) == 5
        assert steps == pytest.approx([steps[0]] * 4, abs=0.01), (
            "equal steps in the rows are equal on paper"
        )
        assert (steps[0] < 0) == rises, "SVG counts downwards"


def test_errors_of_opposite_sign_lie_on_opposite_sides_of_the_zero_line() -> None:
    drawing = _svg(ROWS)
    ((_, zero), _) = _points(drawing, "zero")
    assert _points(drawing, "error-alice")[0][1] < zero < _points(drawing, "error-cms")[0][1]


def test_rows_may_come_in_any_order_and_the_same_rows_give_the_same_file() -> None:
    shuffled = ROWS[::-2] + ROWS[::-1][1::2]
    first = errors_and_cores(ROWS, {}, "svg")
    assert errors_and_cores(ROWS, {}, "svg") == first
    assert _points(_svg(shuffled), "error-alice") == _points(_svg(ROWS), "error-alice")


def test_no_two_of_many_groups_share_line_and_marker() -> None:
    drawing = _svg(
        [_row(1000 + n, f"group{g:02}", float(g), g) for g in range(28) for n in range(2)]
    )
    shapes = {
        f"#{path.get('id')}": path.get("d") for path in drawing.iter(f"{SVG}path") if path.get("id")
    }
    looks = set()
    for number in range(28):
        name = f"error-group{number:02}"
        (line,) = (group for group in drawing.iter(f"{SVG}g") if group.get("id") == name)
        style = next(line.iter(f"{SVG}path")).get("style", "")
        dashes = re.search(r"stroke-dasharray: ([^;]*)", style)
        looks.add((dashes[1] if dashes else "", shapes[next(line.iter(f"{SVG}use")).get(HREF, "")]))
    assert len(looks) == 28


def test_a_group_name_is_text_not_markup_or_mathematics() -> None:
    assert "a$b_c$<i>" in _texts(_svg([_row(1000, "a$b_c$<i>", 1.0, 1)]))


def test_a_png_is_drawn_too() -> None:
    assert errors_and_cores(ROWS, {}, "png").startswith(PNG_SIGNATURE)


@pytest.mark.parametrize(
    ("rows", "kind", "said"), [([], "svg", "no rows"), (ROWS, "gif", "svg, png")]
)
def test_what_cannot_be_drawn_is_refused(
    rows: list[tuple[int, GroupError]], kind: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        errors_and_cores(rows, {}, kind)
