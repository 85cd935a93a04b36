"""Checks of snippets: a table over what HTCondor makes of configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sharectl.check import snippet_rules as rules
from sharectl.check import trials
from sharectl.check.findings import SYNTAX, Check, Finding, findings, refusal
from sharectl.check.subject import (
    ACTUATION,
    CRON,
    CRON_JOBS,
    CRON_KNOBS,
    ENABLED,
    GROUP_MAP_IN_USE,
    MACROS,
    START,
    WORKLIFE,
    SnippetSubject,
)
from sharectl.condor.configuration import ConfigSource, expand, read
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError, installed_version

CHECKS: tuple[Check[SnippetSubject], ...] = (
    # Causes before their consequences.
    Check(SYNTAX, "HTCondor reads every file"),
    Check(
        "file names",
        "HTCondor reads files of sharectl's, those that look as if, and no others",
        (rules.file_names,),
    ),
    Check("file modes", "every user can read them", (rules.unreadable_files,)),
    Check("replaced", "nothing drops what other files set", (rules.replaced,)),
    Check("knobs", "sharectl's knobs exist, and their values are valid", (rules.own_knobs,)),
    Check("cron", "STARTD_CRON jobs run, and end", (rules.cron,)),
    Check(
        "sources",
        "nodes can look for targets, and only sharectl can have written them",
        (rules.sources, rules.options),
    ),
    Check(
        "expression",
        "HTCondor can read START and its like, and each part of them by itself",
        (rules.unreadable, rules.unbalanced),
    ),
    Check("scope", "every name in them has MY. or TARGET.", (rules.unscoped,)),
    Check("side", "no attribute of the node is asked of the job", (rules.wrong_side,)),
    Check(
        "published",
        "every attribute of the node is published",
        (rules.unpublished, rules.without_value),
    ),
    Check("slot", "the slot has what the clauses need", (rules.slot,)),
    Check(
        "typical jobs",
        "without a target, typical jobs get in as without sharectl",
        (trials.refused,),
    ),
    Check(
        "clauses",
        "START obeys targets and grace",
        (trials.without_effect, trials.replaced_start),
    ),
    Check("forging", "a user gains nothing by what he writes into his job", (trials.forgeable,)),
    Check(
        "claims",
        "claims end under a target, live as before without one, and fit their jobs",
        (trials.claims, trials.quantized),
    ),
    Check("groups", "users cannot choose their group", (rules.groups,)),
    Check("quotas", "quotas belong to groups, and are shares", (rules.quotas,)),
)

SHOWN = (ACTUATION, CRON_JOBS, "STARTD_ATTRS", START, WORKLIFE)
SHOWN_OF_ACCESS_POINTS = (GROUP_MAP_IN_USE, "JOB_TRANSFORM_NAMES", "IMMUTABLE_JOB_ATTRS")


@dataclass(frozen=True)
class SnippetReport:
    """Files that were checked, knobs that they make, and the findings."""

    findings: tuple[Finding, ...]
    """By check, in the order of `CHECKS`."""
    files: tuple[str, ...] = ()
    """Files that HTCondor read, in its order; empty if it refused them."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Expanded text of the knobs in `SHOWN`, `SHOWN_OF_ACCESS_POINTS` or both."""


def check(source: ConfigSource, site_attributes: Mapping[str, str]) -> SnippetReport:
    """Findings about a configuration.

    Parameters
    ----------
    site_attributes
        Attributes that STARTD_CRON jobs of the site publish → their values on a healthy node,
        ClassAd expressions.
    """
    with CondorProcess() as process:
        return report_of(source, process, site_attributes)


def report_of(
    source: ConfigSource, process: CondorProcess, site_attributes: Mapping[str, str]
) -> SnippetReport:
    """Findings about a configuration, by a process that is there already."""
    try:
        subject = _subject(source, process, site_attributes)
        files = dict.fromkeys(str(part.file) for part in subject.configuration.definitions)
        results = findings(CHECKS, subject)
        return SnippetReport(tuple(results), tuple(files), _made(subject))
    except UnreadableConfigurationError as error:
        return SnippetReport((refusal(error, str(source.directory or source.main_file)),))


def _made(subject: SnippetSubject) -> dict[str, str]:
    is_access_point = bool(subject.configuration.assignments(rules.TRANSFORM))
    shown: tuple[str, ...] = SHOWN if subject.has_clauses or not is_access_point else ()
    shown += SHOWN_OF_ACCESS_POINTS if is_access_point else ()
    # As HTCondor prints it, a text of several lines has no comments, which end with a line.
    texts = {knob: subject.configuration.text(knob) for knob in shown}
    return {
        knob: " ".join((subject.readable.get(knob, text) if "\n" in text else text).split())
        for knob, text in texts.items()
    }


def _subject(
    source: ConfigSource, process: CondorProcess, site_attributes: Mapping[str, str]
) -> SnippetSubject:
    """Configuration as the installed HTCondor takes it, which may be older than the library."""
    configuration = read(source, MACROS, process)
    enabled = configuration.text(ENABLED).strip()
    is_invalid = configuration.assignments(ENABLED) and enabled.lower() not in ("true", "false")
    overrides = {ENABLED: "True"} if is_invalid else {}
    programs = Path(configuration.text("BIN").strip() or "/usr/bin")
    subject = SnippetSubject(
        configuration,
        process,
        site_attributes,
        invalid_enabled=enabled if is_invalid else None,
        installed=installed_version(programs) if source.main_file is not None else None,
    )
    ways = configuration.assignments(ACTUATION)
    if rules.is_too_old(subject) and subject.is_snippets(ways[-1]):
        overrides[ACTUATION] = CRON
    if overrides:
        configuration = read(source, MACROS, process, overrides)
    # A metaknob such as StartdCronPeriodic sets these without a line in any file.
    jobs = configuration.words(CRON_JOBS)
    knobs = [f"STARTD_CRON_{job}_{knob}" for job in jobs for knob in CRON_KNOBS]
    off = expand(source, (START, WORKLIFE, *knobs), process, {ENABLED: "False"})
    metaknobs = {name.lower(): off[name] for name in knobs if name in off}
    without = {name: off[name] for name in (START, WORKLIFE) if name in off}
    configuration = replace(configuration, values={**metaknobs, **configuration.values})
    return replace(subject, configuration=configuration, without_sharectl=without)
