"""Checks of the files themselves: which of them HTCondor reads, and who can."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

from sharectl.adapters.snippet_subject import Finding, Subject

_LEFT_OVER = re.compile(
    r".*(\.(bak|backup|orig|old|save|saved|disabled|off|tmp|swp|swo|example|sample|dpkg-new|dpkg-bak|ucf-\w+)|_bak)",
    re.IGNORECASE,
)


def file_names(subject: Subject) -> Iterator[Finding]:
    """Files that HTCondor reads though they look put aside, or does not read though they look meant."""
    for path in _entries(subject):
        skipped = subject.configuration.excluded.search(path.name) is not None
        if not skipped and _LEFT_OVER.fullmatch(path.name):
            yield Finding(
                "file names",
                str(path),
                "HTCondor reads this file too, whatever its name means to people",
                "move it out of the folder, or let its name end in ~",
            )
        if skipped and "sharectl" in path.name.lower() and path.suffix in (".sh", ".py", ".pl"):
            yield Finding(
                "file names",
                str(path),
                "HTCondor does not read a file of such a name",
                "give it a name such as 60-sharectl-execute-point.conf",
            )


def none_of_ours(subject: Subject) -> Iterator[Finding]:
    """A configuration in which nothing is sharectl's."""
    if subject.knows_sharectl:
        return
    source = subject.configuration.source
    yield Finding(
        "file names",
        str(source.directory or source.main_file),
        "no file of sharectl's is among those that HTCondor reads: nodes with this configuration heed no target",
        "name the folder that has 60-sharectl-execute-point.conf, or install that file",
    )


def readable_files(subject: Subject) -> Iterator[Finding]:
    """Files that tools cannot read: with one of them, no tool of an ordinary user works, nor does a STARTD_CRON job."""
    for path in _entries(subject):
        if not subject.configuration.excluded.search(path.name) and not path.stat().st_mode & stat.S_IROTH:
            yield Finding(
                "file modes",
                str(path),
                "only some users can read this file, and HTCondor's tools fail for all others: condor_status in "
                "sharectl's STARTD_CRON jobs too",
                f"chmod a+r {path}",
            )


def _entries(subject: Subject) -> Iterator[Path]:
    source = subject.configuration.source
    folders = subject.configuration.folders if source.directory is None else (source.directory,)
    for folder in folders:
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if path.is_file())
