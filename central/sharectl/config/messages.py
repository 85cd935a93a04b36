"""Messages about single values of a file: the fact, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sharectl.config.fields import Key
from sharectl.files.yaml import ValuePath, place
from sharectl.words import shown

GROUP_EXAMPLE = "cms: {pledge_hs06: 87100}"


def unknown_key(
    name: str, keys: Iterable[str], elsewhere: Mapping[ValuePath, Iterable[str]]
) -> str:
    """Message about a key that is not one of ``keys``.

    Parameters
    ----------
    elsewhere
        Path of each section of the file → its keys.
    """
    near = _nearest(name.lower(), keys)
    places = [path for path, names in elsewhere.items() if name in names]
    if places:
        at = f"under {place(places[0])}" if places[0] else "at the top level, not indented"
        return f"unknown key; write it {at}"
    return f"unknown key; {_one_of(keys) if not near else f'did you mean {near[0]}?'}"


def not_a_number(key: Key, value: Any, text: str) -> str:
    """Message about a value that is no number, or no whole one."""
    if isinstance(value, float) and value.is_integer():
        return f"{text} is no whole number; write {int(value)}"
    if isinstance(value, str):
        return f'"{text}" is text; write a {key.range}, without quotes or a unit'
    return f"{unusable(value, text)}; write a {key.range}"


def out_of_range(key: Key, text: str) -> str:
    """Message about a number out of its bounds."""
    return f"{text} is out of range; write a {key.range}"


def unusable(value: Any, text: str) -> str:
    """Fact that a value has the wrong type."""
    if value is None:
        return "there is no value"
    if isinstance(value, bool):
        return f"YAML reads {text} as {str(value).lower()}"
    if isinstance(value, (dict, list)):
        return f"this is {text}"
    return f'"{text}" will not do' if isinstance(value, str) else f"{text} will not do"


def not_a_choice(choices: Iterable[str], value: Any, text: str) -> str:
    """Message about a value that is none of the words that a key takes."""
    near = _nearest(text.lower(), choices, 0.5)
    advice = f"did you mean {near[0]}?" if near else _one_of(choices)
    return f"{unusable(value, text)}; {advice}"


def _nearest(name: str, words: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Closest of ``words``, if one is near."""
    from difflib import get_close_matches  # a sound configuration never needs it

    return get_close_matches(name, list(words), n=1, cutoff=cutoff)


def _one_of(words: Iterable[str]) -> str:
    return f"write one of {', '.join(words)}"


def not_text(value: Any, text: str) -> str:
    """Message about a value that is no text."""
    if isinstance(value, (bool, int, float)):
        return f'YAML reads {text} as {str(value).lower()}, not as text; quote it: "{text}"'
    return f"{unusable(value, text)}; write a text"


def not_a_list(value: Any, text: str, *, of_mappings: bool) -> str:
    """Message about a value that is no list."""
    entry = text if isinstance(value, str) else ""
    example = (
        f"{{file: {entry or '/shared/sharectl.txt'}}}" if of_mappings else entry or "ap-1, ap-2"
    )
    return f"{unusable(value, text)}; write a list, such as [{example}]"


def not_a_mapping(path: ValuePath, value: Any, text: str, keys: Iterable[str]) -> str:
    """Message about a value that is no mapping with ``keys``."""
    if path == ("groups",):
        return f"{unusable(value, text)}; write groups below it, such as {GROUP_EXAMPLE}"
    if value is None:
        return (
            "there is nothing in it; write its keys on the lines below, indented, or remove this "
            "line"
        )
    names, name = list(keys), shown(str(path[-1]))
    if "pledge_hs06" in names and isinstance(value, (int, float)):
        promise = "share" if "share" in names and value <= 1 else "pledge_hs06"
        return f"a group is a mapping; write {name}: {{{promise}: {text}}}"
    if "controlled" in names and isinstance(value, str):
        return f'{name} is a mapping; write {name}: {{controlled: "{text}"}}'
    if "collector" in names and "https" in names and isinstance(value, str):
        return f"an entry is a mapping; write - file: {text}"
    return f"this is {text}, not a mapping; write one with keys such as {', '.join(names)}"


def missing(name: str) -> str:
    """Message about a key that has to be there."""
    examples = {
        "groups": f"groups, and below it such as {GROUP_EXAMPLE}",
        "file": "such as file: /shared/sharectl.txt",
    }
    return f"is missing; write {examples.get(name, name)}"


def kind_of(value: Any) -> str:
    """Words for a value that has no text of its own."""
    kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return kinds.get(type(value), str(value))
