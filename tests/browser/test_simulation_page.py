"""The page of `sharectl simulate` in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl_lab.verbs.simulate import INDEX
from tests.browser import page_looks as looks
from tests.browser.conftest import Chromium
from tests.browser.test_report_page import LOOKS

STRATEGIES = "nothing,defrag,static,live"
LABELS = "[...document.querySelectorAll('svg.figure text')].map(text => text.textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    words = f"small-site --strategies {STRATEGIES} --days 1 --bound".split()
    assert main(["simulate", *words, "-o", str(folder)]) == 0
    return folder / INDEX


@pytest.mark.parametrize("look", LOOKS)
def test_what_is_drawn(browser: Chromium, page: Path, look: str) -> None:
    browser.look(**LOOKS[look])  # type: ignore[arg-type]  # a table of keywords
    browser.open(page)
    assert looks.faults(browser) == []
    labels = browser.evaluate(LABELS)
    assert "bound" in labels, "no strategy is cut"
    assert not [label for label in labels if label.endswith("…")]
