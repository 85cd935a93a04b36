"""docs/json.md is made of docs/schemas.

That documents fit their schemas is held by `documents` in tests/conftest.py, for all that any test
prints in its own process.
"""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sharectl.model import SCHEMA_VERSION
from tests import schemas


def test_the_page_has_the_schemas(request: pytest.FixtureRequest) -> None:
    text = schemas.PAGE.read_text(encoding="utf-8")
    made = text[: text.index(schemas.BEGIN)] + schemas.page()
    if request.config.getoption("--update-golden"):
        schemas.PAGE.write_text(made, encoding="utf-8")
    assert schemas.PAGE.read_text(encoding="utf-8") == made, "run pytest --update-golden"


def test_a_schema_is_whole() -> None:
    """It names its document, allows no further key, and its records are those of the others."""
    records: dict[str, Any] = {}
    for kind, schema in schemas.SCHEMAS.items():
        Draft202012Validator.check_schema(schema)
        head = {"schema_version": {"const": SCHEMA_VERSION}, "kind": {"const": kind}}
        assert {name: schema["properties"][name] for name in head} == head
        for name, record in [(kind, schema), *schema["$defs"].items()]:
            assert record["additionalProperties"] is False, f"{kind}: {name}"
            assert records.setdefault(name, record) == record, f"{kind}: {name}"


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
