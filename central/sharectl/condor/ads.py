"""ClassAds, their values as Python values of one type, and expressions evaluated by HTCondor.

A job may have put anything into its ad: every value is looked at before it is used, and expressions
of jobs are evaluated in a child with a deadline.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Optional, Union

from sharectl.condor.loading import library

MAX_TEXT = 1024
"""Characters of a string that are looked at: no group, host or address is longer."""


def whole(value: Any, default: int, least: float = 0, most: float = 2**53) -> int:
    """``value`` if it is a number within the limits, cut to a whole one, else ``default``."""
    return int(number(value, default, least, most))


def number(value: Any, default: float, least: float = 0.0, most: float = 2.0**53) -> float:
    """``value`` if it is a finite number within the limits, else ``default``."""
    # Undefined and error of the bindings are of a subclass of int. Limits first: an integer of JSON
    # may be too large for a float.
    is_within = type(value) in (int, float) and least <= value <= most
    return float(value) if is_within and isfinite(value) else default


def text(value: Any) -> Optional[str]:
    """``value`` if it is a string, cut to `MAX_TEXT`, else None."""
    return value[:MAX_TEXT] if isinstance(value, str) else None


def account(value: Any) -> Optional[str]:
    """AccountingGroup of a job as its slot has it, with ``@`` after it; None if it is no string."""
    return f"{value[:MAX_TEXT]}@" if isinstance(value, str) else None


def sequence(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def evaluated(ad: Any, name: str) -> Any:
    """Value of an attribute, None if it is missing; an expression is evaluated within the ad."""
    value = ad.get(name)
    if value is None or isinstance(value, (str, int, float, list)):
        return value
    try:
        return ad.eval(name)
    except Exception:  # noqa: BLE001 - an expression that cannot be evaluated has no value
        return None


def classads() -> Any:
    """Module classad2, which resolves names as the daemons do only after htcondor2."""
    library()
    import classad2

    return classad2


def ad_of(attributes: Union[Mapping[str, Any], str]) -> Any:
    """ClassAd of the bindings with these values, or of ``[…]`` as they print it."""
    written = attributes if isinstance(attributes, str) else dict(attributes)
    return classads().ClassAd(written)


def ad_of_long(written: str) -> Any:
    """ClassAd of lines as ``-long`` prints them; without those that cannot be read."""
    old = classads().ParserType.Old
    try:
        return next(iter(classads().parseAds(written, old)))
    except Exception:  # noqa: BLE001 - several kinds, by version
        ad = classads().ClassAd()
        for line in written.splitlines():
            with contextlib.suppress(Exception):
                ad.update(classads().parseOne(line, old))
        return ad


@lru_cache(maxsize=4096)
def expression(written: str) -> Any:
    """Expression of the bindings; None if the library cannot read it."""
    try:
        return classads().ExprTree(written)
    except Exception:  # noqa: BLE001 - several kinds, by version
        return None


def value_of(tree: Any, ad: Any, target: Any = None) -> Any:
    """Value of an expression in ``ad`` for ``target``; None where the library gives up."""
    try:
        return tree.eval(ad, target)
    except Exception:  # noqa: BLE001 - an expression that cannot be evaluated has no value
        return None


def is_true(value: Any) -> bool:
    """True if HTCondor takes a value for true; undefined and error are not."""
    return type(value) in (bool, int, float) and bool(value)


def is_refusal(value: Any) -> bool:
    """True if a value is no match and no mistake: false, 0 or undefined."""
    undefined = classads().Value.Undefined
    return value is undefined or (type(value) in (bool, int, float) and not value)


def quoted(written: Any) -> str:
    """String literal of ClassAds."""
    return str(classads().quote(written))
