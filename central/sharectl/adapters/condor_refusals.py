"""What HTCondor's parser says of a configuration that it refuses, told of the operator's own files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharectl.adapters.condor_files import MAX_BYTES
from sharectl.adapters.condor_process import UnreadableConfigurationError
from sharectl.adapters.files import read_regular
from sharectl.adapters.wording import quoted

_NEXT = re.compile(r"; (?=Config source |Configuration Error |Error: )")
_AT = re.compile(
    r'(?:Config source (?P<kind>Error|Warning) "(?P<file>[^"]*)", Line (?P<line>\d+)(?:, Include Depth \d+)?: ?'
    r"|Configuration Error Line (?P<last_line>\d+) while reading config source (?P<last_file>[^;]+);? ?)(?P<reason>.*)",
    re.DOTALL,
)
_PREFIX = re.compile(r"(?:Error: |Config source )")


@dataclass(frozen=True)
class Given:
    """A file that an operator has given."""

    name: str
    """As the operator calls it."""
    lines: Sequence[str]


def given_file(path: Path) -> Given:
    """A file under its own name; without lines if it cannot be read."""
    try:
        content, _ = read_regular(path, MAX_BYTES)
    except OSError:
        content = None
    return Given(str(path), (content or b"").decode("utf-8", "replace").splitlines())


def retold(
    error: UnreadableConfigurationError, given: Mapping[str, Given], hidden: str = ""
) -> UnreadableConfigurationError:
    """The same refusal with its reasons alone, at the innermost line that they are about.

    Parameters
    ----------
    given
        File, as HTCondor calls it → the operator's; the line of one of them is shown where HTCondor gives no reason.
    hidden
        Folder of files that are not the operator's; empty for none.
    """
    pieces = [piece for piece in _pieces(str(error)) if not piece.is_warning]
    if not any(piece.file for piece in pieces):
        return error
    reasons = "; ".join(dict.fromkeys(piece.reason for piece in pieces if piece.reason))
    where = next((piece for piece in pieces if piece.line and not piece.is_in(hidden, given)), None)
    if where is None:
        return UnreadableConfigurationError(reasons or "it gives no reason")
    own = given.get(where.file)
    text = own.lines[where.line - 1].strip() if own and where.line <= len(own.lines) else ""
    unread = f"it cannot read {quoted(text)}" if text else "it cannot read that line"
    return UnreadableConfigurationError(reasons or unread, f"{own.name if own else where.file}:{where.line}")


@dataclass(frozen=True)
class _Piece:
    """A line of what it says."""

    reason: str
    file: str = ""
    line: int = 0
    is_warning: bool = False

    def is_in(self, hidden: str, given: Mapping[str, Given]) -> bool:
        """Whether it is about a file that is not the operator's."""
        return bool(hidden) and self.file.startswith(f"{hidden}/") and self.file not in given


def _pieces(text: str) -> Iterator[_Piece]:
    for part in _NEXT.split(text):
        match = _AT.fullmatch(part)
        if match is None:
            yield _Piece(_PREFIX.sub("", part, count=1))
            continue
        yield _Piece(
            match["reason"].strip(),
            match["file"] or match["last_file"] or "",
            int(match["line"] or match["last_line"]),
            match["kind"] == "Warning",
        )
