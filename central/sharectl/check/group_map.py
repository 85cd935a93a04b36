"""Map of users to accounting groups on an access point: its rules, as HTCondor reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from sharectl.check.findings import Finding, Level
from sharectl.condor.configuration import MAX_BYTES, Configuration
from sharectl.condor.library import CondorProcess
from sharectl.files import files
from sharectl.shares.groups import NESTED_GROUP_NAME

MOST_SHOWN = 10
"""Faults of a map that are shown; the others are counted."""
MOST_PATTERNS = 1000
"""Patterns that are tried."""

_FORM = "write * USER GROUPS, such as * alice cms,atlas"
_GROUPS_FORM = (
    "write groups of a-z, 0-9, _, - and dots, with commas and without blanks between, such as "
    "cms,atlas"
)
_PLAIN = re.compile(r"[ \t]*([^ \t]*)")
_QUOTED = re.compile(r'[ \t]*"([^"\\]*(?:\\.[^"\\]*)*)"?')
_PATTERN = re.compile(r"[ \t]*/([^/\\]*(?:\\.[^/\\]*)*)/?[iU]*")
_LIKE_A_PATTERN = re.compile(r"[\^$*+?()\[\]|\\]")
_TAKEN_FROM_THE_NAME = re.compile(r"\\[0-9]")
_SAFE_PATTERN = re.compile(r"(?!.*\\\Z)[ !#-~]{0,1000}")
"""Pattern that can stand in a string of an expression."""


@dataclass(frozen=True)
class MapRule:
    """A line that gives groups to users."""

    place: str
    user: str
    is_pattern: bool
    groups: tuple[str, ...]


@dataclass
class GroupMap:
    """Rules of a map and of the files that it includes, and their faults."""

    excluded: re.Pattern[str]
    """Names of files that HTCondor leaves out of a folder that is included."""
    rules: list[MapRule] = field(default_factory=list)
    faults: list[Finding] = field(default_factory=list)

    def fault(self, place: str, text: str, remedy: str) -> None:
        """Remember a fault."""
        self.faults.append(Finding(place, text, remedy))

    def read(self, path: Path, place: str, *, is_included: bool = False) -> None:
        """Read a file; ``place`` is where it is named."""
        try:
            content = files.read_regular(path, MAX_BYTES)[0]
            reason = "is no regular file"
        except (OSError, ValueError) as error:
            content, reason = None, f"cannot be read: {getattr(error, 'strerror', error)}"
        if content is None:
            self.fault(place, f"{path} {reason}", "write the map into it, or mend path and mode")
            return
        text = content.decode("utf-8", "surrogateescape")
        if "\r\n" in text:
            remedy = f"take those out: sed -i 's/\\r$//' {path}"
            self.fault(str(path), "its lines end in a carriage return, as on Windows", remedy)
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
            here = f"{path}:{number}"
            first, rest = _field(line)
            if first == "@include":
                self._include(path, _field(rest)[0], here, is_included=is_included)
            elif first and not first.startswith("#"):
                self._read_line(line, here)

    def _include(self, path: Path, name: str, here: str, *, is_included: bool) -> None:
        included = path.parent / name
        if is_included:
            text = "HTCondor reads no @include in a file that is itself included"
            self.fault(here, text, "include it above")
        elif not name or "\0" in name:
            self.fault(here, "@include names no file", "write @include PATH")
        elif included.is_dir():
            for file in sorted(included.iterdir()):
                if file.is_file() and not self.excluded.search(file.name):
                    self.read(file, here, is_included=True)
        else:
            self.read(included, here, is_included=True)

    def _read_line(self, line: str, here: str) -> None:
        first, rest = _field(line)
        match = _PATTERN.match(rest)
        user, rest = (match[1].replace(r"\/", "/"), rest[match.end() :]) if match else _field(rest)
        groups, rest = _field(rest)
        if first != "*" or not user or not groups:
            self.fault(here, f"{_shown(line)} is no rule, HTCondor ignores it", _FORM)
            return
        rest = rest.strip(" \t\n")
        if rest and not rest.startswith("#"):
            fault = f"HTCondor ignores the text after the groups: {_shown(rest)}"
            self.fault(here, fault, _GROUPS_FORM)
        names = tuple(name for word in groups.split(",") if (name := word.strip()))
        wrong = [
            name
            for name in names
            if not NESTED_GROUP_NAME.fullmatch(_TAKEN_FROM_THE_NAME.sub("x", name.lower()))
        ]
        if wrong or not names:
            shown = ", ".join(map(_shown, wrong[:3])) or _shown(groups)
            self.fault(here, f"{shown}: no group can be called so", _GROUPS_FORM)
        if not match and _LIKE_A_PATTERN.search(user):
            pattern = "/.*/ for all users" if user == "*" else "a pattern, such as /^cms.*$/"
            fault = f"nobody is called {_shown(user)}: HTCondor takes it as it stands"
            self.fault(here, fault, f"write {pattern}")
        self.rules.append(MapRule(here, user, match is not None, names))


def findings(
    configuration: Configuration, htcondor: CondorProcess, path: Path
) -> Iterator[Finding]:
    """Faults that keep users out, or give them invalid groups."""
    group_map = GroupMap(configuration.excluded)
    group_map.read(path, str(path))
    faults = [
        *group_map.faults,
        *_second_lines(group_map.rules),
        *_invalid_patterns(group_map.rules, htcondor),
    ]
    yield from faults[:MOST_SHOWN]
    if len(faults) > MOST_SHOWN:
        fault = f"faults that are not shown: {len(faults) - MOST_SHOWN}"
        yield Finding(str(path), fault, "mend those above first")
    if not group_map.rules:
        fault = "no line of this map is a rule: the access point refuses every job"
        remedy = f"{_FORM}; config.d/examples/accounting-groups.map shows how"
        yield Finding(str(path), fault, remedy)
    yield from _unknown_groups(group_map.rules, configuration)


def _second_lines(rules: list[MapRule]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for rule in rules:
        before = rule.place if rule.is_pattern else first.setdefault(rule.user, rule.place)
        if before != rule.place:
            fault = f"{_shown(rule.user)} has a line before, {before}, and only that one counts"
            yield Finding(rule.place, fault, "write all groups of a user in one line")


def _invalid_patterns(rules: list[MapRule], htcondor: CondorProcess) -> Iterator[Finding]:
    patterns = [rule for rule in rules if rule.is_pattern and _SAFE_PATTERN.fullmatch(rule.user)]
    patterns = patterns[:MOST_PATTERNS]
    values = htcondor.evaluate([f'regexp("{rule.user}", "")' for rule in patterns])
    for rule, rows in zip(patterns, values):
        if rows is not None and rows[0][0] == "error":
            fault = f"HTCondor cannot read the pattern {_shown(rule.user)}, and ignores the line"
            remedy = "write a regular expression of Perl's, such as /^cms.*$/"
            yield Finding(rule.place, fault, remedy)


def _unknown_groups(rules: list[MapRule], configuration: Configuration) -> Iterator[Finding]:
    """Groups that the negotiator does not know, where this machine knows its groups."""
    names = {name.lower() for name in configuration.words("GROUP_NAMES")}
    places: dict[str, str] = {}
    for rule in rules if names else ():
        for name in rule.groups:
            places.setdefault(name.lower(), rule.place)
    unknown = [
        (name, place)
        for name, place in places.items()
        if NESTED_GROUP_NAME.fullmatch(name)
        and names.isdisjoint(accumulate(name.split("."), "{}.{}".format))
    ]
    for name, place in unknown[:MOST_SHOWN]:
        fault = f"{name} is not in GROUP_NAMES, and so nobody's share"
        yield Finding(place, fault, "write one of those, or add it there", Level.ADVICE)


def _field(text: str) -> tuple[str, str]:
    """The next field of a line, and the rest of the line."""
    match = _QUOTED.match(text)
    if match is not None:
        return match[1].replace(r"\"", '"').replace("\\\\", "\\"), text[match.end() :]
    match = _PLAIN.match(text)
    return (match[1], text[match.end() :]) if match else ("", "")


def _shown(text: str, most: int = 60) -> str:
    return ascii(text if len(text) <= most else f"{text[:most]}...")
