"""Which attributes an expression asks for, and of whom. Text as HTCondor prints an expression in, names out."""

from __future__ import annotations

import re
from dataclasses import dataclass

MY, TARGET, UNSCOPED = "MY", "TARGET", ""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:\\.|[^"\\])*")
    | '(?P<quoted>(?:\\.|[^'\\])*)'
    | (?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d+)?)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<sign>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_AS_WRITTEN = re.compile(
    r"\bevalInEachContext\(\s*unparse\(\s*(?P<name>\w+)\s*\)\s*,\s*\{\s*TARGET\s*\}\s*\)", re.IGNORECASE
)
"""Text of an attribute of the job, not evaluated: only there HTCondor wants the name without its scope."""
_WORDS = frozenset({"true", "false", "undefined", "error", "is", "isnt", "parent"})


@dataclass(frozen=True)
class Reference:
    """An attribute that an expression asks for."""

    scope: str
    """`MY`, `TARGET` or `UNSCOPED`."""
    name: str
    """As written; names are compared without case."""


def references(expression: str) -> tuple[Reference, ...]:
    """Attributes that ``expression`` asks for, in order, each once.

    Parameters
    ----------
    expression
        As HTCondor prints an expression, so that it is known to be one. ``a.b`` asks for ``a`` only, unless ``a``
        is a scope; names defined within a record are taken for attributes too.
    """
    scoped = _AS_WRITTEN.sub(rf"{TARGET}.\g<name>", expression)
    tokens = [match for match in _TOKEN.finditer(scoped) if match.lastgroup is not None]
    signs = ["", *(token["sign"] or "" for token in tokens), ""]
    found: dict[Reference, None] = {}
    scope = UNSCOPED
    for index, token in enumerate(tokens):
        name = token["name"] or token["quoted"]
        before, after = signs[index], signs[index + 2]
        if name is None or (token["name"] and (after == "(" or name.lower() in _WORDS)):
            continue
        if name.upper() in (MY, TARGET) and after == "." and before != ".":
            scope = name.upper()
            continue
        if before != "." or scope:
            found[Reference(scope, name)] = None
        scope = UNSCOPED
    return tuple(found)
