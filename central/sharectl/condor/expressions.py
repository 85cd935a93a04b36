"""Clauses of expressions as HTCondor prints them, and the attributes that they ask for.

Text in, names out: whether a clause is true is for HTCondor's own library to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Callable, NamedTuple, Optional

from sharectl.condor.ads import classads

MY, TARGET, UNSCOPED = "MY", "TARGET", ""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:\\.|[^"\\])*")
    | '(?P<quoted>(?:\\.|[^'\\])*)'
    | (?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d+)?)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<sign>=\?=|=!=|&&|\|\||.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_AS_WRITTEN = re.compile(
    r"\bevalInEachContext\(\s*unparse\(\s*(?P<name>\w+)\s*\)\s*,\s*\{\s*TARGET\s*\}\s*\)",
    re.IGNORECASE,
)
"""Text of an attribute of the job: there HTCondor wants the name without its scope."""
_NO_ATTRIBUTES = frozenset({"true", "false", "undefined", "error", "is", "isnt", "parent"})


class Reference(NamedTuple):
    """An attribute that an expression asks for."""

    scope: str
    """`MY`, `TARGET` or `UNSCOPED`."""
    name: str
    """As written; names are compared without case."""


@lru_cache(maxsize=10_000)
def references(expression: str) -> tuple[Reference, ...]:
    """Attributes that an expression, as HTCondor prints it, asks for: in order, each once.

    ``a.b`` asks for ``a`` only, unless ``a`` is a scope; names defined within a record are taken
    for attributes too.
    """
    scoped = _AS_WRITTEN.sub(rf"{TARGET}.\g<name>", expression)
    tokens = [match for match in _TOKEN.finditer(scoped) if match.lastgroup is not None]
    signs = ["", *(token["sign"] or "" for token in tokens), ""]
    names: dict[Reference, None] = {}
    scope = UNSCOPED
    for index, token in enumerate(tokens):
        name = token["name"] or token["quoted"]
        before, after = signs[index], signs[index + 2]
        if name is None or (token["name"] and (after == "(" or name.lower() in _NO_ATTRIBUTES)):
            continue
        if name.upper() in (MY, TARGET) and after == "." and before != ".":
            scope = name.upper()
            continue
        if before != "." or scope:
            names[Reference(scope, name)] = None
        scope = UNSCOPED
    return tuple(names)


_MOMENT = re.compile(r"time|currenttime", re.IGNORECASE)


def with_clock(expression: str, clock: str) -> str:
    """``expression``, as HTCondor prints it, with ``clock`` for time() and CurrentTime."""
    tokens = [match for match in _TOKEN.finditer(expression) if match.lastgroup is not None]
    texts = [token["sign"] or "" for token in tokens] + ["", ""]
    parts, end = [], 0
    for index, token in enumerate(tokens):
        name = token["name"] or token["quoted"] or ""
        if not _MOMENT.fullmatch(name):
            continue
        call = "".join(texts[index + 1 : index + 3]) == "()"
        if call == (name.lower() == "time"):
            begin = token.start("name") if token["name"] else token.start("quoted") - 1
            parts += [expression[end:begin], clock]
            end = (tokens[index + 2] if call else token).end()
    return "".join((*parts, expression[end:]))


_MAX_CLAUSES, _MAX_ALTERNATIVES = 200, 20
"""No conjunction and no disjunction that a person wrote has more; a longer one is one clause."""
MAX_CHARACTERS = 65_536
"""A longer expression is one clause."""
_MAX_PARENTHESES = 32
"""Pairs that are taken from around an expression, each of which is a look at all of it."""
_MAX_DEPTH = 8
"""Attributes that may stand for each other."""

_COMMENT = re.compile(r'(?P<string>"(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LOOSER = {"&&": frozenset(("||", "?", ":")), "||": frozenset(("?", ":"))}
"""Operator -> those that bind less: where one of them stands, the whole is one clause."""

_NAME = re.compile(r"(?:MY\.)?(?P<name>[A-Za-z_]\w*)", re.IGNORECASE)
_WRAPPED = re.compile(
    r"(?P<inner>.+?)\s*(?P<wrapper>(?:=!=|\bisnt\b)\s*false|(?:=\?=|\bis\b|==)\s*true)",
    re.IGNORECASE | re.DOTALL,
)
_LITERALS = frozenset(("true", "false", "undefined", "error"))
_ALWAYS_OPENED = frozenset(("start", "requirements"))
"""Names whose content is shown even if it is a single clause."""
_OURS = (
    ("target", re.compile(r"\bt1_Target(?:Admits|Active|Groups|cores)\b", re.IGNORECASE)),
    ("grace", re.compile(r"\b(?:t1_GraceAdmits|MC_GRACE|t1_McRoom\w*)\b", re.IGNORECASE)),
    ("overheat", re.compile(r"\b(?:t1_CoolAdmits|t1_overheat)\b", re.IGNORECASE)),
    ("sharectl", re.compile(r"\bMY\.t1_\w+", re.IGNORECASE)),
)
_RESOURCE = re.compile(
    r"\(*\s*(?:(?:TARGET\.)?(\w+)\s*>=\s*(?:MY\.)?Request\1"
    r"|(?:MY\.)?Request(\w+)\s*<=\s*(?:TARGET\.)?\2)\s*\)*",
    re.IGNORECASE,
)
_GPUS_THAT_FIT = re.compile(r"\bcountMatches\s*\(.*\bRequestGPUs\b", re.IGNORECASE | re.DOTALL)


class Clause(NamedTuple):
    """One of the expressions that all have to be true."""

    text: str
    through: tuple[str, ...] = ()
    """Attributes in lower case that stand for it, outermost first: ``("start", "admits")``."""


def split(expression: str, depth: int = _MAX_DEPTH) -> tuple[str, ...]:
    """Clauses of ``expression`` without parentheses; itself if it is no conjunction."""
    parts = _parts(expression)
    if len(parts) == 1 or not depth:
        return (_bare(expression),)
    return tuple(clause for part in parts for clause in split(part, depth - 1))


def alternatives(expression: str) -> tuple[str, ...]:
    """Expressions of which one has to be true; ``expression`` itself if it is no disjunction."""
    parts = _parts(expression, "||")
    return parts if len(parts) <= _MAX_ALTERNATIVES else (_bare(expression),)


def conjunction(clauses: Iterable[str]) -> str:
    """Expression that is true if all ``clauses`` are."""
    return " && ".join(f"({clause})" for clause in clauses) or "true"


def clauses(expression: str, attribute: Callable[[str], Optional[str]]) -> tuple[Clause, ...]:
    """Clauses of ``expression``, and those behind attributes, whose text ``attribute`` returns."""
    return tuple(_opened(expression, attribute, ()))


def code_of(clause: Clause) -> str:
    """Code of `sharectl.explain.job` for a slot's clause that is not true: whose it is."""
    for code, pattern in _OURS:
        if pattern.search(clause.text):
            return code
    return "site-start" if "start" in clause.through else "slot-requirements"


def resource_of(clause: Clause) -> Optional[str]:
    """Resource in lower case that a clause compares a request with; None for other clauses."""
    if _GPUS_THAT_FIT.search(clause.text):
        return "gpus"
    match = _RESOURCE.fullmatch(clause.text)
    return (match[1] or match[2]).lower() if match else None


def name_of(text: str) -> Optional[str]:
    """Attribute of the ad itself that ``text`` is a mere reference to, in lower case."""
    match = _NAME.fullmatch(text.strip())
    return None if match is None or match["name"].lower() in _LITERALS else match["name"].lower()


def _opened(
    expression: str, attribute: Callable[[str], Optional[str]], through: tuple[str, ...]
) -> Iterator[Clause]:
    parts = split(expression)
    for part in parts if len(parts) <= _MAX_CLAUSES else (expression,):
        wrapped = _WRAPPED.fullmatch(part)
        name = name_of(_bare(wrapped["inner"]) if wrapped else part)
        inside = name and name not in through and len(through) < _MAX_DEPTH
        content = attribute(name) if name and inside else None
        if name is None or content is None:
            yield Clause(part, through)
            continue
        inner = tuple(_opened(content, attribute, (*through, name)))
        worth = (
            len(inner) > 1
            or name in _ALWAYS_OPENED
            or any(len(clause.through) > len(through) + 1 for clause in inner)
        )
        if not worth or len(inner) > _MAX_CLAUSES:
            yield Clause(part, through)
        elif wrapped:
            # Not false if none of its clauses is; the same for "is true".
            yield from (
                Clause(f"({clause.text}) {wrapped['wrapper']}", clause.through) for clause in inner
            )
        else:
            yield from inner


def _signs(text: str) -> Iterator[tuple[re.Match[str], str, int]]:
    """Signs outside of strings and names, each with the number of brackets open after it."""
    level = 0
    for token in _TOKEN.finditer(text):
        if token["sign"]:
            level += (token["sign"] in _OPENING) - (token["sign"] in _CLOSING)
            yield token, token["sign"], level


@lru_cache(maxsize=4096)
def _parts(text: str, operator: str = "&&") -> tuple[str, ...]:
    """Texts between operators that are in no brackets; all of it if a looser one is beside."""
    text = _bare(text)
    begin, parts = 0, []
    for token, sign, level in _signs(text) if len(text) <= MAX_CHARACTERS else ():
        if not level and sign in _LOOSER[operator]:
            return (text,)
        if not level and sign == operator:
            parts.append(text[begin : token.start()].strip())
            begin = token.end()
    last = text[begin:].strip()
    return (*parts, last) if last and all(parts) else (text,)


@lru_cache(maxsize=1024)
def _bare(text: str) -> str:
    """``text`` without parentheses that are around all of it."""
    if len(text) > MAX_CHARACTERS:
        return text
    text = text.strip()
    for _ in range(_MAX_PARENTHESES):
        if not text.startswith("("):
            break
        end = next((token.end() for token, _, level in _signs(text) if not level), 0)
        if end != len(text) or not text.endswith(")"):
            break
        text = text[1:-1].strip()
    return text


def is_balanced(text: str) -> bool:
    """True if each bracket is closed after it is opened, outside of strings and comments."""
    levels = [level for *_, level in _signs(_COMMENT.sub(lambda m: m["string"] or " ", text))]
    return not levels or (min(levels) >= 0 and levels[-1] == 0)


_WORD = re.compile(r"[A-Za-z_]\w*")


@lru_cache(maxsize=10_000)
def words_of_text(text: str) -> frozenset[str]:
    """Names in an expression, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def constraint_fault(expression: str) -> Optional[str]:
    """Why HTCondor cannot use ``expression`` as a constraint, after its text; None if it can."""
    try:
        constant = classads().ExprTree(expression).eval(classads().ClassAd())
    except Exception as error:  # noqa: BLE001 - the bindings raise several kinds, some of them bare
        why = (str(error).splitlines() or [type(error).__name__])[0]
        return f"is neither host patterns nor a share, and no ClassAd expression ({why})"
    if isinstance(constant, (str, list, dict, classads().ClassAd)):
        return "is true on no node"
    return None
