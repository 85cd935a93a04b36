"""Schemas of the JSON that programs read, and the reference part of docs/json.md.

They are made of `json_documents.yaml` and of the records that it names, by `make docs`, the
packages and the tests; git has neither. mkdocs calls `on_files` and `on_page_markdown`.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from sharectl.model import SCHEMA_VERSION

Schema = dict[str, Any]
SOURCE = Path(__file__).with_suffix(".yaml")
PAGE = "json.md"
_SIMPLE: dict[Any, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}
_LISTS, _NAMED = (tuple, list, Sequence), (dict, Mapping)


@cache
def schemas() -> Mapping[str, Schema]:
    """Kind of a document -> its JSON Schema, which allows no further key."""
    source = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    made = {
        kind: _Document(source["records"], kind, rows) for kind, rows in source["documents"].items()
    }
    return {kind: document.schema for kind, document in made.items()}


class _Document:
    """Schema of one document, with the records that it comes to."""

    def __init__(self, sources: Mapping[str, Any], kind: str, rows: Mapping[str, str]) -> None:
        self.sources = sources
        self.records: dict[str, Schema] = {}
        head = {"schema_version": {"const": SCHEMA_VERSION}, "kind": {"const": kind}}
        record = self._record({**rows})
        self.schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": kind,
            **record,
            "properties": {**head, **record["properties"]},
            "required": [*head, *record["required"]],
            "$defs": self.records,
        }

    def _record(self, rows: dict[str, Any]) -> Schema:
        """Record of rows ``key: type; meaning``; ``<`` names a class whose fields come first."""
        base = rows.pop("<", None)
        record = self._of_class(_class(base)) if base else _object("", {}, [])
        meaning = rows.pop("", record.get("description", ""))
        properties = dict(record["properties"])
        for name, text in rows.items():
            words, _, description = text.partition("; ")
            properties[name.rstrip("?")] = _described(self._of_words(words), description)
        required = [*record["required"], *(name for name in rows if not name.endswith("?"))]
        return _object(meaning, properties, list(dict.fromkeys(required)))

    def _of_class(self, record: type) -> Schema:
        hints = get_type_hints(record)
        names = [field.name for field in fields(record)] if is_dataclass(record) else list(hints)
        meanings = _meanings(record)
        properties = {
            name: _described(self._of_hint(hints[name]), meanings.get(name, "")) for name in names
        }
        return _object(inspect.getdoc(record) or "", properties, names)

    def _of_words(self, words: str) -> Schema:
        """Type of words such as ``list Target or null``."""
        if words.endswith(" or null"):
            return _or_null(self._of_words(words[: -len(" or null")]))
        first, _, inner = words.partition(" ")
        if first == "list":
            return {"type": "array", "items": self._of_words(inner)}
        if first == "map":
            return {"type": "object", "additionalProperties": self._of_words(inner)}
        if first == "any":
            return {}
        return {"type": first} if first in _SIMPLE.values() else self._named(first)

    def _of_hint(self, hint: Any) -> Schema:
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Union:
            return _or_null(self._of_hint(inner[0]))
        if origin in _LISTS:
            return {"type": "array", "items": self._of_hint(inner[0])}
        if origin in _NAMED:
            return {"type": "object", "additionalProperties": self._of_hint(inner[1])}
        if hint in _SIMPLE:
            return {"type": _SIMPLE[hint]}
        return self._named(hint.__name__, hint)

    def _named(self, name: str, record: Any = None) -> Schema:
        if name not in self.records:
            self.records[name] = {}  # a record may have records of its own kind
            rows = self.sources.get(name, {"<": record})
            self.records[name] = self._record({"<": rows} if isinstance(rows, str) else {**rows})
        return {"$ref": f"#/$defs/{name}"}


def _class(source: Any) -> Any:
    """Class, by itself or by its place in sharectl."""
    if not isinstance(source, str):
        return source
    module, _, name = source.rpartition(".")
    return getattr(import_module(module), name)


def _meanings(record: type) -> dict[str, str]:
    """Field -> its docstring."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(str(text.value.value))
        .replace("\n", " ")
        .replace("None", "null")
        for field, text in zip(body, body[1:])
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _object(meaning: str, properties: Schema, required: list[str]) -> Schema:
    record = {"type": "object", "properties": properties, "required": required}
    first = meaning.partition("\n\n")[0].replace("\n", " ").replace("``", "`")
    return _described({**record, "additionalProperties": False}, first)


def _described(schema: Schema, meaning: str) -> Schema:
    return {**schema, "description": meaning.replace("``", "`")} if meaning else schema


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


# ---- the page


def reference() -> str:
    """Tables of all documents, then of all records."""
    parts = ["\n## Documents\n\nEvery document has `schema_version` and `kind` besides.\n"]
    records: dict[str, Schema] = {}
    for kind, schema in schemas().items():
        verb = "check pool" if kind == "pool" else kind.replace("_", " ")
        parts += [
            f"\n### Document `{kind}`\n\n`sharectl {verb} --json`, [schema](schemas/{kind}.json): "
        ]
        parts.append(_table(schema))
        records.update(schema["$defs"])
    parts.append("\n## Records\n")
    for name, schema in sorted(records.items()):
        parts += [f"\n### {name}\n\n", _table(schema)]
    return "".join(parts)


def _table(schema: Schema) -> str:
    rows = [
        f"| `{name}`{'' if name in schema['required'] else ' (optional)'} | {_words(key)} | "
        f"{_escaped(key.get('description', ''))} |\n"
        for name, key in schema["properties"].items()
        if "const" not in key
    ]
    head = "| key | value | meaning |\n|---|---|---|\n"
    return f"{_escaped(schema.get('description', ''))}\n\n{head}{''.join(rows)}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _words(schema: Schema) -> str:
    """Type of a value in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return f"{_words(schema['anyOf'][0])} or null"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_words(schema['items'])}"
    if kind == "object":
        return f"name -> {_words(schema['additionalProperties'])}"
    return str(kind)


# ---- mkdocs


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a file for each schema to the site."""
    for kind, schema in schemas().items():
        content = f"{json.dumps(schema, indent=1)}\n"
        files.append(File.generated(config, f"schemas/{kind}.json", content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Add the reference to the page of JSON."""
    del config, files
    return markdown + reference() if page.file.src_uri == PAGE else markdown
