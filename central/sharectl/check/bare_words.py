"""Texts that lost their quotes in an expression, where HTCondor takes them for attributes."""

from __future__ import annotations

import re
from typing import Callable, NamedTuple, Optional

from sharectl.condor.expressions import split

_RUN = r"(?<![\w.$])'?(?P<name>[A-Za-z_]\w*)'?(?:\s*[-.@]\s*\w+)*(?!\s*\()(?!\w)"
"""A word, with what it takes for parts of it: ``physics-prod`` is a subtraction."""
_RUNS = re.compile(_RUN)
STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
_IS = r"\bisn?t?\b"
_TOKENS = re.compile(rf"{STRINGS.pattern}|(?P<operator>{_IS})|(?P<run>{_RUN})", re.IGNORECASE)
_SIGN = rf"=\?=|=!=|[=!<>]=|[<>]|{_IS}"
_BEFORE_TEXT = re.compile(rf"(?:{_SIGN}|[{{,?:])\s*$", re.IGNORECASE)
_AFTER_TEXT = re.compile(rf"\s*(?:[,}}]|(?:{_SIGN})\s*(?:MY|TARGET)\s*\.)", re.IGNORECASE)
"""Neighbours that a text may have, and hardly the name of an attribute."""
_LIST = re.compile(
    r'(\bstringList\w+\(.*?)\{\s*((?:"[^"{}]*"[\s,]*)+)\}', re.DOTALL | re.IGNORECASE
)
_BOOLEANS = {
    **dict.fromkeys(("yes", "on", "t", "y"), "True"),
    **dict.fromkeys(("no", "off", "f", "n"), "False"),
}
_OPERATORS = {"is": "=?=", "isnt": "=!="}
_WORDS = frozenset({"true", "false", "undefined", "error", "my", "target"})


class Word(NamedTuple):
    """Text without quotes."""

    text: str
    """As HTCondor prints it, without blanks: ``physics-prod``."""
    corrected: str
    """Clause that it stands in, or assignment of which it is the value, with quotes."""


def bare_word(
    expression: str, name: str, macro: str, is_known: Callable[[str], bool]
) -> Optional[Word]:
    """Text that an attribute without scope is meant to be; None if it is hardly one.

    Parameters
    ----------
    expression
        Value of ``macro``, as HTCondor prints it.
    is_known
        Tells if a node or a job may have an attribute of that name.
    """
    for clause in split(expression):
        masked = STRINGS.sub(lambda match: '"' * len(match[0]), clause)
        for run in _RUNS.finditer(masked):
            words = re.findall(r"\w+", run[0].lower())
            if name.lower() not in words or not _is_lost(run["name"], is_known):
                continue
            corrected = _corrected(clause, is_known)
            if run[0] == masked.strip() and not macro.upper().endswith(("START", "_EXPR")):
                return Word(_text(run[0]), f"{macro} = {corrected}")
            before, after = masked[: run.start()], masked[run.end() :]
            if _BEFORE_TEXT.search(before) or _AFTER_TEXT.match(after):
                return Word(_text(run[0]), corrected)
    return None


def _is_lost(name: str, is_known: Callable[[str], bool]) -> bool:
    return name.lower() not in _WORDS and not is_known(name)


def _corrected(clause: str, is_known: Callable[[str], bool]) -> str:
    """The clause with quotes around each word that nothing has."""

    def quoted(match: re.Match[str]) -> str:
        if match["operator"]:
            return _OPERATORS.get(match[0].lower(), match[0])
        if match["run"] is None or not _is_lost(match["name"], is_known):
            return match[0]
        text = _text(match[0])
        return _BOOLEANS.get(text.lower(), f'"{text}"')

    return _LIST.sub(_joined, _TOKENS.sub(quoted, clause))


def _joined(match: re.Match[str]) -> str:
    """``stringListMember(…, {"a", "b"})`` with the one text that the function takes."""
    names = ",".join(re.findall(r'"([^"]*)"', match[2]))
    return f'{match[1]}"{names}"'


def _text(run: str) -> str:
    return re.sub(r"[\s']", "", run)
