"""What HTCondor takes for a boolean in its configuration (string_is_boolean_param in src/condor_utils/condor_config.cpp).

``True``, ``1``, ``False`` and ``0`` in any letters; any other text is evaluated as an expression, whose value is to be a
boolean or a number. Words such as ``Yes``, ``t`` or ``on`` are names of attributes that are not there, so no booleans.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from sharectl.adapters.condor_process import CondorProcess

_LITERALS = {"true": True, "1": True, "false": False, "0": False}
_BLANKS = " \t\n\v\f\r"


def literal(text: str) -> Optional[bool]:
    """The boolean that a text is as it stands; None for one that HTCondor would evaluate."""
    return _LITERALS.get(text.strip(_BLANKS).lower())


def booleans(texts: Iterable[str], htcondor: CondorProcess) -> dict[str, Optional[bool]]:
    """Text → the boolean that HTCondor takes it for; None for what is none."""
    found = {text: literal(text) for text in texts}
    asked = sorted(text for text, value in found.items() if value is None and text.strip(_BLANKS))
    rows = htcondor.evaluate(asked, [{}], [{}]) if asked else []
    return {**found, **{text: _of_value(row[0][0]) for text, row in zip(asked, rows) if row is not None}}


def boolean_here(text: str) -> Optional[bool]:
    """The boolean that a text is, evaluated in this process, which may hang on a hostile one; None for what is none."""
    from sharectl.adapters.condor_child import UNREADABLE, expression, outcome

    known = literal(text)
    if known is not None:
        return known
    try:
        return _of_value(outcome(expression(text).eval()))
    except UNREADABLE:
        return None


def _of_value(value: object) -> Optional[bool]:
    return bool(value) if isinstance(value, (bool, int, float)) else None
