"""Domains of a search, from ``--over`` and the settings of sharectl's configuration: an edge.

A key is one of the configuration (`control.law`) or of the twin (`loop.period_seconds`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Optional

from sharectl.config.fields import NOTATIONS, Key, WrongError, items_of
from sharectl.errors import SettingError
from sharectl.words import did_you_mean, quoted
from sharectl_lab.study.tuning import Parameter, Value, text_of

SYNTAX = "KEY=LOW..HIGH|=VALUE|VALUE…"
WITHOUT_EFFECT = ("control.incomplete",)
"""Keys on which the twin does not depend: its looks at the pool are complete."""
_RATIO = "share"
"""Notation of parts, which the file has as percentages."""


def parameters(
    texts: Sequence[str], records: Mapping[str, Any], laws: AbstractSet[str] = frozenset()
) -> tuple[Parameter, ...]:
    """Parameters of ``texts``, such as ``control.give_up_seconds=60..3600``, or several of them.

    ``records`` are the sections that can be varied, as they are by default, by name; None for one
    that has no effect. ``laws`` are those that control a group by default. A choice alone, such as
    ``control.law``, has all its values. Raises SettingError with all problems.
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
        except (ValueError, WrongError) as error:
            problems.append(f"{quoted(name or text)}: {error}")
    problems += _without_law(made, laws)
    if problems:
        raise SettingError([f"--over {problem}" for problem in problems])
    return tuple(made.values())


def _keys(section: str, record: Any) -> Iterator[tuple[str, tuple[Key, Any]]]:
    """Dotted name -> key and default of everything below a section that can be varied."""
    for key, value in items_of(record) if record is not None else ():
        name = f"{section}.{key.name}"
        has_domain = key.hint in (int, float, bool) or key.setting.choices
        if key.section is not None and key.section is key.hint:
            yield from _keys(name, value)
        elif key.section is None and has_domain and name not in WITHOUT_EFFECT:
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
    nearest = short.get(name) or name
    advice = did_you_mean(nearest, keys, f"write keys of {sections}")
    raise ValueError(f"is no key of a simulated pool; {advice}")


def _parameter(name: str, key: Key, default: Any, domain: Optional[str]) -> Parameter:
    """Parameter with all choices of the key, or the values of ``domain``."""
    if key.setting.kind == _RATIO and default is not None:
        default = NOTATIONS[_RATIO].write(default)
    if domain is None and (key.setting.choices or key.hint is bool):
        return Parameter(name, default, key.setting.choices or (False, True))
    low, dots, high = (domain or "").partition("..")
    if not domain:
        raise ValueError(f"has no domain; write {name}=LOW..HIGH, or values with | between them")
    if not dots or key.setting.kind == _RATIO:
        values = [_value(key, word.strip()) for word in domain.split("|")]
        return Parameter(name, default, tuple(dict.fromkeys(values)))
    bounds = _number(key, low), _number(key, high)
    if bounds[0] >= bounds[1]:
        raise ValueError(f"{domain} is empty; write the lower number first")
    return Parameter(name, default, (), *bounds, whole=key.hint is int)


def _value(key: Key, word: str) -> Value:
    """Value of a domain. Raises ValueError or WrongError if the key cannot have it."""
    if word == "null" and key.optional:
        return None
    if key.setting.kind == _RATIO:
        NOTATIONS[_RATIO].read(word)
        return word
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


def _without_law(made: Mapping[str, Parameter], laws: AbstractSet[str]) -> Iterator[str]:
    """Problems of parameters of a law by which no group is ever controlled."""
    law = made.get("control.law")
    acting = {*laws, *(map(text_of, law.choices) if law else ())}
    for name in made:
        owner = name.split(".")[1]
        if owner in ("ewma", "pid") and owner not in acting:
            remedy = f"add control.law={owner}, or remove it"
            yield f"{quoted(name)}: has no effect, because no group is controlled by it; {remedy}"
