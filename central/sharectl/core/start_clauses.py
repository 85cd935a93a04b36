"""The clauses of an expression that all have to be true, also where attributes stand for some of them, and whose they are.

An expression is text as HTCondor prints it. What is split here is only named here: whether a clause is true is for
HTCondor's own library to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Optional

MAX_CLAUSES = 200
"""No expression that a person wrote has more; what is beyond is one clause."""

MAX_CHARACTERS = 65_536
"""A longer expression is one clause."""

MAX_PARENTHESES = 32
"""So many pairs are taken from around an expression, each of which is a look at all of it."""

MAX_DEPTH = 8
"""How many attributes may stand for each other."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|=\?=|=!=|&&|\|\||[()\[\]{}?:]|.', re.DOTALL)
_COMMENT = re.compile(r'(?P<string>"(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LOOSER = frozenset(("||", "?", ":"))
"""Operators that bind less than &&: where one of them stands, the whole is one clause."""

_NAME = re.compile(r"(?:MY\.)?(?P<name>[A-Za-z_]\w*)", re.IGNORECASE)
_WRAPPED = re.compile(
    r"(?P<inner>.+?)\s*(?P<wrapper>(?:=!=|\bisnt\b)\s*false|(?:=\?=|\bis\b|==)\s*true)",
    re.IGNORECASE | re.DOTALL,
)
_WORDS = frozenset(("true", "false", "undefined", "error"))
_ALWAYS_OPENED = frozenset(("start", "requirements"))
"""Names that tell nobody anything: what they stand for is shown even if it is a single clause."""

_OURS = (
    ("target", re.compile(r"\bt1_Target(?:Admits|Active|Groups|cores)\b", re.IGNORECASE)),
    ("grace", re.compile(r"\b(?:t1_GraceAdmits|MC_GRACE|t1_McRoom\w*)\b", re.IGNORECASE)),
    ("overheat", re.compile(r"\b(?:t1_CoolAdmits|t1_overheat)\b", re.IGNORECASE)),
    ("sharectl", re.compile(r"\bMY\.t1_\w+", re.IGNORECASE)),
)
_RESOURCE = re.compile(
    r"\(*\s*(?:TARGET\.)?(?P<one>\w+)\s*>=\s*(?:MY\.)?Request(?P<other>\w+)\s*\)*"
    r"|\(*\s*(?:MY\.)?Request(?P<fore>\w+)\s*<=\s*(?:TARGET\.)?(?P<aft>\w+)\s*\)*",
    re.IGNORECASE,
)
_GPUS_THAT_FIT = re.compile(r"\bcountMatches\s*\(.*\bRequestGPUs\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Clause:
    """One of the expressions that all have to be true."""

    text: str
    through: tuple[str, ...] = ()
    """Attributes, in lower case, that stand for it, the outermost first: ``("start", "siteadmits")``."""


def split(expression: str) -> tuple[str, ...]:
    """Clauses of ``expression``, without the parentheses around them; itself if it is no conjunction."""
    return tuple(_split(expression, MAX_DEPTH))


def clauses(expression: str, attribute: Callable[[str], Optional[str]]) -> tuple[Clause, ...]:
    """Clauses of ``expression``, those included that attributes stand for.

    Parameters
    ----------
    attribute
        Returns the expression of an attribute of the ad, None if it has none.
    """
    return tuple(_opened(expression, attribute, ()))


def code_of(clause: Clause) -> str:
    """Code of `sharectl.core.job_reasons` for a slot's clause that is not true: whose it is."""
    for code, pattern in _OURS:
        if pattern.search(clause.text):
            return code
    return "site-start" if "start" in clause.through else "slot-requirements"


def resource_of(clause: Clause) -> Optional[str]:
    """Resource in lower case that a job's clause compares its request with; None for any other clause."""
    if _GPUS_THAT_FIT.search(clause.text):
        return "gpus"
    found = _RESOURCE.fullmatch(clause.text)
    if found is None:
        return None
    one, other = (found["one"], found["other"]) if found["one"] else (found["fore"], found["aft"])
    return one.lower() if one.lower() == other.lower() else None


def name_of(text: str) -> Optional[str]:
    """Attribute of the ad itself that ``text`` is a mere reference to, in lower case."""
    found = _NAME.fullmatch(text.strip())
    return None if found is None or found["name"].lower() in _WORDS else found["name"].lower()


def _opened(
    expression: str, attribute: Callable[[str], Optional[str]], through: tuple[str, ...]
) -> Iterator[Clause]:
    parts = split(expression)
    if len(parts) > MAX_CLAUSES:
        parts = (expression,)
    for part in parts:
        wrapped = _WRAPPED.fullmatch(part)
        name = name_of(_bare(wrapped["inner"]) if wrapped else part)
        content = attribute(name) if name and name not in through and len(through) < MAX_DEPTH else None
        inner = (
            () if name is None or content is None else tuple(_opened(content, attribute, (*through, name)))
        )
        worth = (
            len(inner) > 1
            or (name in _ALWAYS_OPENED)
            or any(len(one.through) > len(through) + 1 for one in inner)
        )
        if not inner or not worth or len(inner) > MAX_CLAUSES:
            yield Clause(part, through)
        elif wrapped:
            # Not false if none of its clauses is; the same for "is true".
            yield from (Clause(f"({one.text}) {wrapped['wrapper']}", one.through) for one in inner)
        else:
            yield from inner


def _split(expression: str, depth: int) -> Iterator[str]:
    bare = _bare(expression) if len(expression) <= MAX_CHARACTERS else expression
    parts = _parts(bare) if len(bare) <= MAX_CHARACTERS else (bare,)
    if len(parts) == 1 or not depth:
        yield bare
        return
    for part in parts:
        yield from _split(part, depth - 1)


@lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[str, ...]:
    """What stands between the && that are in no brackets; all of it where something looser stands beside them."""
    level, begin, parts = 0, 0, []
    for token in _TOKEN.finditer(text):
        found = token.group()
        if found in _OPENING:
            level += 1
        elif found in _CLOSING:
            level -= 1
        elif not level and found in _LOOSER:
            return (text,)
        elif not level and found == "&&":
            parts.append(text[begin : token.start()].strip())
            begin = token.end()
    last = text[begin:].strip()
    return (*parts, last) if last and all(parts) else (text,)


def _bare(text: str) -> str:
    """``text`` without parentheses that are around all of it."""
    text = text.strip()
    for _ in range(MAX_PARENTHESES):
        if not (text.startswith("(") and text.endswith(")") and _closes_last(text)):
            break
        text = text[1:-1].strip()
    return text


def is_balanced(text: str) -> bool:
    """Whether each bracket is closed after it is opened; those in strings and comments do not count."""
    level = 0
    for token in _TOKEN.finditer(_COMMENT.sub(_kept_string, text)):
        found = token.group()
        level += (found in _OPENING) - (found in _CLOSING)
        if level < 0:
            return False
    return not level


def _kept_string(match: re.Match[str]) -> str:
    return match["string"] or " "


def _closes_last(text: str) -> bool:
    """Whether the parenthesis that ``text`` begins with is closed by its last character."""
    level = 0
    for token in _TOKEN.finditer(text):
        found = token.group()
        level += (found in _OPENING) - (found in _CLOSING)
        if not level:
            return token.end() == len(text)
    return False
