"""What is wrong with the words of a command, and what to write instead, where argparse leaves it to guessing."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Optional

_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_WITHOUT_VERB = ("-h", "--help", "--version")
_SHOWN = 60
"""Characters of a word that are compared, and shown."""


WITH_ACTIONS = ("explain", "ledger", "check", "consumption")
"""Verbs whose second word says what is to be done."""


def misplaced(arguments: Sequence[str], verbs: Collection[str]) -> Optional[str]:
    """Fault of the first words, if a verb or its action is not among them; None if they may stand there."""
    first, second = (*arguments[:2], "", "")[:2]
    if first in WITH_ACTIONS and second.startswith("-") and second not in _WITHOUT_VERB:
        option = second.partition("=")[0][:_SHOWN]
        return (
            f"options are written behind the second word: sharectl {first} WORD {option} ... "
            f"(`sharectl {first} --help` has the words)"
        )
    if not first or first in _WITHOUT_VERB or first in verbs:
        return None
    if first.startswith("-"):
        verb = next((word for word in arguments if word in verbs), "VERB")
        option = first.partition("=")[0][:_SHOWN]
        return f"options are written behind the verb: sharectl {verb} {option} ..."
    near = get_close_matches(first[:_SHOWN], verbs, 1)
    instead = f"write {near[0]}" if near else f"it is one of {', '.join(verbs)}"
    return f"there is no verb {first[:_SHOWN]!r}; {instead}"


def unknown(words: Sequence[str], command: str, help_text: str) -> str:
    """What is wrong with ``words``, which ``command`` does not know; ``help_text`` has options that it does."""
    known = sorted(set(_OPTION.findall(help_text)))
    options = [word.partition("=")[0][:_SHOWN] for word in words if word.startswith("-")]
    others = [word[:_SHOWN] for word in words if not word.startswith("-")] if not options else []
    said = []
    for option in options:
        near = get_close_matches(option, known, 1)
        said.append(f"there is no option {option}" + (f"; write {near[0]}" if near else ""))
    said += [f"{word!r} is one word too many" for word in others]
    return f"{'; '.join(said)} (`{command} --help` has what there is)"
