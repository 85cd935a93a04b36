"""Every code has its sentence, which docs repeat and which names settings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharectl.cli.main import main
from sharectl.explain.codes import CODES, says

PAGE = Path(__file__).parents[3] / "docs" / "codes.md"
HEAD = """\
# Codes

Codes of reasons, as `sharectl explain codes` prints them. A code keeps its meaning.
"""


def test_every_code_has_a_sentence_and_names_settings_that_exist() -> None:
    """By the page of settings, which is made from the models."""
    assert "version" in says("plan", "teapot")
    settings = set()
    for part in (PAGE.parent / "configuration.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        section = part.partition("\n")[0]
        keys = re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
        settings |= {section, *(f"{section}.{key}" for key in keys)}
    sections = "|".join({setting.partition(".")[0] for setting in settings})
    named = re.compile(rf"(?<![\w.])(?:{sections})(?:\.[a-z]\w*)+")
    sentences = [row for codes in CODES.values() for row in codes.items()]
    for code, sentence in sentences:
        assert re.fullmatch(r"[a-z][a-z0-9_-]*", code), code
        assert re.fullmatch(r"\S(.*[^\s.])?", sentence), code
    names = {name for _, sentence in sentences for name in named.findall(sentence)}
    assert len(names) > 10, "nothing was looked at"
    assert names <= settings


def test_the_page_has_every_code(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["explain", "codes"]) == 0
    made = f"{HEAD}\n```\n{capsys.readouterr().out}```\n"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "run pytest --update-golden and look at it"
