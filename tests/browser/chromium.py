"""A page in Debian's headless Chromium, steered by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

from playwright.sync_api import Page, sync_playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Of Debian's packages of these names."""
DEADLINE_MILLISECONDS = 60_000


def program() -> Optional[str]:
    """Path of a Chromium; None if there is none."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


@contextmanager
def chromium(executable: str) -> Iterator[Chromium]:
    """A browser with one page, while the body runs."""
    with sync_playwright() as playwright:
        # Tests run as root in containers, on pages that they made themselves.
        options = ["--no-sandbox", "--force-color-profile=srgb"]
        browser = playwright.chromium.launch(executable_path=executable, args=options)
        # The page's policy does not bind the tests.
        yield Chromium(browser.new_context(timezone_id="UTC", locale="en-GB").new_page())
        browser.close()


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
