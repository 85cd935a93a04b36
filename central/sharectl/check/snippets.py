"""Checks of snippets, and the trial of the snippet of a machine's role before it is put in place.

A snippet that is put in place ends with a line that has the checksum of the lines above it. So one
of an earlier version is known, and one that somebody edited.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Optional

from sharectl.check import group_rules, snippet_rules, snippet_trials  # noqa: F401 - their rules
from sharectl.check.findings import SYNTAX, Finding, Level, refusal
from sharectl.check.snippet_subject import (
    ACTUATION,
    CHECKS,
    CRON_JOBS,
    GROUP_MAP_IN_USE,
    TRANSFORM,
    SnippetSubject,
    finding,
    subject_of,
)
from sharectl.condor.configuration import FOLDERS, MAX_BYTES, ConfigSource, read, source_of
from sharectl.condor.knob_readers import daemons_of
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.files import read_regular

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


# ---- Snippets of roles

_STAMP = "# Put here by `sharectl snippets`: set knobs in a later file. SHA-256 of all above: "
_STAMPED = re.compile(rf"(?P<lines>.*\n){re.escape(_STAMP)}(?P<sum>[0-9a-f]{{64}})\n", re.DOTALL)
_STOPS_JOBS = (SYNTAX, "expression", "typical jobs")
"""Checks that hold a removal back: without the snippet, knobs for it are left, which do no harm."""


@dataclass(frozen=True)
class Role:
    """Role of a machine in the pool, with its snippet."""

    shipped: str
    """Name of the snippet among the files of the package."""
    file: str
    """Its name where HTCondor reads it."""
    daemon: str
    """Daemon of DAEMON_LIST that it is for."""

    @property
    def text(self) -> str:
        """Snippet of this version."""
        return Path(__file__).with_name(self.shipped).read_text(encoding="utf-8")

    @property
    def content(self) -> str:
        """Snippet as it is put in place."""
        return f"{self.text}{_STAMP}{_sum(self.text)}\n"

    def is_ours(self, content: str) -> bool:
        """True if nobody has edited that snippet, of this version or an earlier one."""
        stamped = _STAMPED.fullmatch(content)
        if stamped is None:
            return content == self.text
        return _sum(stamped["lines"]) == stamped["sum"]


ROLES: Mapping[str, Role] = {
    "execute": Role("execute-point.conf", "60-sharectl-execute-point.conf", "STARTD"),
    "access": Role("access-point.conf", "60-sharectl-access-point.conf", "SCHEDD"),
    "central": Role("defrag.conf", "60-sharectl-defrag.conf", "DEFRAG"),
}


@dataclass(frozen=True)
class SnippetPlace:
    """SnippetPlace of a role's snippet in the configuration of this machine."""

    path: Path
    content: Optional[str]
    """Content of the file that is there; None without one."""
    source: ConfigSource
    folders: tuple[Path, ...]
    """Folders that HTCondor reads, in its order."""
    has_daemon: bool
    """True if HTCondor is to run the role's daemon here."""


def place_of(role: Role, folder: Optional[Path]) -> SnippetPlace:
    """SnippetPlace in ``folder``, or in the last of those that HTCondor reads on this machine.

    Raises InputError if it has no such folder, or its configuration cannot be read.
    """
    source = source_of(None, with_local=True)
    with CondorProcess() as process:
        try:
            configuration = read(source, ("DAEMON_LIST",), process)
        except UnreadableConfigurationError as error:
            raise InputError([str(refusal(error, str(source.main_file)))]) from None
    folders = tuple(map(Path.absolute, filter(Path.is_dir, configuration.folders)))
    names = ", ".join(map(str, configuration.folders)) or "empty"
    if folder is None and not folders:
        raise InputError([f"{FOLDERS} is {names}: make that folder, or set it to one"])
    chosen = folders[-1] if folder is None else folder.absolute()
    if chosen not in folders:
        raise InputError([f"{chosen}: HTCondor does not read it; {FOLDERS} is {names}"])
    path = chosen / role.file
    if configuration.excluded.search(path.name):
        fact = "HTCondor would not read it: LOCAL_CONFIG_DIR_EXCLUDE_REGEXP matches its name"
        raise InputError([f"{path}: {fact}; correct that"])
    has_daemon = role.daemon in (daemons_of(configuration) or ())
    return SnippetPlace(path, content_of(path), source, folders, has_daemon)


def trial(
    place: SnippetPlace,
    content: Optional[str],
    published: Mapping[str, str],
    carried: Mapping[str, str],
) -> list[Finding]:
    """Findings that the snippet ``content`` in that place would make; None for no snippet there.

    ``published`` and ``carried`` are as of `check`.
    """
    before = check(place.source, published, carried).findings
    with _staged(place, content) as folder:
        folders = tuple(folder if path == place.path.parent else path for path in place.folders)
        report = check(replace(place.source, folders=folders), published, carried)
        findings = [_moved(part, str(folder), str(place.path.parent)) for part in report.findings]
    # A missing daemon is named beforehand.
    earlier = [*before, *(part for part in findings if part.id == "daemons")]
    fresh = [part for part in findings if part.id == SYNTAX or part not in earlier]
    if content is None:
        return [part for part in fresh if part.id in _STOPS_JOBS and part.level is Level.ERROR]
    refused = any(part.id == SYNTAX for part in fresh)
    if not refused and str(folder / place.path.name) not in report.files:
        fresh.append(finding("none of ours", str(place.path)))
    return fresh


@contextmanager
def _staged(place: SnippetPlace, content: Optional[str]) -> Iterator[Path]:
    """Folder with the files of the place's own, but for the snippet."""
    with tempfile.TemporaryDirectory(prefix="sharectl-") as name:
        folder = Path(name).resolve()
        for path in place.path.parent.iterdir():
            if path != place.path:
                (folder / path.name).symlink_to(path)
        if content is not None:
            (folder / place.path.name).write_text(content, encoding="utf-8")
        yield folder


def _moved(part: Finding, folder: str, to: str) -> Finding:
    texts = (part.place, part.fault, part.remedy)
    place, fault, remedy = (text.replace(folder, to) for text in texts)
    return replace(part, place=place, fault=fault, remedy=remedy)


def content_of(path: Path) -> Optional[str]:
    """Content of a snippet's place, None without a file; InputError if it is no regular file."""
    if path.is_symlink():
        raise InputError([f"{path}: is a link that this command did not make; remove it first"])
    try:
        content = read_regular(path, MAX_BYTES)[0]
    except FileNotFoundError:
        return None
    if content is None:
        raise InputError([f"{path}: is not a regular file; move it away"])
    return content.decode("utf-8", "replace")


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
