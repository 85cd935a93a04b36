"""The value of ``nodes.controlled``, read and written: host patterns, a share, or a ClassAd constraint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Callable, Union

from pydantic_core import PydanticCustomError

from sharectl.adapters.wording import quoted
from sharectl.core.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare

MAX_CONSTRAINT = 4096
"""Characters: HTCondor's parser goes one level down the stack for each parenthesis."""

_PATTERN = re.compile(r"[A-Za-z0-9.*?_\-\[\]!]{1,253}")
_LIKE_PATTERNS = re.compile(r"[A-Za-z0-9.*?_\-\[\]!{},; ]+")
_WORDS = frozenset(("true", "false", "undefined", "error", "none", "all"))
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_FORMS = 'write "*", host patterns such as [wn-0*, wn-117.example.org], a share such as "50%", or a ClassAd constraint'


def read_controlled(value: Any) -> Controlled:
    """What a value of the configuration file selects.

    Parameters
    ----------
    value
        A string (pattern, share or constraint), a list of patterns, or a mapping with one of the keys
        ``hosts``, ``share`` and ``constraint``, for names that could be read both ways.

    Raises
    ------
    PydanticCustomError
        If it is none of these; ``at`` in its context is the path of the fault within the value.
    """
    if isinstance(value, (ControlledHosts, ControlledShare, ControlledConstraint)):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return _hosts(list(value))
    if isinstance(value, Mapping):
        return _explicit(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise _wrong(f"a bare number could mean anything; {_as_share(value)}")
    raise _wrong(f"it selects no nodes; {_FORMS}")


def write_controlled(controlled: Controlled) -> Union[str, list[str], dict[str, Any]]:
    """The value that `read_controlled` reads as ``controlled``, in its shortest form."""
    if isinstance(controlled, ControlledShare):
        return _percent(Decimal(repr(float(controlled.ratio))) * 100)
    if isinstance(controlled, ControlledConstraint):
        plain = _PATTERN.fullmatch(controlled.expression) or _SHARE.fullmatch(controlled.expression)
        return {"constraint": controlled.expression} if plain else controlled.expression
    if controlled.patterns == ("*",):
        return "*"
    return list(controlled.patterns)


def _text(value: str) -> Controlled:
    text = value.strip()
    if _SHARE.fullmatch(text):
        return _share(text)
    if _NUMBER.fullmatch(text):
        raise _wrong(f"a bare number could mean anything; {_as_share(float(text))}")
    if text.lower() in _WORDS:
        raise _wrong(f"{text} could be a host or an expression; {_FORMS}")
    if _PATTERN.fullmatch(text):
        return ControlledHosts((text,))
    if _LIKE_PATTERNS.fullmatch(text) and ("," in text or "{" in text):
        raise _wrong(
            "several hosts are a list, and braces are no pattern; write such as [wn-0*, wn-117.example.org]"
        )
    return _constraint(text)


def _hosts(value: Any) -> ControlledHosts:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not patterns:
        raise _wrong('it names no host; write a list of host patterns, or "0%" to control no node')
    for number, pattern in enumerate(patterns):
        if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
            raise _wrong(
                f"{quoted(str(pattern))} is no host pattern; write host names, with * ? [0-9] where they vary",
                number,
            )
    return ControlledHosts(tuple(patterns))


def read_share(value: Any) -> ControlledShare:
    """Share of the nodes that a value of the configuration file means, such as ``"50%"``. Raises as `read_controlled`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise _wrong(f"a bare number could mean anything; {_as_share(value)}")
    return _share(value)


def _share(value: Any) -> ControlledShare:
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise _wrong('a share is a percentage in quotes; write such as "50%"')
    percent = Decimal(match[1])
    if percent > 100:  # noqa: PLR2004 - all of them
        raise _wrong(f'{value} is more nodes than there are; write at most "100%"')
    return ControlledShare(float(percent / 100))


def _constraint(value: Any) -> ControlledConstraint:
    if not isinstance(value, str) or not value.strip():
        raise _wrong("a constraint is a ClassAd expression; write such as t1_room == 3")
    text = value.strip()
    if len(text) > MAX_CONSTRAINT:
        raise _wrong(f"a constraint has at most {MAX_CONSTRAINT} characters; shorten it")
    if not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise _wrong(f"{quoted(text)} holds a character that cannot be seen; remove it")
    fault = _fault(text)
    if fault:
        raise _wrong(f"{fault}; {_FORMS}")
    return ControlledConstraint(text)


def _fault(expression: str) -> str:
    """Why HTCondor cannot use ``expression`` as a constraint; empty if it can."""
    # htcondor2 first: classad2 resolves names as the daemons do only once it is there.
    import htcondor2  # noqa: F401, I001
    import classad2

    try:
        constant = classad2.ExprTree(expression).eval(classad2.ClassAd())
    except Exception as error:  # noqa: BLE001 - the bindings raise several kinds, some of them bare
        return f"{quoted(expression)} is neither host patterns nor a share, and no ClassAd expression ({_first_line(error)})"
    return f"{quoted(expression)} is true on no node" if isinstance(constant, (str, list, Mapping)) else ""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


_KEYS: Mapping[str, Callable[[Any], Controlled]] = {
    "hosts": _hosts,
    "share": _share,
    "constraint": _constraint,
}


def _explicit(value: Mapping[Any, Any]) -> Controlled:
    unknown = [key for key in value if key not in _KEYS]
    if unknown:
        raise _wrong(
            f"unknown key {quoted(str(unknown[0]))}; write one of hosts, share, constraint", unknown[0]
        )
    if len(value) != 1:
        raise _wrong("a mapping has exactly one key here; write one of hosts, share, constraint")
    key, content = next(iter(value.items()))
    try:
        return _KEYS[key](content)
    except PydanticCustomError as error:
        context = error.context or {}
        raise _wrong(context["message"], key, *context["at"]) from error


def _as_share(number: float) -> str:
    decimal = Decimal(repr(float(number)))
    if 0 <= decimal <= 1:
        decimal *= 100
    return f'for a share of the nodes write "{_percent(decimal)}"'


def _percent(percent: Decimal) -> str:
    return f"{percent.normalize():f}%"


def _wrong(message: str, *at: Union[str, int]) -> PydanticCustomError:
    return PydanticCustomError("controlled", "{message}", {"message": message, "at": at})
