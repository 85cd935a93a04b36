"""What pydantic finds, in words for an operator: what is wrong with a value and what to write instead.

What the models say about a key: where it belongs, its unit, its range, its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Callable, Literal, NamedTuple, Optional, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sharectl.config.control import (
    CarryOverConfig,
    ControlConfig,
    EwmaConfig,
    GroupControlConfig,
    NodesConfig,
    PidConfig,
)
from sharectl.config.fields import UNIT_NAMES, UNITS, number_in, plain, unit_of
from sharectl.config.groups import GroupConfig, SubgroupConfig
from sharectl.config.model import Config, HistoryConfig, LedgerConfig, PoolConfig
from sharectl.config.places import (
    CollectorPublisherConfig,
    CricPledgesConfig,
    HttpsPublisherConfig,
    NegotiatorPledgesConfig,
    PledgesConfig,
    PublisherConfig,
)
from sharectl.files.yaml import Fault, Tree, ValuePath, place
from sharectl.words import shown

Sections = Mapping[ValuePath, type[BaseModel]]
"""Path of a mapping in a file (``*`` for any name or number) -> its model."""

SECTIONS: Sections = {
    (): Config,
    ("groups", "*"): GroupConfig,
    ("groups", "*", "groups", "*"): SubgroupConfig,
    ("pledges",): PledgesConfig,
    ("pledges", "negotiator"): NegotiatorPledgesConfig,
    ("pledges", "cric"): CricPledgesConfig,
    ("nodes",): NodesConfig,
    ("control",): ControlConfig,
    ("control", "ewma"): EwmaConfig,
    ("control", "pid"): PidConfig,
    ("control", "carry_over"): CarryOverConfig,
    ("groups", "*", "control"): GroupControlConfig,
    ("pool",): PoolConfig,
    ("publish", "*"): PublisherConfig,
    ("publish", "*", "https"): HttpsPublisherConfig,
    ("publish", "*", "collector"): CollectorPublisherConfig,
    ("history",): HistoryConfig,
    ("ledger",): LedgerConfig,
}
"""Those of the configuration file."""


def section_at(path: ValuePath, sections: Sections = SECTIONS) -> Optional[type[BaseModel]]:
    """Model of the mapping at ``path``; None if there is none."""
    path = _of_any_group(_of_second_level(path))
    return next((section for pattern, section in sections.items() if _matches(pattern, path)), None)


def _of_second_level(path: ValuePath) -> ValuePath:
    """``path`` without levels of groups beyond the second: what can be written is the same in all of them."""
    while path[:6:2] == ("groups",) * 3:
        path = path[:2] + path[4:]
    return path


def _of_any_group(path: ValuePath) -> ValuePath:
    """``path`` without a subgroup before its ``control``, and without any group before a law's parameters."""
    if path[:3:2] == ("groups", "groups") and path[4:5] == ("control",):
        path = path[:2] + path[4:]
    return path[2:] if path[:3:2] == ("groups", "control") and path[3:] else path


def _matches(pattern: ValuePath, path: ValuePath) -> bool:
    return len(pattern) == len(path) and all(part in ("*", key) for part, key in zip(pattern, path))


def keys_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Key -> field, as the file writes it, in the order of the model."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def field_at(path: ValuePath, sections: Sections = SECTIONS) -> Optional[FieldInfo]:
    """Field of the value at ``path``; None if it is no key of a section."""
    section = section_at(path[:-1], sections) if path else None
    return keys_of(section).get(str(path[-1])) if section else None


def range_of(field: FieldInfo) -> str:
    """Numbers that a field may be, such as ``2 to 1024``; empty if it has no limits."""
    limits = _limits(field)
    if "le" not in limits:
        return ""
    least = (
        f"above {_fields_number(limits['gt'])}" if "gt" in limits else _fields_number(limits["ge"])
    )
    return f"{least} to {_fields_number(limits['le'])}"


def admits(field: FieldInfo, number: Decimal) -> bool:
    """Whether a field may be ``number``."""
    limits = _limits(field)
    above = (
        number > Decimal(limits["gt"])
        if "gt" in limits
        else number >= Decimal(limits.get("ge", "-inf"))
    )
    return (
        above
        and number <= Decimal(limits.get("le", "inf"))
        and (number % 1 == 0 or not is_whole(field))
    )


def is_whole(field: FieldInfo) -> bool:
    """Whether the values of a field are whole numbers."""
    return field.annotation is int or int in get_args(field.annotation)


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Words that a field may be; empty if it is not a choice of words."""
    kinds = (field.annotation, *get_args(field.annotation))
    return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())


def _limits(field: FieldInfo) -> dict[str, float]:
    """Limits by kind: gt, ge, le."""
    return {
        kind: getattr(limit, kind)
        for limit in field.metadata
        for kind in ("gt", "ge", "le")
        if hasattr(limit, kind)
    }


def _fields_number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


_KEY = "[key]"
"""What pydantic adds to the place of an error in a key."""

_GROUP_EXAMPLE = "cms: {pledge_hs06: 87100}"


class _Wrong(NamedTuple):
    """One error of pydantic."""

    path: ValuePath
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


def fault_of(
    error: ErrorDetails, tree: Tree, sections: Sections = SECTIONS, within: ValuePath = ()
) -> Fault:
    """The fault that an error of ``ValidationError.errors()`` means, at its place in ``tree``.

    Parameters
    ----------
    sections
        What may be written in the file.
    within
        Path in the file of what was validated.
    """
    path: ValuePath = within + tuple(part for part in error["loc"] if part != _KEY)
    path += tuple(error.get("ctx", {}).get("at", ()))
    value = error["input"]
    wrong = _Wrong(
        path,
        error["type"],
        value,
        shown(tree.texts.get(path, _kind_of(value))),
        error["msg"],
        sections,
    )
    about_key = (
        wrong.kind == "extra_forbidden" or _KEY in error["loc"] or isinstance(value, (dict, list))
    )
    places = (tree.keys, tree.values) if about_key else (tree.values, tree.keys)
    describe = _DESCRIPTIONS.get(wrong.kind, _other)
    return Fault(_nearest(path, *places), path, describe(wrong))


def fault_at(path: ValuePath, message: str, tree: Tree) -> Fault:
    """The fault ``message`` of the value at ``path``, or of the nearest one around it that is written."""
    return Fault(_nearest(path, tree.values, tree.keys), path, message)


def _nearest(path: ValuePath, *places: Mapping[ValuePath, int]) -> int:
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
    advice = (
        _same_quantity(key, wrong, fields) or _elsewhere(key, wrong.sections) or _near(key, fields)
    )
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
    return (
        f"write {name}: {plain(number)}"
        if number is not None
        else f"write {name}, in {UNIT_NAMES[unit]}"
    )


def _near(key: str, fields: Mapping[str, FieldInfo]) -> Optional[str]:
    near = get_close_matches(key.lower(), fields, n=1)
    return f"did you mean {near[0]}?" if near else None


def _elsewhere(key: str, sections: Sections) -> Optional[str]:
    for path, section in sections.items():
        if key in keys_of(section):
            return (
                f"write it under {place(path)}"
                if path
                else "write it at the top level, not indented"
            )
    return None


def _problems_number(wrong: _Wrong) -> str:
    number = number_in(wrong.value, wrong.unit) if isinstance(wrong.value, str) else None
    if number is not None:
        if wrong.field is not None and not admits(wrong.field, number):
            return f'"{wrong.text}" is text, and means {plain(number)}; write {_wanted(wrong)}'
        return (
            f'"{wrong.text}" is text, not a number; write {plain(number)}, without quotes or a unit'
        )
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
    return (
        f"{kind}, {range_of(wrong.field)} {UNIT_NAMES[wrong.unit] if wrong.unit else ''}".rstrip()
    )


def _not_what(wrong: _Wrong) -> str:
    """What a value of the wrong type is."""
    if wrong.value is None:
        return "there is no value"
    if isinstance(wrong.value, bool):
        return f"YAML reads {wrong.text} as {str(wrong.value).lower()}"
    if isinstance(wrong.value, (dict, list)):
        return f"this is {wrong.text}"
    return (
        f'"{wrong.text}" will not do'
        if isinstance(wrong.value, str)
        else f"{wrong.text} will not do"
    )


def _word(wrong: _Wrong) -> str:
    choices = choices_of(wrong.field) if wrong.field is not None else ()
    near = get_close_matches(wrong.text.lower(), choices, n=1, cutoff=0.5)
    advice = f"did you mean {near[0]}?" if near else f"write one of {', '.join(choices)}"
    return f"{_not_what(wrong)}; {advice}"


def _text(wrong: _Wrong) -> str:
    if isinstance(wrong.value, (bool, int, float)):
        return (
            f"YAML reads {wrong.text} as {str(wrong.value).lower()}, not as text; quote it: "
            f'"{wrong.text}"'
        )
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
        f"{{file: {one or '/shared/sharectl.txt'}}}"
        if wrong.path == ("publish",)
        else one or "ap-1, ap-2"
    )
    return f"{_not_what(wrong)}; write a list, such as [{example}]"


def _missing(wrong: _Wrong) -> str:
    examples: Mapping[Union[str, int], str] = {
        "groups": f"groups, and below it such as {_GROUP_EXAMPLE}",
        "file": "such as file: /shared/sharectl.txt",
    }
    return f"is missing; write {examples.get(wrong.path[-1], wrong.path[-1])}"


def _none(wrong: _Wrong) -> str:
    return (
        f"the list is empty; write at least one entry, or remove {wrong.path[-1]} for the default"
    )


def _said(wrong: _Wrong) -> str:
    return wrong.message


def _other(wrong: _Wrong) -> str:
    return f"{wrong.message}; see docs/configuration.md"


_DESCRIPTIONS: Mapping[str, Callable[[_Wrong], str]] = {
    "extra_forbidden": _unknown,
    "missing": _missing,
    "float_type": _problems_number,
    "int_type": _problems_number,
    "int_from_float": _problems_number,
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
