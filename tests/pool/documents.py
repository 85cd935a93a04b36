"""Code blocks of the documents, and the commands in them, as a reader goes through them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt

from tests.pool.sharectl_command import CHECKOUT


class Block(NamedTuple):
    """Code block of a page."""

    language: str
    """``yaml`` for keys of the configuration, else it has commands."""
    text: str


def blocks(page: str, heading: str) -> list[Block]:
    """Blocks that a reader uses, below a heading of the second level of a page of docs/."""
    text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n## {heading}")
    tokens = MarkdownIt().parse(rest.partition("\n## ")[0])
    listed = [
        Block(token.info, token.content)
        for token in tokens
        if token.type in ("fence", "code_block") and token.info in ("", "sh", "yaml")
    ]
    assert listed, f"{page}: {heading}"
    return listed


def commands(block: Block) -> Iterator[str]:
    """Commands of a block, those of several lines whole."""
    lines = iter(block.text.splitlines())
    for line in lines:
        command = line
        while command.endswith("\\"):
            command += f"\n{next(lines)}"
        if end := re.search(r"<<'(\w+)'", command):
            while not command.endswith(f"\n{end[1]}"):
                command += f"\n{next(lines)}"
        yield command
