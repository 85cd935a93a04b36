from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.condor.configuration import circle, definitions_in, in_force


def definitions(folder: Path, text: str) -> list[tuple[int, str, str]]:
    (folder / "a.conf").write_text(text)
    return [(each.line, each.name, each.text) for each in definitions_in([folder / "a.conf"])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Continuations count from their first line, comments are left out.
        (
            "# A = 0\nA = 1 \\\n   && 2 \\\n# in between\n   && 3\nB : 4\n",
            [(2, "A", "1    && 2    && 3"), (6, "B", "4")],
        ),
        (
            "A @=end\n  SET x 1\n  SET y 2\n@end\nB = 3\n",
            [(1, "A", "SET x 1\n  SET y 2"), (5, "B", "3")],
        ),
        # A macro that begins like a statement is one.
        ("USE_X = 1\nINCLUDE = 2\n", [(1, "USE_X", "1"), (2, "INCLUDE", "2")]),
    ],
)
def test_definitions_of_a_text(
    text: str, expected: list[tuple[int, str, str]], tmp_path: Path
) -> None:
    assert definitions(tmp_path, text) == expected


def test_statements_assign_nothing(tmp_path: Path) -> None:
    text = "if defined A\n  use FEATURE : F($(A))\nendif\n"
    lines = [(line, name) for line, name, _ in definitions(tmp_path, text)]
    assert lines == [(1, ""), (2, ""), (3, "")]
    assert definitions_in([tmp_path / "a.conf"])[1].references == {"a"}


def test_includes_are_read_where_they_stand_and_not_for_ever(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("B = 2\ninclude : a.conf\n")
    names = [name for _, name, _ in definitions(tmp_path, "A = 1\ninclude : b.conf\nC = 3\n")]
    assert names == ["A", "B", "C"]


def test_references_with_defaults_and_within_names(tmp_path: Path) -> None:
    definitions(tmp_path, "A = $(A:1) $CHOICE(B, x) $(C_$(D):True) $$(machine)\n")
    (each,) = definitions_in([tmp_path / "a.conf"])
    assert each.references == {"a", "b", "c_*", "d", "machine"}
    assert each.appends


def test_what_is_in_force_goes_back_to_the_last_that_does_not_append(tmp_path: Path) -> None:
    definitions(tmp_path, "A = 1\nA = 2\nA = $(A) 3\nA = $(A) 4\n")
    assert [each.line for each in in_force(definitions_in([tmp_path / "a.conf"]))] == [4, 3, 2]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A = $(B)\nB = $(C)\nC = $(A)\nD = $(D) $(A)\n", ["A", "B", "C", "A"]),
        ("A = $(B)\nB = $(A)\nA = 1\nA = $(A) 2\n", []),
    ],
)
def test_circles(text: str, names: list[str], tmp_path: Path) -> None:
    definitions(tmp_path, text)
    assert [part.name for part in circle(definitions_in([tmp_path / "a.conf"]))] == names
