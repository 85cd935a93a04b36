"""Messages about what pydantic refuses in other YAML files, in the words of `messages`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from sharectl.config import messages
from sharectl.config.fields import Key
from sharectl.files.yaml import Fault, Tree, ValuePath
from sharectl.settings import Setting
from sharectl.words import shown

Sections = Mapping[ValuePath, type[BaseModel]]
"""Path of a mapping in a file (``*`` for any name or number) → its model."""

_KEY = "[key]"
"""What pydantic adds to the place of an error in a key."""


def wrong(message: str, *at: Union[str, int]) -> PydanticCustomError:
    """Error of a validator; ``at`` is the path of the fault within the value."""
    return PydanticCustomError("sharectl", "{message}", {"message": message, "at": at})


class Section(BaseModel):
    """A mapping of a file: no unknown keys, no conversions between types, no NaN."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


def fault_of(error: ErrorDetails, tree: Tree, sections: Sections, within: ValuePath = ()) -> Fault:
    """Fault that an error of ``ValidationError.errors()`` means, at its place in ``tree``.

    Parameters
    ----------
    sections
        Sections of the file.
    within
        Path in the file of what was validated.
    """
    path: ValuePath = within + tuple(part for part in error["loc"] if part != _KEY)
    path += tuple(error.get("ctx", {}).get("at", ()))
    value, kind = error["input"], error["type"]
    about_key = kind == "extra_forbidden" or _KEY in error["loc"] or isinstance(value, (dict, list))
    text = shown(tree.texts.get(path, messages.kind_of(value)))
    return _fault(path, _message(error, path, text, sections), tree, of_key=about_key)


def fault_at(path: ValuePath, message: str, tree: Tree) -> Fault:
    """Fault of the value at ``path``, or of the nearest one around it that is there."""
    return _fault(path, message, tree, of_key=False)


def _fault(path: ValuePath, message: str, tree: Tree, *, of_key: bool) -> Fault:
    places = (tree.keys, tree.values) if of_key else (tree.values, tree.keys)
    lengths = range(len(path), -1, -1)
    indices = (known[path[:end]] for end in lengths for known in places if path[:end] in known)
    return Fault(next(indices, 0), path, message)


def _message(  # noqa: PLR0911 - a message for each kind
    error: ErrorDetails, path: ValuePath, text: str, sections: Sections
) -> str:
    kind, value = error["type"], error["input"]
    keys = _keys(_section_at(path[:-1], sections)) if path else {}
    key = keys.get(str(path[-1])) if path else None
    if kind == "sharectl":
        return error["msg"]
    if kind == "extra_forbidden":
        elsewhere = {at: _keys(section) for at, section in sections.items()}
        return messages.unknown_key(str(path[-1]), keys, elsewhere)
    if kind == "missing":
        return messages.missing(str(path[-1]))
    if kind in ("string_type", "path_type"):
        return messages.not_text(value, text)
    if kind in ("model_type", "dict_type", "mapping_type"):
        inner = _keys(_section_at(path, sections))
        return messages.not_a_mapping(path, value, text, inner)
    if key is not None and kind == "literal_error":
        return messages.not_a_choice(key.setting.choices, value, text)
    if key is not None and kind in ("float_type", "int_type", "int_from_float"):
        return messages.not_a_number(key, value, text)
    if key is not None and key.setting.most is not None:
        return messages.out_of_range(key, text)
    return f"{error['msg']}; see docs/consumption.md"


def _section_at(path: ValuePath, sections: Sections) -> Union[type[BaseModel], None]:
    for pattern, section in sections.items():
        if len(pattern) == len(path) and all(a in ("*", b) for a, b in zip(pattern, path)):
            return section
    return None


def _keys(section: Union[type[BaseModel], None]) -> dict[str, Key]:
    fields = section.model_fields if section is not None else {}
    return {info.alias or name: _key(info.alias or name, info) for name, info in fields.items()}


def _key(name: str, info: FieldInfo) -> Key:
    kinds = (info.annotation, *get_args(info.annotation))
    bounds: dict[str, Any] = {}
    for ours, theirs in (("least", "ge"), ("above", "gt"), ("most", "le")):
        limits = [getattr(one, theirs) for one in info.metadata if hasattr(one, theirs)]
        bounds[ours] = limits[0] if limits else None
    choices = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
    hint = int if int in kinds else float
    return Key(name, hint, type(None) in kinds, info.default, Setting(choices=choices, **bounds))
