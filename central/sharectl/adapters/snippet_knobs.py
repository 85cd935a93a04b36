"""Checks of HTCondor's knobs: STARTD_CRON jobs, lists that are to grow, groups and quotas."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sharectl.adapters import group_map
from sharectl.adapters.condor_files import Definition
from sharectl.adapters.snippet_subject import ACTUATION, CRON_JOBS, GROUP_MAP_IN_USE, Finding, Subject
from sharectl.core.group_tree import above_of
from sharectl.core.trials import BESIDE, LIVE

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


def cron(subject: Subject) -> Iterator[Finding]:
    """STARTD_CRON jobs that do not run, or go on publishing old values when they fail."""
    jobs = subject.cron_jobs
    for job in dict.fromkeys(jobs):
        for knob, problem, remedy in _job_problems(subject, job):
            place = subject.configuration.place(f"STARTD_CRON_{job}_{knob}")
            yield Finding("cron", place, f"STARTD_CRON job {job}: {problem}", remedy)
    for job in sorted({job for job in jobs if [name.lower() for name in jobs].count(job.lower()) > 1}):
        yield Finding(
            "cron",
            subject.configuration.place(CRON_JOBS),
            f"STARTD_CRON job {job} is listed more than once: HTCondor runs it when it starts, and never again",
            f"list it once in {CRON_JOBS}",
        )
    known = {job.lower() for job in jobs}
    for definition in subject.configuration.definitions:
        match = re.fullmatch(r"STARTD_CRON_(\w+)_EXECUTABLE", definition.name, re.IGNORECASE)
        idle = match and match[1].lower() not in known and subject.configuration.is_judged(definition)
        if match and idle and not (subject.actuation == LIVE and _runs(definition.text, _COUNTS_FREE_CORES)):
            yield Finding(
                "cron",
                definition.place,
                f"STARTD_CRON job {match[1]} never runs: it is not in {CRON_JOBS}",
                f"write {CRON_JOBS} = $({CRON_JOBS}) {match[1]}",
            )
    for job, program in subject.ours.items():
        if subject.actuation == LIVE and subject.has_clauses and program == _COUNTS_FREE_CORES:
            yield Finding(
                "cron",
                subject.configuration.place(CRON_JOBS),
                f"STARTD_CRON job {job} replaces the slot's own MC_GRACE: with {ACTUATION} = live nothing looks at "
                "how old what it publishes is",
                f"take {job} off {CRON_JOBS}, or write {ACTUATION} = cron",
            )
    if subject.ours and not _starts_true(subject.configuration.text("STARTD_CRON_LOG_NON_ZERO_EXIT")):
        yield Finding(
            "cron",
            subject.configuration.place("STARTD_CRON_LOG_NON_ZERO_EXIT"),
            "what failing STARTD_CRON jobs say is thrown away",
            "write STARTD_CRON_LOG_NON_ZERO_EXIT = True",
        )


def replaced(subject: Subject) -> Iterator[Finding]:
    """Assignments that throw away what earlier files put into a knob that all share."""
    for knob in GROWING:
        before: list[Definition] = []
        for definition in subject.configuration.assignments(knob):
            lost = next((earlier for earlier in reversed(before) if earlier.appends), None)
            judged = subject.configuration.is_judged(definition)
            if judged and not definition.appends and (lost or subject.is_ours(definition)):
                whose = f"what {lost.place} put there" if lost else "whatever other files put there"
                yield Finding(
                    "replaced",
                    definition.place,
                    f"{definition.name} throws away {whose}",
                    f"write {_appended(definition)}",
                )
            before.append(definition)


def groups(subject: Subject) -> Iterator[Finding]:
    """Ways for users to choose their group, and a map that cannot be used."""
    configuration = subject.configuration
    if not configuration.assignments("JOB_TRANSFORM_SharectlPower"):
        return
    immutable = {word.lower() for word in configuration.words("IMMUTABLE_JOB_ATTRS")}
    missing = [
        name for name in ("AcctGroup", "AcctGroupUser", "AccountingGroup") if name.lower() not in immutable
    ]
    on_machine = configuration.source.main_file is not None
    map_file = configuration.text(GROUP_MAP_IN_USE).strip()
    if map_file and missing:
        yield Finding(
            "groups",
            configuration.place("JOB_TRANSFORM_SharectlPower"),
            f"users can choose their group: {', '.join(missing)} of a job can be changed",
            "write use FEATURE : AssignAccountingGroup(MAP-FILE)",
        )
    elif missing and configuration.text(GROUP_MAP).strip():
        yield Finding(
            "groups",
            configuration.place(GROUP_MAP),
            f"{GROUP_MAP} is read after the snippet that uses it, and does nothing: users can choose their group",
            f"name it in a file that is read before {subject.configuration.place('JOB_TRANSFORM_SharectlPower')}",
        )
    elif missing and on_machine:
        yield Finding(
            "groups",
            configuration.place("JOB_TRANSFORM_SharectlPower"),
            "users can choose their group, and so whose share their jobs count for",
            f"write a map as in config.d/examples/accounting-groups.map, and in the snippet or a file read before "
            f"it {GROUP_MAP} = PATH of the map",
            advice=True,
        )
    if map_file and on_machine and not os.access(map_file, os.R_OK):
        yield Finding(
            "groups",
            configuration.place(GROUP_MAP if configuration.assignments(GROUP_MAP) else GROUP_MAP_IN_USE),
            f"there is no map {map_file} that can be read: the access point refuses every job",
            "write the map; config.d/examples/accounting-groups.map shows how",
        )
    elif map_file and on_machine:
        yield from group_map.findings(subject, Path(map_file))


def quotas(subject: Subject) -> Iterator[Finding]:
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
                "quotas",
                definition.place,
                f"{group} is not in GROUP_NAMES: its quota is ignored",
                "add it there",
            )
        if share is None or not 0 <= share <= 1:
            yield Finding(
                "quotas", definition.place, f"{definition.text} is no share", "write a number from 0 to 1"
            )
        else:
            shares.setdefault(above_of(group.lower()), {})[group.lower()] = share
    for above, level in shares.items():
        if sum(level.values()) > 1 + 1e-6:
            whose = f"shares of the groups within {above}" if above else "groups' shares"
            yield Finding(
                "quotas",
                configuration.place("GROUP_NAMES"),
                f"the {whose} sum to {sum(level.values()):.6f}: HTCondor scales all of them down",
                "print them anew with sharectl render central-manager",
            )


def _job_problems(subject: Subject, job: str) -> Iterator[tuple[str, str, str]]:
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
            "a run that hangs is the last one, and its old values stay for ever (1 and yes count as False)",
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


def _program_problems(subject: Subject, job: str) -> Iterator[tuple[str, str]]:
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
