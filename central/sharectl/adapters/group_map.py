"""The map of users to accounting groups of an access point, read as HTCondor reads it, and what is wrong in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sharectl.adapters import files
from sharectl.adapters.snippet_subject import Finding, Subject
from sharectl.core.groups import NESTED_GROUP_NAME

EVERYBODYS = "*"
"""First field of a rule: AssignAccountingGroup asks for no other."""

INCLUDE = "@include"
EXAMPLE = "* alice cms,atlas"
MOST_BYTES = 2**20
MOST_FILES = 200
MOST_SHOWN = 10
"""So many faults of a map are told; the others are counted."""
PATH_MAX = 4096
MOST_PATTERNS = 1000
"""So many patterns are tried."""

_FORM = f"write * USER GROUPS, such as {EXAMPLE}"
_GROUPS_FORM = (
    "write groups of a-z, 0-9, _, - and dots, with commas and without blanks between, such as cms,atlas"
)
_BLANKS = " \t\n"
_QUOTED = {mark: re.compile(rf"{mark}([^{mark}\\]*(?:\\.[^{mark}\\]*)*){mark}?", re.DOTALL) for mark in '"/'}
_ESCAPED = {mark: re.compile(rf"\\([{mark}\\])") for mark in '"/'}
_SPACE = re.compile(f"[{_BLANKS}]*")
_PLAIN = re.compile(rf"[^{_BLANKS}]*")
_FLAGS = re.compile("[iU]*")
_LIKE_A_PATTERN = re.compile(r"[\^$*+?()\[\]|\\]")
_TAKEN_FROM_THE_NAME = re.compile(r"\\[0-9]")
_SAFE_PATTERN = re.compile(r"(?!.*\\\Z)[ !#-~]{0,1000}")
"""A pattern that can be told HTCondor as a string of an expression."""


@dataclass(frozen=True)
class Rule:
    """A line that gives groups to users."""

    place: str
    user: str
    is_pattern: bool
    groups: tuple[str, ...]


@dataclass
class Map:
    """What stands in a map and in the files that it includes."""

    rules: list[Rule] = field(default_factory=list)
    faults: list[Finding] = field(default_factory=list)
    """The first ones; `hidden` counts the others."""
    hidden: int = 0
    bytes_left: int = MOST_BYTES
    files_left: int = MOST_FILES

    def fault(self, place: str, problem: str, remedy: str) -> None:
        """Remember one, if there are not many yet."""
        if len(self.faults) < MOST_SHOWN:
            self.faults.append(Finding("groups", place, problem, remedy))
        else:
            self.hidden += 1


def findings(subject: Subject, path: Path) -> Iterator[Finding]:
    """What keeps users out, or gives them groups that are none."""
    found = read(path, subject.configuration.excluded)
    _find_twice(found)
    _find_unread_patterns(found, subject)
    yield from found.faults
    if found.hidden:
        yield Finding(
            "groups", str(path), f"faults that are not shown: {found.hidden}", "mend those above first"
        )
    if not found.rules and found.bytes_left > 0 and found.files_left > 0:
        yield Finding(
            "groups",
            str(path),
            "no line of this map is a rule: the access point refuses every job",
            f"{_FORM}; config.d/examples/accounting-groups.map shows how",
        )
    if found.bytes_left <= 0 or found.files_left <= 0:
        problem = f"only {MOST_BYTES >> 20} MiB and {MOST_FILES} files of this map were looked at"
        yield Finding("groups", str(path), problem, "write patterns in the place of many users", advice=True)
    yield from _strangers(found, subject)


def read(path: Path, excluded: re.Pattern[str]) -> Map:
    """The map, with what it includes.

    Parameters
    ----------
    excluded
        Names of files that HTCondor leaves out of a folder that is included.
    """
    found = Map()
    _read_file(path, str(path), found, excluded, may_include=True)
    return found


def _read_file(path: Path, place: str, found: Map, excluded: re.Pattern[str], *, may_include: bool) -> None:
    if found.bytes_left <= 0 or found.files_left <= 0:
        return
    try:
        content, _ = files.read_regular(path, found.bytes_left)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        found.fault(
            place,
            f"{_shown(str(path), PATH_MAX)} cannot be read: {said}",
            "write it, or mend its path and mode",
        )
        return
    if content is None:
        found.fault(place, f"{_shown(str(path), PATH_MAX)} is no regular file", "write the map into one")
        return
    found.bytes_left -= len(content)
    found.files_left -= 1
    text = content.decode("utf-8", "surrogateescape")
    if "\r\n" in text:
        found.fault(
            str(path),
            "its lines end as on Windows: the last group of each ends in a carriage return, and is none",
            f"take those out: sed -i 's/\\r$//' {_shown(str(path), PATH_MAX)}",
        )
        text = text.replace("\r\n", "\n")
    for number, line in enumerate(text.split("\n"), 1):
        here = f"{path}:{number}"
        first, _, end = _field(line, 0)
        if first == INCLUDE:
            _include(path, _field(line, end)[0], here, found, excluded, may_include=may_include)
        elif first and not first.startswith("#"):
            _read_line(line, first, end, here, found)


def _include(
    path: Path, name: str, here: str, found: Map, excluded: re.Pattern[str], *, may_include: bool
) -> None:
    if not may_include:
        found.fault(
            here, f"HTCondor reads no {INCLUDE} in a file that is itself included", "include it above"
        )
        return
    if not name or "\0" in name:
        found.fault(here, f"{INCLUDE} names no file", f"write {INCLUDE} PATH")
        return
    included = path.parent / name
    if not included.is_dir():
        _read_file(included, here, found, excluded, may_include=False)
        return
    try:
        inside = sorted(
            file for file in included.iterdir() if file.is_file() and not excluded.search(file.name)
        )
    except OSError as error:
        found.fault(
            here, f"{_shown(str(included), PATH_MAX)} cannot be read: {error.strerror}", "mend its mode"
        )
        return
    for file in inside:
        _read_file(file, here, found, excluded, may_include=False)


def _read_line(line: str, first: str, offset: int, here: str, found: Map) -> None:
    user, is_pattern, offset = _field(line, offset, may_be_pattern=True)
    groups, _, offset = _field(line, offset)
    rest = line[offset:].strip(_BLANKS)
    if first != EVERYBODYS or not user or not groups:
        found.fault(here, f"{_shown(line)} is no rule, HTCondor passes over it", _FORM)
        return
    if rest and not rest.startswith("#"):
        found.fault(here, f"HTCondor passes over what follows the groups: {_shown(rest)}", _GROUPS_FORM)
    names = tuple(name for word in groups.split(",") if (name := word.strip()))
    wrong = [
        name for name in names if not NESTED_GROUP_NAME.fullmatch(_TAKEN_FROM_THE_NAME.sub("x", name.lower()))
    ]
    if wrong or not names:
        shown = ", ".join(map(_shown, wrong[:3])) or _shown(groups)
        found.fault(here, f"{shown}: no group can be called so", _GROUPS_FORM)
    if not is_pattern and _LIKE_A_PATTERN.search(user):
        remedy = (
            "write /.*/ for all users"
            if user == "*"
            else "write a pattern between slashes, such as /^cms.*$/"
        )
        found.fault(here, f"nobody is called {_shown(user)}: HTCondor takes it as it stands", remedy)
    found.rules.append(Rule(here, user, is_pattern, names))


def _field(line: str, offset: int, *, may_be_pattern: bool = False) -> tuple[str, bool, int]:
    """The next field of a line, whether it is a pattern, and where it ends."""
    offset = _end_of(_SPACE, line, offset)
    mark = line[offset : offset + 1]
    quoted = _QUOTED[mark].match(line, offset) if mark == '"' or (mark == "/" and may_be_pattern) else None
    if quoted is None:
        end = _end_of(_PLAIN, line, offset)
        return line[offset:end], False, end
    text, end = _ESCAPED[mark].sub(r"\1", quoted[1]), quoted.end()
    return text, mark == "/", _end_of(_FLAGS, line, end) if mark == "/" else end


def _end_of(pattern: re.Pattern[str], line: str, offset: int) -> int:
    match = pattern.match(line, offset)
    return match.end() if match else offset


def _find_twice(found: Map) -> None:
    """Lines that never count since the user has one before."""
    first: dict[str, str] = {}
    for rule in found.rules:
        before = first.setdefault(rule.user, rule.place) if not rule.is_pattern else rule.place
        if before != rule.place:
            found.fault(
                rule.place,
                f"{_shown(rule.user)} has a line before, {before}, and only that one counts",
                "write all groups of a user in one line",
            )


def _find_unread_patterns(found: Map, subject: Subject) -> None:
    """Patterns that HTCondor cannot read: it passes over them."""
    patterns = [rule for rule in found.rules if rule.is_pattern and _SAFE_PATTERN.fullmatch(rule.user)]
    patterns = patterns[:MOST_PATTERNS]
    tried = subject.htcondor.evaluate([f'regexp("{rule.user}", "")' for rule in patterns], [{}], [{}])
    for rule, values in zip(patterns, tried):
        if values is not None and values[0][0] == "error":
            found.fault(
                rule.place,
                f"HTCondor cannot read the pattern {_shown(rule.user)}, and passes over the line",
                "write a regular expression of Perl's, such as /^cms.*$/",
            )


def _strangers(found: Map, subject: Subject) -> Iterator[Finding]:
    """Groups that the negotiator does not know, where its groups are known here."""
    known = {name.lower() for name in subject.configuration.words("GROUP_NAMES")}
    names: dict[str, str] = {}
    for rule in found.rules if known else ():
        for name in rule.groups:
            names.setdefault(name.lower(), rule.place)
    # What can be no group is a fault already, and may be long.
    strangers = [
        (name, place)
        for name, place in names.items()
        if NESTED_GROUP_NAME.fullmatch(name) and known.isdisjoint(_with_those_above(name))
    ]
    for name, place in strangers[:MOST_SHOWN]:
        yield Finding(
            "groups",
            place,
            f"{name} is not in GROUP_NAMES, and so nobody's share",
            "write one of those, or add it there",
            advice=True,
        )


def _with_those_above(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _shown(text: str, most: int = 60) -> str:
    """The text in ASCII and in quotes, the beginning of a long one."""
    return ascii(text if len(text) <= most else text[:most] + "...")
