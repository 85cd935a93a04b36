"""Checks of groups: who may use which on an access point, and quotas of the central manager."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from sharectl.check.findings import Finding, Level
from sharectl.check.snippet_subject import (
    CHECKS,
    GROUP_MAP_IN_USE,
    TRANSFORM,
    SnippetSubject,
    finding,
)
from sharectl.condor.configuration import MAX_BYTES, Configuration
from sharectl.condor.library import CondorProcess
from sharectl.files import files
from sharectl.shares.groups import NESTED_GROUP_NAME, above_of

GROUP_MAP = "SHARECTL_GROUP_MAP"
MOST_SHOWN = 10
"""Faults of a map that are shown; the others are counted."""

_WORD = r'(?:"(?:[^"\\]|\\.)*"|[^ \t"#][^ \t]*)'
_RULE = re.compile(
    rf'[ \t]*"?\*"?[ \t]+(?:/(?P<pattern>(?:[^/\\]|\\.)*)/[iU]*|(?!/)(?P<user>{_WORD}))[ \t]+'
    rf"(?P<groups>{_WORD})[ \t]*(?P<rest>.*)"
)
_INCLUDE = re.compile(r"[ \t]*@include(?:[ \t]+(?P<path>.*?))?[ \t]*")
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

    def read(self, path: Path, place: str, *, is_included: bool = False) -> None:
        """Read a file; ``place`` is where it is named."""
        try:
            content = files.read_regular(path, MAX_BYTES)[0]
            reason = "is no regular file"
        except (OSError, ValueError) as error:
            content, reason = None, f"cannot be read: {getattr(error, 'strerror', error)}"
        if content is None:
            self.faults.append(finding("unreadable map", place, path=path, why=reason))
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
            self.faults.append(finding("include without file", here))
            return
        folder = sorted(included.iterdir()) if included.is_dir() else [included]
        for file in folder:
            if file == included or (file.is_file() and not self.excluded.search(file.name)):
                self.read(file, here, is_included=True)

    def _read_line(self, line: str, here: str) -> None:
        match = _RULE.fullmatch(line)
        if match is None:
            self.faults.append(finding("no rule", here, line=_shown(line)))
            return
        user, groups = (_unquoted(match[name] or "") for name in ("user", "groups"))
        if match["rest"] and not match["rest"].startswith("#"):
            self.faults.append(finding("text after groups", here, text=_shown(match["rest"])))
        names = [name for word in groups.split(",") if (name := word.strip(" \t"))]
        # A pattern may take a part of the name.
        parts = [re.sub(r"\\[0-9]", "x", name.lower()) for name in names]
        wrong = [n for n, part in zip(names, parts) if not NESTED_GROUP_NAME.fullmatch(part)]
        if wrong or not names:
            shown = [_shown(name) for name in (wrong[:3] or [groups])]
            self.faults.append(finding("invalid group", here, names=shown))
        if user and _LIKE_A_PATTERN.search(user):
            pattern = "/.*/ for all users" if user == "*" else "a pattern, such as /^cms.*$/"
            fault = finding("user like a pattern", here, user=_shown(user), pattern=pattern)
            self.faults.append(fault)
        key = user or f"/{match['pattern']}/".replace(r"\/", "/")
        before, _ = self.users.setdefault(key, (here, groups))
        if user and before != here:
            self.faults.append(finding("second line", here, user=_shown(user), first=before))


def map_faults(
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
            place, shown = patterns[pattern], _shown(pattern)
            group_map.faults.append(finding("unreadable pattern", place, pattern=shown))
    yield from group_map.faults[:MOST_SHOWN]
    if len(group_map.faults) > MOST_SHOWN:
        yield finding("more faults", str(path), number=len(group_map.faults) - MOST_SHOWN)
    if not group_map.users:
        yield finding("map without rules", str(path))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _shown(text: str, most: int = 60) -> str:
    return ascii(text if len(text) <= most else f"{text[:most]}...")


# ---- Checks


@CHECKS.rule()
def groups(subject: SnippetSubject) -> Iterator[Finding]:
    """Ways for users to choose their group, and a map that cannot be used."""
    place, assignments = subject.configuration.place, subject.configuration.assignments
    if not assignments(TRANSFORM):
        return
    immutable = {word.lower() for word in subject.configuration.words("IMMUTABLE_JOB_ATTRS")}
    own = ("AcctGroup", "AcctGroupUser", "AccountingGroup")
    missing = [name for name in own if name.lower() not in immutable]
    map_file = subject.text(GROUP_MAP_IN_USE)
    if map_file and missing:
        yield finding("job can be changed", place(TRANSFORM), names=missing)
    elif missing and subject.text(GROUP_MAP):
        yield finding("map named too late", place(GROUP_MAP), place_of=place(TRANSFORM))
    elif missing and subject.on_machine:
        yield finding("no map", place(TRANSFORM), level=Level.ADVICE)
    if map_file and subject.on_machine and os.access(map_file, os.R_OK):
        yield from map_faults(subject.configuration, subject.htcondor, Path(map_file))
    elif map_file and subject.on_machine:
        knob = GROUP_MAP if assignments(GROUP_MAP) else GROUP_MAP_IN_USE
        yield finding("missing map", place(knob), path=map_file)


@CHECKS.rule()
def quotas(subject: SnippetSubject) -> Iterator[Finding]:
    """Quotas of groups that do not exist, and invalid shares."""
    configuration = subject.configuration
    names = {name.lower() for name in configuration.words("GROUP_NAMES")}
    prefix = "group_quota_dynamic_"
    parts = [p for p in configuration.definitions if p.name.lower().startswith(prefix)]
    shares: dict[str, dict[str, float]] = {}
    for part, share in zip(parts, subject.numbers([configuration.text(p.name) for p in parts])):
        group = part.name[len(prefix) :].lower()
        if group not in names:
            yield finding("unknown group", part.place, group=group)
        if share is None or not 0 <= share <= 1:
            yield finding("invalid share", part.place, text=part.text)
        else:
            shares.setdefault(above_of(group), {})[group] = share
    for above, level in shares.items():
        if (total := sum(level.values())) > 1 + 1e-6:
            whose = f"shares of the groups within {above}" if above else "groups' shares"
            place = configuration.place("GROUP_NAMES")
            yield finding("too many shares", place, whose=whose, sum=total)
