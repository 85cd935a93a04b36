from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.condor.library import refusal

ROOT = 'Config source Error "/made/root", Line 4, Include Depth 1: '


@pytest.mark.parametrize(
    ("said", "place", "problem"),
    [
        # HTCondor's text for files that are read through another one, and for a folder's.
        (f'Config source Error "A", Line 2, Include Depth 2: ; {ROOT}', "A:2", '"FOO BAR"'),
        ("Configuration Error Line 2 while reading config source A", "A:2", '"FOO BAR"'),
        ("Configuration Error Line 1 while reading config source A; foo; bar", "A:1", "foo; bar"),
        (
            (
                'Config source Error "/nowhere/x", Line 0, Include Depth 3: no such file; '
                'Config source Error "A", Line 1, Include Depth 2: '
            ),
            "A:1",
            "no such file",
        ),
        (
            (
                'Config source Warning "A", Line 1: obsolete; Error: use feature: unknown\n'
                'Config source Error "/etc/b", Line 7: at X; '
                f'Config source Error "A", Line 2: ; {ROOT}'
            ),
            "/etc/b:7",
            "use feature: unknown; at X",
        ),
        (f'Config source Error "A", Line 9: ; {ROOT}', "A:9", "that line"),
        ("no place", "", "no place"),
    ],
)
def test_a_refusal_names_the_operators_own_line(
    said: str, place: str, problem: str, tmp_path: Path
) -> None:
    file = str(tmp_path / "a.conf")
    Path(file).write_text("A = 1\nFOO BAR\n")

    def named(text: str) -> str:
        return text.replace('"A"', f'"{file}"').replace("source A", f"source {file}")

    error = refusal(named(said), "/made")
    assert error is not None
    assert error.place == place.replace("A:", f"{file}:")
    assert str(error).endswith(problem)


def test_an_end_without_a_word_is_no_refusal() -> None:
    assert refusal(ROOT, "/made") is None
    assert refusal("", "/made") is None
