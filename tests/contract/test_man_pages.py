"""Man pages: every verb and key is in them, formatters take them, the same bytes each time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from poolbox.waiting import HANG_SECONDS
from sharectl.config.fields import keys_of, sections_of
from sharectl.config.model import Config
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


def made(folder: Path, **environment: str) -> Path:
    """Folder with the pages."""
    program = [sys.executable, str(CHECKOUT / "packaging" / "man.py"), str(folder)]
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT / "central")}
    subprocess.run(program, check=True, timeout=HANG_SECONDS, env={**own, **environment})
    return folder


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("man"), SOURCE_DATE_EPOCH="1700000000")


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
    name: str, formatter: tuple[str, ...], pages: Path, tmp_path: Path
) -> None:
    page = pages / name
    assert complaints(formatter, page) == ""
    broken = tmp_path / name
    broken.write_text(page.read_text() + ".EE\n.fi\n.RE 9\n\\f[NO]\\[no]\n.no-such 1\n")
    assert complaints(formatter, broken) != ""


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


def test_every_key_is_in_the_page_of_the_configuration(pages: Path) -> None:
    text = (pages / PAGES[1]).read_text()
    keys = {
        name
        for section in sections_of(Config).values()
        for name, key in keys_of(section).items()
        if key.section is not key.hint or key.optional
    }
    assert len(keys) > 50
    assert [name for name in sorted(keys) if f".TP\n\\fB{name}\\fR\n" not in text] == []


def test_the_same_sources_give_the_same_bytes(pages: Path, tmp_path: Path) -> None:
    other = {"TZ": "Asia/Tokyo", "COLUMNS": "40", "PYTHONHASHSEED": "7", "LC_ALL": "C"}
    again = made(tmp_path / "1", SOURCE_DATE_EPOCH="1700000000", **other)
    later = made(tmp_path / "2", SOURCE_DATE_EPOCH="1800000000")
    for name in PAGES:
        text = (pages / name).read_text()
        assert (again / name).read_text() == text
        assert (later / name).read_text() == text.replace("2023-11-14", "2027-01-15")
        assert "2023-11-14" in text
