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
_SIGNS = re.compile(_SIGN, re.IGNORECASE)
_SIDE = _RUN.replace("?P<name>", "?:")
_PAIR = re.compile(rf"({_SIDE})\s*(?:{_SIGN})\s*({_SIDE})", re.IGNORECASE)
"""Comparison of two words."""
_ATTRIBUTE_LIKE = re.compile(r"[A-Z]\w*[a-z]\w*")
"""Spelling of most attributes: ``JobFlavour``, neither ``prod`` nor ``PROD``."""
_NUMBERS = {
    # Attribute of a job that is a number → its values by name.
    "jobuniverse": {
        "standard": 1,
        "vanilla": 5,
        "docker": 5,
        "container": 5,
        "scheduler": 7,
        "grid": 9,
        "java": 10,
        "parallel": 11,
        "local": 12,
        "vm": 13,
    },
    "jobstatus": {"idle": 1, "running": 2, "removed": 3, "completed": 4, "held": 5},
}
_ATTRIBUTE = (
    r"\b(?:(?:MY|TARGET)\.)?(?P<name>(?:JobUniverse|JobStatus|Request(?:Cpus|Memory|Disk|GPUs)))\b"
)
_TO_TEXT = rf"(?P<sign>\s*(?:{_SIGN})\s*)"
_COMPARED = (
    re.compile(rf'{_ATTRIBUTE}{_TO_TEXT}"(?P<text>\w+)"', re.IGNORECASE),
    re.compile(rf'"(?P<text>\w+)"{_TO_TEXT}{_ATTRIBUTE}', re.IGNORECASE),
)
_REFUSES = ", and a START that is undefined refuses every job"
_EFFECTS = {
    "=?=": ", and =?= is True of every job that lacks what it is compared with",
    "=!=": ", and =!= is True of every job that has what it is compared with",
}
_WORDS = frozenset({"true", "false", "undefined", "error", "my", "target"})


class Word(NamedTuple):
    """Text without quotes."""

    text: str
    """As HTCondor prints it, without blanks: ``physics-prod``."""
    corrected: str
    """Clause that it stands in, or assignment of which it is the value, with quotes."""
    effect: str = ""
    """Consequence in the words of a finding."""


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
    decides = macro.upper().endswith(("START", "_EXPR"))
    for whole in split(expression):
        clause, other = _scoped(whole, is_known)
        masked = STRINGS.sub(lambda match: '"' * len(match[0]), clause)
        for run in _RUNS.finditer(masked):
            words = re.findall(r"\w+", run[0].lower())
            if name.lower() not in words or not _is_lost(run["name"], is_known):
                continue
            corrected = _corrected(clause, is_known)
            if run[0] == masked.strip() and not decides:
                return Word(_text(run[0]), f"{macro} = {corrected}")
            before, after = masked[: run.start()], masked[run.end() :]
            is_boolean = run[0] == masked.strip() and corrected in _BOOLEANS.values()
            if is_boolean or _BEFORE_TEXT.search(before) or _AFTER_TEXT.match(after):
                # Its own sign: after it, or else the last one before.
                is_first = _AFTER_TEXT.match(after)
                signs = _SIGNS.findall(after)[:1] if is_first else _SIGNS.findall(before)
                sign = _OPERATORS.get(signs[-1].lower(), signs[-1]) if signs else ""
                effect = _EFFECTS.get(sign, _REFUSES) if decides else ""
                alternative = f", or {_corrected(other, is_known)}" if other else ""
                return Word(_text(run[0]), corrected + alternative, effect)
    return None


def _scoped(clause: str, is_known: Callable[[str], bool]) -> tuple[str, str]:
    """The clause with TARGET. before one of two words that are compared, and the other reading.

    The one that is spelled as attributes are is one. Where neither is, or both are, the left one
    probably is, and the clause may be read the other way too.
    """
    pair = _PAIR.search(STRINGS.sub(lambda match: '"' * len(match[0]), clause))
    words = [re.split(r"\W+", text.lstrip("'"))[0] for text in pair.groups()] if pair else []
    if pair is None or not all(_is_lost(word, is_known) for word in words):
        return clause, ""
    is_left, is_right = (bool(_ATTRIBUTE_LIKE.fullmatch(text)) for text in pair.groups())
    first, second = (
        f"{clause[: pair.start(side)]}TARGET.{clause[pair.start(side) :]}" for side in (1, 2)
    )
    if is_left == is_right:
        return first, second
    return (first if is_left else second), ""


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

    corrected = _LIST.sub(_joined, _TOKENS.sub(quoted, clause))
    for pattern in _COMPARED:
        corrected = pattern.sub(_with_number, corrected)
    return corrected


def _with_number(match: re.Match[str]) -> str:
    """A comparison of an attribute that is a number, with the number in the place of a text."""
    number = _NUMBERS.get(match["name"].lower(), {}).get(match["text"].lower(), "NUMBER")
    return match[0].replace(f'"{match["text"]}"', str(number))


def _joined(match: re.Match[str]) -> str:
    """``stringListMember(…, {"a", "b"})`` with the one text that the function takes."""
    names = ",".join(re.findall(r'"([^"]*)"', match[2]))
    return f'{match[1]}"{names}"'


def _text(run: str) -> str:
    return re.sub(r"[\s']", "", run)
