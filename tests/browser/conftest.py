"""A browser for tests of pages: Debian's chromium-headless-shell, from `.ci/packages`.

Without one the tests are skipped, and fail where nothing may be left out (POOL_REQUIRED=1, or CI).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium, chromium, program


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """A page of a headless Chromium."""
    executable = program()
    if executable is None:
        reason = "no Chromium here: apt-get install chromium-headless-shell"
        required = os.environ.get("POOL_REQUIRED") == "1" or os.environ.get("CI")
        (pytest.fail if required else pytest.skip)(reason)
    with chromium(executable) as page:
        yield page
