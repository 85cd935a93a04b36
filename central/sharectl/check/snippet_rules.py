"""Configuration that snippets make, and checks of it by its text: files, knobs, jobs, names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Optional

from sharectl.check.findings import Checks, Finding, Level, unread_knobs
from sharectl.check.slot_ad import every_slot_has, jobs_have, startd_publishes
from sharectl.condor.configuration import (
    MAX_BYTES,
    ConfigSource,
    Configuration,
    Definition,
    expand,
    read,
    readers_of,
    unread,
    without_daemon,
)
from sharectl.condor.expressions import MY, TARGET, UNSCOPED, Reference, references
from sharectl.condor.library import CondorProcess
from sharectl.files import files
from sharectl.publish import signing
from sharectl.shares.groups import NESTED_GROUP_NAME
from sharectl.words import near

CHECKS = Checks("snippets.txt")
finding = CHECKS.finding

CRON_JOBS = "STARTD_CRON_JOBLIST"
CRON_KNOBS = ("EXECUTABLE", "MODE", "KILL", "PREFIX")
ACTUATION = "SHARECTL_ACTUATION"
ATTRIBUTES, LATCHES = "STARTD_ATTRS", "STARTD_LATCH_EXPRS"
EVALUATED_LISTS = (ATTRIBUTES, "STARTD_EXPRS", LATCHES)
"""Lists of macros that HTCondor takes for expressions."""
MOST_CORES = 1024
TRANSFORM = "JOB_TRANSFORM_SharectlPower"
GROUP_MAP_IN_USE = "CLASSAD_USER_MAPFILE_AssignAccountingGroup"
"""Map that HTCondor's AssignAccountingGroup reads."""

MACROS = (
    *("START", "CLAIM_WORKLIFE", CRON_JOBS, *EVALUATED_LISTS),
    *("STARTD_PARTITIONABLE_SLOT_ATTRS", "STARTD_JOB_ATTRS", "SHARECTL_ENABLED", ACTUATION),
    *("JOB_TRANSFORM_NAMES", "IMMUTABLE_JOB_ATTRS", "PROTECTED_JOB_ATTRS", GROUP_MAP_IN_USE),
    *("ADVERTISE_PSLOT_ROLLUP_INFORMATION", "DAEMON_LIST"),
)
"""Macros that the checks want expanded, whether or not a file sets them."""
EXPRESSIONS = re.compile(
    r"(SLOT_TYPE_\d+_)?(START|CLAIM_WORKLIFE)|(DEFRAG|DEFAULT)_DRAINING_START_EXPR"
)
"""Knobs of a node, upper case, that are expressions and decide which jobs start there."""
_OF_SLOTS = re.compile(r"SLOT(_TYPE_)?\d+_")
"""Beginning of a knob of some slots."""

LIVE, CRON = "live", "cron"
ACTUATIONS = (LIVE, CRON)
"""Ways to count the held-back group's cores and to see grace: values of SHARECTL_ACTUATION."""
CLAUSES = ("t1_GraceAdmits", "t1_TargetAdmits", "t1_CoolAdmits")
"""Attributes of the slot that say whether a job may start; each lets jobs in unless it is False."""
PUBLISHED = {
    "job_ctl.py": (
        *("t1_CurrentJobs", "t1_TargetGroups", "t1_Targetcores", "t1_TargetUntil"),
        *("t1_TargetSequence", "t1_MulticorePending", "t1_MulticorePendingUntil"),
        *("t1_JobCtlReason", "t1_JobCtlTime", "t1_SharectlVersion"),
    ),
    "mc_grace.py": ("MC_GRACE", "t1_McGraceReason", "t1_McGraceTime"),
    "SHARECTL_OFF": ("t1_Disabled",),
}
"""Program, or name of a job that is a line of shell → attributes that it publishes."""


@dataclass(frozen=True)
class SnippetSubject:
    """A configuration, and what only its operator knows of it."""

    configuration: Configuration
    htcondor: CondorProcess
    site_attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes that STARTD_CRON jobs of the site publish → their values, ClassAd expressions."""
    carried: Mapping[str, str] = field(default_factory=dict)
    """Attributes that jobs of the site carry → their values."""

    def text(self, macro: str) -> str:
        """Expanded text of a macro without blanks around it, empty if it is not set."""
        return self.configuration.text(macro).strip()

    def cron(self, job: str, knob: str) -> str:
        """Text of one of `CRON_KNOBS` of a STARTD_CRON job, empty if it is not set."""
        return self.text(f"STARTD_CRON_{job}_{knob}")

    @cached_property
    def cron_jobs(self) -> Mapping[str, str]:
        """STARTD_CRON jobs, in the order of the list → key in `PUBLISHED`, or an empty text."""
        keys = {}
        for job in self.configuration.words(CRON_JOBS):
            program = PurePosixPath(self.cron(job, "EXECUTABLE")).name
            keys[job] = next((name for name in (program, job) if name in PUBLISHED), "")
        return keys

    @property
    def on_machine(self) -> bool:
        """True if the configuration is that of this machine, or lies on top of it."""
        return self.configuration.source.main_file is not None

    @property
    def has_clauses(self) -> bool:
        """True if a file defines sharectl's clauses of START."""
        return bool(self.configuration.assignments("t1_clauses"))

    @property
    def is_live(self) -> bool:
        """True for a node with sharectl's clauses that acts by attributes of the slot."""
        return self.has_clauses and self.text(ACTUATION).lower() != CRON

    @property
    def multicore_cores(self) -> int:
        """Size of a multicore job, cores."""
        text = self.text("SHARECTL_MULTICORE_CORES")
        cores = int(text) if text.isdecimal() else 0
        return cores if 1 < cores <= MOST_CORES else 8

    @cached_property
    def published(self) -> frozenset[str]:
        """Attributes that this configuration adds to slot ads, lower case."""
        words = self.configuration.words
        names = [*words(*self.evaluated_lists, "STARTD_JOB_ATTRS")]
        names += [f"{latch}{end}" for latch in words(LATCHES) for end in ("Value", "Time")]
        names += [f"Child{word}" for word in words("STARTD_PARTITIONABLE_SLOT_ATTRS")]
        for job in self.cron_jobs:
            names += [f"{self.cron(job, 'PREFIX')}LastUpdate", f"{job}LastUpdate"]
        names += [name for key in filter(None, self.cron_jobs.values()) for name in PUBLISHED[key]]
        return frozenset(name.lower() for name in (*names, *self.site_attributes))

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Macros that HTCondor publishes as expressions → text."""
        return self.configuration.texts(self.configuration.words(*self.evaluated_lists))

    @cached_property
    def evaluated_lists(self) -> tuple[str, ...]:
        """Lists of macros that HTCondor takes for expressions, those of some slots too."""
        of_slots = (name for name in self._named if _OF_SLOTS.match(name))
        return (*EVALUATED_LISTS, *(name for name in of_slots if _general(name) == ATTRIBUTES))

    @cached_property
    def expressions(self) -> Mapping[str, str]:
        """Macros that HTCondor takes for expressions on a node → text; only those a file sets."""
        published = set(map(str.upper, self.configuration.words(*self.evaluated_lists)))
        decide = [name for name in self._named if EXPRESSIONS.fullmatch(name)]
        wanted = dict.fromkeys([*decide, *(n for n in self._named if _general(n) in published)])
        return self.configuration.texts(self._named[name] for name in wanted)

    @cached_property
    def _named(self) -> Mapping[str, str]:
        """Macros that files set for a startd, upper case → as they are written."""
        names = (part.name for part in self.configuration.definitions)
        return {without_daemon(name).upper(): without_daemon(name) for name in names}

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """`expressions` as HTCondor prints them, without those that it cannot read."""
        printed = self.htcondor.canonical(list(self.expressions.values()))
        return {name: text for name, text in zip(self.expressions, printed) if text is not None}

    @cached_property
    def our_files(self) -> frozenset[object]:
        """Files that set a knob or a clause of sharectl's."""
        ours = re.compile("|".join(CLAUSES)).search
        parts = self.configuration.definitions
        return frozenset(p.file for p in parts if "sharectl" in p.name.lower() or ours(p.text))


def _general(name: str) -> str:
    return _OF_SLOTS.sub("", name, count=1)


def subject_of(
    source: ConfigSource, process: CondorProcess, *attributes: Mapping[str, str]
) -> SnippetSubject:
    """Configuration of files, with what metaknobs set in no file; ``attributes`` are the site's."""
    configuration = read(source, MACROS, process)
    jobs = configuration.words(CRON_JOBS)
    # StartdCronPeriodic and its like.
    knobs = [f"STARTD_CRON_{job}_{knob}" for job in jobs for knob in CRON_KNOBS]
    values = {name.lower(): text for name, text in expand(source, knobs, process).items()}
    configuration = replace(configuration, values={**values, **configuration.values})
    return SnippetSubject(configuration, process, *attributes)


# ---- Groups

GROUP_MAP = "SHARECTL_GROUP_MAP"
MOST_SHOWN = 10
"""Faults of a map that are shown; the others are counted."""
_WORD = r'(?:"(?:[^"\\]|\\.)*"|[^ \t"#][^ \t]*)'
_INCLUDE = re.compile(r"[\ufeff \t]*@include")
_RULE = re.compile(
    rf'[ \t]*"?\*"?[ \t]+(?:/(?:[^/\\]|\\.)*/[iU]*|(?!/){_WORD})[ \t]+'
    rf"(?P<groups>{_WORD})[ \t]*(?P<rest>.*)"
)


def map_faults(path: Path) -> Iterator[Finding]:
    """Faults that keep users out, or give them invalid groups; files it includes are not read."""
    try:
        content = files.read_regular(path, MAX_BYTES)[0]
        reason: object = "it is no regular file"
    except (OSError, ValueError) as error:
        content, reason = None, getattr(error, "strerror", None) or error
    if content is None:
        yield finding("missing map", str(path), path=path, why=reason)
        return
    text = content.decode("utf-8", "surrogateescape")
    lines = {f"{path}:{n}": line.strip("\r") for n, line in enumerate(text.split("\n"), 1)}
    lines = {at: line for at, line in lines.items() if not re.match(r"\ufeff?\s*(#|$)", line)}
    faults = [fault for at, line in lines.items() for fault in _line_faults(line, at)]
    yield from faults[:MOST_SHOWN]
    if len(faults) > MOST_SHOWN:
        yield finding("more faults", str(path), number=len(faults) - MOST_SHOWN)
    if not any(_INCLUDE.match(line) or _RULE.fullmatch(line) for line in lines.values()):
        yield finding("map without rules", str(path))


def _line_faults(line: str, place: str) -> Iterator[Finding]:
    """Faults of the text of a line."""
    rule = _RULE.fullmatch(line)
    if rule is None:
        if not _INCLUDE.match(line):
            yield finding("no rule", place, line=_shown(line))
        return
    groups = rule["groups"]
    if groups.startswith('"'):
        groups = re.sub(r"\\(.)", r"\1", groups[1:-1])
    # HTCondor takes blanks from both ends of each group; a pattern may take a part of the name.
    names = [name for word in groups.split(",") if (name := word.strip(" \t"))]
    parts = [re.sub(r"\\[0-9]", "x", name.lower()) for name in names]
    wrong = [n for n, part in zip(names, parts) if not NESTED_GROUP_NAME.fullmatch(part)]
    wrong += [rule["rest"]] if rule["rest"] and not rule["rest"].startswith("#") else []
    if wrong or not names:
        yield finding("invalid group", place, names=[_shown(n) for n in wrong[:3] or [groups]])


def _shown(text: str, most: int = 60) -> str:
    return ascii(text if len(text) <= most else f"{text[:most]}...")


def changeable(immutable: Iterable[str]) -> list[str]:
    """Attributes of a job's group that IMMUTABLE_JOB_ATTRS leaves out."""
    names = {name.lower(): name for name in ("AcctGroup", "AcctGroupUser", "AccountingGroup")}
    kept = set(map(str.lower, immutable))
    return [name for lower, name in names.items() if lower not in kept]


@CHECKS.rule()
def groups(subject: SnippetSubject) -> Iterator[Finding]:
    """Ways for users to choose their group, and a map that cannot be used."""
    if not subject.configuration.assignments(TRANSFORM):
        return
    place = subject.configuration.place(TRANSFORM)
    missing = changeable(subject.configuration.words("IMMUTABLE_JOB_ATTRS"))
    map_file = subject.text(GROUP_MAP_IN_USE)
    if map_file and missing:
        yield finding("job can be changed", place, names=missing)
    elif missing:
        level = Level.ERROR if subject.text(GROUP_MAP) else Level.ADVICE
        yield finding("no map", place, level)
    # Files of a folder may be another machine's.
    if map_file and (subject.on_machine or os.access(map_file, os.R_OK)):
        yield from map_faults(Path(map_file))


SOURCE, OPTIONS = "SHARECTL_SOURCE", "SHARECTL_SOURCE_OPTIONS"
COUNTS_FREE_CORES = "mc_grace.py"
_GROWING = {
    # Knob that several files share → assignment that keeps what was there before.
    "START": "START = ($(START)) && (…)",
    "CLAIM_WORKLIFE": "CLAIM_WORKLIFE = ifThenElse(…, $(CLAIM_WORKLIFE))",
    **dict.fromkeys((CRON_JOBS, *EVALUATED_LISTS, "STARTD_PARTITIONABLE_SLOT_ATTRS")),
    **dict.fromkeys(("PROTECTED_JOB_ATTRS", "SCHEDD_CLASSAD_USER_MAP_NAMES", "STARTD_JOB_ATTRS")),
    **dict.fromkeys(("JOB_TRANSFORM_NAMES", "SUBMIT_REQUIREMENT_NAMES", "IMMUTABLE_JOB_ATTRS")),
}
_NUMBERS = {
    # Knob: lowest value, and whether it goes into a command line, so has to be a plain number.
    "SHARECTL_MAX_AGE_SECONDS": (1, True),
    "SHARECTL_MULTICORE_CORES": (2, True),
    "SHARECTL_GRACE_SECONDS": (0, True),
    "SHARECTL_JOB_CTL_PERIOD_SECONDS": (1, True),
    "SHARECTL_MC_GRACE_PERIOD_SECONDS": (1, True),
    "SHARECTL_DISABLED_PERIOD_SECONDS": (1, True),
    "SHARECTL_JOB_CTL_STALE_SECONDS": (1, False),
    "SHARECTL_MC_GRACE_STALE_SECONDS": (1, False),
}
_WORDS = {
    # Knob: its finding, and valid texts: a path means itself in a line of shell and to HTCondor.
    "SHARECTL_ENABLED": ("invalid switch", "true|false"),
    ACTUATION: ("invalid way", "|".join(ACTUATIONS)),
    "SHARECTL_DISABLED_FILE": ("invalid path", r"/[A-Za-z0-9._/+@%-]+"),
}
_LEFT_OVER = re.compile(
    r".*(~|_bak|\.(bak|backup|orig|old|save|saved|disabled|off|tmp|swp|swo|example|sample|rpmsave"
    r"|rpmnew|dpkg-\w+|ucf-\w+|cfsaved))",
    re.IGNORECASE,
)
_SOURCES = re.compile(
    r"file:/[^\s,\"'$]+"
    r"|https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[^\s,\"'$?#]*"
    r"|collector:[^\s,\"'$]*"
)
_STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
_SENSORS = ("t1_overheat",)
"""Attributes that a site may measure; undefined where it does not."""


@CHECKS.rule()
def unread_here(subject: SnippetSubject) -> Iterator[Finding]:
    """Knobs that no daemon of this machine reads."""
    definitions = subject.configuration.definitions
    ours = {part.name for part in definitions if part.file in subject.our_files}
    idle = {knob.part.name for knob in unread(subject.configuration)}
    # A machine may have snippets of other roles beside the one that works there.
    if any(readers_of(name) for name in ours - idle):
        ours = set()
    yield from unread_knobs(finding, subject.configuration, ours.__contains__)


# ---- Files


@CHECKS.rule()
def file_names(subject: SnippetSubject) -> Iterator[Finding]:
    """Files that HTCondor reads although their names say that they are put aside."""
    excluded = subject.configuration.excluded.search
    directory = subject.configuration.source.directory
    folders = subject.configuration.folders if directory is None else (directory,)
    entries = (path for folder in folders for path in sorted(folder.glob("*")))
    for path in filter(Path.is_file, entries):
        if _LEFT_OVER.fullmatch(path.name) and not excluded(path.name):
            yield finding("read though put aside", str(path))


@CHECKS.rule()
def none_of_ours(subject: SnippetSubject) -> Iterator[Finding]:
    """Folders without files of sharectl's."""
    source = subject.configuration.source
    if not subject.our_files:
        yield finding("none of ours", str(source.directory or source.main_file))


@CHECKS.rule()
def replaced(subject: SnippetSubject) -> Iterator[Finding]:
    """Assignments that drop earlier values of a knob that all files share."""
    for knob, form in _GROWING.items():
        earlier: Optional[Definition] = None
        for part in subject.configuration.assignments(knob):
            is_ours = part.file in subject.our_files
            judged = subject.configuration.is_judged(part)
            if judged and not part.appends and (earlier is not None or is_ours):
                lost = f"the value of {earlier.place}" if earlier else "values of other files"
                kept = form or f"{part.name} = $({part.name}) {' '.join(part.text.split())}"
                yield finding("replaced", part.place, name=part.name, lost=lost, kept=kept)
            earlier = part if part.appends else earlier


# ---- Knobs of sharectl


@CHECKS.rule()
def unused_knob(subject: SnippetSubject) -> Iterator[Finding]:
    """Knobs of sharectl's that nothing uses."""
    definitions = subject.configuration.definitions
    used = {name for part in definitions for name in part.references}
    used |= {name[:-1] + way for name in used if name.endswith("*") for way in ACTUATIONS}
    own = sorted(name for name in used if name.startswith("sharectl_") and "*" not in name)
    for part in definitions:
        name = part.name.lower()
        is_ours = name.startswith("sharectl_") and subject.configuration.is_judged(part)
        if is_ours and name not in used:
            meant = near(name, own)
            remedy = f"write {meant[0].upper()}" if meant else "take it out"
            yield finding("unused", part.place, name=part.name, remedy=remedy)


@CHECKS.rule()
def invalid_value(subject: SnippetSubject) -> Iterator[Finding]:
    """Knobs of sharectl's with an invalid word, path or number, or too small a number."""
    configuration = subject.configuration
    for knob, (kind, valid) in _WORDS.items():
        text = subject.text(knob)
        if configuration.assignments(knob) and not re.fullmatch(valid, text, re.IGNORECASE):
            yield finding(kind, configuration.place(knob), text=text)
    knobs = [knob for knob in _NUMBERS if configuration.assignments(knob)]
    texts = [subject.text(knob) for knob in knobs]
    for knob, text, rows in zip(knobs, texts, subject.htcondor.evaluate(texts)):
        lowest, is_plain = _NUMBERS[knob]
        value = rows[0][0] if rows else None
        is_number = type(value) in (int, float) and (value or 0) >= lowest
        if not is_number or (is_plain and not text.isdecimal()):
            kind, place = "a whole number" if is_plain else "a number", configuration.place(knob)
            yield finding("invalid number", place, knob=knob, text=text, lowest=lowest, kind=kind)


# ---- STARTD_CRON jobs


@CHECKS.rule()
def cron_job(subject: SnippetSubject) -> Iterator[Finding]:
    """STARTD_CRON jobs that do not run, or go on publishing old values when they fail."""
    lower = [job.lower() for job in subject.configuration.words(CRON_JOBS)]
    for job, our_key in subject.cron_jobs.items():
        program, kill = subject.cron(job, "EXECUTABLE"), subject.cron(job, "KILL")
        is_there = program.startswith("/")
        if subject.on_machine:
            is_there = is_there and Path(program).is_file() and os.access(program, os.X_OK)
        is_periodic = subject.cron(job, "MODE").lower() in ("", "periodic")
        faults = {
            "no program": ("EXECUTABLE", not is_there),
            "may hang": ("KILL", is_periodic and kill[:1].lower() != "t"),
            "prefix": ("PREFIX", our_key and subject.cron(job, "PREFIX")),
            "listed twice": ("", lower.count(job.lower()) > 1),
            "two of MC_GRACE": ("", subject.is_live and our_key == COUNTS_FREE_CORES),
        }
        for kind, (knob, applies) in faults.items():
            if applies:
                name = f"STARTD_CRON_{job}_{knob}" if knob else CRON_JOBS
                place = subject.configuration.place(name)
                yield finding(kind, place, job=job, program=program or "nothing")


# ---- Sources of targets


@CHECKS.rule()
def sources(subject: SnippetSubject) -> Iterator[Finding]:
    """Sources that job_ctl.py cannot use, and those that anybody could have written."""
    if not subject.configuration.assignments(SOURCE):
        return
    entries, place = subject.text(SOURCE).split(","), subject.configuration.place(SOURCE)
    if invalid := [repr(entry) for entry in entries if not _SOURCES.fullmatch(entry)]:
        yield finding("invalid source", place, sources=invalid)
        return
    words = subject.text(OPTIONS).split()
    arguments = dict(zip(words[::2], words[1::2]))
    unauthenticated = [entry for entry in entries if not entry.startswith("collector:")]
    identity = arguments.get("--identity", "")
    if len(unauthenticated) < len(entries) and identity.rpartition("@")[2] in ("", "unmapped"):
        options = subject.configuration.place(OPTIONS)
        yield finding("no identity", options, identity=identity or "nothing")
    if "--key-file" not in arguments:
        for why in filter(None, map(_exposed, unauthenticated)):
            yield finding("exposed", place, why=why)


def _exposed(entry: str) -> str:
    """Others who could write that source's targets; empty if there are none."""
    if entry.startswith("https:"):
        return f"whoever can write to the web server of {entry} sets targets"
    path = Path(entry.partition(":")[2])
    # The file belongs to the user of the targets.
    owner = [path.stat().st_uid] if path.exists() else []
    why = signing.why_untrusted(path, signing.MOUNTS, [os.geteuid(), *owner])
    return f"{path}: {why}" if why else ""


# ---- Text of expressions


@CHECKS.rule()
def unreadable(subject: SnippetSubject) -> Iterator[Finding]:
    """Expressions that HTCondor's parser refuses."""
    text_of = subject.configuration.text
    for macro in [name for name in subject.expressions if name not in subject.readable]:
        # The innermost part of it that cannot be read.
        parts = subject.configuration.made_of(macro)
        names = [part.name for part in parts if text_of(part.name)]
        texts = subject.htcondor.canonical([text_of(name) for name in names])
        culprit = [macro, *(name for name, text in zip(names, texts) if text is None)][-1]
        place, text = subject.configuration.place(culprit), text_of(culprit)
        yield finding("unreadable", place, macro=culprit, text=text, whole=macro)


@CHECKS.rule()
def wrong_scope(subject: SnippetSubject) -> Iterator[Finding]:
    """Names without ``MY.`` or ``TARGET.``, and attributes of the node asked of the job."""
    for reference, place in _references(subject):
        name = reference.name
        is_nodes = name.lower() in subject.published
        if reference.scope == UNSCOPED and not _is_slots(name):
            is_slots = startd_publishes(name)
            is_jobs = jobs_have(name) or name.lower() in map(str.lower, subject.carried)
            scoped = f"MY.{name} for the node's, TARGET.{name} for the job's"
            if is_nodes or is_slots != is_jobs:
                scoped = f"MY.{name}" if is_nodes or is_slots else f"TARGET.{name}"
            elif not is_slots:
                scoped += f', "{name}" for a text'
            yield finding("unscoped", place, name=name, scoped=scoped)
        elif reference.scope == TARGET and is_nodes:
            yield finding("wrong side", place, name=name)


@CHECKS.rule()
def unpublished(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes of the node that nothing publishes."""
    missing: dict[Level, dict[str, str]] = {}
    # A machine with START alone, such as that of condor_defrag, publishes none of them.
    elsewhere = () if subject.has_clauses else CLAUSES
    for reference, place in _references(subject):
        name = reference.name
        is_published = name.lower() in subject.published or name in (*_SENSORS, *elsewhere)
        if reference.scope == MY and not is_published and not startd_publishes(name):
            level = Level.ERROR if "t1_" in name else Level.ADVICE
            missing.setdefault(level, {}).setdefault(f"{MY}.{name}", place)
    for level, names in missing.items():
        yield finding("unpublished", next(iter(names.values())), level, names=list(names))


@CHECKS.rule()
def slot(subject: SnippetSubject) -> Iterator[Finding]:
    """Dynamic slots whose cores are not summed up."""
    knob = "ADVERTISE_PSLOT_ROLLUP_INFORMATION"
    if subject.is_live and subject.text(knob).lower().startswith("f"):
        yield finding("no sums", subject.configuration.place(knob))


def _is_slots(name: str) -> bool:
    """True if no job can give the attribute a value where START asks for it without a scope."""
    # HTCondor's evaluator has time() for CurrentTime, before it looks at the job.
    return every_slot_has(name) or name.lower() == "currenttime"


def _references(subject: SnippetSubject) -> Iterator[tuple[Reference, str]]:
    """Attributes that expressions of judged files ask for, and their places, each pair once."""
    seen: set[tuple[Reference, str]] = set()
    for macro, text in subject.readable.items():
        parts = subject.configuration.made_of(macro)
        for reference in references(text):
            scope = rf"{reference.scope}\s*\.\s*" if reference.scope else r"(?<![\w.])(?<!\$\()"
            written = re.compile(rf"{scope}'?{re.escape(reference.name)}\b(?!\s*\()", re.IGNORECASE)
            parts_of = [p for p in parts if written.search(_STRINGS.sub('""', p.text))][:1]
            for part in filter(subject.configuration.is_judged, parts_of):
                key = (Reference(reference.scope, reference.name.lower()), part.place)
                if key not in seen:
                    seen.add(key)
                    yield reference, part.place
