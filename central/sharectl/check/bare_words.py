"""Texts that lost their quotes in an expression, where HTCondor takes them for attributes."""

from __future__ import annotations

import re
from typing import Callable, NamedTuple, Optional

from sharectl.condor.expressions import split

_RUNS = re.compile(r"(?<![\w.$])'?([A-Za-z_]\w*)'?(?:\s*[-.@]\s*\w+)*(?!\s*\()(?!\w)")
"""A word, with what it takes for parts of it: ``physics-prod`` is a subtraction."""
STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
_SIGN = r"=\?=|=!=|[=!<>]=|[<>]|\bisn?t?\b"
_SIGNS = re.compile(_SIGN, re.IGNORECASE)
_BEFORE_TEXT = re.compile(rf"(?:{_SIGN}|[{{,?:])\s*$", re.IGNORECASE)
_AFTER_TEXT = re.compile(rf"\s*(?:[,}}]|(?:{_SIGN})\s*(?:MY|TARGET)\s*\.)", re.IGNORECASE)
"""Neighbours that a text may have, and hardly the name of an attribute."""
_NUMBER = r"\b(JobUniverse|JobStatus|Request\w+)\b"
_NUMBERS = re.compile(
    rf"{_NUMBER}\s*(?:{_SIGN})\s*$|^\s*(?:{_SIGN})\s*TARGET\s*\.\s*{_NUMBER}", re.IGNORECASE
)
"""Comparison before or after the word with an attribute of jobs that is a number."""
_BOOLEANS = {"yes": "True", "on": "True", "no": "False", "off": "False"}
_UNDEFINED = ", and a START that is undefined refuses every job"
_EFFECTS = {
    **dict.fromkeys(
        ("=?=", "is"), ", and =?= is True of every job that lacks what it is compared with"
    ),
    **dict.fromkeys(
        ("=!=", "isnt"), ", and =!= is True of every job that has what it is compared with"
    ),
}
_WORDS = frozenset({"true", "false", "undefined", "error", "my", "target"})


class Word(NamedTuple):
    """Text without quotes."""

    text: str
    """As HTCondor prints it, without blanks: ``physics-prod``."""
    corrected: str
    """The text to write in its place, or the assignment of which it is the value."""
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
    for clause in split(expression):
        masked = STRINGS.sub(lambda match: '"' * len(match[0]), clause)
        for run in _RUNS.finditer(masked):
            words = re.findall(r"\w+", run[0].lower())
            if name.lower() not in words or run[1].lower() in _WORDS or is_known(run[1]):
                continue
            text = re.sub(r"[\s']", "", run[0])
            corrected, is_whole = _BOOLEANS.get(text.lower(), f'"{text}"'), run[0] == masked.strip()
            if is_whole and not decides:
                return Word(text, f"{macro} = {corrected}")
            before, after = masked[: run.start()], masked[run.end() :]
            is_first = _AFTER_TEXT.match(after)
            is_boolean = is_whole and corrected in _BOOLEANS.values()
            if is_boolean or is_first or _BEFORE_TEXT.search(before):
                # Its own sign: after it, or else the last one before.
                signs = _SIGNS.findall(after)[:1] if is_first else _SIGNS.findall(before)[-1:]
                effect = _EFFECTS.get("".join(signs).lower(), _UNDEFINED) if decides else ""
                if _NUMBERS.search(before) or _NUMBERS.search(after):
                    corrected = "the number that it stands for"
                return Word(text, corrected, effect)
    return None
