"""Pictures of the docs: made on a simulated pool, written by ``--update-golden``, not compared."""

from __future__ import annotations

import struct
from collections.abc import Callable
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
    '<body style="margin:0"><pre style="display:inline-block;margin:0;padding:12px;font:14px/1.3 '
    "'DejaVu Sans Mono',monospace;background:#10151b;color:#e9eef3\">{code}</pre>"
)

Keep = Callable[[str, bytes], None]


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    """Checks a picture; ``--update-golden`` puts it into the docs, which have to have it."""

    def kept(name: str, picture: bytes) -> None:
        assert LEAST_BYTES < len(picture) < MOST_BYTES
        path = PICTURES / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(picture)
        content = path.read_bytes()
        assert len(content) < MOST_BYTES
        assert width_of(content) == width_of(picture), "run pytest --update-golden, and look at it"

    return kept


def width_of(picture: bytes) -> int:
    assert picture.startswith(b"\x89PNG")
    (width,) = struct.unpack(">I", picture[16:20])
    return int(width)


def test_the_report(browser: Chromium, tmp_path: Path, keep: Keep) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for record, seen in cycles(DAYS):
        ledger.record(record, seen)
    span = ledger.span()
    assert span is not None
    since, until = span[0], span[1] + 1
    page = tmp_path / "page.html"
    series = ledger.series(since, until, POINTS)
    page.write_text(page_of(series, Subject("t1", until)), encoding="utf-8")
    browser.look(width=800)
    browser.open(page)
    keep("report.png", browser.page.locator("#pool").screenshot())


def test_the_status(
    browser: Chromium, tmp_path: Path, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    terminal = Terminal()
    status_tables(status_of_a_pool(), None, terminal)
    console = Console(record=True, width=WIDTH, file=Terminal())
    console.print(Text.from_ansi(f"$ sharectl status\n{terminal.getvalue()}"))
    page = tmp_path / "status.html"
    html = console.export_html(inline_styles=True, code_format=TERMINAL)
    page.write_text(f'<!DOCTYPE html><meta charset="utf-8">{html}', encoding="utf-8")
    browser.look()
    browser.open(page)
    keep("status.png", browser.page.locator("pre").screenshot())
