"""Domains of a search, from ``--over`` and the settings of sharectl's configuration: an edge.

A key is one of the configuration (`control.law`) or of the twin (`loop.period_seconds`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

from sharectl.config.fields import Key, items_of
from sharectl.errors import SettingError
from sharectl.words import did_you_mean, quoted
from sharectl_lab.study.tuning import Parameter, Value, text_of

SYNTAX = "KEY=LOW..HIGH|=VALUE|VALUE…"
WITHOUT_EFFECT = ("control.incomplete",)
"""Keys on which the twin does not depend: its looks at the pool are complete."""


def parameters(texts: Sequence[str], records: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Parameters of ``texts``, such as ``control.give_up_seconds=60..3600``, or several of them.

    ``records`` are the sections that can be varied, as they are by default, by name; None for one
    that has no effect. A choice alone, such as ``control.law``, has all its values. Raises
    SettingError with all problems.
    """
    keys = {
        name: pair for section, record in records.items() for name, pair in _keys(section, record)
    }
    items = [item.strip() for text in texts for item in text.split(",") if item.strip()]
    problems: list[str] = [] if items else [f"there is no key; write {SYNTAX}, or control.law"]
    made: dict[str, Parameter] = {}
    for text in items:
        name, equals, domain = (part.strip() for part in text.partition("="))
        try:
            if name in made:
                raise ValueError("stands there twice; keep one of them")  # noqa: TRY301
            key, default = _key(name, keys, records)
            made[name] = _parameter(name, key, default, domain if equals else None)
        except ValueError as error:
            problems.append(f"{quoted(name or text)}: {error}")
    if problems:
        raise SettingError([f"--over {problem}" for problem in problems])
    return tuple(made.values())


def _keys(section: str, record: Any) -> Iterator[tuple[str, tuple[Key, Any]]]:
    """Dotted name -> key and default of everything below a section that can be varied."""
    for key, value in items_of(record) if record is not None else ():
        name = f"{section}.{key.name}"
        is_number = key.hint in (int, float, bool) and not key.setting.kind
        if key.section is not None and key.section is key.hint:
            yield from _keys(name, value)
        elif (is_number or key.setting.choices) and name not in WITHOUT_EFFECT:
            yield name, (key, value)


def _key(
    name: str, keys: Mapping[str, tuple[Key, Any]], records: Mapping[str, Any]
) -> tuple[Key, Any]:
    """Key of that name and its default. Raises ValueError with the nearest one."""
    if name in keys:
        return keys[name]
    section = name.partition(".")[0]
    if section in records and records[section] is None:
        raise ValueError(f"has no effect here: the strategy has no {section}; name another one")
    sections = ", ".join(f"{section}.…" for section, record in records.items() if record)
    short = {key.rpartition(".")[2]: key for key in keys}
    advice = did_you_mean(short.get(name) or name, keys, f"write keys of {sections}")
    raise ValueError(f"is no key of a simulated pool; {advice}")


def _parameter(name: str, key: Key, default: Any, domain: Optional[str]) -> Parameter:
    """Parameter with all choices of the key, or the values of ``domain``."""
    if domain is None and (key.setting.choices or key.hint is bool):
        return Parameter(name, default, key.setting.choices or (False, True))
    low, dots, high = (domain or "").partition("..")
    if not domain:
        raise ValueError(f"has no domain; write {name}=LOW..HIGH, or values with | between them")
    if not dots:
        values = [_value(key, word.strip()) for word in domain.split("|")]
        return Parameter(name, default, tuple(dict.fromkeys(values)))
    bounds = _number(key, low), _number(key, high)
    if bounds[0] >= bounds[1]:
        raise ValueError(f"{domain} is empty; write the lower number first")
    return Parameter(name, default, (), *bounds, whole=key.hint is int)


def _value(key: Key, word: str) -> Value:
    """Value of a domain. Raises ValueError if the key cannot have it."""
    if word == "null" and key.optional:
        return None
    if not key.setting.choices and key.hint is not bool:
        return _number(key, word)
    choices = {text_of(value): value for value in key.setting.choices or (False, True)}
    if word not in choices:
        advice = did_you_mean(word, choices, f"write some of {', '.join(choices)}")
        raise ValueError(f"{quoted(word)} is no value of it; {advice}")
    return choices[word]


def _number(key: Key, word: str) -> float:
    """Number of a domain. Raises ValueError if the key cannot have it."""
    number: Optional[float] = None
    with contextlib.suppress(ValueError):
        number = float(word)
    if number is None or not key.admits(number) or (key.hint is int and number != int(number)):
        raise ValueError(f"{quoted(word)} is no value of it; write a {key.range}")
    return int(number) if key.hint is int else number
