"""Checks by trial: typical jobs at typical nodes, judged by HTCondor's own evaluation of the expressions.

The map of users to accounting groups of an access point, read as HTCondor reads it, and what is
wrong in it.

Checks of the text of expressions: HTCondor can read them, names are scoped, and somebody publishes
them.

Checks of the files themselves: which of them HTCondor reads, and who can.

Checks of HTCondor's knobs: STARTD_CRON jobs, lists that are to grow, groups and quotas.

Checks of sharectl's own knobs: they exist, and HTCondor, the shell and the node's programs can use
their values.

Checks of what the clauses need of the slot: attributes, latches, and the count of the held-back
group's cores.

Checks of where a node looks for its target: SHARECTL_SOURCE, and the options of job_ctl.py.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Optional

from sharectl.check import trials
from sharectl.check.findings import Finding, Level
from sharectl.check.subject import (
    ACTUATION,
    CRON_JOBS,
    ENABLED,
    EVALUATED_LISTS,
    EXPRESSIONS,
    GROUP_MAP_IN_USE,
    ROLL_UP,
    SnippetSubject,
)
from sharectl.check.trials import (
    ACTUATIONS,
    BEFORE_OURS,
    BESIDE,
    CLAUSES,
    HELD_BACK,
    HELD_BACK_CORES,
    HELD_BACK_SLOT,
    JOB_CTL_OPTIONS,
    LATCHES,
    LIVE,
    MAX_SOURCES,
    ROOM,
    SLOT_ATTRIBUTES,
    SUMMED,
    TARGET_ACTIVE,
    Ad,
    Trial,
    dynamic_slot,
    nested_slots,
    nested_trials,
    partitionable_slot,
    target_attributes,
)
from sharectl.condor.configuration import Configuration, Definition
from sharectl.condor.expressions import (
    JOB_ATTRIBUTES,
    MY,
    TARGET,
    UNSCOPED,
    Reference,
    is_balanced,
    is_htcondors,
    references,
)
from sharectl.files import files
from sharectl.plan.nodes import REMEDIES
from sharectl.publish import signing
from sharectl.shares.groups import NESTED_GROUP_NAME, above_of

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
    "write groups of a-z, 0-9, _, - and dots, with commas and without blanks between, such "
    "as cms,atlas"
)
_BLANKS = " \t\n"
_QUOTED = {
    mark: re.compile(rf"{mark}([^{mark}\\]*(?:\\.[^{mark}\\]*)*){mark}?", re.DOTALL)
    for mark in '"/'
}
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
            self.faults.append(Finding(place, problem, remedy))
        else:
            self.hidden += 1


def findings(subject: SnippetSubject, path: Path) -> Iterator[Finding]:
    """What keeps users out, or gives them groups that are none."""
    found = read(path, subject.configuration.excluded)
    _find_twice(found)
    _find_unread_patterns(found, subject)
    yield from found.faults
    if found.hidden:
        yield Finding(
            str(path),
            f"faults that are not shown: {found.hidden}",
            "mend those above first",
        )
    if not found.rules and found.bytes_left > 0 and found.files_left > 0:
        yield Finding(
            str(path),
            "no line of this map is a rule: the access point refuses every job",
            f"{_FORM}; config.d/examples/accounting-groups.map shows how",
        )
    if found.bytes_left <= 0 or found.files_left <= 0:
        problem = f"only {MOST_BYTES >> 20} MiB and {MOST_FILES} files of this map were looked at"
        yield Finding(
            str(path), problem, "write patterns in the place of many users", level=Level.ADVICE
        )
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


def _read_file(
    path: Path, place: str, found: Map, excluded: re.Pattern[str], *, may_include: bool
) -> None:
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
        found.fault(
            place, f"{_shown(str(path), PATH_MAX)} is no regular file", "write the map into one"
        )
        return
    found.bytes_left -= len(content)
    found.files_left -= 1
    text = content.decode("utf-8", "surrogateescape")
    if "\r\n" in text:
        found.fault(
            str(path),
            "its lines end as on Windows: the last group of each ends in a carriage return, and "
            "is none",
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
            here,
            f"HTCondor reads no {INCLUDE} in a file that is itself included",
            "include it above",
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
            here,
            f"{_shown(str(included), PATH_MAX)} cannot be read: {error.strerror}",
            "mend its mode",
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
        found.fault(
            here, f"HTCondor passes over what follows the groups: {_shown(rest)}", _GROUPS_FORM
        )
    names = tuple(name for word in groups.split(",") if (name := word.strip()))
    wrong = [
        name
        for name in names
        if not NESTED_GROUP_NAME.fullmatch(_TAKEN_FROM_THE_NAME.sub("x", name.lower()))
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
        found.fault(
            here, f"nobody is called {_shown(user)}: HTCondor takes it as it stands", remedy
        )
    found.rules.append(Rule(here, user, is_pattern, names))


def _field(line: str, offset: int, *, may_be_pattern: bool = False) -> tuple[str, bool, int]:
    """The next field of a line, whether it is a pattern, and where it ends."""
    offset = _end_of(_SPACE, line, offset)
    mark = line[offset : offset + 1]
    quoted = (
        _QUOTED[mark].match(line, offset)
        if mark == '"' or (mark == "/" and may_be_pattern)
        else None
    )
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


def _find_unread_patterns(found: Map, subject: SnippetSubject) -> None:
    """Patterns that HTCondor cannot read: it passes over them."""
    patterns = [
        rule for rule in found.rules if rule.is_pattern and _SAFE_PATTERN.fullmatch(rule.user)
    ]
    patterns = patterns[:MOST_PATTERNS]
    tried = subject.htcondor.evaluate(
        [f'regexp("{rule.user}", "")' for rule in patterns], [{}], [{}]
    )
    for rule, values in zip(patterns, tried):
        if values is not None and values[0][0] == "error":
            found.fault(
                rule.place,
                f"HTCondor cannot read the pattern {_shown(rule.user)}, and passes over the line",
                "write a regular expression of Perl's, such as /^cms.*$/",
            )


def _strangers(found: Map, subject: SnippetSubject) -> Iterator[Finding]:
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
            place,
            f"{name} is not in GROUP_NAMES, and so nobody's share",
            "write one of those, or add it there",
            level=Level.ADVICE,
        )


def _with_those_above(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _shown(text: str, most: int = 60) -> str:
    """The text in ASCII and in quotes, the beginning of a long one."""
    return ascii(text if len(text) <= most else text[:most] + "...")


_EFFECTS = (
    ("START", "every node that gets it refuses every job"),
    ("START_EXPR", "a draining node refuses every job"),
    ("CLAIM_WORKLIFE", "claims never end by their age"),
)

_SLOTS_OWN = {
    SUMMED,
    *(name for way in ACTUATIONS for name in SLOT_ATTRIBUTES[way]),
    *(f"{latch}{end}" for way in ACTUATIONS for latch in LATCHES[way] for end in ("Value", "Time")),
}
_SENSORS = {"t1_overheat"}
"""Attributes that a site may measure; undefined where it does not."""


def unreadable(subject: SnippetSubject) -> Iterator[Finding]:
    """Expressions that HTCondor's parser refuses."""
    for macro in subject.expressions:
        if macro not in subject.readable:
            culprit = _unreadable_part(subject, macro)
            text = subject.configuration.text(culprit)
            yield Finding(
                subject.configuration.place(culprit),
                f"HTCondor cannot read {culprit} = {_shortened(text)}, and so {_effect(macro)}",
                "look for a missing bracket, quote or operator, or for a $(MACRO) that is empty",
            )


def unbalanced(subject: SnippetSubject) -> Iterator[Finding]:
    """Brackets that one file leaves open, or closes for another: together they may be an expression, and a wrong one."""
    parts = dict.fromkeys(
        part
        for macro in subject.readable
        if EXPRESSIONS.fullmatch(macro.upper())
        for part in subject.configuration.made_of(macro)
        if EXPRESSIONS.fullmatch(part.name.upper())
    )
    for part in parts:
        if subject.configuration.is_judged(part) and not is_balanced(part.text):
            yield Finding(
                part.place,
                f"the brackets of {part.name} = {_shortened(part.text)} do not match: it is no "
                "expression by itself, "
                "and together with sharectl's clauses it may let every job in",
                "close each bracket that it opens, and no other",
            )


def unscoped(subject: SnippetSubject) -> Iterator[Finding]:
    """Names without ``MY.`` or ``TARGET.``."""
    for reference, definition in _asked_for(subject):
        if reference.scope == UNSCOPED:
            yield Finding(
                definition.place,
                f"{reference.name} is not scoped: where the node does not publish it, HTCondor "
                "takes it from the job, "
                "and there its user can write what he likes",
                f"write {_scoped(subject, reference.name)}",
            )


def wrong_side(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes of the node that are asked of the job."""
    for reference, definition in _asked_for(subject):
        if reference.scope == TARGET and reference.name.lower() in subject.published:
            yield Finding(
                definition.place,
                f"TARGET.{reference.name} asks the job for an attribute of the node: a user can "
                "write it into his job",
                f"write MY.{reference.name}",
            )


def unpublished(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes of the node that nobody publishes, but for those that `snippet_slot` looks after."""
    for reference, definition in _asked_for(subject):
        name = reference.name
        known = (
            is_htcondors(name) or name.lower() in subject.published or name in _SLOTS_OWN | _SENSORS
        )
        if reference.scope == MY and not known:
            yield Finding(
                definition.place,
                f"nobody is known to publish MY.{name}, so it is undefined on every node",
                f"mend the name, add it to STARTD_ATTRS, or say --published {name}=VALUE if a "
                "STARTD_CRON job of "
                "the site publishes it",
            )


def not_set(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes that are to be published, but have no value."""
    configuration = subject.configuration
    set_somewhere = [definition.name.lower() for definition in configuration.definitions]
    for macro in EVALUATED_LISTS:
        for name in configuration.words(macro):
            if any(
                known == name.lower() or known.endswith("_" + name.lower())
                for known in set_somewhere
            ):
                continue
            if configuration.assignments(macro) and not is_htcondors(name):
                yield Finding(
                    configuration.place(macro),
                    f"{macro} lists {name}, and no file sets it: nodes publish nothing of that "
                    "name",
                    f"write {name} = VALUE, or take it off the list",
                )


def _asked_for(subject: SnippetSubject) -> Iterator[tuple[Reference, Definition]]:
    """Each attribute asked for, with the assignment that asks for it, each pair once; only judged ones."""
    seen: set[tuple[str, str, str]] = set()
    for macro, text in subject.readable.items():
        parts = subject.configuration.made_of(macro)
        for reference in references(text):
            definition = _written_in(parts, reference)
            if definition is None or not subject.configuration.is_judged(definition):
                continue
            key = (reference.scope, reference.name.lower(), definition.place)
            if key not in seen:
                seen.add(key)
                yield reference, definition


def _written_in(parts: tuple[Definition, ...], reference: Reference) -> Optional[Definition]:
    """The part in whose text the reference is written, with its scope or without."""
    scope = rf"{reference.scope}\s*\.\s*" if reference.scope else r"(?<![\w.])(?<!\$\()"
    written = re.compile(rf"{scope}'?{re.escape(reference.name)}\b(?!\s*\()", re.IGNORECASE)
    return next((part for part in parts if written.search(_without_strings(part.text))), None)


def _without_strings(text: str) -> str:
    return re.sub(r'"(?:\\"|[^"])*"', '""', text)


def _scoped(subject: SnippetSubject, name: str) -> str:
    if name.lower() in subject.published or is_htcondors(name):
        return f"MY.{name}"
    if name.lower() in JOB_ATTRIBUTES:
        return f"TARGET.{name}"
    return f"MY.{name} for the node's, TARGET.{name} for the job's"


def _unreadable_part(subject: SnippetSubject, macro: str) -> str:
    """The macro itself, or the innermost one within it that HTCondor cannot read."""
    parts = [
        part
        for part in subject.configuration.made_of(macro)
        if subject.configuration.text(part.name)
    ]
    texts = subject.htcondor.canonical([subject.configuration.text(part.name) for part in parts])
    broken = {part.name.lower(): part for part, text in zip(parts, texts) if text is None}
    for name, part in broken.items():
        if not (part.references - {name}) & broken.keys():
            return part.name
    return macro


def _effect(macro: str) -> str:
    return next(
        (effect for end, effect in _EFFECTS if macro.upper().endswith(end)), "it is not published"
    )


def _shortened(text: str, most: int = 120) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 2] + " …"


_LEFT_OVER = re.compile(
    r".*(\.(bak|backup|orig|old|save|saved|disabled|off|tmp|swp|swo|example|sample|dpkg-new|dpkg-bak|ucf-\w+)|_bak)",
    re.IGNORECASE,
)


def file_names(subject: SnippetSubject) -> Iterator[Finding]:
    """Files that HTCondor reads though they look put aside, or does not read though they look meant."""
    for path in _entries(subject):
        skipped = subject.configuration.excluded.search(path.name) is not None
        if not skipped and _LEFT_OVER.fullmatch(path.name):
            yield Finding(
                str(path),
                "HTCondor reads this file too, whatever its name means to people",
                "move it out of the folder, or let its name end in ~",
            )
        if skipped and "sharectl" in path.name.lower() and path.suffix in (".sh", ".py", ".pl"):
            yield Finding(
                str(path),
                "HTCondor does not read a file of such a name",
                "give it a name such as 60-sharectl-execute-point.conf",
            )


def none_of_ours(subject: SnippetSubject) -> Iterator[Finding]:
    """A configuration in which nothing is sharectl's."""
    if subject.knows_sharectl:
        return
    source = subject.configuration.source
    yield Finding(
        str(source.directory or source.main_file),
        "no file of sharectl's is among those that HTCondor reads: nodes with this "
        "configuration heed no target",
        "name the folder that has 60-sharectl-execute-point.conf, or install that file",
    )


def readable_files(subject: SnippetSubject) -> Iterator[Finding]:
    """Files that tools cannot read: with one of them, no tool of an ordinary user works, nor does a STARTD_CRON job."""
    for path in _entries(subject):
        if (
            not subject.configuration.excluded.search(path.name)
            and not path.stat().st_mode & stat.S_IROTH
        ):
            yield Finding(
                str(path),
                "only some users can read this file, and HTCondor's tools fail for all others: "
                "condor_status in "
                "sharectl's STARTD_CRON jobs too",
                f"chmod a+r {path}",
            )


def _entries(subject: SnippetSubject) -> Iterator[Path]:
    source = subject.configuration.source
    folders = subject.configuration.folders if source.directory is None else (source.directory,)
    for folder in folders:
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if path.is_file())


MODES = ("periodic", "waitforexit", "oneshot", "ondemand")
_COUNTS_FREE_CORES = "mc_grace.py"
_PERIOD = re.compile(r"\d+\s*[smhSMH]?")

GROUP_MAP = "SHARECTL_GROUP_MAP"

GROWING = (
    "START",
    "CLAIM_WORKLIFE",
    CRON_JOBS,
    "STARTD_ATTRS",
    "STARTD_JOB_ATTRS",
    "STARTD_LATCH_EXPRS",
    "STARTD_PARTITIONABLE_SLOT_ATTRS",
    "JOB_TRANSFORM_NAMES",
    "SUBMIT_REQUIREMENT_NAMES",
    "IMMUTABLE_JOB_ATTRS",
    "PROTECTED_JOB_ATTRS",
    "SCHEDD_CLASSAD_USER_MAP_NAMES",
)
"""Knobs that several files share: each keeps what was there before."""


def cron(subject: SnippetSubject) -> Iterator[Finding]:
    """STARTD_CRON jobs that do not run, or go on publishing old values when they fail."""
    jobs = subject.cron_jobs
    for job in dict.fromkeys(jobs):
        for knob, problem, remedy in _job_problems(subject, job):
            place = subject.configuration.place(f"STARTD_CRON_{job}_{knob}")
            yield Finding(place, f"STARTD_CRON job {job}: {problem}", remedy)
    for job in sorted(
        {job for job in jobs if [name.lower() for name in jobs].count(job.lower()) > 1}
    ):
        yield Finding(
            subject.configuration.place(CRON_JOBS),
            f"STARTD_CRON job {job} is listed more than once: HTCondor runs it when it starts, "
            "and never again",
            f"list it once in {CRON_JOBS}",
        )
    known = {job.lower() for job in jobs}
    for definition in subject.configuration.definitions:
        match = re.fullmatch(r"STARTD_CRON_(\w+)_EXECUTABLE", definition.name, re.IGNORECASE)
        idle = (
            match and match[1].lower() not in known and subject.configuration.is_judged(definition)
        )
        if (
            match
            and idle
            and not (subject.actuation == LIVE and _runs(definition.text, _COUNTS_FREE_CORES))
        ):
            yield Finding(
                definition.place,
                f"STARTD_CRON job {match[1]} never runs: it is not in {CRON_JOBS}",
                f"write {CRON_JOBS} = $({CRON_JOBS}) {match[1]}",
            )
    for job, program in subject.ours.items():
        if subject.actuation == LIVE and subject.has_clauses and program == _COUNTS_FREE_CORES:
            yield Finding(
                subject.configuration.place(CRON_JOBS),
                f"STARTD_CRON job {job} replaces the slot's own MC_GRACE: with {ACTUATION} = "
                "live nothing looks at "
                "how old what it publishes is",
                f"take {job} off {CRON_JOBS}, or write {ACTUATION} = cron",
            )
    if subject.ours and not _starts_true(
        subject.configuration.text("STARTD_CRON_LOG_NON_ZERO_EXIT")
    ):
        yield Finding(
            subject.configuration.place("STARTD_CRON_LOG_NON_ZERO_EXIT"),
            "what failing STARTD_CRON jobs say is thrown away",
            "write STARTD_CRON_LOG_NON_ZERO_EXIT = True",
        )


def replaced(subject: SnippetSubject) -> Iterator[Finding]:
    """Assignments that throw away what earlier files put into a knob that all share."""
    for knob in GROWING:
        before: list[Definition] = []
        for definition in subject.configuration.assignments(knob):
            lost = next((earlier for earlier in reversed(before) if earlier.appends), None)
            judged = subject.configuration.is_judged(definition)
            if judged and not definition.appends and (lost or subject.is_ours(definition)):
                whose = f"what {lost.place} put there" if lost else "whatever other files put there"
                yield Finding(
                    definition.place,
                    f"{definition.name} throws away {whose}",
                    f"write {_appended(definition)}",
                )
            before.append(definition)


def groups(subject: SnippetSubject) -> Iterator[Finding]:
    """Ways for users to choose their group, and a map that cannot be used."""
    configuration = subject.configuration
    if not configuration.assignments("JOB_TRANSFORM_SharectlPower"):
        return
    immutable = {word.lower() for word in configuration.words("IMMUTABLE_JOB_ATTRS")}
    missing = [
        name
        for name in ("AcctGroup", "AcctGroupUser", "AccountingGroup")
        if name.lower() not in immutable
    ]
    on_machine = configuration.source.main_file is not None
    map_file = configuration.text(GROUP_MAP_IN_USE).strip()
    if map_file and missing:
        yield Finding(
            configuration.place("JOB_TRANSFORM_SharectlPower"),
            f"users can choose their group: {', '.join(missing)} of a job can be changed",
            "write use FEATURE : AssignAccountingGroup(MAP-FILE)",
        )
    elif missing and configuration.text(GROUP_MAP).strip():
        yield Finding(
            configuration.place(GROUP_MAP),
            f"{GROUP_MAP} is read after the snippet that uses it, and does nothing: users can "
            "choose their group",
            "name it in a file that is read before "
            f"{subject.configuration.place('JOB_TRANSFORM_SharectlPower')}",
        )
    elif missing and on_machine:
        yield Finding(
            configuration.place("JOB_TRANSFORM_SharectlPower"),
            "users can choose their group, and so whose share their jobs count for",
            "write a map as in config.d/examples/accounting-groups.map, and in the snippet or "
            "a file read before "
            f"it {GROUP_MAP} = PATH of the map",
            level=Level.ADVICE,
        )
    if map_file and on_machine and not os.access(map_file, os.R_OK):
        yield Finding(
            configuration.place(
                GROUP_MAP if configuration.assignments(GROUP_MAP) else GROUP_MAP_IN_USE
            ),
            f"there is no map {map_file} that can be read: the access point refuses every job",
            "write the map; config.d/examples/accounting-groups.map shows how",
        )
    elif map_file and on_machine:
        yield from findings(subject, Path(map_file))


def quotas(subject: SnippetSubject) -> Iterator[Finding]:
    """Quotas of groups that do not exist, and shares that cannot be."""
    configuration = subject.configuration
    known = {name.lower() for name in configuration.words("GROUP_NAMES")}
    matches = [
        (definition, match[1])
        for definition in configuration.definitions
        if (match := re.fullmatch(r"GROUP_QUOTA_DYNAMIC_([\w.]+)", definition.name, re.IGNORECASE))
    ]
    shares: dict[str, dict[str, float]] = {}
    numbers = subject.numbers([configuration.text(definition.name) for definition, _ in matches])
    for (definition, group), share in zip(matches, numbers):
        if group.lower() not in known:
            yield Finding(
                definition.place,
                f"{group} is not in GROUP_NAMES: its quota is ignored",
                "add it there",
            )
        if share is None or not 0 <= share <= 1:
            yield Finding(
                definition.place,
                f"{definition.text} is no share",
                "write a number from 0 to 1",
            )
        else:
            shares.setdefault(above_of(group.lower()), {})[group.lower()] = share
    for above, level in shares.items():
        if sum(level.values()) > 1 + 1e-6:
            whose = f"shares of the groups within {above}" if above else "groups' shares"
            yield Finding(
                configuration.place("GROUP_NAMES"),
                f"the {whose} sum to {sum(level.values()):.6f}: HTCondor scales all of them down",
                "print them anew with sharectl render central-manager",
            )


def _job_problems(subject: SnippetSubject, job: str) -> Iterator[tuple[str, str, str]]:
    """Knob, problem and remedy of everything that is wrong with one STARTD_CRON job."""
    yield from (("EXECUTABLE", *said) for said in _program_problems(subject, job))
    mode = subject.cron(job, "MODE").lower() or "periodic"
    if mode not in MODES:
        yield "MODE", f"there is no mode {mode}", "write Periodic"
    period = subject.cron(job, "PERIOD")
    if mode == "periodic" and not (_PERIOD.fullmatch(period) and int(re.sub(r"\D", "", period))):
        yield "PERIOD", f"a period of {period or 'nothing'} is none", "write seconds, such as 60s"
    if mode == "periodic" and not _starts_true(subject.cron(job, "KILL")):
        yield (
            "KILL",
            (
                "a run that hangs is the last one, and its old values stay for ever (1 and yes "
                "count as False)"
            ),
            f"write STARTD_CRON_{job}_KILL = True",
        )
    if job in subject.ours and subject.cron(job, "PREFIX"):
        yield (
            "PREFIX",
            "it publishes whole names, a prefix changes them",
            f"take STARTD_CRON_{job}_PREFIX out",
        )


def _runs(executable: str, program: str) -> bool:
    return PurePosixPath(executable.strip()).name == program


def _program_problems(subject: SnippetSubject, job: str) -> Iterator[tuple[str, str]]:
    """Problem and remedy of everything that is wrong with the program of a STARTD_CRON job."""
    executable = subject.cron(job, "EXECUTABLE")
    if not executable:
        yield "it has no program", f"write STARTD_CRON_{job}_EXECUTABLE = PATH"
    elif not executable.startswith("/"):
        yield f"{executable} is found in no folder", "write the whole path"
    elif subject.configuration.source.main_file is None:
        return  # it is another machine's
    elif not (Path(executable).is_file() and os.access(executable, os.X_OK)):
        yield f"there is no program {executable}", "install it, or mend the path and mode"
    else:
        for name in BESIDE.get(subject.ours.get(job, ""), ()):
            if not Path(executable).with_name(name).is_file():
                yield f"{name} is not beside {executable}", "install all files of the node anew"


def _appended(definition: Definition) -> str:
    if definition.name.upper() == "START":
        return "START = ($(START)) && (…)"
    if definition.name.upper() == "CLAIM_WORKLIFE":
        return "CLAIM_WORKLIFE = ifThenElse(…, $(CLAIM_WORKLIFE))"
    return f"{definition.name} = $({definition.name}) {' '.join(definition.text.split())}"


def _starts_true(text: str) -> bool:
    return text.strip().lower().startswith("t")


NUMBERS = {
    # knob: lowest value, and whether it has to be written as a plain number, since it goes into a
    # command line
    "SHARECTL_MAX_AGE_SECONDS": (1, True),
    "SHARECTL_MULTICORE_CORES": (2, True),
    "SHARECTL_GRACE_SECONDS": (0, True),
    "SHARECTL_JOB_CTL_PERIOD_SECONDS": (1, True),
    "SHARECTL_MC_GRACE_PERIOD_SECONDS": (1, True),
    "SHARECTL_DISABLED_PERIOD_SECONDS": (1, True),
    "SHARECTL_JOB_CTL_STALE_SECONDS": (1, False),
    "SHARECTL_MC_GRACE_STALE_SECONDS": (1, False),
}
LONGER = (
    ("SHARECTL_JOB_CTL_STALE_SECONDS", "SHARECTL_JOB_CTL_PERIOD_SECONDS"),
    ("SHARECTL_MC_GRACE_STALE_SECONDS", "SHARECTL_MC_GRACE_PERIOD_SECONDS"),
)
BOOLEANS = {ENABLED: "True"}
"""Knob → what the other checks take it for where it is neither True nor False: or all of them would find that."""

DISABLED_FILE = "SHARECTL_DISABLED_FILE"
OLDEST_LIVE = (23, 9)
"""First version of HTCondor on which the live way has been seen to work."""

_PLAIN_PATH = re.compile(r"/[A-Za-z0-9._/+@%-]+")
"""A path that means itself in a line of shell and to HTCondor."""


def own_knobs(subject: SnippetSubject) -> Iterator[Finding]:
    """Knobs of sharectl's that do not exist, or have a value that they cannot have."""
    yield from _unused(subject)
    configuration = subject.configuration
    for knob in BOOLEANS:
        if knob in subject.mistaken:
            problem = f"{f'{knob} = {subject.mistaken[knob]}'.strip()} is neither True nor False"
            yield Finding(configuration.place(knob), problem, "write True or False")
    yield from _actuation(subject)
    yield from _numbers(subject)
    path = configuration.text(DISABLED_FILE).strip()
    if configuration.assignments(DISABLED_FILE) and not _PLAIN_PATH.fullmatch(path):
        yield _unusable(
            subject,
            DISABLED_FILE,
            "is no path that a line of shell can use: sharectl is off for ever, or cannot be "
            "put off",
            "write a whole path without blanks, such as /etc/sharectl/disabled",
        )


def mistaken(configuration: Configuration) -> dict[str, str]:
    """Knob → its text, of those of `BOOLEANS` that are neither True nor False."""
    texts = {
        knob: configuration.text(knob).strip()
        for knob in BOOLEANS
        if configuration.assignments(knob)
    }
    return {knob: text for knob, text in texts.items() if text.lower() not in ("true", "false")}


def _unused(subject: SnippetSubject) -> Iterator[Finding]:
    configuration = subject.configuration
    used = {
        reference for definition in configuration.definitions for reference in definition.references
    }
    used |= {
        reference[:-1] + way for reference in used if reference.endswith("*") for way in ACTUATIONS
    }
    own = sorted(name for name in used if name.startswith("sharectl_") and not name.endswith("*"))
    for definition in configuration.definitions:
        name = definition.name.lower()
        if (
            name.startswith("sharectl_")
            and name not in used
            and configuration.is_judged(definition)
        ):
            close = difflib.get_close_matches(name, own, 1)
            yield Finding(
                definition.place,
                f"nothing uses {definition.name}",
                f"write {close[0].upper()}"
                if close
                else "take it out, or check the snippet that uses it with it",
            )


def _actuation(subject: SnippetSubject) -> Iterator[Finding]:
    configuration = subject.configuration
    assignments = configuration.assignments(ACTUATION)
    text = configuration.text(ACTUATION).strip()
    if assignments and text.lower() not in ACTUATIONS:
        yield _unusable(
            subject,
            ACTUATION,
            f"is neither {' nor '.join(ACTUATIONS)}: nodes heed no target",
            f"write {' or '.join(ACTUATIONS)}",
        )
    too_old = subject.installed is not None and subject.installed < OLDEST_LIVE
    if (
        assignments
        and too_old
        and text.lower() == LIVE
        and not subject.is_snippets(assignments[-1])
    ):
        yield _unusable(
            subject,
            ACTUATION,
            f"is for HTCondor {_version(OLDEST_LIVE)} and later, and here is "
            f"{_version(subject.installed)}",
            f"write {ACTUATION} = cron, or leave it to the snippet",
        )


def _numbers(subject: SnippetSubject) -> Iterator[Finding]:
    configuration = subject.configuration
    texts = {
        knob: configuration.text(knob).strip()
        for knob in NUMBERS
        if configuration.assignments(knob)
    }
    values: dict[str, float] = {}
    for (knob, text), value in zip(texts.items(), subject.numbers(list(texts.values()))):
        lowest, plain = NUMBERS[knob]
        if value is None or value < lowest or (plain and not text.isdecimal()):
            kind = "a whole number" if plain else "a number"
            yield _unusable(subject, knob, "is not usable", f"write {kind} from {lowest}")
        else:
            values[knob] = value
    for stale, period in LONGER:
        if stale in values and period in values and values[stale] <= values[period]:
            yield Finding(
                configuration.place(stale),
                f"{stale} = {values[stale]:g} is no longer than {period} = {values[period]:g}: "
                "between two runs "
                "sharectl does nothing",
                f"write {stale} = 3 * $({period})",
            )


def _unusable(subject: SnippetSubject, knob: str, problem: str, remedy: str) -> Finding:
    text = subject.configuration.text(knob).strip()
    return Finding(subject.configuration.place(knob), f"{knob} = {text} {problem}", remedy)


def _version(version: Optional[tuple[int, ...]]) -> str:
    return ".".join(str(number) for number in version or ())


ATTRIBUTES, LATCH_LIST, SUMMED_LIST = (
    "STARTD_ATTRS",
    "STARTD_LATCH_EXPRS",
    "STARTD_PARTITIONABLE_SLOT_ATTRS",
)


def unlisted(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes of the clauses that the slot does not have."""
    missing = _missing(subject, ATTRIBUTES, SLOT_ATTRIBUTES[subject.actuation])
    if subject.has_clauses and missing:
        yield _lacks(
            subject, ATTRIBUTES, missing, "clauses of START find nothing, and let every job in"
        )


def latches(subject: SnippetSubject) -> Iterator[Finding]:
    """Latches that the slot does not have, or that condor_reconfig would mix up."""
    needed = LATCHES[subject.actuation]
    if not (subject.has_clauses and needed):
        return
    missing = _missing(subject, LATCH_LIST, needed)
    if missing:
        yield _lacks(
            subject,
            LATCH_LIST,
            missing,
            "nobody sees when cores become free, and there is no grace",
        )
    words = [word.lower() for word in subject.words(LATCH_LIST)]
    first = next(
        (word for word in words if word in (BEFORE_OURS.lower(), *map(str.lower, needed))), ""
    )
    if not missing and first != BEFORE_OURS.lower():
        yield Finding(
            subject.configuration.place(LATCH_LIST),
            f"{LATCH_LIST} has not {BEFORE_OURS} before {needed[0]}: condor_reconfig on a "
            "running node mixes up the "
            "latches, and there is no grace until the startd is restarted",
            f"write {LATCH_LIST} = $({LATCH_LIST}) {BEFORE_OURS} {' '.join(needed)}",
        )


def rolled_up(subject: SnippetSubject) -> Iterator[Finding]:
    """A partitionable slot that is not told what its dynamic slots hold."""
    if not subject.has_clauses or subject.actuation != LIVE:
        return
    missing = _missing(subject, SUMMED_LIST, (HELD_BACK_CORES,))
    if missing:
        yield _lacks(
            subject, SUMMED_LIST, missing, f"there is no {SUMMED}, so nodes heed no target"
        )
    if subject.configuration.text(ROLL_UP).strip().lower().startswith("f"):
        yield Finding(
            subject.configuration.place(ROLL_UP),
            f"with {ROLL_UP} = False there is no {SUMMED}, so nodes heed no target",
            f"write {ROLL_UP} = True, or SHARECTL_ACTUATION = cron",
        )


def miscounted(subject: SnippetSubject) -> Iterator[Finding]:
    """Slots that count other cores as the held-back group's than it holds, or free cores wrongly."""
    if not subject.has_clauses or subject.actuation != LIVE or subject.is_off:
        return
    for attribute, cases in ((HELD_BACK_CORES, _held_cases(subject)), (ROOM, _room_cases(subject))):
        seen = (
            subject.htcondor.evaluate([f"MY.{attribute}"], [slot for _, slot, _ in cases], [{}])[0]
            or []
        )
        wrong = [
            f"{value} {situation}"
            for (situation, _, expected), (value,) in zip(cases, seen)
            if value != expected
        ]
        if wrong and attribute in subject.constants:
            yield Finding(
                subject.configuration.place(attribute),
                f"{attribute} is {'; '.join(wrong)}",
                f"leave {attribute} and what it is made of as they are",
            )


def _held_cases(subject: SnippetSubject) -> list[tuple[str, Ad, Any]]:
    cores = subject.multicore_cores
    target = {**subject.constants, **target_attributes(subject.node)}
    mine = dynamic_slot(target, cores, HELD_BACK)
    return [
        (f"in a slot of {cores} cores of {HELD_BACK}", mine, cores),
        (
            f"in a slot of {HELD_BACK.upper()}",
            dynamic_slot(target, cores, HELD_BACK.upper()),
            cores,
        ),
        ("in a slot of another group", dynamic_slot(target, cores, f"{HELD_BACK}2"), 0),
        ("in a slot that is new and nobody's yet", dynamic_slot(target, cores), cores),
        (
            "in a slot that nobody's group has claimed",
            {**dynamic_slot(target, cores), "State": '"Claimed"'},
            0,
        ),
        ("in a slot without Cpus", {**mine, "Cpus": "undefined"}, 0),
        ("without a target", dynamic_slot(subject.constants, cores, HELD_BACK), 0),
        ("under a broken target", {**mine, "t1_TargetGroups": "error"}, 0),
        ("in the partitionable slot", partitionable_slot(target, cores), 0),
        *nested_slots(subject.constants, subject.node),
    ]


def _room_cases(subject: SnippetSubject) -> list[tuple[str, Ad, Any]]:
    cores, ours = subject.multicore_cores, subject.constants
    return [
        (f"with {cores} free cores", partitionable_slot(ours, cores), True),
        (f"with {cores - 1} free cores", partitionable_slot(ours, cores - 1), False),
        ("in a dynamic slot", dynamic_slot(ours, cores), False),
    ]


def _missing(subject: SnippetSubject, knob: str, needed: tuple[str, ...]) -> list[str]:
    listed = {word.lower() for word in subject.words(knob)}
    return [name for name in needed if name.lower() not in listed]


def _lacks(subject: SnippetSubject, knob: str, missing: list[str], effect: str) -> Finding:
    names = " ".join(missing)
    return Finding(
        subject.configuration.place(knob),
        f"{knob} lacks {', '.join(missing)}: {effect}",
        f"write {knob} = $({knob}) {names}, or let it keep what the snippet put there",
    )


SOURCE, OPTIONS = "SHARECTL_SOURCE", "SHARECTL_SOURCE_OPTIONS"
PROGRAM = "job_ctl.py"
KEY, IDENTITY = "--key-file", "--identity"

_FORMS = (
    re.compile(r"file:/[^\s,\"'$]+"),
    re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[^\s,\"'$?#]*"),
    re.compile(r"collector:[^\s,\"'$]*"),
)
_REMEDY = (
    "write file:/PATH, https://HOST[:PORT]/PATH or collector:, several with commas and "
    "without blanks"
)


def sources(subject: SnippetSubject) -> Iterator[Finding]:
    """Sources that job_ctl.py cannot use, and those whose targets anybody could have written."""
    configuration = subject.configuration
    if not configuration.assignments(SOURCE):
        return
    text = configuration.text(SOURCE).strip()
    place, given = configuration.place(SOURCE), _options(subject)
    wrong = [
        entry for entry in text.split(",") if not any(form.fullmatch(entry) for form in _FORMS)
    ]
    if wrong:
        shown = ", ".join(repr(entry) for entry in wrong)
        yield Finding(place, f"{SOURCE}: {shown} is no source: nodes get no target", _REMEDY)
        return
    if text.count(",") >= MAX_SOURCES:
        problem = f"{SOURCE} has more than {MAX_SOURCES} sources: nodes get no target"
        yield Finding(place, problem, "write fewer")
    yield from _identity(subject, text, given)
    yield from _key_file(subject, text, given)
    if KEY not in given:
        for problem in map(_exposed, text.split(",")):
            if problem:
                yield Finding(
                    place,
                    f"{problem}, and nodes believe what is not signed",
                    f"sign the targets, and add {KEY} /etc/sharectl/keys to {OPTIONS}",
                    level=Level.ADVICE,
                )


def options(subject: SnippetSubject) -> Iterator[Finding]:
    """Options that job_ctl.py does not have, or that lack a value."""
    for job, program in subject.ours.items():
        words = subject.cron(job, "ARGS").split()
        place = subject.configuration.place(f"STARTD_CRON_{job}_ARGS")
        if subject.configuration.text(OPTIONS).strip():
            place = subject.configuration.place(OPTIONS)
        if program != PROGRAM or re.search(r"\s", subject.configuration.text(SOURCE).strip()):
            continue
        for name in words[::2]:
            if name not in JOB_CTL_OPTIONS:
                close = difflib.get_close_matches(name, JOB_CTL_OPTIONS, 1)
                yield Finding(
                    place,
                    f"{PROGRAM} has no option {name}: nodes get no target",
                    f"write {close[0] if close else 'one of ' + ', '.join(JOB_CTL_OPTIONS)}, "
                    "and its value after a "
                    "blank",
                )
                break
        else:
            if len(words) % 2:
                yield Finding(place, f"{words[-1]} has no value: nodes get no target", "write one")


def _identity(subject: SnippetSubject, text: str, given: Mapping[str, str]) -> Iterator[Finding]:
    if not any(entry.startswith("collector:") for entry in text.split(",")):
        return
    place = subject.configuration.place(OPTIONS)
    remedy = (
        f"write {OPTIONS} = {IDENTITY} sharectl@example.org, as `condor_status -any` shows it of "
        "sharectl's ads"
    )
    if IDENTITY not in given:
        problem = f"collector: needs {IDENTITY}: nodes believe no ad of which they do not know who sent it"
        yield Finding(place, problem, remedy)
    elif given[IDENTITY].rpartition("@")[2] in ("", "unmapped"):
        problem = f"{IDENTITY} {given[IDENTITY]} is what everybody has whom HTCondor cannot tell"
        yield Finding(place, problem, remedy)


def _key_file(subject: SnippetSubject, text: str, given: Mapping[str, str]) -> Iterator[Finding]:
    """A file of keys that this machine's jobs refuse, and every target with it."""
    configuration, name = subject.configuration, given.get(KEY, "")
    asked = any(not entry.startswith("collector:") for entry in text.split(","))
    if configuration.source.main_file is None or not asked or not name.startswith("/"):
        return
    jobs_user = signing.reader(configuration.text("CONDOR_IDS"))
    wrong = signing.problem(Path(name), jobs_user, os.geteuid())
    if wrong:
        code, why = wrong
        problem = f"{why}: this node refuses every target ({code})"
        yield Finding(configuration.place(OPTIONS), problem, REMEDIES[code])


def _options(subject: SnippetSubject) -> dict[str, str]:
    """Option → value, of all that job_ctl.py is given."""
    jobs = [job for job, program in subject.ours.items() if program == PROGRAM]
    words = subject.cron(jobs[0], "ARGS").split() if jobs else []
    words = words or subject.configuration.text(OPTIONS).split()
    return dict(zip(words[::2], words[1::2]))


def _exposed(entry: str) -> str:
    """Who else could write that source's targets; empty if nobody is known to."""
    if entry.startswith("https:"):
        return f"whoever can write to the web server of {entry} sets targets"
    if entry.startswith("file:"):
        path = Path(entry.partition(":")[2])
        why = signing.why_untrusted(path, signing.MOUNTS, _writers(path))
        return f"{path}: {why}" if why else ""
    return ""


def _writers(path: Path) -> list[int]:
    """Users who may write it: this one, and the one to whom it belongs, since targets have a user of their own."""
    try:
        return [os.geteuid(), path.stat().st_uid]
    except OSError:
        return [os.geteuid()]


START, WORKLIFE = "START", "CLAIM_WORKLIFE"
SITES_OWN = {**dict.fromkeys(CLAUSES, "True"), TARGET_ACTIVE: "False", HELD_BACK_SLOT: "False"}
"""Attributes of a slot that is not sharectl's."""
_CLAUSES = " && ".join(f"MY.{clause} =!= False" for clause in CLAUSES)
_LAST_OF_CLAIM = "MY.t1_TargetActive =?= True && MY.t1_HeldBackSlot =?= True"
SHOWN = 3
"""So many jobs or situations are named in a finding; the others are counted."""


def refused(subject: SnippetSubject) -> Iterator[Finding]:
    """Typical jobs that get in without sharectl's clauses, and not with them, where there is no target."""
    quiet = trials.quiet_trials(subject.node)
    outcomes, sites_own = _started(subject, quiet)
    failures: dict[tuple[str, ...], list[str]] = {}
    for situation in dict.fromkeys(trial.situation for trial in quiet):
        jobs = [
            f"{trial.job} ({_word(outcome)})"
            for trial, outcome, without in zip(quiet, outcomes, sites_own)
            if trial.situation == situation
            and (outcome in ("undefined", "error") or (_true(without) and not _true(outcome)))
        ]
        if jobs:
            failures.setdefault(tuple(dict.fromkeys(jobs)), []).append(situation)
    for kept_out, situations in failures.items():
        yield Finding(
            subject.configuration.place(START),
            f"START keeps jobs out {_some(situations)}: {_some(kept_out)}",
            "test for what may be missing or broken with =?= and =!=, so that it lets jobs in; "
            "if it waits for what a "
            "STARTD_CRON job of the site publishes, say --published NAME=VALUE",
        )
    if not failures and not any(_true(outcome) for outcome in outcomes):
        yield Finding(
            subject.configuration.place(START),
            "START keeps out every typical job, with sharectl and without",
            "mend it, or say with --published NAME=VALUE what STARTD_CRON jobs of the site "
            "publish on a healthy node",
        )


def without_effect(subject: SnippetSubject) -> Iterator[Finding]:
    """Jobs that sharectl's clauses have to let in or keep out, and do not."""
    if not subject.has_clauses or subject.is_off:
        return
    acting = [*trials.acting_trials(subject.node), *nested_trials(subject.node)]
    outcomes, sites_own = _started(subject, acting)
    wrong = [
        (trial, outcome)
        for trial, outcome, without in zip(acting, outcomes, sites_own)
        if _true(outcome) != (trial.expected and _true(without))
    ]
    for situation in dict.fromkeys(trial.situation for trial, _ in wrong):
        jobs = [
            f"{trial.job} ({_word(outcome)})"
            for trial, outcome in wrong
            if trial.situation == situation
        ]
        yield Finding(
            subject.configuration.place(START),
            f"START does not do what sharectl is for {situation}: {_some(jobs)}",
            "let START end in && ($(t1_clauses)), in the last file that sets it, and leave the "
            "clauses as they are",
        )


def forgeable(subject: SnippetSubject) -> Iterator[Finding]:
    """Jobs that gain something by attributes that their users wrote into them."""
    honest = [
        *trials.quiet_trials(subject.node),
        *trials.acting_trials(subject.node),
        *nested_trials(subject.node),
    ]
    start = [subject.configuration.text(START)]
    (honestly,) = _tried(subject, start, honest)
    kept_out = [trial for trial, outcome in zip(honest, honestly) if not _true(outcome)]
    (forging,) = _tried(subject, start, [trials.forged(trial, trials.FORGED) for trial in kept_out])
    gained = [
        f"{trial.job} {trial.situation}"
        for trial, outcome in zip(kept_out, forging)
        if _true(outcome)
    ]
    if gained:
        yield Finding(
            subject.configuration.place(START),
            f"a job gets in by attributes that its user has written into it: {_some(gained)}",
            "ask for every attribute of the node with MY.",
        )


def claims(subject: SnippetSubject) -> Iterator[Finding]:
    """Claims that outlive a target, or end early without one."""
    node = subject.node
    quiet = [
        (situation, trials.dynamic_slot({**subject.constants, **ours}, 1, trials.HELD_BACK))
        for situation, ours in trials.targetless_situations(node).items()
    ]
    target = {**subject.constants, **trials.target_attributes(node)}
    quiet.append(("of another group under a target", trials.dynamic_slot(target, 1, "lhcb")))
    quiet.append(("before it has a claim", trials.dynamic_slot(target, 1)))
    held_back = trials.dynamic_slot(target, 1, trials.HELD_BACK)
    slots = [*(slot for _, slot in quiet), held_back]
    with_target = _in_slots(subject, subject.configuration.text(WORKLIFE), slots)
    sites_own = subject.without_sharectl.get(WORKLIFE, "1200")
    without = _in_slots(subject, sites_own, [{**slot, **SITES_OWN} for slot in slots])
    changed = [
        f"{situation} ({_word(value)} instead of {_word(usual)})"
        for (situation, _), value, usual in zip(quiet, with_target, without)
        if value != usual
    ]
    place = subject.configuration.place(WORKLIFE)
    if changed:
        yield Finding(
            place,
            f"CLAIM_WORKLIFE is not the site's own {_some(changed)}",
            f"let it be 0 only where {_LAST_OF_CLAIM}",
        )
    if subject.has_clauses and not subject.is_off and with_target[-1] != 0:
        yield Finding(
            place,
            "under a target, a claim of the held-back group lives on "
            f"({_word(with_target[-1])}): its jobs follow each "
            "other in it, and START is not asked",
            f"write CLAIM_WORKLIFE = ifThenElse({_LAST_OF_CLAIM}, 0, $(CLAIM_WORKLIFE:1200)), "
            "in the last file that "
            "sets it",
        )


def not_the_clauses(subject: SnippetSubject) -> Iterator[Finding]:
    """Expressions that HTCondor uses in the place of START, and that let in whom a clause keeps out."""
    if not subject.knows_sharectl:
        return
    tried = [trial for clause in CLAUSES for trial in trials.clause_trials(subject.node, clause)]
    others = {
        macro: text
        for macro, text in subject.readable.items()
        if EXPRESSIONS.fullmatch(macro.upper())
        and START in macro.upper()
        and macro.upper() != START
    }
    for (macro, text), outcomes in zip(
        others.items(), _tried(subject, list(others.values()), tried)
    ):
        asks = {reference.name for reference in references(text) if reference.scope == MY}
        let_in = [
            f"{trial.job} {trial.situation}"
            for trial, outcome in zip(tried, outcomes)
            if _true(outcome)
        ]
        # What lets in none of the typical jobs may still let in others: then the clauses have to be
        # in its text.
        if let_in or (text.lower() != "false" and not asks.issuperset(CLAUSES)):
            whom = f"lets in {_some(let_in)}" if let_in else "has none of sharectl's clauses"
            yield Finding(
                subject.configuration.place(macro),
                f"HTCondor uses {macro} in the place of START, and it {whom}",
                f"let it end in && ({_CLAUSES}), in the last file that sets it",
            )


def quantized(subject: SnippetSubject) -> Iterator[Finding]:
    """Single-core jobs that get the slot of a multicore job by MODIFY_REQUEST_EXPR_REQUESTCPUS, and are kept out of it."""
    macro = "MODIFY_REQUEST_EXPR_REQUESTCPUS"
    text, cores = subject.configuration.text(macro), subject.multicore_cores
    if not (text and subject.has_clauses):
        return
    slot = trials.partitionable_slot({}, 8 * cores)
    values = subject.htcondor.evaluate([text], [slot], [trials.job("1", None)])[0]
    given = values[0][0] if values is not None else "error"
    if isinstance(given, (int, float)) and given >= cores:
        yield Finding(
            subject.configuration.place(macro),
            f"a job of one core gets a slot of {given:g}, and START keeps single-core jobs out "
            f"of slots of {cores} cores",
            f"make it smaller than {cores} for such jobs, or SHARECTL_MULTICORE_CORES larger",
        )


def _started(subject: SnippetSubject, tried: Sequence[Trial]) -> tuple[list[Any], list[Any]]:
    """In each trial what START is, and what the site's own START is."""
    (outcomes,) = _tried(subject, [subject.configuration.text(START)], tried)
    switched_off = [replace(trial, slot_ad={**trial.slot_ad, **SITES_OWN}) for trial in tried]
    (sites_own,) = _tried(subject, [subject.without_sharectl.get(START, "True")], switched_off)
    return outcomes, sites_own


def _tried(
    subject: SnippetSubject, expressions: Sequence[str], tried: Sequence[Trial]
) -> list[list[Any]]:
    """For each expression its value in each trial; ``error`` in all if it cannot be read."""
    slots, slot_numbers = _numbered(trial.slot_ad for trial in tried)
    jobs, job_numbers = _numbered(trial.job_ad for trial in tried)
    return [
        ["error"] * len(tried)
        if values is None
        else [values[slot][job] for slot, job in zip(slot_numbers, job_numbers)]
        for values in subject.htcondor.evaluate(expressions, slots, jobs)
    ]


def _in_slots(subject: SnippetSubject, expression: str, slots: Sequence[Ad]) -> list[Any]:
    """Value of an expression in each slot; ``error`` if it cannot be read."""
    (values,) = subject.htcondor.evaluate([expression], slots, [{}])
    return [row[0] for row in values] if values is not None else ["error"] * len(slots)


def _numbered(ads: Iterable[Ad]) -> tuple[list[Ad], list[int]]:
    """The different ones among ``ads``, and for each of ``ads`` which one it is."""
    numbers: dict[tuple[tuple[str, str], ...], int] = {}
    found: list[Ad] = []
    order = []
    for ad in ads:
        key = tuple(ad.items())
        if key not in numbers:
            numbers[key] = len(found)
            found.append(ad)
        order.append(numbers[key])
    return found, order


def _true(value: Any) -> bool:
    return value not in ("undefined", "error") and bool(value)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _some(words: Sequence[str]) -> str:
    shown = "; ".join(words[:SHOWN])
    return shown if len(words) <= SHOWN else f"{shown}; and {len(words) - SHOWN} more"
