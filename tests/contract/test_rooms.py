"""The rooms of CONTRIBUTING.md, against the imports of the package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGES = [CHECKOUT / "central" / name for name in ("sharectl", "sharectl_lab")]
PLACES = {path.parent.name: path.parent for root in PACKAGES for path in root.glob("*/__init__.py")}
"""Room -> its folder."""
ROW = re.compile(r"^\| `(\w+)/` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
ROWS = {
    row[0]: row[1:]
    for row in ROW.findall((CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
}
MAY_IMPORT = {room: set(re.findall(r"`(\w+)`", row[3])) for room, row in ROWS.items()}
"""Rooms that a room may import; all may import the modules of no room, such as errors and model."""
LIBRARIES = {
    "htcondor2": {"condor"},
    "classad2": {"condor"},
    "sqlite3": {"ledger"},
    "requests": {"pledges"},
}
"""Rooms that may import a library."""


def imports(source: str) -> set[str]:
    """Modules that a source text imports anywhere, with the names that it takes from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{name.name}" for name in node.names)
    return found


def forbidden(room: str, source: str) -> list[str]:
    """Imports of a module of ``room`` that the table does not allow."""
    wrong = []
    for name in sorted(imports(source)):
        parts = name.split(".")
        if parts[0] in ("sharectl", "sharectl_lab") and len(parts) > 1 and parts[1] in MAY_IMPORT:
            if parts[1] != room and parts[1] not in MAY_IMPORT[room]:
                wrong.append(name)
        elif room not in LIBRARIES.get(parts[0], {room}):
            wrong.append(name)
    return wrong


def test_every_folder_is_a_room_of_the_table() -> None:
    assert set(ROWS) == set(PLACES)


def test_the_service_imports_nothing_of_the_laboratory() -> None:
    service, laboratory = (
        {room for room, place in PLACES.items() if place.parent == root} for root in PACKAGES
    )
    assert len(laboratory) > 1
    assert not {room for room in service if MAY_IMPORT[room] & laboratory}


@pytest.mark.parametrize("room", sorted(ROWS))
def test_a_room_imports_what_its_row_allows(room: str) -> None:
    sources = list(PLACES[room].rglob("*.py"))
    assert sources
    wrong = {
        path.name: names
        for path in sources
        if (names := forbidden(room, path.read_text(encoding="utf-8")))
    }
    assert not wrong, "correct the import, or the table in CONTRIBUTING.md"


def test_no_circle_is_allowed() -> None:
    left = {room: set(others) for room, others in MAY_IMPORT.items()}
    while ready := {room for room, others in left.items() if not others}:
        left = {room: others - ready for room, others in left.items() if room not in ready}
    assert not left


def modules_after(names: str) -> set[str]:
    """Modules that Python has loaded once it has imported those."""
    code = f"import sys, {names}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_look_at_the_pool_loads_no_part_that_plans_or_publishes() -> None:
    """Each would take as long as a query (bench/snapshot.py)."""
    loaded = modules_after("sharectl.cli.pool, sharectl.config.load, sharectl.snapshot.pool")
    assert {"sharectl.snapshot.pool", "sharectl.plan.nodes"} <= loaded
    costly = "plan.plan plan.records ledger.series publish.text publish.collector report.tables"
    assert loaded.isdisjoint(f"sharectl.{name}" for name in costly.split())


HEAVY = """asyncio classad2 difflib htcondor2 jinja2 multiprocessing prometheus_client
pydantic requests ssl"""


@pytest.mark.parametrize("verb", ["main", "cycle", "status", "plan"])
def test_a_start_loads_no_library_that_is_needed_later(verb: str) -> None:
    """Each would make the start of every verb longer (bench/start_up.py)."""
    loaded = modules_after(f"sharectl.cli.{verb}")
    assert f"sharectl.cli.{verb}" in loaded
    assert loaded.isdisjoint(HEAVY.split())
