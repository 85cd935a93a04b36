from __future__ import annotations

from pathlib import Path

import pytest

from sharectl.config.load import parse
from sharectl.config.problems import SECTIONS, keys_of
from sharectl.config.text import reference

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_says_what_the_models_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run pytest --update-golden and look at the difference"
    )


def test_every_key_is_described() -> None:
    nameless = [
        key
        for section in SECTIONS.values()
        for key, field in keys_of(section).items()
        if not field.description
    ]
    assert nameless == []


def test_the_example_of_the_page_is_a_configuration() -> None:
    example = reference().split("```yaml\n")[1].split("```")[0]
    assert set(parse(example, "F").groups) == {"cms", "atlas"}
