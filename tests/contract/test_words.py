"""Rules of names and docstrings that a machine can hold (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "central" / "sharectl"
FIRST_WORDS = ("What ", "Those ", "That ", "Whether ", "Which ", "The same ")
"""Beginnings that hide the noun of a docstring."""
NAMES = {"found", "said", "told", "asked", "known", "left", "given", "what", "each", "one"}
"""Names that say nothing of the domain."""
WORDS = ("whom", "such that", "is none", "of its own", "likewise", "anew")
"""Words of an older voice."""
FOLDERS = sorted(
    {
        path.parent.relative_to(CHECKOUT)
        for root in (PACKAGE, CHECKOUT / "startd_cron", CHECKOUT / "poolbox")
        for path in root.rglob("*.py")
    }
)


def faults(source: str) -> Iterator[str]:
    """Places of a module that break a rule, with the words."""
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 1)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node) or ""
            if text.startswith(FIRST_WORDS):
                yield f"{line}: {text.splitlines()[0]}"
            yield from (f"{line}: {word}" for word in WORDS if word in text)
        names = []
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        elif isinstance(node, ast.FunctionDef):
            names = [node.name]
        yield from (f"{line}: {name}" for name in names if name.strip("_") in NAMES)


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_names_and_docstrings_say_what_a_thing_is(folder: Path) -> None:
    broken = {
        path.name: wrong
        for path in (CHECKOUT / folder).glob("*.py")
        if (wrong := list(faults(path.read_text(encoding="utf-8"))))
    }
    assert not broken
