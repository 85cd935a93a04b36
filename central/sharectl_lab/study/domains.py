"""Domains of a search, from ``--over`` and the settings of sharectl's configuration: an edge.

A key is one of the configuration (`control.law`) or of the twin (`loop.period_seconds`). Without a
domain behind it, it has all values that the configuration may have.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Optional

from sharectl.config.fields import Key, items_of, keys_of
from sharectl.config.model import Config
from sharectl.errors import SettingError
from sharectl.files import yaml
from sharectl.words import did_you_mean, quoted
from sharectl_lab.study.tuning import Parameter, Value, numbers, percent, text_of

SYNTAX = "KEY[=LOW..HIGH|=VALUE|VALUE…]"
WITHOUT_EFFECT = {
    "control.incomplete": "every look of the twin at its pool is complete",
}
"""Key -> reason why the twin does not depend on it."""
_RANGE = re.compile(r"(?P<null>null\|)?(?P<low>[^|]+?)\.\.(?P<high>[^|]+)")
_RATIO = "share"
"""Notation of parts, which the file has as percentages."""


def split(texts: Sequence[str]) -> list[str]:
    """Keys with their domains, of options that have several each with commas between them."""
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]


def parameters(
    texts: Sequence[str], records: Mapping[str, Any], laws: AbstractSet[str] = frozenset()
) -> tuple[Parameter, ...]:
    """Parameters of ``texts``, such as ``control.give_up_seconds=60..3600``.

    ``records`` are the sections that can be varied, as they are by default, by name; None for one
    that has no effect. ``laws`` are those that control a group by default. Raises SettingError with
    all problems.
    """
    keys = {
        name: pair for section, record in records.items() for name, pair in _keys(section, record)
    }
    problems: list[str] = [] if texts else [f"there is no key; write {SYNTAX}, such as control.law"]
    made: dict[str, Parameter] = {}
    for text in texts:
        name, _, domain = (part.strip() for part in text.partition("="))
        try:
            if name in made:
                raise ValueError("stands there twice; keep one of them")  # noqa: TRY301
            key, default = _key(name, keys, records)
            made[name] = _parameter(name, key, default, domain, narrowed="=" in text)
        except ValueError as error:
            problems.append(f"{quoted(name or text)}: {error}")
    problems += _without_law(made, laws)
    if problems:
        raise SettingError([f"--over {problem}" for problem in problems])
    return tuple(made.values())


def _keys(section: str, record: Any) -> Iterator[tuple[str, tuple[Key, Any]]]:
    """Dotted name -> key and default of everything below a section that can be varied."""
    if record is None:
        return
    for key, value in items_of(record):
        name = f"{section}.{key.name}"
        if key.section is not None and key.section is key.hint:
            yield from _keys(name, value)
        elif key.section is None and (key.hint in (int, float, bool) or key.setting.choices):
            yield name, (key, value)


def _key(
    name: str, keys: Mapping[str, tuple[Key, Any]], records: Mapping[str, Any]
) -> tuple[Key, Any]:
    """Key of that name and its default. Raises ValueError with the nearest one."""
    if name in WITHOUT_EFFECT:
        raise ValueError(f"has no effect here: {WITHOUT_EFFECT[name]}; leave it out")
    if name in keys:
        return keys[name]
    section = name.partition(".")[0]
    if section in records and records[section] is None:
        raise ValueError(f"has no effect here: the strategy has no {section}; name another one")
    sections = ", ".join(f"{section}.…" for section, record in records.items() if record)
    if section in keys_of(Config) and section not in records:
        raise ValueError(f"has no effect on a simulated pool; write keys of {sections}")
    short = {key.rpartition(".")[2]: key for key in keys}
    if name in short:
        raise ValueError(f"is no key; did you mean {short[name]}?")
    raise ValueError(f"is no key; {did_you_mean(name, keys, f'write keys of {sections}')}")


def _parameter(name: str, key: Key, default: Any, domain: str, *, narrowed: bool) -> Parameter:
    """Parameter with all values of the key, or those of ``domain``."""
    if key.setting.choices or key.hint is bool:
        every: tuple[Value, ...] = key.setting.choices or (False, True)
        chosen = _choices(key, domain) if narrowed else every
        return Parameter(name, default, chosen)
    whole, is_time = key.hint is int, name.endswith("_seconds")
    least, most = _bounds(key)
    ratio = key.setting.kind == _RATIO
    if not narrowed:
        scale = numbers(least, most, whole=whole, is_time=is_time)
        if scale is None:
            raise ValueError(
                f"may be up to {most:g}, which is no domain; write such as {name}=0..1000"
            )
        return Parameter(name, default, (), *scale[:2], whole, scale[2], key.optional, ratio)
    match = _RANGE.fullmatch(domain)
    if match is None:
        return Parameter(name, default, _choices(key, domain))
    low, high = (_number(key, match[side]) for side in ("low", "high"))
    if match["null"] and not key.optional:
        raise ValueError("null is no value of it; leave null out")
    if low >= high:
        raise ValueError(f"{match[0]} is empty; write the lower number first")
    scale = numbers(low, high, whole=whole, is_time=is_time) or (low, high, False)
    log = scale[2] and low > 0
    return Parameter(name, default, (), low, high, whole, log, bool(match["null"]), ratio)


def _bounds(key: Key) -> tuple[float, float]:
    if key.setting.kind == _RATIO:
        return 0.0, 1.0
    setting = key.setting
    least = setting.least if setting.least is not None else setting.above or 0.0
    return least, setting.most if setting.most is not None else float("inf")


def _choices(key: Key, text: str) -> tuple[Value, ...]:
    """Values of ``A|B``. Raises ValueError for one that the key cannot have."""
    words = [word.strip() for word in text.split("|")]
    if not all(words):
        raise ValueError("a domain has values; write LOW..HIGH, or VALUE|VALUE")
    return tuple(dict.fromkeys(_value(key, word) for word in words))


def _value(key: Key, word: str) -> Value:
    tree = yaml.read(word)
    value: Value = None if tree.faults else tree.data
    if word == "null" and key.optional:
        return None
    if key.setting.choices:
        if value not in key.setting.choices:
            choices = ", ".join(key.setting.choices)
            advice = did_you_mean(word, key.setting.choices, f"write some of {choices}")
            raise ValueError(f"{quoted(word)} is no value of it; {advice}")
        return value
    if key.hint is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{quoted(word)} is no value of it; write true or false")
        return value
    number = _number(key, word)
    return percent(number) if key.setting.kind == _RATIO else number


def _number(key: Key, word: str) -> float:
    """Number of a domain's end. Raises ValueError if the key cannot have it."""
    number: Optional[float] = None
    with contextlib.suppress(ValueError):
        number = float(word)
    least, most = _bounds(key)
    ratio = key.setting.kind == _RATIO
    admitted = number is not None and (least <= number <= most if ratio else key.admits(number))
    if number is None or not admitted or (key.hint is int and number != int(number)):
        kinds = "number, 0 to 1" if ratio else key.range
        raise ValueError(f"{quoted(word)} is no value of it; write a {kinds}")
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
