"""docs/json.md and docs/schemas are made of the schemas.

That documents fit their schemas is held by `documents` in tests/conftest.py, for all that any test
prints in its own process.
"""

from __future__ import annotations

import json

import pytest

from sharectl.model import SCHEMA_VERSION
from tests import schemas


def test_docs_have_the_schemas(request: pytest.FixtureRequest) -> None:
    files = {
        schemas.FOLDER / f"{kind}.json": f"{json.dumps(schema, indent=1)}\n"
        for kind, schema in schemas.schemas().items()
    }
    text = schemas.PAGE.read_text(encoding="utf-8")
    files[schemas.PAGE] = text[: text.index(schemas.BEGIN)] + schemas.page()
    if request.config.getoption("--update-golden"):
        for path in schemas.FOLDER.glob("*.json"):
            path.unlink()
        for path, content in files.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
    assert {*schemas.FOLDER.glob("*.json")} == {*files} - {schemas.PAGE}
    differ = [path.name for path, made in files.items() if path.read_text(encoding="utf-8") != made]
    assert differ == [], "run pytest --update-golden, read the diff"


def test_a_document_with_another_key_or_type_is_noticed() -> None:
    head = {"schema_version": SCHEMA_VERSION, "kind": "errors"}
    right = {**head, "groups": [], "taken_at": 5}
    assert schemas.problems(right) == []
    for wrong, words in (
        ({**right, "more": 1}, "'more' was unexpected"),
        ({**head, "taken_at": 5}, "'groups' is a required property"),
        ({**right, "taken_at": "5"}, "$.taken_at: '5' is not of type 'integer'"),
    ):
        (problem,) = schemas.problems(wrong)
        assert words in problem
