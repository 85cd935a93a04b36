"""Notations of single values: paths, names, addresses, shares of nodes, and choices of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable, Union

from sharectl.plan.nodes import Controlled, ControlledConstraint, ControlledHosts, ControlledShare
from sharectl.words import quoted

MAX_EXPRESSION = 2000
"""Characters of an expression of a consumption policy."""
MAX_CONSTRAINT = 4096
"""Characters: HTCondor's parser goes one level down the stack for each parenthesis."""
UNMAPPED = "unmapped"
"""Domain of the identity of clients that HTCondor could not authenticate."""

_PATTERN = re.compile(r"[A-Za-z0-9.*?_\-\[\]!]{1,253}")
_LIKE_PATTERNS = re.compile(r"[A-Za-z0-9.*?_\-\[\]!{},; ]+")
_WORDS = frozenset(("true", "false", "undefined", "error", "none", "all"))
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+")
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_FORMS = (
    'write "*", host patterns such as [wn-0*, wn-117.example.org], a share such as "50%", or '
    "a ClassAd constraint"
)
_YEARS = re.compile(r"\{(year|previous_year)\}")


class WrongError(ValueError):
    """A value cannot be used; ``at`` is the path of the fault within it."""

    def __init__(self, message: str, *at: Union[str, int]) -> None:
        super().__init__(message)
        self.at = at


def absolute_path(text: str) -> Path:
    """Path of a file or folder."""
    path = Path(text)
    if not path.is_absolute() or not path.name:
        raise WrongError(f"{quoted(text)} is no absolute path; write one that begins with /")
    if not text.isprintable():
        raise WrongError(f"{quoted(text)} holds a character that cannot be seen; remove it")
    return path


def _text(pattern: str, problem: str) -> Callable[[str], str]:
    """Reader of text that has to match ``pattern``."""
    matches = re.compile(pattern).fullmatch

    def read(text: str) -> str:
        if not matches(text):
            raise WrongError(f"{quoted(text)} {problem}")
        return text

    return read


_HTTPS = r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/"
_CRIC_URL = re.compile(_HTTPS + r"[A-Za-z0-9._~%/+?&=;-]*")
_identity = _text(
    r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}",
    "is no identity; write it as HTCondor does, such as sharectl@example.org",
)


def _cric_url(url: str) -> str:
    if not _CRIC_URL.fullmatch(_YEARS.sub("", url)):
        raise WrongError(
            f"{quoted(url)} will not do; write https://HOST[:PORT]/PATH[?QUERY], without user; "
            "{year} stands for the year of the pledges, {previous_year} for the one before"
        )
    return url


def _known_identity(identity: str) -> str:
    if _identity(identity).rpartition("@")[2] == UNMAPPED:
        raise WrongError(
            f"{quoted(identity)} is the identity of all clients that HTCondor could not "
            "authenticate; give sharectl a token, and write its identity"
        )
    return identity


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MAX_EXPRESSION:
        raise WrongError("an expression is one line of text; write one, such as TARGET.RequestCpus")
    if "$" in text or text.rstrip().endswith("\\"):
        raise WrongError(f"{quoted(text)} has a macro or a continued line; write the whole value")
    return text.strip()


def read_share(value: Any) -> float:
    """Part of the nodes, such as ``"50%"``."""
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise WrongError('a share is a percentage in quotes; write such as "50%"')
    if Decimal(match[1]) > 100:  # noqa: PLR2004 - percent
        raise WrongError(f'{value} is more nodes than there are; write at most "100%"')
    return float(Decimal(match[1]) / 100)


def write_share(ratio: float) -> str:
    """Text that `read_share` reads as ``ratio``."""
    percent = Decimal(repr(float(ratio))) * 100
    return f"{percent.normalize():f}%"


def read_controlled(value: Any) -> Controlled:
    """Choice of nodes: a pattern, a list of patterns, a share, a constraint, or a mapping.

    A mapping has one of the keys ``hosts``, ``share`` and ``constraint``, for names that could be
    read both ways.
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, list):
        return _hosts(value)
    if isinstance(value, Mapping):
        return _explicit(value)
    raise WrongError(f"it selects no nodes; {_FORMS}")


def write_controlled(controlled: Controlled) -> Union[str, list[str], dict[str, Any]]:
    """Shortest value that `read_controlled` reads as ``controlled``."""
    if isinstance(controlled, ControlledShare):
        return write_share(controlled.ratio)
    if isinstance(controlled, ControlledConstraint):
        text = controlled.expression
        ambiguous = _PATTERN.fullmatch(text) or _SHARE.fullmatch(text)
        return {"constraint": text} if ambiguous else text
    return "*" if controlled.patterns == ("*",) else list(controlled.patterns)


def _of_text(value: str) -> Controlled:
    text = value.strip()
    if _SHARE.fullmatch(text):
        return ControlledShare(read_share(text))
    if text.lower() in _WORDS or _NUMBER.fullmatch(text):
        raise WrongError(f"{text} could be a host or an expression; {_FORMS}")
    if _PATTERN.fullmatch(text):
        return ControlledHosts((text,))
    if _LIKE_PATTERNS.fullmatch(text) and ("," in text or "{" in text):
        raise WrongError(
            "several hosts are a list, and braces are no pattern; write such as [wn-0*, "
            "wn-117.example.org]"
        )
    return _constraint(text)


def _hosts(value: Any) -> ControlledHosts:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not patterns:
        raise WrongError(
            'it names no host; write a list of host patterns, or "0%" to control no node'
        )
    for number, pattern in enumerate(patterns):
        if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
            raise WrongError(
                f"{quoted(str(pattern))} is no host pattern; write host names, with * ? [0-9] "
                "where they vary",
                number,
            )
    return ControlledHosts(tuple(patterns))


def _constraint(value: Any) -> ControlledConstraint:
    from sharectl.condor.expressions import constraint_fault

    if not isinstance(value, str) or not value.strip():
        raise WrongError("a constraint is a ClassAd expression; write such as t1_room == 3")
    text = value.strip()
    if len(text) > MAX_CONSTRAINT:
        raise WrongError(f"a constraint has at most {MAX_CONSTRAINT} characters; shorten it")
    if not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise WrongError(f"{quoted(text)} holds a character that cannot be seen; remove it")
    fault = constraint_fault(text)
    if fault:
        raise WrongError(f"{quoted(text)} {fault}; {_FORMS}")
    return ControlledConstraint(text)


_EXPLICIT: Mapping[str, Callable[[Any], Controlled]] = {
    "hosts": _hosts,
    "share": lambda value: ControlledShare(read_share(value)),
    "constraint": _constraint,
}


def _explicit(value: Mapping[Any, Any]) -> Controlled:
    keys = ", ".join(_EXPLICIT)
    unknown = [key for key in value if key not in _EXPLICIT]
    if unknown:
        raise WrongError(
            f"unknown key {quoted(str(unknown[0]))}; write one of {keys}", str(unknown[0])
        )
    if len(value) != 1:
        raise WrongError(f"a mapping has exactly one key here; write one of {keys}")
    key, content = next(iter(value.items()))
    try:
        return _EXPLICIT[key](content)
    except WrongError as error:
        raise WrongError(str(error), key, *error.at) from error


def _reserved(value: Any) -> Controlled:
    if value == []:
        raise WrongError(
            "it names no host; write a list of host patterns, or null to reserve no node"
        )
    return read_controlled(value)


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Notation:
    """Notation of a value."""

    words: str
    """Values that may be written, for the reference."""
    read: Callable[[Any], Any]
    """Value of what YAML has; raises `WrongError`."""
    write: Callable[[Any], Any] = _as_it_is
    """Plain data that ``read`` takes."""


_PATTERNS = "pattern, list of patterns, share, constraint"
NOTATIONS: Mapping[str, Notation] = {
    "share": Notation("share", read_share, write_share),
    "nodes": Notation(_PATTERNS, read_controlled, write_controlled),
    "reserved nodes": Notation(_PATTERNS, _reserved, write_controlled),
    "daemon": Notation(
        "host name or address",
        _text("[!-~]{1,256}", "is no name or address; write such as ap-1.example.org"),
    ),
    "pool name": Notation(
        "text",
        _text(
            r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}",
            "is no pool name; write letters, digits, _ . : and -, a letter or digit first, at most "
            "128",
        ),
    ),
    "cric name": Notation(
        "text",
        _text(
            r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]{0,99}",
            "is no name in CRIC; write it as CRIC shows it, such as IT-INFN-CNAF",
        ),
    ),
    "cric url": Notation("text", _cric_url),
    "proxy": Notation(
        "text",
        _text(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?", "is no proxy; write http://HOST:PORT"),
    ),
    "url": Notation(
        "text",
        _text(
            _HTTPS + r"[A-Za-z0-9._~%/+-]*[A-Za-z0-9._~%+-]",
            "will not do; write https://HOST[:PORT]/PATH, without user, query, comma or blank, "
            "such as https://cm.example.org/sharectl.txt",
        ),
    ),
    "identity": Notation("text", _known_identity),
    "expression": Notation("ClassAd expression", _one_line),
}
"""`Setting.kind` → its notation."""
