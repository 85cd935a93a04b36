"""Files that are no configuration of HTCondor: what `sharectl consumption render` reads, and what is no text at all."""

from __future__ import annotations

import re
from pathlib import Path

from sharectl.errors import InputError

_TO_RENDER = re.compile(
    r"""^(?:startd|slot_types|["'](?:startd|slot_types)["'])\s*:\s*(?:\{.*|\#.*|&\w+\s*)?$""", re.MULTILINE
)
_BLANKS = "\t\n\r\f\v\x1b"
_MOST_ODD = 0.1
"""Part of a text that may be characters which no text has: a comment in another encoding has some."""


def refuse_others(content: str, path: Path) -> None:
    """InputError for what is no configuration; HTCondor would take YAML for one that sets nothing of ours."""
    odd = sum(not character.isprintable() and character not in _BLANKS for character in content)
    odd += content.count("\ufffd")
    if "\0" in content or odd > _MOST_ODD * len(content):
        raise InputError(
            [f"{path}: is no text, so it is no configuration; name HTCondor configuration, or a dump of it"]
        )
    if match := _TO_RENDER.search(content):
        line = content.count("\n", 0, match.start()) + 1
        name = path if str(path) != "-" else "FILE"
        shown = f"sharectl consumption render {name} | sharectl consumption check -"
        problem = f"{path}:{line}: is YAML for `sharectl consumption render`, and no configuration; render it first: {shown}"
        raise InputError([problem])
