"""Pictures of the docs: made on a simulated pool, written by ``--update-golden``, not compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from sharectl.ledger.ledger import Ledger
from sharectl.report.page import POINTS, Subject
from sharectl.report.status import status_tables
from sharectl.report.tables import WIDTH
from tests.browser.conftest import Chromium
from tests.made_series import page_of
from tests.simulated import cycles
from tests.unit.cli.test_status_screen import status_of_a_pool
from tests.verbs import Terminal

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
MOST_BYTES, LEAST_BYTES = 100_000, 10_000
DAYS = 3
TERMINAL = (
    '<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><pre style="display:inline-block;'
    "margin:0;padding:12px;font:14px/1.3 'DejaVu Sans Mono',monospace;background:#10151b;"
    'color:#e9eef3">{code}</pre>'
)


def report(folder: Path) -> str:
    ledger = Ledger(folder / "ledger.sqlite")
    for record, seen in cycles(DAYS):
        ledger.record(record, seen)
    span = ledger.span()
    assert span is not None
    since, until = span[0], span[1] + 1
    return page_of(ledger.series(since, until, POINTS), Subject("t1", until))


def status(_folder: Path) -> str:
    terminal = Terminal()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("COLUMNS", str(WIDTH))
        status_tables(status_of_a_pool(), None, terminal)
    console = Console(record=True, width=WIDTH, file=Terminal())
    console.print(Text.from_ansi(f"$ sharectl status\n{terminal.getvalue()}"))
    return console.export_html(inline_styles=True, code_format=TERMINAL)


MADE = {"report": (report, "#pool", 800), "status": (status, "pre", 1200)}
"""Name of a picture -> its page, the part of it, and the width of the window."""


@pytest.mark.parametrize("name", MADE)
def test_a_picture_can_be_made(
    browser: Chromium, tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    make, part, width = MADE[name]
    (tmp_path / "page.html").write_text(make(tmp_path), encoding="utf-8")
    browser.look(width=width)
    browser.open(tmp_path / "page.html")
    picture = browser.page.locator(part).screenshot()
    path = PICTURES / f"{name}.png"
    if request.config.getoption("--update-golden"):
        path.write_bytes(picture)
    for content in (picture, path.read_bytes()):
        assert LEAST_BYTES < len(content) < MOST_BYTES
