"""Where HTCondor's configuration files say what: only to name the place of a finding, never to know a value.

What a macro is worth, HTCondor's own parser says (`condor_config`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from sharectl.adapters.files import read_regular

_ASSIGNMENT = re.compile(r"\s*(?P<name>[\w.]+)\s*(?:@=(?P<tag>\w+)\s*|(?P<sign>[=:])(?P<text>.*))", re.DOTALL)
_INCLUDE = re.compile(r"\s*@?include\s*(?:ifexist\s*)?:\s*(?P<path>[^|\s](?:[^|]*[^|\s])?)\s*", re.IGNORECASE)
_STATEMENT = re.compile(r"\s*@?(use|include|if|elif|else|endif|error|warning)\b(?!\s*=)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\w*\(\s*(?P<name>[\w.]+)(?=(?P<open>\$?))")
MAX_INCLUDES = 64
MAX_BYTES = 2**24
"""Part of a file that is looked at."""


@dataclass(frozen=True)
class Definition:
    """One assignment of a macro, or another statement that may refer to some."""

    name: str
    """Empty for a statement that assigns nothing: use, if, error, warning."""
    text: str
    """What was assigned, or the statement, as written, not expanded."""
    file: Path
    line: int
    """Where it begins, from 1."""

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"

    @property
    def references(self) -> frozenset[str]:
        """Macros that it is made of, lower case; ``a_*`` for a name such as ``a_$(B)``."""
        return frozenset(
            match["name"].lower() + ("*" if match["open"] else "") for match in _REFERENCE.finditer(self.text)
        )

    @property
    def appends(self) -> bool:
        """Whether it keeps what the macro was before."""
        return self.name.lower() in self.references


def definitions_in(files: Iterable[Path]) -> tuple[Definition, ...]:
    """Every assignment in ``files`` and in what they include, in the order of reading, both branches of each if."""
    return tuple(
        definition for file in files for definition in _definitions(file, frozenset({file.resolve()}))
    )


def in_force(assignments: Sequence[Definition]) -> tuple[Definition, ...]:
    """Those of one macro that its value is made of, the last first: back to the last that does not append."""
    found: list[Definition] = []
    for definition in reversed(assignments):
        found.append(definition)
        if not definition.appends:
            break
    return tuple(found)


def circle(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """Assignments that refer to each other in a circle, the first again at the end; empty if there are none."""
    by_name: dict[str, list[Definition]] = {}
    for definition in definitions:
        by_name.setdefault(definition.name.lower(), []).append(definition)
    made_of = {name: in_force(assignments) for name, assignments in by_name.items() if name}
    done: set[str] = set()
    return next((found for name in made_of if (found := _circle_from(name, made_of, done))), ())


def _circle_from(
    first: str, made_of: Mapping[str, Sequence[Definition]], done: set[str]
) -> tuple[Definition, ...]:
    """Return the first circle on a way from that macro; adds to ``done`` the macros from which there is none."""
    if first in done:
        return ()

    def steps(name: str) -> Iterator[tuple[Definition, str]]:
        return (
            (step, reference)
            for step in made_of.get(name, ())
            for reference in sorted(step.references - {name})
        )

    trail, ahead = [first], [steps(first)]  # no recursion: the way may be long
    path: list[Definition] = []
    while ahead:
        step = next(ahead[-1], None)
        if step is None:
            ahead.pop()
            done.add(trail.pop())
            del path[-1:]
            continue
        definition, name = step
        if name in trail:
            found = [*path, definition][trail.index(name) :]
            return (*found, found[0])
        if name not in done:
            trail.append(name)
            path.append(definition)
            ahead.append(steps(name))
    return ()


def _definitions(file: Path, seen: frozenset[Path]) -> Iterator[Definition]:
    lines = iter(_logical_lines(file))
    for number, line in lines:
        include = _INCLUDE.fullmatch(line)
        if include is not None:
            included = _file_at(file.parent / include["path"])
            if included is not None and included not in seen and len(seen) < MAX_INCLUDES:
                yield from _definitions(included, seen | {included})
            continue
        match = None if _STATEMENT.match(line) else _ASSIGNMENT.fullmatch(line)
        if match is None:
            yield Definition("", line.strip(), file, number)
            continue
        text = match["text"] or ""
        if match["tag"]:
            text = "\n".join(_until(lines, "@" + match["tag"]))
        yield Definition(match["name"], text.strip(), file, number)


def _file_at(path: Path) -> Optional[Path]:
    """Return the path without links; None if there is no file, or there can be none of that name."""
    try:
        resolved = path.resolve()
        return resolved if resolved.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, a character that no name has, links in a circle
        return None


def _until(lines: Iterator[tuple[int, str]], end: str) -> Iterator[str]:
    for _, line in lines:
        if line.strip().lower() == end.lower():
            return
        yield line


def _logical_lines(file: Path) -> list[tuple[int, str]]:
    """Number of the first line, and text, of each line with its continuations; without comments."""
    found: list[tuple[int, str]] = []
    continues = False
    content, _ = read_regular(file, MAX_BYTES)
    for number, raw in enumerate((content or b"").decode("utf-8", "replace").splitlines(), 1):
        line = raw.rstrip()
        if line.lstrip().startswith("#"):
            continue
        text = line.removesuffix("\\")
        if continues:
            found[-1] = (found[-1][0], found[-1][1] + text)
        elif text.strip() or text != line:
            found.append((number, text))
        continues = text != line
    return [(number, text) for number, text in found if text.strip()]
