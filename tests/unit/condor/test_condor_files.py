from __future__ import annotations

from pathlib import Path

from sharectl.condor.configuration import circle, definitions_in, in_force
from tests.fakes import Listing


def test_definitions_of_a_text(tmp_path: Path, listing: Listing) -> None:
    """Lines, names and texts, what they refer to, the ones in force of A, and a circle."""

    def outcome(text: str) -> list[str]:
        (tmp_path / "a.conf").write_text(text)
        parts = definitions_in([tmp_path / "a.conf"])
        lines = [f"{part.line}: {part.name}: {part.text!r}" for part in parts]
        refers = [f"{part.line} refers to {', '.join(sorted(part.references))}" for part in parts]
        of_a = in_force([part for part in parts if part.name == "A"])
        ring = " ".join(part.name for part in circle(parts))
        return [
            *lines,
            *(line for line in refers if not line.endswith(" to ")),
            f"in force {[part.line for part in of_a]}",
            f"circle {ring or None}",
        ]

    listing("condor/definitions.txt", outcome, 8)


def test_includes_are_read_where_they_stand_and_not_for_ever(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("A = 1\ninclude : b.conf\nC = 3\n")
    (tmp_path / "b.conf").write_text("B = 2\ninclude : a.conf\n")
    assert [part.name for part in definitions_in([tmp_path / "a.conf"])] == ["A", "B", "C"]
