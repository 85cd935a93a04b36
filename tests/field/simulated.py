"""`sharectl simulate` on a scenario of a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sharectl.cli.main import main
from sharectl_lab.scenarios import file
from sharectl_lab.scenarios.omissions import notes_of

POOL = """\
nodes: [{name: wn, count: 2, cores: 16}]
groups: {cms: {pledge_hs06: 320}}
days: 1
"""


class Simulated(NamedTuple):
    """Documents of a run of the strategy `nothing`, and what a person sees."""

    code: int
    document: dict[str, Any]
    screen: str
    page: str

    @property
    def notes(self) -> list[str]:
        return list(self.document["notes"])

    @property
    def strategy(self) -> dict[str, Any]:
        (strategy,) = self.document["strategies"]
        return dict(strategy)


Simulate = Callable[[str], Simulated]


def notes(text: str, folder: Path = Path()) -> list[str]:
    """Notes on a scenario, which is not run."""
    return notes_of(file.parse(text, "mine.yaml", folder))


@pytest.fixture
def simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Simulate:
    """Run of a scenario's text, whose files are in ``tmp_path``."""

    def run(text: str) -> Simulated:
        path, out = tmp_path / "mine.yaml", tmp_path / "out"
        path.write_text(text)
        words = ["simulate", str(path), "--strategies", "nothing", "--jobs", "1", "-o", str(out)]
        code = main(words)
        screen = capsys.readouterr().out
        document = json.loads((out / "outcome.json").read_text())
        return Simulated(code, document, screen, (out / "index.html").read_text())

    return run


def is_shown(simulated: Simulated, note: str) -> bool:
    """Tell if a note is on the screen, on the page and in JSON."""
    on_page = note.replace("'", "&#39;").replace('"', "&#34;")
    on_screen = " ".join(simulated.screen.split())
    return note in simulated.notes and note in on_screen and on_page in simulated.page
