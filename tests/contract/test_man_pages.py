"""Man pages: every verb and key is in them, and formatters take them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.errors import EXIT_CODES
from tests.verbs import all_verbs

CHECKOUT = Path(__file__).parents[2]
PAGES = ("sharectl.1", "sharectl.yaml.5")
FORMATTERS = (
    ("mandoc", "-T", "lint", "-W", "warning"),
    ("groff", "-man", "-ww", "-z", "-Kutf8"),
    ("man", "--warnings", "--local-file"),
)
"""Programs that print nothing to standard error, or with lint at all, about a sound page."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the pages."""
    folder = tmp_path_factory.mktemp("man")
    program = [sys.executable, str(CHECKOUT / "packaging" / "man.py"), str(folder)]
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT / "central")}
    environment = {**own, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(program, check=True, timeout=HANG_SECONDS, env=environment)
    return folder


def complaints(formatter: tuple[str, ...], page: Path) -> str:
    if shutil.which(formatter[0]) is None:
        required = os.environ.get("POOL_REQUIRED") == "1"
        (pytest.fail if required else pytest.skip)(f"install {formatter[0]}")
    done = subprocess.run(
        [*formatter, str(page)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )
    return done.stderr + (done.stdout if "lint" in formatter else "")


@pytest.mark.parametrize("formatter", FORMATTERS, ids=lambda words: words[0])
@pytest.mark.parametrize("name", PAGES)
def test_formatters_take_a_page_without_a_warning(
    name: str, formatter: tuple[str, ...], pages: Path
) -> None:
    assert complaints(formatter, pages / name) == ""


def test_every_verb_is_in_the_page_with_its_options(pages: Path) -> None:
    text = (pages / PAGES[0]).read_text().replace("\\", "")
    parts = {part.partition("fR\n")[0]: part for part in text.split("\n.SS fBsharectl ")[1:]}
    verbs = {str(verb): verb for verb in all_verbs()}
    assert len(verbs) > 25
    missing = [
        f"{name} {word}"
        for name, verb in verbs.items()
        for action in verb.actions
        for word in action.option_strings
        if f"fB{word}fR" not in parts[name]
    ]
    assert missing == []
    assert [code for code in EXIT_CODES if f"\n.B {code}\n" not in text] == []
    # An epilog, with its lines.
    assert "\n  sharectl cadence --run-time constant:255 --interval 60,300\n" in parts["cadence"]
