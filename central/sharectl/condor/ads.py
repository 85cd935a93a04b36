"""ClassAds, their values as Python values of one type, and expressions evaluated by HTCondor.

A job may have put anything into its ad: every value is looked at before it is used, and expressions
of jobs are evaluated in a child with a deadline.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Optional

MAX_TEXT = 1024
"""Characters of a string that are looked at: no group, host or address is longer."""


def whole(value: Any, default: int, least: float = 0, most: float = 2**53) -> int:
    """``value`` if it is a number within the limits, cut to a whole one, else ``default``."""
    return int(number(value, default, least, most))


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
    """AccountingGroup of a job as its slot has it, with ``@`` after the user.

    None if it is not a plain string: START goes by what is written in the job, too. An expression
    could take hours, or be another group on each machine.
    """
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


def ad_of(attributes: Mapping[str, Any]) -> Any:
    """ClassAd of the bindings with these values."""
    # htcondor2 first: classad2 resolves names as the daemons do only after it.
    import htcondor2  # noqa: F401, I001
    import classad2

    return classad2.ClassAd(dict(attributes))


def ad_of_text(written: str) -> Any:
    """ClassAd of ``[…]``, as the bindings print it."""
    # htcondor2 first: see `ad_of`.
    import htcondor2  # noqa: F401, I001
    import classad2

    return classad2.ClassAd(written)


def ad_of_long(written: str) -> Any:
    """ClassAd of lines as ``-long`` prints them; without those that cannot be read."""
    import classad2

    try:
        return next(iter(classad2.parseAds(written, classad2.ParserType.Old)))
    except Exception:  # noqa: BLE001 - several kinds, by version
        ad = classad2.ClassAd()
        for line in written.splitlines():
            with contextlib.suppress(Exception):
                ad.update(classad2.parseOne(line, classad2.ParserType.Old))
        return ad


@lru_cache(maxsize=4096)
def expression(written: str) -> Any:
    """Expression of the bindings; None if the library cannot read it."""
    import htcondor2  # noqa: F401, I001
    import classad2

    try:
        return classad2.ExprTree(written)
    except Exception:  # noqa: BLE001 - several kinds, by version
        return None


def value_of(tree: Any, ad: Any, target: Any = None) -> Any:
    """Value of an expression in ``ad`` for ``target``; None where the library gives up."""
    try:
        return tree.eval(ad, target)
    except Exception:  # noqa: BLE001 - an expression that cannot be evaluated has no value
        return None


def is_true(value: Any) -> bool:
    """Tells if HTCondor takes a value for true; undefined and error are not."""
    return type(value) in (bool, int, float) and bool(value)


def is_refusal(value: Any) -> bool:
    """Tells if a value is no match and no mistake: false, 0 or undefined."""
    import classad2

    return value is classad2.Value.Undefined or (type(value) in (bool, int, float) and not value)


def quoted(written: Any) -> str:
    """String literal of ClassAds."""
    import classad2

    return str(classad2.quote(written))
