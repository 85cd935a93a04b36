"""Numbers with units, as people write them: understood only to say what to write instead.

What the sections of the configuration file are made of: their base, their common types, their
errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Optional, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from sharectl.words import quoted


def wrong(message: str, *at: Union[str, int]) -> PydanticCustomError:
    """Error of a validator; ``at`` is the path of the fault within the value that was validated."""
    return PydanticCustomError("sharectl", "{message}", {"message": message, "at": at})


class Section(BaseModel):
    """A mapping of the file: no unknown keys, no conversions between types, no NaN."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


def _absolute(path: Path) -> Path:
    if not path.is_absolute() or not path.name:
        raise wrong(f"{quoted(str(path))} is no absolute path; write one that begins with /")
    if not str(path).isprintable():
        raise wrong(f"{quoted(str(path))} holds a character that cannot be seen; remove it")
    return path


AbsolutePath = Annotated[Path, Field(strict=False), AfterValidator(_absolute)]
DaemonName = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[!-~]+$")]
"""A daemon's name or address: printable ASCII without blanks."""


_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_TIMES = {
    1: "s sec secs second seconds",
    60: "m min mins minute minutes",
    3600: "h hr hour hours",
    86400: "d day days",
}
_POWERS = ("hs06", "hepscore23", "hepscore", "hs23")
_HS06 = {
    **dict.fromkeys(_POWERS, 1),
    **{f"{prefix}{name}": factor for prefix, factor in _DECIMAL.items() for name in ("", *_POWERS)},
}

UNITS: Mapping[str, Mapping[str, int]] = {
    "seconds": {name: factor for factor, names in _TIMES.items() for name in names.split()},
    "bytes": {
        **dict.fromkeys(("b", "byte", "bytes"), 1),
        **{f"{prefix}{end}": factor for prefix, factor in _BINARY.items() for end in ("", "ib")},
        **{f"{prefix}b": factor for prefix, factor in _DECIMAL.items()},
    },
    "hs06": _HS06,
    "hepscore23": _HS06,
    "cores": dict.fromkeys(("core", "cores", "cpu", "cpus"), 1),
}
"""Unit at the end of a key -> other ways to write it, lower case -> how many of the unit one of it is."""

UNIT_NAMES = {
    "seconds": "seconds",
    "bytes": "bytes",
    "hs06": "HS06",
    "hepscore23": "HEPscore23",
    "cores": "cores",
}
"""How the unit at the end of a key is called in a sentence."""

MAX_CHARACTERS = 60
"""A longer text is no number that a person wrote."""

_NUMBER = (
    r"[+-]?(?:[0-9]{1,3}(?:[,' "
    r"][0-9]{3})+(?:\.[0-9]+)?|[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?"
)
_TERM = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]*(?:06|23)?)\s*")
_CLOCK = re.compile(r"([0-9]{1,4}):([0-5]?[0-9]):([0-5]?[0-9])")


def unit_of(key: str) -> Optional[str]:
    """Unit that the name of a key ends with; None if it has none."""
    last = key.rpartition("_")[2]
    return last if last in UNITS else None


def number_in(text: str, unit: Optional[str]) -> Optional[Decimal]:
    """Number that ``text`` means, in ``unit``; None if that cannot be told.

    ``17m`` is 1020 in seconds, ``87.1 kHS06`` is 87100 in hs06, ``1h30m`` and ``1:30:00`` are 5400;
    ``87,100`` is 87100 in any.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    clock = _CLOCK.fullmatch(text.strip())
    if clock and unit == "seconds":
        return Decimal(int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3]))
    factors = {"": 1, **(UNITS[unit] if unit else {})}
    total, position = Decimal(0), 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None or term[2].lower() not in factors:
            return None
        try:
            total += Decimal(re.sub(r"[_,' ]", "", term[1])) * factors[term[2].lower()]
        except InvalidOperation:
            return None
        position = term.end()
    return total if position else None


def plain(number: Decimal) -> str:
    """``number`` as YAML reads it: no exponent, no zeros at the end."""
    return f"{number.normalize():f}"
