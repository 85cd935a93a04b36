"""Size of the house: lines by room, modules, functions, tests and words, each beside its bound."""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path
from statistics import median

TOP = Path(__file__).resolve().parents[1]
PACKAGE = TOP / "central/sharectl"
ROOM_PERCENT = 20
"""Largest part of the package's lines in one room: the twin."""
DOC_WORDS = 33_000
"""Of docs/ and the README: 23,200 for loop and twin, the rest to adopt, watch and trust them.

Without docs/json.md, which is made from the code.
"""


def lines(paths: list[Path]) -> int:
    """Lines of files, blank ones and comments too."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def function_lines(path: Path) -> list[int]:
    """Lines of each function of a file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.walk(ast.parse(path.read_text()))
    return [(n.end_lineno or n.lineno) - n.lineno + 1 for n in tree if isinstance(n, functions)]


def main() -> None:
    """Print a row for each bound, then one for each room."""
    modules = sorted(PACKAGE.rglob("*.py"))
    rooms = {
        r: lines(sorted(r.rglob("*.py"))) for r in PACKAGE.iterdir() if (r / "__init__.py").exists()
    }
    sizes = list(chain.from_iterable(map(function_lines, modules)))
    pages = sorted((TOP / "docs").rglob("*.md"))
    texts = [TOP / "README.md", *(page for page in pages if page.name != "json.md")]
    total = lines(modules)
    for name, number, bound in (
        ("lines of central/sharectl", total, 43_000),
        ("modules", len(modules), 235),
        ("percent in the largest room", round(100 * max(rooms.values()) / total), ROOM_PERCENT),
        ("lines of the longest file", max(lines([module]) for module in modules), 600),
        ("lines of the longest function", max(sizes), 80),
        ("lines of a median function", round(median(sizes)), 8),
        ("lines of tests", lines(list((TOP / "tests").rglob("*.py"))), 48_600),
        (
            "words of docs and README",
            sum(len(re.findall(r"\S+", t.read_text())) for t in texts),
            DOC_WORDS,
        ),
    ):
        print(f"{name:32} {number:7} (at most {bound}){'' if number <= bound else '  OVER'}")
    for room, number in sorted(rooms.items(), key=lambda pair: -pair[1]):
        print(f"  {room.name:30} {number:7}  {100 * number / total:.0f} %")


if __name__ == "__main__":
    main()
