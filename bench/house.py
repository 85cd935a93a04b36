"""Size of the house: lines by room, modules, functions, tests and words, each beside its bound."""

from __future__ import annotations

import ast
import re
import sys
from itertools import chain
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "central"))

from sharectl.cli.main import GROUPS

TOP = Path(__file__).resolve().parents[1]
SERVICE, LABORATORY = TOP / "central/sharectl", TOP / "central/sharectl_lab"
KEY = re.compile(r"^\| `\w+` \|", re.MULTILINE)
"""Row of a key in docs/configuration.md."""
MADE = ("codes.md",)
"""Pages without a word that a person wrote: of `docs/schemas`, and of `sharectl explain codes`."""


def lines(paths: list[Path]) -> int:
    """Lines of files, blank ones and comments too."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def function_lines(path: Path) -> list[int]:
    """Lines of each function of a file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.walk(ast.parse(path.read_text()))
    return [(n.end_lineno or n.lineno) - n.lineno + 1 for n in tree if isinstance(n, functions)]


def main() -> int:
    """Print a row for each bound, then one for each room; exit code 1 if a bound is passed."""
    service, laboratory = (sorted(root.rglob("*.py")) for root in (SERVICE, LABORATORY))
    rooms = {
        path.parent: lines(sorted(path.parent.rglob("*.py")))
        for path in (*SERVICE.glob("*/__init__.py"), *LABORATORY.glob("*/__init__.py"))
    }
    sizes = list(chain.from_iterable(map(function_lines, [*service, *laboratory])))
    pages = sorted((TOP / "docs").rglob("*.md"))
    # These pages are made from the code, whole: tests hold them.
    texts = [TOP / "README.md", *(page for page in pages if page.name not in MADE)]
    total = lines(service)
    largest = max(number for room, number in rooms.items() if room.parent == SERVICE)
    bounds = (
        ("lines of the service", total, 28_000),
        ("modules of the service", len(service), 165),
        ("percent in its largest room", round(100 * largest / total), 14),
        ("lines of the laboratory", lines(laboratory), 8_000),
        ("lines of the longest file", max(lines([path]) for path in (*service, *laboratory)), 600),
        ("lines of the longest function", max(sizes), 80),
        ("lines of a median function", round(median(sizes)), 8),
        ("lines of tests", lines(list((TOP / "tests").rglob("*.py"))), 38_000),
        ("words of docs and README", sum(len(text.read_text().split()) for text in texts), 22_000),
        ("keys", len(KEY.findall((TOP / "docs/configuration.md").read_text())), 70),
        ("verbs of --help", sum(map(len, GROUPS.values())), 14),
    )
    for name, number, bound in bounds:
        print(f"{name:32} {number:7} (at most {bound}){'' if number <= bound else '  OVER'}")
    for room, number in sorted(rooms.items(), key=lambda pair: -pair[1]):
        print(f"  {room.relative_to(TOP / 'central')!s:30} {number:7}")
    return int(any(number > bound for _, number, bound in bounds))


if __name__ == "__main__":
    sys.exit(main())
