"""JSON schemas of documents that programs read, and the page that describes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

Schema = dict[str, Any]
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "json.md"
BEGIN = "## Documents\n"
"""Heading of the page from which on it is made."""
SCHEMAS: dict[str, Schema] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((DOCS / "schemas").glob("*.json"))
}
"""Kind of a document -> its schema."""
_CHECKS = ("config", "snippets", "pool")
_MESSAGE_CHARACTERS = 200


@cache
def _validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[kind])


def problems(document: Schema) -> list[str]:
    """Keys and values that the schema of a document does not have, with their places."""
    kind = document["kind"]
    errors = map(_deepest, _validator(kind).iter_errors(document) if kind in SCHEMAS else ())
    return [f"{error.json_path}: {error.message[:_MESSAGE_CHARACTERS]}" for error in errors]


def _deepest(error: ValidationError) -> ValidationError:
    best: ValidationError = best_match([error])
    return best


# ---- the page


def page() -> str:
    """Text of docs/json.md from `BEGIN` on."""
    parts = [BEGIN, "\nEvery document has `schema_version` and `kind` besides.\n"]
    for kind, schema in SCHEMAS.items():
        verb = f"check {kind}" if kind in _CHECKS else kind.replace("_", " ")
        title = f"\n### Document `{kind}`\n\n`sharectl {verb} --json`: "
        parts += [title, _table(schema, ("schema_version", "kind"))]
    parts.append("\n## Records\n")
    records = {
        name: schema for document in SCHEMAS.values() for name, schema in document["$defs"].items()
    }
    for name, schema in sorted(records.items()):
        parts += [f"\n### {name}\n\n", _table(schema)]
    return "".join(parts)


def _table(schema: Schema, without: Sequence[str] = ()) -> str:
    rows = [
        f"| `{name}`{'' if name in schema['required'] else ' (optional)'} | {_words(key)} | "
        f"{_escaped(key.get('description', ''))} |\n"
        for name, key in schema["properties"].items()
        if name not in without
    ]
    head = "| key | value | meaning |\n|---|---|---|\n"
    return f"{_escaped(schema['description'])}\n\n{head}{''.join(rows)}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _words(schema: Schema) -> str:
    """Type of a value in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(map(_words, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_words(schema['items'])}"
    if kind == "object":
        return f"name -> {_words(schema['additionalProperties'])}"
    return kind if isinstance(kind, str) else " or ".join(kind)
