"""Documents of commands, held against the schemas that are made for readers."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from json_documents import schemas

_MESSAGE_CHARACTERS = 200


@cache
def _validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[kind])


def problems(document: dict[str, Any]) -> list[str]:
    """Keys and values that the schema of a document does not have, with their places."""
    kind = document["kind"]
    errors = map(_deepest, _validator(kind).iter_errors(document) if kind in schemas() else ())
    return [f"{error.json_path}: {error.message[:_MESSAGE_CHARACTERS]}" for error in errors]


def _deepest(error: ValidationError) -> ValidationError:
    best: ValidationError = best_match([error])
    return best
