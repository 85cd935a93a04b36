"""A page in Debian's chromium-headless-shell, from `.ci/tools`, steered by Playwright.

Without one the tests are skipped, and fail where nothing may be left out (POOL_REQUIRED=1, or CI).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Of Debian's packages of these names."""
DEADLINE_MILLISECONDS = 60_000


class Chromium:
    """A page of the browser, with URLs that it asks for and lines that it writes to the console."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = page
        page.set_default_timeout(DEADLINE_MILLISECONDS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda line: self.complaints.append(line.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path: Path) -> None:
        """Load a file, and wait until it is drawn."""
        self.requests.clear()
        self.complaints.clear()
        self.page.goto(path.as_uri(), wait_until="load")
        self.requests.remove(path.as_uri())
        self.evaluate(
            "document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => 1)"
        )

    def look(self, *, width: int = 1200, dark: bool = False, paper: bool = False) -> None:
        """Choose viewport, colour scheme and medium."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(
            media="print" if paper else "screen", color_scheme="dark" if dark else "light"
        )

    def evaluate(self, script: str) -> Any:
        """Value of an expression of JavaScript."""
        return self.page.evaluate(script)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """A browser with one page."""
    executable = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    if executable is None:
        reason = "no Chromium here: apt-get install chromium-headless-shell"
        required = os.environ.get("POOL_REQUIRED") == "1" or os.environ.get("CI")
        (pytest.fail if required else pytest.skip)(reason)
    with sync_playwright() as playwright:
        # Tests run as root in containers, on pages that they made themselves.
        options = ["--no-sandbox", "--force-color-profile=srgb"]
        chromium = playwright.chromium.launch(executable_path=executable, args=options)
        # The page's policy does not bind the tests.
        yield Chromium(chromium.new_context(timezone_id="UTC", locale="en-GB").new_page())
        chromium.close()
