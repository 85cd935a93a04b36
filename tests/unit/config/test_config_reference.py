"""docs/configuration.md: tables of the sections, with the docstrings of the fields."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Optional, get_origin

import pytest

from sharectl.config.fields import NOTATIONS, Key, keys_of, sections_of
from sharectl.config.groups import GroupConfig, SubgroupConfig
from sharectl.config.load import parse
from sharectl.config.model import ONE_OF, Config
from sharectl.config.text import flow, plain
from sharectl.files.yaml import ValuePath, place
from sharectl.settings import Setting

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
SECTIONS = sections_of(Config)
BEGIN = "## Top level\n"
LISTS = {"groups": "mapping of names", "publish": "list of mappings"}
"""Key → its values, where its type does not say it."""
UNITS = {"seconds": "s", "bytes": "bytes", "hs06": "HS06", "cores": "cores"}


def docstrings(record: type) -> dict[str, str]:
    """Field → its docstring, of a record and those that it is made of."""
    found: dict[str, str] = {}
    for one in reversed(record.__mro__[:-1]):
        body = ast.parse(inspect.getsource(one)).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:]):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def meanings(record: type) -> Iterator[tuple[str, str]]:
    """Key and its meaning, with those of inline records."""
    texts = docstrings(record)
    for name, field in record.__dataclass_fields__.items():  # type: ignore[attr-defined]
        setting: Optional[Setting] = field.metadata.get("setting")
        if setting is not None and setting.inline:
            yield from meanings(type(field.default))
        elif setting is not None:
            yield setting.key or name, texts.get(name, "")


def values(key: Key) -> str:
    """Values that a key takes, such as ``2..1024 cores, whole``."""
    one = key.setting
    if key.name in LISTS:
        words = LISTS[key.name]
    elif get_origin(key.hint) is tuple:
        words = "list of names"
    elif key.section is not None:
        words = "mapping"
    elif one.kind:
        words = NOTATIONS[one.kind].words
    elif one.choices:
        words = ", ".join(f"`{choice}`" for choice in one.choices)
    elif key.hint is Path:
        words = "path"
    else:
        low = f">{one.above:g}" if one.above is not None else f"{one.least or 0:.15g}"
        unit = UNITS.get(key.name.rpartition("_")[2], "")
        words = f"{low}..{one.most:.15g} {unit}".rstrip() + (", whole" if key.hint is int else "")
    return words


def default(section: type, key: Key) -> str:
    least, names = ONE_OF.get(section, (0, ()))
    if least and key.name in names and len(names) > 1:
        return f"one of {'three' if len(names) > 2 else 'two'}"
    if key.default is MISSING or (least and key.name in names):
        return "required"
    return f"`{flow(plain(key, key.default))}`"


def title(path: ValuePath) -> str:
    words = place(path).replace("groups.*", "groups.NAME", 1).replace("groups.*", "groups.PART")
    return words.replace("publish.*", "publish[…]") or "Top level"


def reference() -> str:
    """Text of the page from the first table on."""
    parts: list[str] = []
    for path, section in SECTIONS.items():
        about = " ".join((section.__doc__ or "").replace("``", "`").split())
        about += " Other keys as in `groups.NAME`." if section is SubgroupConfig else ""
        keys, rows = keys_of(section), []
        for name, meaning in meanings(section):
            if section is SubgroupConfig and name in keys_of(GroupConfig):
                continue
            if keys[name].section is keys[name].hint and not keys[name].optional:
                continue  # it has a table
            cells = (f"`{name}`", values(keys[name]), default(section, keys[name]), meaning)
            rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n")
        parts.append(f"## {title(path)}\n\n{about}\n\n| key | value | default | meaning |\n")
        parts += ["|---|---|---|---|\n", *rows, "\n"]
    return "".join(parts).rstrip("\n") + "\n"


def test_the_page_has_the_tables_of_the_sections(request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text(encoding="utf-8")
    made = page[: page.index(BEGIN)] + reference()
    if request.config.getoption("--update-golden"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "run pytest --update-golden, read the diff"


def test_every_key_has_a_meaning() -> None:
    texts = [row for section in SECTIONS.values() for row in meanings(section)]
    assert len(texts) > 80
    assert [key for key, meaning in texts if not meaning.endswith(".")] == []


def test_the_example_of_the_page_is_a_configuration() -> None:
    example = PAGE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    assert set(parse(example, "F").groups) == {"cms", "atlas"}
