"""What the checks of a configuration look at, and what they find."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Optional

from sharectl.check.trials import ACTUATIONS, CLAUSES, LIVE, PUBLISHED, Node
from sharectl.condor.configuration import Configuration, Definition
from sharectl.condor.library import CondorProcess

CRON_JOBS = "STARTD_CRON_JOBLIST"
ENABLED, ACTUATION = "SHARECTL_ENABLED", "SHARECTL_ACTUATION"
ROLL_UP = "ADVERTISE_PSLOT_ROLLUP_INFORMATION"
DEFAULT_MULTICORE_CORES = 8
ATTRIBUTE_LISTS = ("STARTD_ATTRS", "STARTD_EXPRS", "STARTD_JOB_ATTRS", "STARTD_LATCH_EXPRS")
EVALUATED_LISTS = ("STARTD_ATTRS", "STARTD_EXPRS", "STARTD_LATCH_EXPRS")
"""Lists of macros that HTCondor takes for expressions."""

SWITCHED = ("START", "CLAIM_WORKLIFE")
"""What SHARECTL_ENABLED = False leaves to the site."""

GROUP_MAP_IN_USE = "CLASSAD_USER_MAPFILE_AssignAccountingGroup"
"""What HTCondor's AssignAccountingGroup reads."""

MACROS = (
    "START",
    "CLAIM_WORKLIFE",
    CRON_JOBS,
    "STARTD_CRON_LOG_NON_ZERO_EXIT",
    "MODIFY_REQUEST_EXPR_REQUESTCPUS",
    "STARTD_PARTITIONABLE_SLOT_ATTRS",
    "JOB_TRANSFORM_NAMES",
    "IMMUTABLE_JOB_ATTRS",
    GROUP_MAP_IN_USE,
    "PROTECTED_JOB_ATTRS",
    "GROUP_NAMES",
    ENABLED,
    ACTUATION,
    ROLL_UP,
    "BIN",
    *ATTRIBUTE_LISTS,
)
"""What the checks want expanded, whether or not a file sets it."""

EXPRESSIONS = re.compile(
    r"(SLOT_TYPE_\d+_)?(START|CLAIM_WORKLIFE)|DEFRAG_DRAINING_START_EXPR|DEFAULT_DRAINING_START_EXPR"
)
"""Knobs of a node, upper case, that are expressions and decide which jobs start there."""

CRON_KNOBS = ("EXECUTABLE", "ARGS", "MODE", "PERIOD", "KILL", "PREFIX")


@dataclass(frozen=True)
class SnippetSubject:
    """A configuration, and what only its operator knows of it."""

    configuration: Configuration
    htcondor: CondorProcess
    """Reads and evaluates expressions."""
    site_attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes that STARTD_CRON jobs of the site publish → their values, ClassAd expressions."""
    without_sharectl: Mapping[str, str] = field(default_factory=dict)
    """START and CLAIM_WORKLIFE, expanded, with SHARECTL_ENABLED = False."""

    mistaken: Mapping[str, str] = field(default_factory=dict)
    """Knobs of sharectl's that are no boolean → what the files say; the configuration has another value for them."""

    installed: Optional[tuple[int, int]] = None
    """Version of the HTCondor that is to use it; None if that is not known."""

    def cron(self, job: str, knob: str) -> str:
        """Expanded text of one of `CRON_KNOBS` of a STARTD_CRON job, empty if it is not set."""
        return self.configuration.text(f"STARTD_CRON_{job}_{knob}").strip()

    @property
    def cron_jobs(self) -> tuple[str, ...]:
        """STARTD_CRON jobs, in the order of the list."""
        return self.configuration.words(CRON_JOBS)

    @cached_property
    def ours(self) -> Mapping[str, str]:
        """Those of sharectl: name of the job → its key in `PUBLISHED`."""
        programs = {job: PurePosixPath(self.cron(job, "EXECUTABLE")).name for job in self.cron_jobs}
        keys = {job: program if program in PUBLISHED else job for job, program in programs.items()}
        return {job: key for job, key in keys.items() if key in PUBLISHED}

    @property
    def has_clauses(self) -> bool:
        """Whether a file defines sharectl's clauses of START."""
        return bool(self.configuration.assignments("t1_clauses"))

    @property
    def actuation(self) -> str:
        """How the node acts, one of `ACTUATIONS`."""
        text = self.configuration.text(ACTUATION).strip().lower()
        return text if text in ACTUATIONS else LIVE

    @property
    def is_off(self) -> bool:
        """Whether START is to be the site's own, whatever the node publishes."""
        return self.configuration.text(ENABLED).strip().lower() == "false"

    @cached_property
    def node(self) -> Node:
        """The node that typical jobs are tried at."""
        grace = self.configuration.text("SHARECTL_GRACE_SECONDS").strip()
        return Node(
            self.constants, self.multicore_cores, self.actuation, has_grace=grace not in ("0", "1")
        )

    @property
    def multicore_cores(self) -> int:
        """Size of a multicore job, cores."""
        text = self.configuration.text("SHARECTL_MULTICORE_CORES").strip()
        return int(text) if text.isdecimal() and 2 <= int(text) <= 1024 else DEFAULT_MULTICORE_CORES  # noqa: PLR2004

    @cached_property
    def published(self) -> frozenset[str]:
        """Attributes that this configuration adds to slot ads, lower case."""
        configuration = self.configuration
        names = [word for macro in ATTRIBUTE_LISTS for word in configuration.words(macro)]
        for latch in configuration.words("STARTD_LATCH_EXPRS"):
            names += [f"{latch}Value", f"{latch}Time"]
        names += [f"Child{word}" for word in configuration.words("STARTD_PARTITIONABLE_SLOT_ATTRS")]
        for job in self.cron_jobs:
            names += [f"{self.cron(job, 'PREFIX')}LastUpdate", f"{job}LastUpdate"]
        names += [attribute for program in self.ours.values() for attribute in PUBLISHED[program]]
        return frozenset(name.lower() for name in (*names, *self.site_attributes))

    @cached_property
    def constants(self) -> Mapping[str, str]:
        """Attributes of slot ads whose expressions this configuration, or its operator, gives."""
        configured = {
            word: configuration_text
            for macro in EVALUATED_LISTS
            for word in self.configuration.words(macro)
            if (configuration_text := self.configuration.text(word))
        }
        return {**configured, **self.site_attributes}

    @cached_property
    def expressions(self) -> Mapping[str, str]:
        """Macros that HTCondor takes for expressions on a node → expanded text; only those that a file sets."""
        named = {
            definition.name.upper(): definition.name
            for definition in self.configuration.definitions
        }
        wanted = [name for name in named if EXPRESSIONS.fullmatch(name)]
        attributes = {word.upper() for macro in EVALUATED_LISTS for word in self.words(macro)}
        wanted += [name for name in named if name in attributes]
        return {named[name]: text for name in wanted if (text := self.configuration.text(name))}

    def words(self, macro: str) -> tuple[str, ...]:
        """Items of a macro that is a list."""
        return self.configuration.words(macro)

    @cached_property
    def readable(self) -> Mapping[str, str]:
        """`expressions` as HTCondor prints them again, without those that it cannot read."""
        texts = self.htcondor.canonical(list(self.expressions.values()))
        return {name: text for name, text in zip(self.expressions, texts) if text is not None}

    def numbers(self, expressions: Sequence[str]) -> list[Optional[float]]:
        """Value of each expression; None for one that is no number."""
        values = [
            rows[0][0] if rows is not None else None
            for rows in self.htcondor.evaluate(expressions, [{}], [{}])
        ]
        return [
            float(value)
            if isinstance(value, (int, float)) and not isinstance(value, bool)
            else None
            for value in values
        ]

    def is_ours(self, definition: Definition) -> bool:
        """Whether an assignment is in a file of sharectl's: one that sets a knob or a clause of its own."""
        return definition.file in self._our_files

    @property
    def knows_sharectl(self) -> bool:
        """Whether any file is of sharectl's."""
        return bool(self._our_files)

    def is_snippets(self, definition: Definition) -> bool:
        """Whether an assignment is in the file that defines the clauses, and not in one that sets a knob for it."""
        return definition.file in {
            clauses.file for clauses in self.configuration.assignments("t1_clauses")
        }

    @cached_property
    def _our_files(self) -> frozenset[object]:
        return frozenset(
            definition.file
            for definition in self.configuration.definitions
            if "sharectl" in definition.name.lower()
            or any(name in definition.text for name in CLAUSES)
        )
