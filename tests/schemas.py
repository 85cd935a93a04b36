"""JSON schemas of the documents in `sharectl.cli.documents`, and the page that describes them."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from sharectl.cli.documents import DOCUMENTS
from sharectl.model import SCHEMA_VERSION
from sharectl.report.documents import Fields

Schema = dict[str, Any]
DOCS = Path(__file__).parents[1] / "docs"
PAGE, FOLDER = DOCS / "json.md", DOCS / "schemas"
BEGIN = "## Documents\n"
"""Heading of the page from which on it is made."""

_CHECKS = ("config", "snippets", "pool")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MESSAGE_CHARACTERS = 200
_NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Path: "string",
}


_FAMILIES = {
    "REASONS": "plan",
    "NODE_REASONS": "node",
    "GROUP_REASONS": "group",
    "LIMITS": "limit",
    "OBSTACLES": "obstacle",
    "TARGET_KINDS": "target-kind",
}
_OF_SOURCE = {
    **{
        rf"One of `(sharectl[\w.]*\.)?{table}`": f"Code of the family `{family}`"
        for table, family in _FAMILIES.items()
    },
    r"`(sharectl\.model\.)?OTHER`": "`other`",
    r"`sharectl[\w.]*\.(\w+)`": r"`\1`",
    r"\bNone\b": "null",
}
"""Words of docstrings, as regular expressions -> words for readers of JSON."""


# ---- keys of classes


class Key(NamedTuple):
    """A key: its type and its docstring."""

    hint: Any
    text: str
    is_optional: bool


@cache
def keys_of(record: type) -> dict[str, Key]:
    """Keys of a dataclass, a named tuple or a typed dictionary, those of its bases first.

    They are read from the source: docstrings of fields are nowhere else.
    """
    module, optional = (
        vars(sys.modules[record.__module__]),
        getattr(record, "__optional_keys__", ()),
    )
    body = ast.parse(inspect.getsource(record)).body[0] if _has_source(record) else None
    if not isinstance(body, ast.ClassDef):
        hints = {name: _value(hint, module) for name, hint in record.__annotations__.items()}
        return {name: Key(hint, "", name in optional) for name, hint in hints.items()}
    keys: dict[str, Key] = {}
    for base in (_value(ast.unparse(base), module) for base in body.bases):
        if hasattr(base, "__annotations__") and base.__module__.startswith("sharectl"):
            keys.update(keys_of(base))
    for item, after in zip(body.body, [*body.body[1:], None]):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            text = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = _plain(str(after.value.value))
            hint = _value(ast.unparse(item.annotation), module)
            keys[item.target.id] = Key(hint, text, item.target.id in optional)
    return keys


def _plain(text: str) -> str:
    """First paragraph of a docstring, for a reader who does not know the source."""
    words = " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("``", "`")
    for pattern, replacement in _OF_SOURCE.items():
        words = re.sub(pattern, replacement, words)
    return words


def _has_source(record: type) -> bool:
    """Tell if it is a class statement; a typed dictionary whose keys are no names is a call."""
    try:
        return bool(inspect.getsource(record))
    except (OSError, TypeError):
        return False


def _value(hint: Any, module: Mapping[str, Any]) -> Any:
    source = getattr(hint, "__forward_arg__", hint)
    return eval(source, dict(module)) if isinstance(source, str) else source  # noqa: S307 - ours


# ---- schemas


@cache
def schemas() -> dict[str, Schema]:
    """Kind of a document -> its schema."""
    return {kind: _Maker().document(kind, keys) for kind, keys in DOCUMENTS.items()}


class _Maker:
    """Makes the schema of one document; records in it are definitions."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self.fields: dict[str, Fields] = {}

    def document(self, kind: str, keys: Union[type, Fields]) -> Schema:
        """Return the schema of a document."""
        fields = keys if isinstance(keys, Fields) else Fields((keys,))
        content = self._object(fields)
        head = {"schema_version": {"const": SCHEMA_VERSION}, "kind": {"const": kind}}
        properties = {**head, **content["properties"]}
        required = [*head, *content["required"]]
        schema = {"$schema": _DIALECT, "title": kind, **content}
        return {**schema, "properties": properties, "required": required, "$defs": self.definitions}

    def _object(self, fields: Fields) -> Schema:
        keys = {
            name: key
            for record in fields.records
            for name, key in keys_of(record).items()
            if name not in fields.without
        }
        properties: dict[str, Schema] = {}
        for name, key in keys.items():
            schema = self.of(key.hint)
            if fields.nullable:
                schema = _any_of([schema, {"type": "null"}])
            properties[name] = {**schema, **({"description": key.text} if key.text else {})}
        return {
            "type": "object",
            "description": _plain(fields.records[0].__doc__ or ""),
            "properties": properties,
            "required": [name for name, key in keys.items() if not key.is_optional],
            "additionalProperties": False,
        }

    def of(self, hint: Any) -> Schema:
        """Return the schema of a type."""
        schema: Schema
        metadata = getattr(hint, "__metadata__", ())
        if metadata and isinstance(metadata[0], Fields):
            schema = self._defined(metadata[0])
        elif hint is Any:
            schema = {}
        elif hint in _NAMES:
            schema = {"type": _NAMES[hint]}
        elif get_origin(hint) is not None:
            schema = self._made_of(get_origin(hint), get_args(hint))
        elif issubclass(hint, Enum):
            schema = {"enum": [member.value for member in hint]}
        else:
            schema = self._defined(Fields((hint,)))
        return schema

    def _made_of(self, origin: Any, parts: Sequence[Any]) -> Schema:
        """Return the schema of a union, a mapping or a list."""
        if origin is Union:
            return _any_of([self.of(part) for part in parts])
        if issubclass(origin, Mapping):
            values = self.of(parts[1])
            return {"type": "object", "additionalProperties": values}
        if origin is tuple and parts[-1] is not ...:
            raise TypeError(f"a row of {parts}: name its parts")
        return {"type": "array", "items": self.of(parts[0])}

    def _defined(self, fields: Fields) -> Schema:
        name = fields.name or fields.records[0].__name__
        if self.fields.setdefault(name, fields) != fields:
            raise TypeError(f"{name}: two records have this name")
        if name not in self.definitions:
            self.definitions[name] = {}  # its place is before those that it is made of
            self.definitions[name] = self._object(fields)
        return {"$ref": f"#/$defs/{name}"}


def _any_of(schemas: Sequence[Schema]) -> Schema:
    names = [schema["type"] for schema in schemas if list(schema) == ["type"]]
    return {"type": names} if len(names) == len(schemas) else {"anyOf": [*schemas]}


# ---- documents


@cache
def _validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(_Maker().document(kind, DOCUMENTS[kind]))


def problems(document: Schema) -> list[str]:
    """Keys and values that the schema of a document does not have, with their places."""
    kind = document["kind"]
    errors = map(_deepest, _validator(kind).iter_errors(document) if kind in DOCUMENTS else ())
    return [f"{error.json_path}: {error.message[:_MESSAGE_CHARACTERS]}" for error in errors]


def _deepest(error: ValidationError) -> ValidationError:
    best: ValidationError = best_match([error])
    return best


# ---- the page


def page() -> str:
    """Text of docs/json.md from `BEGIN` on."""
    made = schemas()
    parts = [BEGIN, "\nEvery document has `schema_version` and `kind` besides.\n"]
    for kind, schema in made.items():
        verb = f"check {kind}" if kind in _CHECKS else kind.replace("_", " ")
        title = f"\n### Document `{kind}`\n\n`sharectl {verb} --json`: "
        parts += [title, _table(schema, ("schema_version", "kind"))]
    parts.append("\n## Records\n")
    records = {
        name: schema for document in made.values() for name, schema in document["$defs"].items()
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
