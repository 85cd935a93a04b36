"""Notations of values that only scenarios have, for `sharectl.config.fields`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sharectl.cadence import laws
from sharectl.config.fields import Notation, WrongError, one_line, text_like
from sharectl.words import quoted

MAX_ATTRIBUTE = 2**63
"""Numbers of ClassAds are below it."""
LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e9


def _account(value: Any) -> str:
    """AccountingGroup without its user; numbers too, as names in job logs are."""
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else "?"
    if not text or _is_account(text):
        return text
    raise WrongError(f"{quoted(text)} is not an accounting group; write such as alice.prod")


_is_account = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*").fullmatch
_node_name = text_like(
    r"[A-Za-z0-9]([A-Za-z0-9.-]{0,98}[A-Za-z0-9])?",
    "is not a host name; write letters, digits, - and ., a letter or digit first",
)


def _file(text: Any) -> Path:
    if not isinstance(text, str) or not Path(text).name or not text.isprintable():
        raise WrongError("write the path of a file")
    return Path(text)


def _run_time(value: Any) -> Any:
    """Law of run times: seconds, a named law, or a mapping of seconds to weights."""
    try:
        if isinstance(value, dict):
            weights = {float(seconds): float(weight) for seconds, weight in value.items()}
            parts = [part for pair in weights.items() for part in pair]
            if parts and all(LEAST_WEIGHT <= part <= MOST_WEIGHT for part in parts):
                return laws.weighted(weights)
            raise WrongError("write run times and weights above 0, such as {600: 3, 3600: 1}")
        return laws.parse(value if ":" in str(value) else f"constant:{value}")
    except (TypeError, ValueError) as error:
        raise WrongError(str(error)) from None


def _write_run_time(law: Any) -> Any:
    if law.name == "weighted":
        return {laws.plain(seconds): weight for seconds, weight in law.seen.items()}
    return law.parameters[0] if law.name == "constant" else law.text


def _attribute(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, (bool, int, float)) and abs(value) < MAX_ATTRIBUTE:
        return value
    raise WrongError("write true, false, text, or a number within 64 bits")


OF_SCENARIOS = {
    "node name": Notation("text", _node_name),
    "accounting group": Notation("text", _account),
    "attribute": Notation("boolean, number or text", _attribute),
    "file": Notation("path", _file, str),
    "run time": Notation("seconds, law, mapping of weights", _run_time, _write_run_time),
}
"""`Setting.kind` -> its notation."""
