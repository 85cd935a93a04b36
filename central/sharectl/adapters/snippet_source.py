"""Checks of where a node looks for its target: SHARECTL_SOURCE, and the options of job_ctl.py."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sharectl.adapters import node_key_file, trust
from sharectl.adapters.snippet_subject import Finding, Subject
from sharectl.core.node_reasons import REMEDIES
from sharectl.core.trials import JOB_CTL_OPTIONS, MAX_SOURCES

SOURCE, OPTIONS = "SHARECTL_SOURCE", "SHARECTL_SOURCE_OPTIONS"
PROGRAM = "job_ctl.py"
KEY, IDENTITY = "--key-file", "--identity"

_FORMS = (
    re.compile(r"file:/[^\s,\"'$]+"),
    re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[^\s,\"'$?#]*"),
    re.compile(r"collector:[^\s,\"'$]*"),
)
_REMEDY = "write file:/PATH, https://HOST[:PORT]/PATH or collector:, several with commas and without blanks"


def sources(subject: Subject) -> Iterator[Finding]:
    """Sources that job_ctl.py cannot use, and those whose targets anybody could have written."""
    configuration = subject.configuration
    if not configuration.assignments(SOURCE):
        return
    text = configuration.text(SOURCE).strip()
    place, given = configuration.place(SOURCE), _options(subject)
    wrong = [entry for entry in text.split(",") if not any(form.fullmatch(entry) for form in _FORMS)]
    if wrong:
        shown = ", ".join(repr(entry) for entry in wrong)
        yield Finding("sources", place, f"{SOURCE}: {shown} is no source: nodes get no target", _REMEDY)
        return
    if text.count(",") >= MAX_SOURCES:
        problem = f"{SOURCE} has more than {MAX_SOURCES} sources: nodes get no target"
        yield Finding("sources", place, problem, "write fewer")
    yield from _identity(subject, text, given)
    yield from _key_file(subject, text, given)
    if KEY not in given:
        for problem in map(_exposed, text.split(",")):
            if problem:
                yield Finding(
                    "sources",
                    place,
                    f"{problem}, and nodes believe what is not signed",
                    f"sign the targets, and add {KEY} /etc/sharectl/keys to {OPTIONS}",
                    advice=True,
                )


def options(subject: Subject) -> Iterator[Finding]:
    """Options that job_ctl.py does not have, or that lack a value."""
    for job, program in subject.ours.items():
        words = subject.cron(job, "ARGS").split()
        place = subject.configuration.place(f"STARTD_CRON_{job}_ARGS")
        if subject.configuration.text(OPTIONS).strip():
            place = subject.configuration.place(OPTIONS)
        if program != PROGRAM or re.search(r"\s", subject.configuration.text(SOURCE).strip()):
            continue
        for name in words[::2]:
            if name not in JOB_CTL_OPTIONS:
                close = difflib.get_close_matches(name, JOB_CTL_OPTIONS, 1)
                yield Finding(
                    "sources",
                    place,
                    f"{PROGRAM} has no option {name}: nodes get no target",
                    f"write {close[0] if close else 'one of ' + ', '.join(JOB_CTL_OPTIONS)}, and its value after a "
                    "blank",
                )
                break
        else:
            if len(words) % 2:
                yield Finding("sources", place, f"{words[-1]} has no value: nodes get no target", "write one")


def _identity(subject: Subject, text: str, given: Mapping[str, str]) -> Iterator[Finding]:
    if not any(entry.startswith("collector:") for entry in text.split(",")):
        return
    place = subject.configuration.place(OPTIONS)
    remedy = f"write {OPTIONS} = {IDENTITY} sharectl@example.org, as `condor_status -any` shows it of sharectl's ads"
    if IDENTITY not in given:
        problem = f"collector: needs {IDENTITY}: nodes believe no ad of which they do not know who sent it"
        yield Finding("sources", place, problem, remedy)
    elif given[IDENTITY].rpartition("@")[2] in ("", "unmapped"):
        problem = f"{IDENTITY} {given[IDENTITY]} is what everybody has whom HTCondor cannot tell"
        yield Finding("sources", place, problem, remedy)


def _key_file(subject: Subject, text: str, given: Mapping[str, str]) -> Iterator[Finding]:
    """A file of keys that this machine's jobs refuse, and every target with it."""
    configuration, name = subject.configuration, given.get(KEY, "")
    asked = any(not entry.startswith("collector:") for entry in text.split(","))
    if configuration.source.main_file is None or not asked or not name.startswith("/"):
        return
    jobs_user = node_key_file.reader(configuration.text("CONDOR_IDS"))
    wrong = node_key_file.problem(Path(name), jobs_user, os.geteuid())
    if wrong:
        code, why = wrong
        problem = f"{why}: this node refuses every target ({code})"
        yield Finding("sources", configuration.place(OPTIONS), problem, REMEDIES[code])


def _options(subject: Subject) -> dict[str, str]:
    """Option → value, of all that job_ctl.py is given."""
    jobs = [job for job, program in subject.ours.items() if program == PROGRAM]
    words = subject.cron(jobs[0], "ARGS").split() if jobs else []
    words = words or subject.configuration.text(OPTIONS).split()
    return dict(zip(words[::2], words[1::2]))


def _exposed(entry: str) -> str:
    """Who else could write that source's targets; empty if nobody is known to."""
    if entry.startswith("https:"):
        return f"whoever can write to the web server of {entry} sets targets"
    if entry.startswith("file:"):
        path = Path(entry.partition(":")[2])
        why = trust.why_untrusted(path, trust.MOUNTS, _writers(path))
        return f"{path}: {why}" if why else ""
    return ""


def _writers(path: Path) -> list[int]:
    """Users who may write it: this one, and the one to whom it belongs, since targets have a user of their own."""
    try:
        return [os.geteuid(), path.stat().st_uid]
    except OSError:
        return [os.geteuid()]
