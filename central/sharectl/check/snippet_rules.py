"""Checks of snippets by their text: files, knobs, STARTD_CRON jobs, expressions, maps of groups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

from sharectl.check.findings import Finding, Level, unread_knobs
from sharectl.check.slot_ad import every_slot_has, jobs_have, startd_publishes
from sharectl.check.snippet_subject import (
    ACTUATION,
    ACTUATIONS,
    CHECKS,
    CLAUSES,
    CRON_JOBS,
    EVALUATED_LISTS,
    EXPRESSIONS,
    GROUP_MAP_IN_USE,
    TRANSFORM,
    SnippetSubject,
    finding,
)
from sharectl.condor.configuration import MAX_BYTES, Definition, readers_of, unread
from sharectl.condor.expressions import MY, TARGET, UNSCOPED, Reference, is_balanced, references
from sharectl.files import files
from sharectl.publish import signing
from sharectl.shares.groups import NESTED_GROUP_NAME
from sharectl.words import near

GROUP_MAP = "SHARECTL_GROUP_MAP"
MOST_SHOWN = 10
"""Faults of a map that are shown; the others are counted."""
_WORD = r'(?:"(?:[^"\\]|\\.)*"|[^ \t"#][^ \t]*)'
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
    lines = {
        f"{path}:{number}": line.strip("\r") for number, line in enumerate(text.split("\n"), 1)
    }
    lines = {at: line for at, line in lines.items() if not re.match(r"\ufeff?\s*(#|$)", line)}
    faults = [fault for at, line in lines.items() for fault in _line_faults(line, at)]
    yield from faults[:MOST_SHOWN]
    if len(faults) > MOST_SHOWN:
        yield finding("more faults", str(path), number=len(faults) - MOST_SHOWN)
    if not any(_is_include(line) or _RULE.fullmatch(line) for line in lines.values()):
        yield finding("map without rules", str(path))


def _is_include(line: str) -> bool:
    return line.lstrip("\ufeff \t").startswith("@include")


def _line_faults(line: str, place: str) -> Iterator[Finding]:
    """Faults of the text of a line."""
    rule = _RULE.fullmatch(line)
    if rule is None:
        if not _is_include(line):
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


@CHECKS.rule()
def groups(subject: SnippetSubject) -> Iterator[Finding]:
    """Ways for users to choose their group, and a map that cannot be used."""
    place = subject.configuration.place
    if not subject.configuration.assignments(TRANSFORM):
        return
    immutable = {word.lower() for word in subject.configuration.words("IMMUTABLE_JOB_ATTRS")}
    own = ("AcctGroup", "AcctGroupUser", "AccountingGroup")
    missing = [name for name in own if name.lower() not in immutable]
    map_file = subject.text(GROUP_MAP_IN_USE)
    if map_file and missing:
        yield finding("job can be changed", place(TRANSFORM), names=missing)
    elif missing:
        level = Level.ERROR if subject.text(GROUP_MAP) else Level.ADVICE
        yield finding("no map", place(TRANSFORM), level=level)
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
    r"(.*(\.(bak|backup|orig|old|save|saved|disabled|off|tmp|swp|swo|example|sample|dpkg-new"
    r"|dpkg-bak|ucf-\w+)|_bak))|(?P<of>[^.].*)(~|\.(rpmsave|rpmnew|dpkg-old|dpkg-dist|cfsaved))",
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
def without_daemon(subject: SnippetSubject) -> Iterator[Finding]:
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
    """Files whose names make HTCondor read what looks put aside, or ignore what looks in use."""
    excluded = subject.configuration.excluded.search
    for path in _files(subject):
        put_aside = _LEFT_OVER.fullmatch(path.name)
        if put_aside and not excluded(path.name):
            yield finding("read though put aside", str(path))
        elif put_aside and put_aside["of"] and not path.with_name(put_aside["of"]).exists():
            level, name = Level.ADVICE, put_aside["of"]
            yield finding("ignored", str(path), level=level, of=name)


@CHECKS.rule()
def none_of_ours(subject: SnippetSubject) -> Iterator[Finding]:
    """Folders without files of sharectl's."""
    source = subject.configuration.source
    if not subject.our_files:
        yield finding("none of ours", str(source.directory or source.main_file))


def _files(subject: SnippetSubject) -> Iterator[Path]:
    """Files of the folders that HTCondor reads, and those that it ignores there."""
    configuration = subject.configuration
    directory = configuration.source.directory
    for folder in configuration.folders if directory is None else (directory,):
        yield from (path for path in sorted(folder.glob("*")) if path.is_file())


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
def invalid_word(subject: SnippetSubject) -> Iterator[Finding]:
    """Knobs of sharectl's with an invalid word or path."""
    for knob, (kind, valid) in _WORDS.items():
        text = subject.text(knob)
        if subject.configuration.assignments(knob) and not re.fullmatch(valid, text, re.IGNORECASE):
            yield finding(kind, subject.place(knob), text=text)


@CHECKS.rule()
def invalid_number(subject: SnippetSubject) -> Iterator[Finding]:
    """Knobs of sharectl's that are no number, or too small."""
    configuration = subject.configuration
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
    lower = [job.lower() for job in subject.cron_jobs]
    for job in dict.fromkeys(subject.cron_jobs):
        is_periodic = subject.cron(job, "MODE").lower() in ("", "periodic")
        is_our_grace = subject.ours.get(job) == COUNTS_FREE_CORES
        faults = {
            "no program": ("EXECUTABLE", not _has_program(subject, job)),
            "may hang": ("KILL", is_periodic and subject.cron(job, "KILL")[:1].lower() != "t"),
            "prefix": ("PREFIX", job in subject.ours and subject.cron(job, "PREFIX")),
            "listed twice": ("", lower.count(job.lower()) > 1),
            "two of MC_GRACE": ("", subject.is_live and is_our_grace),
        }
        for kind, (knob, applies) in faults.items():
            if applies:
                name = f"STARTD_CRON_{job}_{knob}" if knob else CRON_JOBS
                program = subject.cron(job, "EXECUTABLE") or "nothing"
                yield finding(kind, subject.place(name), job=job, program=program)


def _has_program(subject: SnippetSubject, job: str) -> bool:
    """True if the program of a job is a whole path, and is there unless it is another machine's."""
    program = subject.cron(job, "EXECUTABLE")
    is_whole = program.startswith("/")
    is_here = not subject.on_machine or (Path(program).is_file() and os.access(program, os.X_OK))
    return is_whole and is_here


# ---- Sources of targets


@CHECKS.rule()
def sources(subject: SnippetSubject) -> Iterator[Finding]:
    """Sources that job_ctl.py cannot use, and those that anybody could have written."""
    if not subject.configuration.assignments(SOURCE):
        return
    entries, place = subject.text(SOURCE).split(","), subject.place(SOURCE)
    if invalid := [repr(entry) for entry in entries if not _SOURCES.fullmatch(entry)]:
        yield finding("invalid source", place, sources=invalid)
        return
    words = subject.text(OPTIONS).split()
    arguments = dict(zip(words[::2], words[1::2]))
    unauthenticated = [entry for entry in entries if not entry.startswith("collector:")]
    identity = arguments.get("--identity", "")
    if len(unauthenticated) < len(entries) and identity.rpartition("@")[2] in ("", "unmapped"):
        yield finding("no identity", subject.place(OPTIONS), identity=identity or "nothing")
    if "--key-file" not in arguments:
        for why in filter(None, map(_exposed, unauthenticated)):
            yield finding("exposed", place, level=Level.ADVICE, why=why)


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
        place, text = subject.place(culprit), text_of(culprit)
        yield finding("unreadable", place, macro=culprit, text=text, whole=macro)


@CHECKS.rule()
def unbalanced(subject: SnippetSubject) -> Iterator[Finding]:
    """Brackets that one file leaves open for another: together they may be an expression."""
    for macro in filter(EXPRESSIONS.fullmatch, map(str.upper, subject.readable)):
        for part in subject.configuration.made_of(macro):
            is_other = not EXPRESSIONS.fullmatch(part.name.upper())
            if is_other or is_balanced(part.text):
                continue
            if subject.configuration.is_judged(part):
                yield finding("unbalanced", part.place, part=part)


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
        yield finding("unpublished", next(iter(names.values())), level=level, names=list(names))


@CHECKS.rule()
def without_value(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes that are to be published, but have no value."""
    configuration = subject.configuration
    macros = [part.name.lower() for part in configuration.definitions]
    for knob in filter(configuration.assignments, subject.evaluated_lists):
        for name in configuration.words(knob):
            is_set = any(f"_{macro}".endswith(f"_{name.lower()}") for macro in macros)
            if not is_set and not startd_publishes(name):
                yield finding("without value", configuration.place(knob), knob=knob, name=name)


@CHECKS.rule()
def slot(subject: SnippetSubject) -> Iterator[Finding]:
    """Dynamic slots whose cores are not summed up."""
    knob = "ADVERTISE_PSLOT_ROLLUP_INFORMATION"
    if subject.is_live and subject.text(knob).lower().startswith("f"):
        yield finding("no sums", subject.place(knob))


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
            part = next((p for p in parts if written.search(_STRINGS.sub('""', p.text))), None)
            if part is None or not subject.configuration.is_judged(part):
                continue
            key = (Reference(reference.scope, reference.name.lower()), part.place)
            if key not in seen:
                seen.add(key)
                yield reference, part.place
