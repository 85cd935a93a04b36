"""Checks of snippets by what is written: files, knobs, STARTD_CRON jobs, names, groups."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Optional

from sharectl.check import group_map
from sharectl.check.findings import Finding, Level, one_line
from sharectl.check.subject import (
    ACTUATION,
    ACTUATIONS,
    ATTRIBUTES,
    CLAUSES,
    CRON_JOBS,
    ENABLED,
    EVALUATED_LISTS,
    EXPRESSIONS,
    GROUP_MAP_IN_USE,
    LATCHES,
    LIVE,
    LOGGED,
    ROLL_UP,
    ROOM,
    START,
    SUMMED,
    SUMMED_LIST,
    WATCHED,
    WORKLIFE,
    SnippetSubject,
)
from sharectl.check.trials import startd_publishes
from sharectl.condor.configuration import Definition
from sharectl.condor.expressions import MY, TARGET, UNSCOPED, Reference, is_balanced, references
from sharectl.plan.nodes import REMEDIES
from sharectl.publish import signing
from sharectl.shares.groups import above_of
from sharectl.words import near

GROUP_MAP, TRANSFORM = "SHARECTL_GROUP_MAP", "JOB_TRANSFORM_SharectlPower"
SOURCE, OPTIONS = "SHARECTL_SOURCE", "SHARECTL_SOURCE_OPTIONS"
DISABLED_FILE = "SHARECTL_DISABLED_FILE"
PROGRAM, COUNTS_FREE_CORES = "job_ctl.py", "mc_grace.py"
BESIDE = ("target.py", "target_collector.py", "target_https.py")
"""Files that `PROGRAM` runs from its own folder."""
JOB_CTL_OPTIONS = (
    *("--source", "--host", "--state", "--max-age-seconds", "--key-file", "--pool", "--identity"),
    *("--groups", "--condor-status", "--startd", "--timeout-seconds", "--ca-file"),
    "--target-program",
)
"""Options of job_ctl.py; each takes a value."""
MAX_SOURCES = 8
"""Sources that job_ctl.py asks at most."""
OLDEST_LIVE = (23, 9)
"""First version of HTCondor on which the live way was seen to work."""
_GROWING = {
    # Knob that several files share → assignment that keeps what was there before.
    START: "START = ($(START)) && (…)",
    WORKLIFE: "CLAIM_WORKLIFE = ifThenElse(…, $(CLAIM_WORKLIFE))",
    **dict.fromkeys((CRON_JOBS, *EVALUATED_LISTS, SUMMED_LIST, "STARTD_JOB_ATTRS")),
    **dict.fromkeys(("JOB_TRANSFORM_NAMES", "SUBMIT_REQUIREMENT_NAMES", "IMMUTABLE_JOB_ATTRS")),
    **dict.fromkeys(("PROTECTED_JOB_ATTRS", "SCHEDD_CLASSAD_USER_MAP_NAMES")),
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
_MODES = ("periodic", "waitforexit", "oneshot", "ondemand")
_PERIOD = re.compile(r"0*[1-9]\d*\s*[smh]?", re.IGNORECASE)
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9._/+@%-]+")
"""Path that means itself in a line of shell and to HTCondor."""
_LEFT_OVER = re.compile(
    r".*(\.(bak|backup|orig|old|save|saved|disabled|off|tmp|swp|swo|example|sample|dpkg-new"
    r"|dpkg-bak|ucf-\w+)|_bak)",
    re.IGNORECASE,
)
_LIKE_OURS = re.compile(r".*sharectl.*\.(sh|py|pl)", re.IGNORECASE)
_SOURCES = re.compile(
    r"file:/[^\s,\"'$]+"
    r"|https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[^\s,\"'$?#]*"
    r"|collector:[^\s,\"'$]*"
)
_SENSORS = {"t1_overheat"}
"""Attributes that a site may measure; undefined where it does not."""
_EFFECTS = {
    "START": "every node that gets it refuses every job",
    "START_EXPR": "a draining node refuses every job",
    "CLAIM_WORKLIFE": "claims never end by their age",
}


# ---- Files


def file_names(subject: SnippetSubject) -> Iterator[Finding]:
    """Files that HTCondor reads though they look put aside, or ignores though they look meant."""
    for path, is_read in _entries(subject):
        if is_read and _LEFT_OVER.fullmatch(path.name):
            fault = "HTCondor reads this file too, whatever its name means to people"
            yield Finding(str(path), fault, "move it out of the folder, or let its name end in ~")
        elif not is_read and _LIKE_OURS.fullmatch(path.name):
            remedy = "give it a name such as 60-sharectl-execute-point.conf"
            yield Finding(str(path), "HTCondor does not read a file of such a name", remedy)
    source = subject.configuration.source
    if not subject.our_files:
        fault = "no file of sharectl's is among those that HTCondor reads: nodes with this "
        fault += "configuration obey no target"
        remedy = "name the folder that has 60-sharectl-execute-point.conf, or install that file"
        yield Finding(str(source.directory or source.main_file), fault, remedy)


def unreadable_files(subject: SnippetSubject) -> Iterator[Finding]:
    """Files with which no tool of an ordinary user works, nor a STARTD_CRON job."""
    fault = "only some users can read this file, and HTCondor's tools fail for all others: "
    fault += "condor_status in sharectl's STARTD_CRON jobs too"
    for path, is_read in _entries(subject):
        if is_read and not path.stat().st_mode & stat.S_IROTH:
            yield Finding(str(path), fault, f"chmod a+r {path}")


def _entries(subject: SnippetSubject) -> Iterator[tuple[Path, bool]]:
    """Files of the folders, and whether HTCondor reads them."""
    configuration = subject.configuration
    directory = configuration.source.directory
    for folder in configuration.folders if directory is None else (directory,):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.is_file():
                yield path, not configuration.excluded.search(path.name)


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
                yield Finding(part.place, f"{part.name} drops {lost}", f"write {kept}")
            earlier = part if part.appends else earlier


# ---- Knobs of sharectl


def own_knobs(subject: SnippetSubject) -> Iterator[Finding]:
    """Knobs of sharectl's that do not exist, or have an invalid value."""
    yield from _unused(subject)
    place, assignments = subject.configuration.place, subject.configuration.assignments
    if subject.invalid_enabled is not None:
        fault = f"{f'{ENABLED} = {subject.invalid_enabled}'.strip()} is neither True nor False"
        yield Finding(place(ENABLED), fault, "write True or False")
    way, written = subject.text(ACTUATION).lower(), assignments(ACTUATION)
    if written and way not in ACTUATIONS:
        fault = f"{ACTUATION} = {way} is neither live nor cron: nodes obey no target"
        yield Finding(place(ACTUATION), fault, "write live or cron")
    if is_too_old(subject) and way == LIVE and not subject.is_snippets(written[-1]):
        fault = f"{ACTUATION} = live is for HTCondor 23.9 and later, and here is "
        fault += ".".join(map(str, subject.installed or ()))
        yield Finding(
            place(ACTUATION), fault, f"write {ACTUATION} = cron, or leave it to the snippet"
        )
    switch = subject.text(DISABLED_FILE)
    if assignments(DISABLED_FILE) and not _PLAIN_PATH.fullmatch(switch):
        fault = f"{DISABLED_FILE} = {switch} is no path that a line of shell can use: sharectl is "
        fault += "off for ever, or cannot be switched off"
        remedy = "write a whole path without blanks, such as /etc/sharectl/disabled"
        yield Finding(place(DISABLED_FILE), fault, remedy)
    yield from _numbers(subject)


def is_too_old(subject: SnippetSubject) -> bool:
    """True if a file sets the way to act, and the HTCondor here is too old for the live one."""
    is_set = bool(subject.configuration.assignments(ACTUATION))
    return is_set and subject.installed is not None and subject.installed < OLDEST_LIVE


def _unused(subject: SnippetSubject) -> Iterator[Finding]:
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
            yield Finding(part.place, f"nothing uses {part.name}", remedy)


def _numbers(subject: SnippetSubject) -> Iterator[Finding]:
    configuration = subject.configuration
    knobs = [knob for knob in _NUMBERS if configuration.assignments(knob)]
    values = dict(zip(knobs, subject.numbers([subject.text(knob) for knob in knobs])))
    for knob, value in values.items():
        lowest, is_plain = _NUMBERS[knob]
        text = subject.text(knob)
        if value is None or value < lowest or (is_plain and not text.isdecimal()):
            kind = "a whole number" if is_plain else "a number"
            fault = f"{knob} = {text} is invalid"
            yield Finding(configuration.place(knob), fault, f"write {kind} from {lowest}")
    for program in ("JOB_CTL", "MC_GRACE"):
        stale, period = (f"SHARECTL_{program}_{end}_SECONDS" for end in ("STALE", "PERIOD"))
        seconds, between = values.get(stale), values.get(period)
        if seconds is not None and between is not None and seconds <= between:
            fault = f"{stale} = {seconds:g} is no longer than {period} = {between:g}: "
            fault += "between two runs sharectl does nothing"
            yield Finding(configuration.place(stale), fault, f"write {stale} = 3 * $({period})")


# ---- STARTD_CRON jobs


def cron(subject: SnippetSubject) -> Iterator[Finding]:
    """STARTD_CRON jobs that do not run, or go on publishing old values when they fail."""
    place, jobs = subject.configuration.place, subject.cron_jobs
    lower = [job.lower() for job in jobs]
    for job in dict.fromkeys(jobs):
        for knob, fault, remedy in _job_faults(subject, job):
            name = knob if knob == CRON_JOBS else f"STARTD_CRON_{job}_{knob}"
            text = f"{fault}" if knob == CRON_JOBS else f": {fault}"
            yield Finding(place(name), f"STARTD_CRON job {job}{text}", remedy)
    for part in subject.configuration.definitions:
        match = re.fullmatch(r"STARTD_CRON_(\w+)_EXECUTABLE", part.name, re.IGNORECASE)
        is_idle = match and match[1].lower() not in lower
        is_spare = part.text.endswith(COUNTS_FREE_CORES) and subject.actuation == LIVE
        if match and is_idle and not is_spare and subject.configuration.is_judged(part):
            fault = f"STARTD_CRON job {match[1]} never runs: it is not in {CRON_JOBS}"
            yield Finding(part.place, fault, f"write {CRON_JOBS} = $({CRON_JOBS}) {match[1]}")
    if subject.ours and not _starts_true(subject.text(LOGGED)):
        fault = "messages of failing STARTD_CRON jobs are dropped"
        yield Finding(place(LOGGED), fault, f"write {LOGGED} = True")


def _job_faults(subject: SnippetSubject, job: str) -> Iterator[tuple[str, str, str]]:
    """Knob, fault and remedy of one STARTD_CRON job."""
    for fault, remedy in _program_faults(subject, job):
        yield "EXECUTABLE", fault, remedy
    mode, period = subject.cron(job, "MODE").lower() or "periodic", subject.cron(job, "PERIOD")
    if mode not in _MODES:
        yield "MODE", f"there is no mode {mode}", "write Periodic"
    if mode == "periodic" and not _PERIOD.fullmatch(period):
        yield "PERIOD", f"invalid period {period or '(empty)'}", "write seconds, such as 60s"
    if mode == "periodic" and not _starts_true(subject.cron(job, "KILL")):
        fault = "a run that hangs is the last one, and its old values stay for ever (1 and yes "
        yield "KILL", f"{fault}count as False)", f"write STARTD_CRON_{job}_KILL = True"
    if job in subject.ours and subject.cron(job, "PREFIX"):
        fault = "it publishes whole names, a prefix changes them"
        yield "PREFIX", fault, f"take STARTD_CRON_{job}_PREFIX out"
    if [name.lower() for name in subject.cron_jobs].count(job.lower()) > 1:
        fault = " is listed more than once: HTCondor runs it when it starts, and never again"
        yield CRON_JOBS, fault, f"list it once in {CRON_JOBS}"
    if subject.is_live and subject.ours.get(job) == COUNTS_FREE_CORES:
        fault = " replaces the slot's own MC_GRACE: with live nothing looks at its age"
        yield CRON_JOBS, fault, f"take {job} off {CRON_JOBS}, or write {ACTUATION} = cron"


def _program_faults(subject: SnippetSubject, job: str) -> Iterator[tuple[str, str]]:
    executable = subject.cron(job, "EXECUTABLE")
    if not executable:
        yield "it has no program", f"write STARTD_CRON_{job}_EXECUTABLE = PATH"
    elif not executable.startswith("/"):
        yield f"{executable} is found in no folder", "write the whole path"
    elif not subject.on_machine:
        return  # it is another machine's
    elif not (Path(executable).is_file() and os.access(executable, os.X_OK)):
        yield f"there is no program {executable}", "install it, or mend the path and mode"
    elif PurePosixPath(executable).name == PROGRAM:
        for name in BESIDE:
            if not Path(executable).with_name(name).is_file():
                yield f"{name} is not beside {executable}", "install all files of the node again"


def _starts_true(text: str) -> bool:
    return text.lower().startswith("t")


# ---- Sources of targets


def sources(subject: SnippetSubject) -> Iterator[Finding]:
    """Sources that job_ctl.py cannot use, and those that anybody could have written."""
    if not subject.configuration.assignments(SOURCE):
        return
    entries, place = subject.text(SOURCE).split(","), subject.configuration.place(SOURCE)
    invalid = [repr(entry) for entry in entries if not _SOURCES.fullmatch(entry)]
    if invalid:
        fault = f"{SOURCE}: invalid source {', '.join(invalid)}: nodes get no target"
        remedy = "write file:/PATH, https://HOST[:PORT]/PATH or collector:, several with commas "
        yield Finding(place, fault, f"{remedy}and without blanks")
        return
    if len(entries) > MAX_SOURCES:
        fault = f"{SOURCE} has more than {MAX_SOURCES} sources: nodes get no target"
        yield Finding(place, fault, "write fewer")
    words = (_arguments(subject) or subject.text(OPTIONS)).split()
    arguments = dict(zip(words[::2], words[1::2]))
    unauthenticated = [entry for entry in entries if not entry.startswith("collector:")]
    if len(unauthenticated) < len(entries):
        yield from _identity(subject, arguments.get("--identity"))
    key_file = arguments.get("--key-file")
    if key_file is None:
        for exposed in filter(None, map(_exposed, unauthenticated)):
            fault = f"{exposed}, and nodes believe targets without a signature"
            remedy = f"sign the targets, and add --key-file /etc/sharectl/keys to {OPTIONS}"
            yield Finding(place, fault, remedy, Level.ADVICE)
    elif unauthenticated and subject.on_machine and key_file.startswith("/"):
        jobs_user = signing.reader(subject.configuration.text("CONDOR_IDS"))
        problem = signing.problem(Path(key_file), jobs_user, os.geteuid())
        if problem:
            fault = f"{problem[1]}: this node refuses every target ({problem[0]})"
            yield Finding(subject.configuration.place(OPTIONS), fault, REMEDIES[problem[0]])


def options(subject: SnippetSubject) -> Iterator[Finding]:
    """Options that job_ctl.py does not have, or that lack a value."""
    words = _arguments(subject).split()
    if not words or not re.fullmatch(r"\S+", subject.text(SOURCE)):
        return
    knob = OPTIONS if subject.text(OPTIONS) else f"STARTD_CRON_{_job_ctl(subject)}_ARGS"
    place = subject.configuration.place(knob)
    unknown = [name for name in words[::2] if name not in JOB_CTL_OPTIONS]
    if unknown:
        meant = near(unknown[0], JOB_CTL_OPTIONS) or JOB_CTL_OPTIONS
        fault = f"{PROGRAM} has no option {unknown[0]}: nodes get no target"
        yield Finding(place, fault, f"write {' or '.join(meant)}, and its value after a blank")
    elif len(words) % 2:
        yield Finding(place, f"{words[-1]} has no value: nodes get no target", "write one")


def _job_ctl(subject: SnippetSubject) -> str:
    """Name of the STARTD_CRON job that looks for targets; empty without one."""
    return next((job for job, program in subject.ours.items() if program == PROGRAM), "")


def _arguments(subject: SnippetSubject) -> str:
    job = _job_ctl(subject)
    return subject.cron(job, "ARGS") if job else ""


def _identity(subject: SnippetSubject, identity: Optional[str]) -> Iterator[Finding]:
    if identity is None:
        fault = "collector: needs --identity: nodes believe no ad whose sender they do not know"
    elif identity.rpartition("@")[2] in ("", "unmapped"):
        fault = f"--identity {identity} is shared by all that HTCondor cannot authenticate"
    else:
        return
    remedy = f"write {OPTIONS} = --identity sharectl@example.org, as `condor_status -any` shows it "
    yield Finding(subject.configuration.place(OPTIONS), fault, f"{remedy}of sharectl's ads")


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


def unreadable(subject: SnippetSubject) -> Iterator[Finding]:
    """Expressions that HTCondor's parser refuses."""
    configuration = subject.configuration
    for macro in subject.expressions:
        if macro in subject.readable:
            continue
        # The innermost part of it that cannot be read.
        names = [
            part.name for part in configuration.made_of(macro) if configuration.text(part.name)
        ]
        texts = subject.htcondor.canonical([configuration.text(name) for name in names])
        broken = [name for name, text in zip(names, texts) if text is None]
        culprit = broken[-1] if broken else macro
        effect = next(
            (e for end, e in _EFFECTS.items() if macro.upper().endswith(end)), "it is not published"
        )
        yield Finding(
            configuration.place(culprit),
            f"HTCondor cannot read {culprit} = {one_line(configuration.text(culprit))}, and so "
            f"{effect}",
            "look for a missing bracket, quote or operator, or for a $(MACRO) that is empty",
        )


def unbalanced(subject: SnippetSubject) -> Iterator[Finding]:
    """Brackets that one file leaves open for another: together they may be an expression."""
    parts = dict.fromkeys(
        part
        for macro in subject.readable
        if EXPRESSIONS.fullmatch(macro.upper())
        for part in subject.configuration.made_of(macro)
        if EXPRESSIONS.fullmatch(part.name.upper()) and subject.configuration.is_judged(part)
    )
    for part in parts:
        if not is_balanced(part.text):
            yield Finding(
                part.place,
                f"the brackets of {part.name} = {one_line(part.text)} do not match: together "
                "with sharectl's clauses it may let every job in",
                "close each bracket that it opens, and no other",
            )


def unscoped(subject: SnippetSubject) -> Iterator[Finding]:
    """Names without ``MY.`` or ``TARGET.``."""
    for reference, place in _references(subject):
        name = reference.name
        if reference.scope == UNSCOPED:
            scoped = f"TARGET.{name}"
            if name.lower() in subject.published or startd_publishes(name):
                scoped = f"MY.{name}"
            elif not name.lower().startswith("request"):
                scoped = f"MY.{name} for the node's, TARGET.{name} for the job's"
            fault = f"{name} is not scoped: where the node does not publish it, HTCondor takes it "
            fault += "from the job, where its user can write it"
            yield Finding(place, fault, f"write {scoped}")


def wrong_side(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes of the node that are asked of the job."""
    for reference, place in _references(subject):
        name = reference.name
        if reference.scope == TARGET and name.lower() in subject.published:
            fault = f"TARGET.{name} asks the job for an attribute of the node: a user can write it "
            yield Finding(place, f"{fault}into his job", f"write MY.{name}")


def unpublished(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes of the node that nothing publishes; one finding for each list they could be on."""
    places: dict[tuple[str, Level], dict[str, str]] = {}
    # A machine with START alone, such as that of condor_defrag, publishes none of them.
    elsewhere = () if subject.has_clauses else CLAUSES
    for reference, place in _references(subject):
        name = reference.name
        is_published = name.lower() in subject.published or name in (*_SENSORS, *elsewhere)
        if reference.scope == MY and not is_published and not startd_publishes(name):
            is_latch = name.startswith((f"{ROOM}Value", f"{ROOM}Time", f"{WATCHED}Time"))
            knob = LATCHES if is_latch else SUMMED_LIST if name.startswith("Child") else ATTRIBUTES
            level = Level.ERROR if "t1_" in name else Level.ADVICE
            places.setdefault((knob, level), {}).setdefault(name, place)
    for (knob, level), names in places.items():
        yield Finding(
            next(iter(names.values())),
            f"nothing is known to publish {', '.join(f'MY.{name}' for name in names)}: undefined "
            "on every node",
            f"mend the name, add it to {knob}, or say --published NAME=VALUE if a STARTD_CRON job "
            "of the site publishes it",
            level,
        )


def without_value(subject: SnippetSubject) -> Iterator[Finding]:
    """Attributes that are to be published, but have no value."""
    configuration = subject.configuration
    names = [part.name.lower() for part in configuration.definitions]
    for macro in EVALUATED_LISTS if names else ():
        for name in configuration.words(macro) if configuration.assignments(macro) else ():
            ends = (name.lower(), f"_{name.lower()}")
            is_set = any(macro == ends[0] or macro.endswith(ends[1]) for macro in names)
            if not is_set and not startd_publishes(name):
                fault = f"{macro} lists {name}, and no file sets it: nodes do not publish it"
                remedy = f"write {name} = VALUE, or take it off the list"
                yield Finding(configuration.place(macro), fault, remedy)


def slot(subject: SnippetSubject) -> Iterator[Finding]:
    """Latches that condor_reconfig would mix up, and dynamic slots that are not summed up."""
    configuration = subject.configuration
    if not subject.is_live:
        return
    words = [word.lower() for word in configuration.words(LATCHES)]
    latches = [word for word in words if word in ("numdynamicslots", ROOM.lower(), WATCHED.lower())]
    if ROOM.lower() in words and latches[0] != "numdynamicslots":
        yield Finding(
            configuration.place(LATCHES),
            f"{LATCHES} has not NumDynamicSlots before {ROOM}: condor_reconfig on a running node "
            "mixes up the latches, and there is no grace until the startd is restarted",
            f"write {LATCHES} = $({LATCHES}) NumDynamicSlots {ROOM} {WATCHED}",
        )
    if subject.text(ROLL_UP).lower().startswith("f"):
        fault = f"with {ROLL_UP} = False there is no {SUMMED}, so nodes obey no target"
        remedy = f"write {ROLL_UP} = True, or {ACTUATION} = cron"
        yield Finding(configuration.place(ROLL_UP), fault, remedy)


def _references(subject: SnippetSubject) -> Iterator[tuple[Reference, str]]:
    """Attributes that judged files ask for, and the places, each pair once."""
    seen: set[tuple[Reference, str]] = set()
    for macro, text in subject.readable.items():
        parts = subject.configuration.made_of(macro)
        for reference in references(text):
            scope = rf"{reference.scope}\s*\.\s*" if reference.scope else r"(?<![\w.])(?<!\$\()"
            written = re.compile(rf"{scope}'?{re.escape(reference.name)}\b(?!\s*\()", re.IGNORECASE)
            strings = re.compile(r'"(?:\\"|[^"])*"')
            part = next((p for p in parts if written.search(strings.sub('""', p.text))), None)
            if part is None or not subject.configuration.is_judged(part):
                continue
            key = (Reference(reference.scope, reference.name.lower()), part.place)
            if key not in seen:
                seen.add(key)
                yield reference, part.place


# ---- Groups


def groups(subject: SnippetSubject) -> Iterator[Finding]:
    """Ways for users to choose their group, and a map that cannot be used."""
    configuration = subject.configuration
    if not configuration.assignments(TRANSFORM):
        return
    immutable = {word.lower() for word in configuration.words("IMMUTABLE_JOB_ATTRS")}
    own = ("AcctGroup", "AcctGroupUser", "AccountingGroup")
    missing = [name for name in own if name.lower() not in immutable]
    place, map_file = configuration.place(TRANSFORM), subject.text(GROUP_MAP_IN_USE)
    if map_file and missing:
        fault = f"users can choose their group: {', '.join(missing)} of a job can be changed"
        yield Finding(place, fault, "write use FEATURE : AssignAccountingGroup(MAP-FILE)")
    elif missing and subject.text(GROUP_MAP):
        fault = f"{GROUP_MAP} is read after the snippet that uses it, and does nothing: users can "
        remedy = f"name it in a file that is read before {place}"
        yield Finding(configuration.place(GROUP_MAP), f"{fault}choose their group", remedy)
    elif missing and subject.on_machine:
        fault = "users can choose their group, and so whose share their jobs count for"
        remedy = "write a map as in config.d/examples/accounting-groups.map, and in the snippet or "
        remedy += f"a file read before it {GROUP_MAP} = PATH of the map"
        yield Finding(place, fault, remedy, Level.ADVICE)
    if map_file and subject.on_machine and os.access(map_file, os.R_OK):
        yield from group_map.findings(configuration, subject.htcondor, Path(map_file))
    elif map_file and subject.on_machine:
        knob = GROUP_MAP if configuration.assignments(GROUP_MAP) else GROUP_MAP_IN_USE
        fault = f"there is no map {map_file} that can be read: the access point refuses every job"
        remedy = "write the map; config.d/examples/accounting-groups.map shows how"
        yield Finding(configuration.place(knob), fault, remedy)


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
            fault = f"{group} is not in GROUP_NAMES: its quota is ignored"
            yield Finding(part.place, fault, "add it there")
        if share is None or not 0 <= share <= 1:
            yield Finding(part.place, f"invalid share {part.text}", "write a number from 0 to 1")
        else:
            shares.setdefault(above_of(group), {})[group] = share
    for above, level in shares.items():
        if sum(level.values()) > 1 + 1e-6:
            whose = f"shares of the groups within {above}" if above else "groups' shares"
            fault = f"the {whose} sum to {sum(level.values()):.6f}: HTCondor scales all of them "
            remedy = "print them again with sharectl render central-manager"
            yield Finding(configuration.place("GROUP_NAMES"), f"{fault}down", remedy)
