"""What HTCondor makes of configuration files, and what is wrong with it: a table of checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from sharectl.check import snippet_rules
from sharectl.check.findings import SYNTAX, Check, Finding, findings, refusal
from sharectl.check.subject import (
    ACTUATION,
    CRON_JOBS,
    CRON_KNOBS,
    ENABLED,
    GROUP_MAP_IN_USE,
    MACROS,
    SWITCHED,
    SnippetSubject,
)
from sharectl.check.trials import CRON
from sharectl.condor.configuration import Configuration, Source, expand, read
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError, installed_version

CHECKS: tuple[Check[SnippetSubject], ...] = (
    # name, what holds if nothing is found, functions; causes before what comes of them
    Check(SYNTAX, "HTCondor reads every file"),
    Check(
        "file names",
        "HTCondor reads files of sharectl's, those that look as if, and no others",
        (snippet_rules.file_names, snippet_rules.none_of_ours),
    ),
    Check("file modes", "every user can read them", (snippet_rules.readable_files,)),
    Check("replaced", "nothing throws away what other files set", (snippet_rules.replaced,)),
    Check(
        "knobs", "sharectl's knobs exist, and their values can be used", (snippet_rules.own_knobs,)
    ),
    Check("cron", "STARTD_CRON jobs run, and end", (snippet_rules.cron,)),
    Check(
        "sources",
        "nodes can look for targets, and only sharectl can have written them",
        (snippet_rules.sources, snippet_rules.options),
    ),
    Check(
        "expression",
        "HTCondor can read START and its like, and each part of them by itself",
        (snippet_rules.unreadable, snippet_rules.unbalanced),
    ),
    Check("scope", "every name in them has MY. or TARGET.", (snippet_rules.unscoped,)),
    Check("side", "no attribute of the node is asked of the job", (snippet_rules.wrong_side,)),
    Check(
        "published",
        "every attribute of the node is published",
        (snippet_rules.unpublished, snippet_rules.not_set),
    ),
    Check(
        "slot",
        "the slot has what the clauses need, and counts cores rightly",
        (
            snippet_rules.unlisted,
            snippet_rules.latches,
            snippet_rules.rolled_up,
            snippet_rules.miscounted,
        ),
    ),
    Check(
        "typical jobs",
        "without a target, typical jobs get in as without sharectl",
        (snippet_rules.refused,),
    ),
    Check(
        "clauses",
        "START obeys targets and grace",
        (snippet_rules.without_effect, snippet_rules.not_the_clauses),
    ),
    Check(
        "forging", "what a user writes into his job gains him nothing", (snippet_rules.forgeable,)
    ),
    Check(
        "claims",
        "claims end under a target, live as before without one, and fit their jobs",
        (snippet_rules.claims, snippet_rules.quantized),
    ),
    Check("groups", "users cannot choose their group", (snippet_rules.groups,)),
    Check("quotas", "quotas belong to groups, and are shares", (snippet_rules.quotas,)),
)


SHOWN = (ACTUATION, "STARTD_CRON_JOBLIST", "STARTD_ATTRS", "START", "CLAIM_WORKLIFE")
SHOWN_OF_ACCESS_POINTS = (GROUP_MAP_IN_USE, "JOB_TRANSFORM_NAMES", "IMMUTABLE_JOB_ATTRS")


@dataclass(frozen=True)
class SnippetReport:
    """What the checks saw and found."""

    files: tuple[str, ...]
    """Files that HTCondor read, in its order; empty if it refused them."""
    made: Mapping[str, str]
    """What became of the knobs in `SHOWN`, `SHOWN_OF_ACCESS_POINTS` or both, expanded; empty if HTCondor refused the files."""
    findings: tuple[Finding, ...]
    """By check, in the order of `CHECKS`."""


def check(source: Source, site_attributes: Mapping[str, str]) -> SnippetReport:
    """Everything that is wrong with a configuration.

    Parameters
    ----------
    source
        Which configuration.
    site_attributes
        Attributes that STARTD_CRON jobs of the site publish → their values on a healthy node,
        ClassAd expressions.
    """
    try:
        with CondorProcess() as process:
            return _report(_subject(source, process, process, site_attributes))
    except UnreadableConfigurationError as error:
        return SnippetReport((), {}, (refusal(error, str(source.directory or source.main_file)),))


def _report(subject: SnippetSubject) -> SnippetReport:
    configuration = subject.configuration
    files = dict.fromkeys(str(definition.file) for definition in configuration.definitions)
    is_access_point = bool(configuration.assignments("JOB_TRANSFORM_SharectlPower"))
    shown: tuple[str, ...] = SHOWN if subject.has_clauses or not is_access_point else ()
    shown += SHOWN_OF_ACCESS_POINTS if is_access_point else ()
    made = {knob: " ".join(_in_one_line(subject, knob).split()) for knob in shown}
    found = findings(CHECKS, subject)
    return SnippetReport(tuple(files), made, tuple(found))


def _in_one_line(subject: SnippetSubject, knob: str) -> str:
    """Text of a knob; without the comments, which end with a line, if it has several lines."""
    text = subject.configuration.text(knob)
    return subject.readable.get(knob, text) if "\n" in text else text


def _subject(
    source: Source,
    process: CondorProcess,
    htcondor: CondorProcess,
    site_attributes: Mapping[str, str],
) -> SnippetSubject:
    configuration, mistaken, installed = _configuration(source, process)
    # A metaknob such as StartdCronPeriodic sets these without a line of their own in any file.
    knobs = [
        f"STARTD_CRON_{job}_{knob}" for job in configuration.words(CRON_JOBS) for knob in CRON_KNOBS
    ]
    unseen = [knob for knob in knobs if not configuration.assignments(knob)]
    off = expand(source, (*SWITCHED, *unseen), process, {ENABLED: "False"})
    values = {name.lower(): off[name] for name in unseen if name in off}
    return SnippetSubject(
        replace(configuration, values={**configuration.values, **values}),
        htcondor,
        site_attributes,
        without_sharectl={name: off[name] for name in SWITCHED if name in off},
        mistaken=mistaken,
        installed=installed,
    )


def _configuration(
    source: Source, process: CondorProcess
) -> tuple[Configuration, dict[str, str], Optional[tuple[int, int]]]:
    """The configuration as the HTCondor that is installed takes it, knobs that are no boolean, and which HTCondor it is.

    The library that reads it here may be newer, and so choose a way to act that the daemons would
    not.
    """
    configuration = read(source, MACROS, process)
    mistaken = snippet_rules.mistaken(configuration)
    meant = {knob: snippet_rules.BOOLEANS[knob] for knob in mistaken}
    if mistaken:
        configuration = read(source, MACROS, process, meant)
    if source.main_file is None:
        return configuration, mistaken, None
    installed = installed_version(Path(configuration.text("BIN").strip() or "/usr/bin"))
    chosen = configuration.assignments(ACTUATION)
    by_snippet = bool(chosen) and chosen[-1].file in {
        clauses.file for clauses in configuration.assignments("t1_clauses")
    }
    if by_snippet and installed is not None and installed < snippet_rules.OLDEST_LIVE:
        return read(source, MACROS, process, {**meant, ACTUATION: CRON}), mistaken, installed
    return configuration, mistaken, installed
