"""Schemas of the documents that programs read.

That documents fit their schemas is held by `documents` in tests/conftest.py, for all that any test
prints in its own process.
"""

from __future__ import annotations

import re
from typing import Any

from jsonschema import Draft202012Validator

from json_documents import reference, schemas
from sharectl.model import SCHEMA_VERSION

PROMISED = ("cycle", "errors", "explain_job", "nodes", "plan", "pool", "snapshot", "status")


def test_schemas_are_whole_and_their_page_has_every_key() -> None:
    """They allow no further key, and records of one name are one record."""
    assert tuple(schemas()) == PROMISED
    page, records = reference(), dict[str, Any]()
    for kind, schema in schemas().items():
        Draft202012Validator.check_schema(schema)
        head = {"schema_version": {"const": SCHEMA_VERSION}, "kind": {"const": kind}}
        assert {name: schema["properties"][name] for name in head} == head
        for name, record in [(kind, schema), *schema["$defs"].items()]:
            assert record["additionalProperties"] is False, f"{kind}: {name}"
            assert records.setdefault(name, record) == record, f"{kind}: {name}"
            assert all(f"| `{key}`" in page for key in record["properties"].keys() - head.keys())
    links = set(re.findall(r"\(#(\w+)\)", page))
    assert links == {heading.lower() for heading in re.findall(r"(?m)^### (\w+)$", page)}
