"""Checks of snippets: a table over what HTCondor makes of configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

from sharectl.check import group_rules, snippet_rules, snippet_trials  # noqa: F401 - their rules
from sharectl.check.findings import Finding, refusal
from sharectl.check.snippet_subject import (
    ACTUATION,
    CHECKS,
    CRON_JOBS,
    GROUP_MAP_IN_USE,
    TRANSFORM,
    SnippetSubject,
    subject_of,
)
from sharectl.condor.configuration import ConfigSource
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError

__all__ = ["CHECKS", "SnippetReport", "check"]

SHOWN = (ACTUATION, CRON_JOBS, "STARTD_ATTRS", "START", "CLAIM_WORKLIFE")
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


def check(
    source: ConfigSource,
    site_attributes: Mapping[str, str],
    carried: Optional[Mapping[str, str]] = None,
) -> SnippetReport:
    """Findings about a configuration.

    Parameters
    ----------
    site_attributes
        Attributes that STARTD_CRON jobs of the site publish → their values on a healthy node,
        ClassAd expressions.
    carried
        Attributes that jobs of the site carry → their values, ClassAd expressions.
    """
    with CondorProcess() as process:
        try:
            subject = subject_of(source, process, site_attributes, carried or {})
            files = dict.fromkeys(str(part.file) for part in subject.configuration.definitions)
            return SnippetReport(tuple(CHECKS.findings(subject)), tuple(files), _made(subject))
        except UnreadableConfigurationError as error:
            return SnippetReport((refusal(error, str(source.directory or source.main_file)),))


def _made(subject: SnippetSubject) -> dict[str, str]:
    is_access_point = bool(subject.configuration.assignments(TRANSFORM))
    shown: tuple[str, ...] = SHOWN if subject.has_clauses or not is_access_point else ()
    shown += SHOWN_OF_ACCESS_POINTS if is_access_point else ()
    # As HTCondor prints it, a text of several lines has no comments, which end with a line.
    texts = {knob: subject.configuration.text(knob) for knob in shown}
    return {
        knob: " ".join((subject.readable.get(knob, text) if "\n" in text else text).split())
        for knob, text in texts.items()
    }
