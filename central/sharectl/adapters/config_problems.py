"""What pydantic finds, in words for an operator: what is wrong with a value and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Callable, NamedTuple, Optional, Union

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sharectl.adapters.config_control import NodesConfig
from sharectl.adapters.config_fields import (
    SECTIONS,
    Sections,
    admits,
    choices_of,
    field_at,
    is_whole,
    keys_of,
    range_of,
    section_at,
)
from sharectl.adapters.config_groups import GroupConfig, SubgroupConfig
from sharectl.adapters.config_publish import PublisherConfig
from sharectl.adapters.quantities import UNIT_NAMES, UNITS, number_in, plain, unit_of
from sharectl.adapters.wording import shown
from sharectl.adapters.yaml_syntax import Fault, Path, place
from sharectl.adapters.yaml_tree import Tree

_KEY = "[key]"
"""What pydantic adds to the place of an error in a key."""

_GROUP_EXAMPLE = "cms: {pledge_hs06: 87100}"


class _Wrong(NamedTuple):
    """One error of pydantic."""

    path: Path
    kind: str
    value: Any
    text: str
    """The value as it is written, for a message."""
    message: str
    """Pydantic's own."""
    sections: Sections

    @property
    def field(self) -> Optional[FieldInfo]:
        return field_at(self.path, self.sections)

    @property
    def unit(self) -> Optional[str]:
        return unit_of(str(self.path[-1])) if self.path else None


def fault_of(error: ErrorDetails, tree: Tree, sections: Sections = SECTIONS, within: Path = ()) -> Fault:
    """The fault that an error of ``ValidationError.errors()`` means, at its place in ``tree``.

    Parameters
    ----------
    sections
        What may be written in the file.
    within
        Path in the file of what was validated.
    """
    path: Path = within + tuple(part for part in error["loc"] if part != _KEY)
    path += tuple(error.get("ctx", {}).get("at", ()))
    value = error["input"]
    wrong = _Wrong(
        path, error["type"], value, shown(tree.texts.get(path, _kind_of(value))), error["msg"], sections
    )
    about_key = wrong.kind == "extra_forbidden" or _KEY in error["loc"] or isinstance(value, (dict, list))
    places = (tree.keys, tree.values) if about_key else (tree.values, tree.keys)
    describe = _DESCRIPTIONS.get(wrong.kind, _other)
    return Fault(_nearest(path, *places), path, describe(wrong))


def fault_at(path: Path, message: str, tree: Tree) -> Fault:
    """The fault ``message`` of the value at ``path``, or of the nearest one around it that is written."""
    return Fault(_nearest(path, tree.values, tree.keys), path, message)


def _nearest(path: Path, *places: Mapping[Path, int]) -> int:
    for length in range(len(path), -1, -1):
        for known in places:
            if path[:length] in known:
                return known[path[:length]]
    return 0


def _kind_of(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return kinds.get(type(value), str(value))


def _unknown(wrong: _Wrong) -> str:
    section = section_at(wrong.path[:-1], wrong.sections)
    fields = keys_of(section) if section else {}
    key = str(wrong.path[-1])
    advice = _same_quantity(key, wrong, fields) or _elsewhere(key, wrong.sections) or _near(key, fields)
    return f"unknown key; {advice or 'write one of ' + ', '.join(fields)}"


def _same_quantity(key: str, wrong: _Wrong, fields: Mapping[str, FieldInfo]) -> Optional[str]:
    """Advice for a key that differs from a known one in its unit only, such as ``validity_minutes``."""
    lower = key.lower()
    for name in fields:
        unit = unit_of(name)
        if unit is None:
            continue
        stem = name[: -len(unit) - 1]
        written = lower[len(stem) + 1 :] if lower.startswith(f"{stem}_") else ""
        if lower == stem or written in UNITS[unit]:
            return _converted(name, unit, UNITS[unit].get(written), wrong)
    return None


def _converted(name: str, unit: str, factor: Optional[int], wrong: _Wrong) -> str:
    text = wrong.text if isinstance(wrong.value, (str, int, float)) else ""
    number = number_in(text, None)
    if number is not None and factor is not None:
        return f"write {name}: {plain(number * factor)}"
    number = number_in(text, unit) if number is None else None
    return f"write {name}: {plain(number)}" if number is not None else f"write {name}, in {UNIT_NAMES[unit]}"


def _near(key: str, fields: Mapping[str, FieldInfo]) -> Optional[str]:
    near = get_close_matches(key.lower(), fields, n=1)
    return f"did you mean {near[0]}?" if near else None


def _elsewhere(key: str, sections: Sections) -> Optional[str]:
    for path, section in sections.items():
        if key in keys_of(section):
            return f"write it under {place(path)}" if path else "write it at the top level, not indented"
    return None


def _number(wrong: _Wrong) -> str:
    number = number_in(wrong.value, wrong.unit) if isinstance(wrong.value, str) else None
    if number is not None:
        if wrong.field is not None and not admits(wrong.field, number):
            return f'"{wrong.text}" is text, and means {plain(number)}; write {_wanted(wrong)}'
        return f'"{wrong.text}" is text, not a number; write {plain(number)}, without quotes or a unit'
    if isinstance(wrong.value, float) and wrong.value.is_integer():
        return f"{wrong.text} is no whole number; write {int(wrong.value)}"
    return f"{_not_what(wrong)}; write {_wanted(wrong)}"


def _out_of_range(wrong: _Wrong) -> str:
    return f"{wrong.text} is out of range; write {_wanted(wrong)}"


def _wanted(wrong: _Wrong) -> str:
    """Such as ``a whole number, 60 to 86400 seconds``."""
    if wrong.field is None:
        return "a number"
    kind = "a whole number" if is_whole(wrong.field) else "a number"
    return f"{kind}, {range_of(wrong.field)} {UNIT_NAMES[wrong.unit] if wrong.unit else ''}".rstrip()


def _not_what(wrong: _Wrong) -> str:
    """What a value of the wrong type is."""
    if wrong.value is None:
        return "there is no value"
    if isinstance(wrong.value, bool):
        return f"YAML reads {wrong.text} as {str(wrong.value).lower()}"
    if isinstance(wrong.value, (dict, list)):
        return f"this is {wrong.text}"
    return f'"{wrong.text}" will not do' if isinstance(wrong.value, str) else f"{wrong.text} will not do"


def _word(wrong: _Wrong) -> str:
    choices = choices_of(wrong.field) if wrong.field is not None else ()
    near = get_close_matches(wrong.text.lower(), choices, n=1, cutoff=0.5)
    advice = f"did you mean {near[0]}?" if near else f"write one of {', '.join(choices)}"
    return f"{_not_what(wrong)}; {advice}"


def _text(wrong: _Wrong) -> str:
    if isinstance(wrong.value, (bool, int, float)):
        return f'YAML reads {wrong.text} as {str(wrong.value).lower()}, not as text; quote it: "{wrong.text}"'
    return f"{_not_what(wrong)}; write a text"


def _daemon(wrong: _Wrong) -> str:
    return f'"{wrong.text}" is no name or address; write such as ap-1.example.org'


def _mapping(wrong: _Wrong) -> str:
    if wrong.path == ("groups",):
        return f"{_not_what(wrong)}; write groups below it, such as {_GROUP_EXAMPLE}"
    if wrong.value is None:
        return "there is nothing in it; write its keys on the lines below, indented, or remove this line"
    key = str(wrong.path[-1])
    section = section_at(wrong.path, wrong.sections)
    number = number_in(wrong.text, "hs06")
    if section in (GroupConfig, SubgroupConfig) and number is not None:
        written = "share" if section is SubgroupConfig and number <= 1 else "pledge_hs06"
        return f"a group is a mapping; write {shown(key)}: {{{written}: {plain(number)}}}"
    if section is NodesConfig and isinstance(wrong.value, str):
        return f'{key} is a mapping; write {key}: {{controlled: "{wrong.text}"}}'
    if section is PublisherConfig and isinstance(wrong.value, str):
        return f"an entry is a mapping; write - file: {wrong.text}"
    names = f" with keys such as {', '.join(keys_of(section))}" if section else ""
    return f"this is {wrong.text}, not a mapping; write one{names}"


def _list(wrong: _Wrong) -> str:
    one = wrong.text if isinstance(wrong.value, str) else ""
    example = (
        f"{{file: {one or '/shared/sharectl.txt'}}}" if wrong.path == ("publish",) else one or "ap-1, ap-2"
    )
    return f"{_not_what(wrong)}; write a list, such as [{example}]"


def _missing(wrong: _Wrong) -> str:
    examples: Mapping[Union[str, int], str] = {
        "groups": f"groups, and below it such as {_GROUP_EXAMPLE}",
        "file": "such as file: /shared/sharectl.txt",
    }
    return f"is missing; write {examples.get(wrong.path[-1], wrong.path[-1])}"


def _none(wrong: _Wrong) -> str:
    return f"the list is empty; write at least one entry, or remove {wrong.path[-1]} for the default"


def _said(wrong: _Wrong) -> str:
    return wrong.message


def _other(wrong: _Wrong) -> str:
    return f"{wrong.message}; see docs/configuration.md"


_DESCRIPTIONS: Mapping[str, Callable[[_Wrong], str]] = {
    "extra_forbidden": _unknown,
    "missing": _missing,
    "float_type": _number,
    "int_type": _number,
    "int_from_float": _number,
    "finite_number": _out_of_range,
    "greater_than": _out_of_range,
    "greater_than_equal": _out_of_range,
    "less_than": _out_of_range,
    "less_than_equal": _out_of_range,
    "literal_error": _word,
    "string_type": _text,
    "path_type": _text,
    "string_too_short": _daemon,
    "string_too_long": _daemon,
    "string_pattern_mismatch": _daemon,
    "model_type": _mapping,
    "dict_type": _mapping,
    "mapping_type": _mapping,
    "tuple_type": _list,
    "too_short": _none,
    "sharectl": _said,
    "controlled": _said,
}
"""Pydantic's type of an error -> its description."""
