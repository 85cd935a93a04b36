"""Checks of groups: who may use which on an access point."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
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
from sharectl.condor.configuration import MAX_BYTES
from sharectl.condor.library import DEFAULTS, CondorProcess
from sharectl.files import files
from sharectl.shares.groups import NESTED_GROUP_NAME

GROUP_MAP = "SHARECTL_GROUP_MAP"
MOST_SHOWN = 10
"""Faults of a map that are shown; the others are counted."""
MOST_TRIED = 2000
"""Rules that HTCondor's own reader is asked about, the first ones."""
_TRIAL = "sharectl"
"""Name of the map for that reader."""
_Rule = tuple[str, str, str]
"""User or pattern with its slashes, groups, and the text after them, which HTCondor ignores."""

_WORD = r'(?:"(?:[^"\\]|\\.)*"|[^ \t"#][^ \t]*)'
_RULE = re.compile(
    rf'[ \t]*"?\*"?[ \t]+(?:/(?P<pattern>(?:[^/\\]|\\.)*)/[iU]*|(?!/)(?P<user>{_WORD}))[ \t]+'
    rf"(?P<groups>{_WORD})[ \t]*(?P<rest>.*)"
)
_LIKE_A_PATTERN = re.compile(r"[\^$*+?()\[\]|\\]")


def rule_of(line: str) -> Optional[_Rule]:
    """Rule of a line; None of a line that HTCondor ignores."""
    match = _RULE.fullmatch(line)
    if match is None:
        return None
    user, groups = (_unquoted(match[name] or "") for name in ("user", "groups"))
    return user or f"/{match['pattern']}/".replace(r"\/", "/"), groups, match["rest"]


def map_faults(path: Path, htcondor: CondorProcess) -> Iterator[Finding]:
    """Faults that keep users out, or give them invalid groups; files it includes are not read."""
    try:
        content = files.read_regular(path, MAX_BYTES)[0]
        reason = "is no regular file"
    except (OSError, ValueError) as error:
        content, reason = None, f"cannot be read: {getattr(error, 'strerror', error)}"
    if content is None:
        yield finding("unreadable map", str(path), path=path, why=reason)
        return
    faults: list[Finding] = []
    rules: list[tuple[str, str, str]] = []
    is_empty = True
    for number, line in enumerate(content.decode("utf-8", "surrogateescape").split("\n"), 1):
        here, word = f"{path}:{number}", line.lstrip("\ufeff \t")
        if word.startswith("@include"):
            is_empty = False
            faults += [finding("include with CR", here)] if line.endswith("\r") else []
        elif line.strip() and not word.startswith("#"):
            # HTCondor takes blanks and CR from both ends of each group.
            rule = rule_of(line.rstrip("\r"))
            own = [*_line_faults(line.rstrip("\r"), rule, here)]
            is_empty &= rule is None
            faults += own
            if rule and not own and "\\" not in rule[1]:  # \1 is a part of the user's name
                rules.append((here, rule[0], _names(rule[1])[-1].lower()))
    faults += _out_of_force(path, rules[:MOST_TRIED], htcondor)
    yield from faults[:MOST_SHOWN]
    if len(faults) > MOST_SHOWN:
        yield finding("more faults", str(path), number=len(faults) - MOST_SHOWN)
    if is_empty:
        yield finding("map without rules", str(path))


def _line_faults(line: str, rule: Optional[_Rule], here: str) -> Iterator[Finding]:
    """Faults of the text of a line."""
    if rule is None:
        yield finding("no rule", here, line=_shown(line))
        return
    user, groups, rest = rule
    if rest and not rest.startswith("#"):
        yield finding("text after groups", here, text=_shown(rest))
    names = _names(groups)
    # A pattern may take a part of the name.
    parts = [re.sub(r"\\[0-9]", "x", name.lower()) for name in names]
    wrong = [n for n, part in zip(names, parts) if not NESTED_GROUP_NAME.fullmatch(part)]
    if wrong or not names:
        yield finding("invalid group", here, names=[_shown(n) for n in wrong[:3] or [groups]])
    if not user.startswith("/") and _LIKE_A_PATTERN.search(user):
        pattern = "/.*/ for all users" if user == "*" else "a pattern, such as /^cms.*$/"
        yield finding("user like a pattern", here, user=_shown(user), pattern=pattern)


def _out_of_force(
    path: Path, rules: Sequence[tuple[str, str, str]], htcondor: CondorProcess
) -> Iterator[Finding]:
    """Rules without a fault (place, user, last group) that HTCondor's own reader does not use."""
    knobs = f"STARTD_CLASSAD_USER_MAP_NAMES = {_TRIAL}\nCLASSAD_USER_MAPFILE_{_TRIAL} = {path}\n"
    htcondor.values((), f"{DEFAULTS}{knobs}", {})
    questions = [
        f"regexp({_string(user[1:-1])}, {_string('')})"
        if user.startswith("/")
        else f"userMap({_string(_TRIAL)}, {_string(user)}, {_string(group)})"
        for _, user, group in rules
    ]
    for (here, user, group), values in zip(rules, htcondor.evaluate(questions)):
        value = values[0][0] if values else "error"
        if user.startswith("/"):
            if value == "error":
                yield finding("invalid pattern", here, pattern=_shown(user))
        elif str(value).lower() != group:
            taken = "no group" if value == "undefined" else _shown(str(value))
            yield finding("not in force", here, user=_shown(user), taken=taken)


def _names(groups: str) -> list[str]:
    return [name for word in groups.split(",") if (name := word.strip(" \t"))]


def _string(text: str) -> str:
    """String of ClassAds as HTCondor's configuration has them."""
    return '"{}"'.format(text.replace('"', '\\"'))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _shown(text: str, most: int = 60) -> str:
    return ascii(text if len(text) <= most else f"{text[:most]}...")


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
    elif missing:
        kind = "no map" if subject.on_machine else "no map in these files"
        yield finding(kind, place(TRANSFORM), level=Level.ADVICE)
    knob = GROUP_MAP if assignments(GROUP_MAP) else GROUP_MAP_IN_USE
    if map_file and os.access(map_file, os.R_OK):
        yield from map_faults(Path(map_file), subject.htcondor)
    elif map_file and subject.on_machine:
        yield finding("missing map", place(knob), path=map_file)
    elif map_file:
        yield finding("map elsewhere", place(knob), level=Level.ADVICE, path=map_file)
