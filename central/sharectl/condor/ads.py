"""Values of ClassAds as Python values of one type, at the border: a job may have put anything there."""

from __future__ import annotations

from math import isfinite
from typing import Any, Optional

MAX_TEXT = 1024
"""Characters of a string that are looked at: no group, host or address is longer."""


def whole(value: Any, default: int, least: float = 0, most: float = 2**53) -> int:
    """``value`` if it is a number within the limits, cut to a whole one, else ``default``."""
    got = number(value, default, least, most)
    return int(got)


def number(value: Any, default: float, least: float = 0.0, most: float = 2.0**53) -> float:
    """``value`` if it is a finite number within the limits, else ``default``.

    Undefined and error come from the bindings as members of an enum that is an int: they are not
    numbers.
    """
    if type(value) not in (int, float) or not isfinite(value) or not least <= value <= most:
        return default
    return float(value)


def text(value: Any) -> Optional[str]:
    """``value`` if it is a string, cut to `MAX_TEXT`, else None."""
    return value[:MAX_TEXT] if isinstance(value, str) else None


def account(value: Any) -> Optional[str]:
    """AccountingGroup of a job as its slot has it, with ``@`` after the user; None if it is not a plain string.

    START goes by what is written in the job, too. An expression could take hours, or be another
    group on each machine.
    """
    return f"{value[:MAX_TEXT]}@" if isinstance(value, str) else None


def sequence(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def evaluated(ad: Any, name: str) -> Any:
    """Value of an attribute of an ad, None if it is missing; an expression is evaluated within the ad."""
    value = ad.get(name)
    if value is None or isinstance(value, (str, int, float, list)):
        return value
    try:
        return ad.eval(name)
    except Exception:  # noqa: BLE001 - an expression that cannot be evaluated has no value
        return None
