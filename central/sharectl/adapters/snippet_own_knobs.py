"""Checks of sharectl's own knobs: they exist, and HTCondor, the shell and the node's programs can use their values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Optional

from sharectl.adapters.condor_config import Configuration
from sharectl.adapters.snippet_subject import ACTUATION, ENABLED, Finding, Subject
from sharectl.core.trials import ACTUATIONS, LIVE

NUMBERS = {
    # knob: lowest value, and whether it has to be written as a plain number, since it goes into a command line
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


def own_knobs(subject: Subject) -> Iterator[Finding]:
    """Knobs of sharectl's that do not exist, or have a value that they cannot have."""
    yield from _unused(subject)
    configuration = subject.configuration
    for knob in BOOLEANS:
        if knob in subject.mistaken:
            problem = f"{f'{knob} = {subject.mistaken[knob]}'.strip()} is neither True nor False"
            yield Finding("knobs", configuration.place(knob), problem, "write True or False")
    yield from _actuation(subject)
    yield from _numbers(subject)
    path = configuration.text(DISABLED_FILE).strip()
    if configuration.assignments(DISABLED_FILE) and not _PLAIN_PATH.fullmatch(path):
        yield _unusable(
            subject,
            DISABLED_FILE,
            "is no path that a line of shell can use: sharectl is off for ever, or cannot be put off",
            "write a whole path without blanks, such as /etc/sharectl/disabled",
        )


def mistaken(configuration: Configuration) -> dict[str, str]:
    """Knob → its text, of those of `BOOLEANS` that are neither True nor False."""
    texts = {knob: configuration.text(knob).strip() for knob in BOOLEANS if configuration.assignments(knob)}
    return {knob: text for knob, text in texts.items() if text.lower() not in ("true", "false")}


def _unused(subject: Subject) -> Iterator[Finding]:
    configuration = subject.configuration
    used = {reference for definition in configuration.definitions for reference in definition.references}
    used |= {reference[:-1] + way for reference in used if reference.endswith("*") for way in ACTUATIONS}
    own = sorted(name for name in used if name.startswith("sharectl_") and not name.endswith("*"))
    for definition in configuration.definitions:
        name = definition.name.lower()
        if name.startswith("sharectl_") and name not in used and configuration.is_judged(definition):
            close = difflib.get_close_matches(name, own, 1)
            yield Finding(
                "knobs",
                definition.place,
                f"nothing uses {definition.name}",
                f"write {close[0].upper()}"
                if close
                else "take it out, or check the snippet that uses it with it",
            )


def _actuation(subject: Subject) -> Iterator[Finding]:
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
    if assignments and too_old and text.lower() == LIVE and not subject.is_snippets(assignments[-1]):
        yield _unusable(
            subject,
            ACTUATION,
            f"is for HTCondor {_version(OLDEST_LIVE)} and later, and here is {_version(subject.installed)}",
            f"write {ACTUATION} = cron, or leave it to the snippet",
        )


def _numbers(subject: Subject) -> Iterator[Finding]:
    configuration = subject.configuration
    texts = {knob: configuration.text(knob).strip() for knob in NUMBERS if configuration.assignments(knob)}
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
                "knobs",
                configuration.place(stale),
                f"{stale} = {values[stale]:g} is no longer than {period} = {values[period]:g}: between two runs "
                "sharectl does nothing",
                f"write {stale} = 3 * $({period})",
            )


def _unusable(subject: Subject, knob: str, problem: str, remedy: str) -> Finding:
    text = subject.configuration.text(knob).strip()
    return Finding("knobs", subject.configuration.place(knob), f"{knob} = {text} {problem}", remedy)


def _version(version: Optional[tuple[int, ...]]) -> str:
    return ".".join(str(number) for number in version or ())
