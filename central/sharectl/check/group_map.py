"""Map of users to accounting groups on an access point: its rules, as HTCondor reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from sharectl.check.findings import Finding
from sharectl.condor.configuration import MAX_BYTES, Configuration
from sharectl.condor.library import CondorProcess
from sharectl.files import files
from sharectl.shares.groups import NESTED_GROUP_NAME

MOST_SHOWN = 10
"""Faults of a map that are shown; the others are counted."""

_WORD = r'(?:"(?:[^"\\]|\\.)*"|[^ \t"#][^ \t]*)'
_RULE = re.compile(
    rf'[ \t]*"?\*"?[ \t]+(?:/(?P<pattern>(?:[^/\\]|\\.)*)/[iU]*|(?!/)(?P<user>{_WORD}))[ \t]+'
    rf"(?P<groups>{_WORD})[ \t]*(?P<rest>.*)"
)
_INCLUDE = re.compile(r"[ \t]*@include(?:[ \t]+(?P<path>.*?))?[ \t]*")
_MAP_FORM = "write * USER GROUPS, such as * alice cms,atlas"
_GROUPS_FORM = (
    "write groups of a-z, 0-9, _, - and dots, with commas and without blanks between, such as "
    "cms,atlas"
)
_LIKE_A_PATTERN = re.compile(r"[\^$*+?()\[\]|\\]")
_SAFE_PATTERN = re.compile(r"(?!.*\\\Z)[ !#-~]{0,1000}")
"""Pattern that can stand in a string of an expression."""


@dataclass
class GroupMap:
    """Rules of a map and of the files that it includes, as HTCondor reads them."""

    excluded: re.Pattern[str]
    """Names of files that HTCondor leaves out of a folder that is included."""
    users: dict[str, tuple[str, str]] = field(default_factory=dict)
    """User → place and groups of his first line; that of a pattern has its slashes."""
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
        for number, line in enumerate(content.decode("utf-8", "surrogateescape").split("\n"), 1):
            include = None if is_included else _INCLUDE.fullmatch(line)
            if include is not None:
                self._include(path, include["path"], f"{path}:{number}")
            elif line.strip() and not line.lstrip().startswith("#"):
                self._read_line(line, f"{path}:{number}")

    def _include(self, path: Path, name: Optional[str], here: str) -> None:
        included = path.parent / (name or "").strip('"')
        if not name:
            self.fault(here, "@include names no file", "write @include PATH")
            return
        folder = sorted(included.iterdir()) if included.is_dir() else [included]
        for file in folder:
            if file == included or (file.is_file() and not self.excluded.search(file.name)):
                self.read(file, here, is_included=True)

    def _read_line(self, line: str, here: str) -> None:
        match = _RULE.fullmatch(line)
        if match is None:
            self.fault(here, f"{_shown(line)} is no rule, HTCondor ignores it", _MAP_FORM)
            return
        user, groups = (_unquoted(match[name] or "") for name in ("user", "groups"))
        if match["rest"] and not match["rest"].startswith("#"):
            fault = f"HTCondor ignores the text after the groups: {_shown(match['rest'])}"
            self.fault(here, fault, _GROUPS_FORM)
        names = [name for word in groups.split(",") if (name := word.strip(" \t"))]
        # A pattern may take a part of the name.
        parts = [re.sub(r"\\[0-9]", "x", name.lower()) for name in names]
        wrong = [n for n, part in zip(names, parts) if not NESTED_GROUP_NAME.fullmatch(part)]
        if wrong or not names:
            shown = ", ".join(map(_shown, wrong[:3])) or _shown(groups)
            self.fault(here, f"{shown}: no group can be called so", _GROUPS_FORM)
        if user and _LIKE_A_PATTERN.search(user):
            pattern = "/.*/ for all users" if user == "*" else "a pattern, such as /^cms.*$/"
            fault = f"nobody is called {_shown(user)}: HTCondor takes it as it stands"
            self.fault(here, fault, f"write {pattern}")
        key = user or f"/{match['pattern']}/".replace(r"\/", "/")
        before, _ = self.users.setdefault(key, (here, groups))
        if user and before != here:
            fault = f"{_shown(user)} has a line before, {before}, and only that one counts"
            self.fault(here, fault, "write all groups of a user in one line")


def findings(
    configuration: Configuration, htcondor: CondorProcess, path: Path
) -> Iterator[Finding]:
    """Faults that keep users out, or give them invalid groups."""
    group_map = GroupMap(configuration.excluded)
    group_map.read(path, str(path))
    patterns = {user[1:-1]: place for user, (place, _) in group_map.users.items() if user[0] == "/"}
    safe = [pattern for pattern in patterns if _SAFE_PATTERN.fullmatch(pattern)]
    values = htcondor.evaluate([f'regexp("{pattern}", "")' for pattern in safe])
    for pattern, rows in zip(safe, values):
        if rows is not None and rows[0][0] == "error":
            fault = f"HTCondor cannot read the pattern {_shown(pattern)}, and ignores the line"
            remedy = "write a regular expression of Perl's, such as /^cms.*$/"
            group_map.fault(patterns[pattern], fault, remedy)
    yield from group_map.faults[:MOST_SHOWN]
    if len(group_map.faults) > MOST_SHOWN:
        fault = f"faults that are not shown: {len(group_map.faults) - MOST_SHOWN}"
        yield Finding(str(path), fault, "mend those above first")
    if not group_map.users:
        fault = "no line of this map is a rule: the access point refuses every job"
        remedy = f"{_MAP_FORM}; config.d/examples/accounting-groups.map shows how"
        yield Finding(str(path), fault, remedy)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _shown(text: str, most: int = 60) -> str:
    return ascii(text if len(text) <= most else f"{text[:most]}...")
