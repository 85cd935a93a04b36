"""Configuration that the snippet checks look at, and what only its operator knows of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath

from sharectl.check.findings import Checks
from sharectl.condor.configuration import (
    ConfigSource,
    Configuration,
    expand,
    read,
    without_daemon,
)
from sharectl.condor.library import CondorProcess

CHECKS = Checks("snippets.txt")
finding = CHECKS.finding

CRON_JOBS = "STARTD_CRON_JOBLIST"
CRON_KNOBS = ("EXECUTABLE", "MODE", "KILL", "PREFIX")
ACTUATION = "SHARECTL_ACTUATION"
ATTRIBUTES, LATCHES = "STARTD_ATTRS", "STARTD_LATCH_EXPRS"
EVALUATED_LISTS = (ATTRIBUTES, "STARTD_EXPRS", LATCHES)
"""Lists of macros that HTCondor takes for expressions."""
MOST_CORES = 1024
TRANSFORM, GROUP_MAP_IN_USE = (
    "JOB_TRANSFORM_SharectlPower",
    "CLASSAD_USER_MAPFILE_AssignAccountingGroup",
)
"""Transform of an access point, and the map that HTCondor's AssignAccountingGroup reads."""

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

    def place(self, macro: str) -> str:
        """``file:line`` of the last assignment of a macro, or its name."""
        return self.configuration.place(macro)

    def cron(self, job: str, knob: str) -> str:
        """Text of one of `CRON_KNOBS` of a STARTD_CRON job, empty if it is not set."""
        return self.text(f"STARTD_CRON_{job}_{knob}")

    @property
    def cron_jobs(self) -> tuple[str, ...]:
        """STARTD_CRON jobs, in the order of the list."""
        return self.configuration.words(CRON_JOBS)

    @cached_property
    def ours(self) -> Mapping[str, str]:
        """STARTD_CRON jobs of sharectl: name of the job → its key in `PUBLISHED`."""
        programs = {job: PurePosixPath(self.cron(job, "EXECUTABLE")).name for job in self.cron_jobs}
        keys = {job: program if program in PUBLISHED else job for job, program in programs.items()}
        return {job: key for job, key in keys.items() if key in PUBLISHED}

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
        names += [attribute for program in self.ours.values() for attribute in PUBLISHED[program]]
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
        return frozenset(
            part.file
            for part in self.configuration.definitions
            if "sharectl" in part.name.lower() or any(name in part.text for name in CLAUSES)
        )


def _general(name: str) -> str:
    return _OF_SLOTS.sub("", name, count=1)


def subject_of(
    source: ConfigSource,
    process: CondorProcess,
    site_attributes: Mapping[str, str],
    carried: Mapping[str, str],
) -> SnippetSubject:
    """Configuration of files, with what metaknobs set in no file."""
    configuration = read(source, MACROS, process)
    jobs = configuration.words(CRON_JOBS)
    # StartdCronPeriodic and its like.
    knobs = [f"STARTD_CRON_{job}_{knob}" for job in jobs for knob in CRON_KNOBS]
    values = {name.lower(): text for name, text in expand(source, knobs, process).items()}
    configuration = replace(configuration, values={**values, **configuration.values})
    return SnippetSubject(configuration, process, site_attributes, carried)
