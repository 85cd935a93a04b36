"""What CRIC answers about federations: JSON from outside, of which only what is needed is believed.

    {"IT-INFN-CNAF": {"name": "…", "accounting_name": "…", "pledges": {"2026": {"Q1": {"cms": {"CPU": 87100, …}}}}}}

The year begins in April, so that its Q4 is January to March of the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any, NoReturn, Optional

from sharectl.adapters.config_types import MAX_HS06
from sharectl.adapters.wording import quoted, shown
from sharectl.core.pledges import Period
from sharectl.errors import InputError

MAX_BYTES = 2**24
"""Size of an answer that is still read."""

_NAMES = ("name", "accounting_name")
_SITES = "rcsites"
_POWER = "CPU"
_UNITS = frozenset(("hs06", "hepspec06", "hepscore23", "hs23", "hepscore"))
"""All on one scale, as they are compared: lower case, letters and digits."""
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_NEITHER = re.compile(r"[^a-z0-9]")
_MOST_SHOWN = 10


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys were there twice."""

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        super().__init__()
        self.twice: set[str] = set()
        for key, value in pairs:
            if key in self:
                self.twice.add(key)
            self[key] = value


@dataclass(frozen=True)
class Promised:
    """A VO's pledge."""

    hs06: float
    place: str


@dataclass(frozen=True)
class _Value:
    """Something in the answer, and where."""

    place: str
    value: Any

    def below(self, key: str) -> _Value:
        """What an object has under a key that is there."""
        place = f"{self.place}.{shown(key)}"
        if key in getattr(self.value, "twice", ()):
            raise InputError([f"{place}: is there twice; nobody can tell which holds"])
        return _Value(place, self.value[key])

    def as_object(self) -> Mapping[str, Any]:
        if not isinstance(self.value, _Object):
            raise InputError([f"{self.place}: is {_kind(self.value)}, not an object"])
        return self.value

    def key_like(self, name: str) -> Optional[str]:
        """Key of an object that is ``name`` but for case; None if there is none."""
        found = [key for key in self.as_object() if key.lower() == name.lower()]
        exact = [key for key in found if key == name]
        if len(found) > 1 and not exact:
            raise InputError([f"{self.place}: has {_some(found)}; nobody can tell which is {shown(name)}"])
        return next(iter((*exact, *found)), None)


def read(content: bytes, place: str) -> Mapping[str, Any]:
    """Federations of an answer, by CRIC's key; ``place`` is what messages call it.

    Raises
    ------
    InputError
        If it is no JSON object of at most `MAX_BYTES`.
    """
    if len(content) > MAX_BYTES:
        raise InputError([f"{place}: has more than {MAX_BYTES} bytes; it is no list of federations"])
    try:
        found = json.loads(content, object_pairs_hook=_Object, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else shown(str(error))
        raise InputError([f"{place}: is no JSON: {said}"]) from error
    return _Value(place, found).as_object()


def promised(
    federations: Mapping[str, Any], place: str, names: Sequence[str], vos: Iterable[str], period: Period
) -> dict[str, Promised]:
    """VO as asked for → the sum of what the federations pledge to it in a period; without those that get nothing.

    Parameters
    ----------
    federations
        What `read` returned for ``place``.
    names
        Federations, by key, name or accounting name.

    Raises
    ------
    InputError
        With all that is wrong with what was asked for; what else is in the answer is not looked at.
    """
    problems: list[str] = []
    parts: dict[str, list[Promised]] = {}
    vos = tuple(vos)
    for name in names:
        try:
            quarter = _quarter(_federation(_Value(place, federations), name), period)
        except InputError as error:
            problems += error.problems
            continue
        for vo in vos:
            try:
                power = _power(quarter, vo)
            except InputError as error:
                problems += error.problems
            else:
                parts.setdefault(vo, []).extend([power] if power is not None else [])
    if problems:
        raise InputError(problems)
    return {
        vo: Promised(fsum(part.hs06 for part in found), " + ".join(part.place for part in found))
        for vo, found in parts.items()
        if found
    }


def _federation(answer: _Value, name: str) -> _Value:
    by_key = answer.key_like(name)
    if by_key is not None:
        return answer.below(by_key)
    found = [
        key
        for key, content in answer.as_object().items()
        if isinstance(content, _Object)
        and name.lower() in [str(content.get(field)).lower() for field in _NAMES]
    ]
    if len(found) > 1:
        raise InputError([f"{answer.place}: {quoted(name)} could be {_some(found)}; write one of them"])
    if not found:
        raise InputError(
            [
                f"{answer.place}: there is no federation {quoted(name)}; {_site_advice(answer.as_object(), name)}"
            ]
        )
    return answer.below(found[0])


def _site_advice(federations: Mapping[str, Any], name: str) -> str:
    """What to write instead of a name that may be a site's."""
    of_site = [
        key
        for key, content in federations.items()
        if isinstance(content, _Object)
        and isinstance(content.get(_SITES), (list, dict))
        and name.lower() in [str(site).lower() for site in content[_SITES]]
    ]
    if not of_site:
        return "see pledges.cric.federations"
    return f"it is a site of {_some(of_site)}: write that, and pledges.cric.federation_ratio if it has others too"


def _quarter(federation: _Value, period: Period) -> _Value:
    """Pledges of a federation by VO in a period."""
    where = federation
    for key in ("pledges", str(period.year), f"Q{period.quarter}"):
        found = where.key_like(key)
        if found is None:
            known = _some(where.as_object()) or "nothing"
            raise InputError([f"{where.place}: has no {key}, which {period} needs; there is {known}"])
        where = where.below(found)
    where.as_object()
    return where


def _power(quarter: _Value, vo: str) -> Optional[Promised]:
    """What a VO gets; None if it gets nothing."""
    key = quarter.key_like(vo)
    if key is None:
        return None
    pledge = quarter.below(key)
    known = pledge.key_like(_POWER)
    if known is None:
        return None
    for other, said in pledge.as_object().items():
        if other.lower().startswith(_POWER.lower()) and "unit" in other.lower():
            _check_unit(said, f"{pledge.place}.{shown(other)}")
    power = pledge.below(known)
    return Promised(_number(power), power.place)


def _check_unit(said: Any, place: str) -> None:
    if not isinstance(said, str) or _NEITHER.sub("", said.lower()) not in _UNITS:
        raise InputError([f"{place}: {quoted(str(said))} is neither HEP-SPEC06 nor HEPscore23"])


def _number(power: _Value) -> float:
    value = power.value
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        said = quoted(value) if isinstance(value, str) else _kind(value)
        raise InputError([f"{power.place}: is {said}, no number"])
    if not 0 <= value <= MAX_HS06 or not isfinite(value):
        raise InputError(
            [f"{power.place}: {shown(str(value))} is no pledge; 0 to {MAX_HS06:g} HS06 would be"]
        )
    return float(value)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {
        dict: "an object",
        list: "a list",
        type(None): "null",
        str: "a text",
        bool: "true or false",
    }
    return next((words for kind, words in kinds.items() if isinstance(value, kind)), "a number")


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    rest = f" and {len(every) - _MOST_SHOWN} more" if len(every) > _MOST_SHOWN else ""
    return ", ".join(shown(name) for name in every[:_MOST_SHOWN]) + rest
