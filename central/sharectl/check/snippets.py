"""Checks of snippets, and the trial of the snippet of a machine's role before it is put in place.

A snippet that is put in place ends with a line that has the checksum of the lines above it. So one
of an earlier version is known, and one that somebody edited.

HTCondor evaluates START and CLAIM_WORKLIFE for typical jobs. The attributes of the slot that
START reads have every value that they can have; what makes them is compared, as text, with what
sharectl ships.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional

from sharectl.check.findings import SYNTAX, Finding, Level, refusal, some
from sharectl.check.slot_ad import saved_ads
from sharectl.check.snippet_rules import (
    ACTUATION,
    CHECKS,
    CLAUSES,
    CRON_JOBS,
    EXPRESSIONS,
    GROUP_MAP_IN_USE,
    TRANSFORM,
    SnippetSubject,
    finding,
    subject_of,
)
from sharectl.condor.ads import is_true
from sharectl.condor.configuration import (
    FOLDERS,
    MAX_BYTES,
    ConfigSource,
    Definition,
    daemons_of,
    definitions_in,
    read,
    source_of,
)
from sharectl.condor.expressions import MY, references
from sharectl.condor.library import CondorProcess, UnreadableConfigurationError
from sharectl.errors import InputError
from sharectl.files.files import read_regular

_OF_CLAIMS = ("t1_TargetActive", "t1_HeldBackSlot")
SITES_OWN = {**dict.fromkeys(CLAUSES, "True"), **dict.fromkeys(_OF_CLAIMS, "False")}
"""Attributes of a slot without a target."""
SHIPPED = Path(__file__).with_name("execute-point.conf")
"""``config.d/60-sharectl-execute-point.conf`` of this version."""
UNKNOWN = ("undefined", "error")

_CLAUSES = " && ".join(f"MY.{clause} =!= False" for clause in CLAUSES)
_LAST_OF_CLAIM = " && ".join(f"MY.{name} =?= True" for name in _OF_CLAIMS)

Ad = Mapping[str, str]


# ---- Ads: attribute → ClassAd expression


def typical_jobs(subject: SnippetSubject) -> dict[str, Ad]:
    """Name for people → ad of the job, which has the attributes of a slot without a target."""
    large = str(subject.multicore_cores)
    job = {
        **subject.carried,
        "MyType": '"Job"',
        "JobUniverse": "5",
        "JobStatus": "1",
        "Owner": '"bob"',
        "User": '"bob@example.org"',
        "RequestMemory": "128",
        "RequestDisk": "1024",
        **SITES_OWN,
    }
    jobs: dict[str, Ad] = {"no RequestCpus": job}
    for name, cores in (("one core", "1"), (f"{large} cores", large)):
        jobs[name] = {**job, "RequestCpus": cores}
        for group in ("alice", "cms"):
            jobs[f"{name} of {group}"] = {**jobs[name], "AccountingGroup": f'"{group}.bob"'}
    return jobs


def slots_with(subject: SnippetSubject, attributes: Ad) -> list[Ad]:
    """A partitionable and a dynamic slot with these attributes."""
    cores = str(8 * subject.multicore_cores)
    common = {
        **saved_ads()[0],
        **dict.fromkeys(("Cpus", "TotalSlotCpus", "TotalCpus"), cores),
        "MyCurrentTime": "time() - 2",
        "Memory": "1048576",
        "Disk": "1073741824",
        **dict.fromkeys(("LoadAvg", "CondorLoadAvg", "TotalLoadAvg"), "0.0"),
        **dict.fromkeys(("KeyboardIdle", "ConsoleIdle"), "86400"),
    }
    dynamic = {"PartitionableSlot": "undefined", "DynamicSlot": "True", "SlotType": '"Dynamic"'}
    own = {**subject.attributes, **subject.site_attributes, **attributes}
    return [{**common, **own}, {**common, **dynamic, **own}]


# ---- Checks


@CHECKS.rule()
def kept_out(subject: SnippetSubject) -> Iterator[Finding]:
    """Typical jobs that START keeps out where no clause is False."""
    place, text = subject.configuration.place("START"), subject.text("START")
    own = _when_open(subject, text)
    clauses = [{**own, **dict.fromkeys(CLAUSES, word)} for word in UNKNOWN]
    without, *unknown = _let_in(subject, text, [own, *clauses])
    for word, let_in in zip(UNKNOWN, unknown):
        if jobs := [job for job in without if job not in let_in]:
            yield finding("kept out", place, word=word, jobs=_some(jobs), clauses=_CLAUSES)
    if not without:
        # A value that nobody gave may be the one that START wants.
        reads = references(subject.readable.get("START", ""))
        is_unsure = any(subject.carried.get(name) == "True" for scope, name in reads)
        level = Level.ADVICE if is_unsure else Level.ERROR
        yield finding("takes nothing", place, level, jobs=_some(list(typical_jobs(subject))))


@CHECKS.rule()
def changed_clauses(subject: SnippetSubject) -> Iterator[Finding]:
    """Macros of the snippet that another file sets, that somebody edited, or of another version."""
    changed: dict[Path, dict[str, Definition]] = {}
    for part in definitions_in([SHIPPED]) if subject.has_clauses else ():
        written = subject.configuration.assignments(part.name)
        texts = [last.text.split() for last in written[-1:]]
        if part.name.startswith("t1_") and texts != [part.text.split()]:
            last = (written or subject.configuration.assignments("t1_clauses"))[-1]
            changed.setdefault(last.file, {})[part.name] = last
    for parts in changed.values():
        place = next(iter(parts.values())).place
        yield finding("not as shipped", place, names=some(list(parts), 6, ", "))


@CHECKS.rule()
def without_clauses(subject: SnippetSubject) -> Iterator[Finding]:
    """START, or an expression in its place, that lets in jobs that a clause keeps out.

    The jobs have the attributes of the slot too: they gain nothing by them.
    """
    own = _when_open(subject, subject.text("START"))
    situations = [{**own, clause: "False"} for clause in CLAUSES]
    for macro, text in subject.readable.items() if subject.our_files else ():
        name = macro.upper()
        is_ours = name != "START" or subject.has_clauses
        if "START" not in name or not EXPRESSIONS.fullmatch(name) or not is_ours:
            continue
        rows = zip(CLAUSES, _let_in(subject, text, situations))
        let_in = [f"{job} where {clause} is False" for clause, jobs in rows for job in jobs]
        # Jobs that are not typical may get in, unless the clauses are in its text.
        asks = {reference.name for reference in references(text) if reference.scope == MY}
        if let_in or (text.lower() != "false" and not asks.issuperset(CLAUSES)):
            effect = f"lets in {_some(let_in)}" if let_in else "has none of sharectl's clauses"
            instead = "" if name == "START" else ", which HTCondor uses in the place of START,"
            names = {"macro": macro, "effect": effect, "instead": instead, "clauses": _CLAUSES}
            yield finding("without clauses", subject.configuration.place(macro), **names)


@CHECKS.rule()
def claims(subject: SnippetSubject) -> Iterator[Finding]:
    """Claims that outlive a target, or end early without one."""
    place, text = subject.configuration.place("CLAIM_WORKLIFE"), subject.text("CLAIM_WORKLIFE")
    pairs = list(itertools.product(("True", "False", *UNKNOWN), repeat=2))
    own = [SITES_OWN, *({**SITES_OWN, **dict(zip(_OF_CLAIMS, pair))} for pair in pairs)]
    slots = [slots_with(subject, attributes)[1] for attributes in own]
    usual, ended, *lives = (str(row[0]).lower() for row in _values(subject, text, slots, [{}]))
    situation = f"{_OF_CLAIMS[0]} is {{}} and {_OF_CLAIMS[1]} is {{}} ({{}} instead of {{}})"
    rows = zip(pairs[1:], lives)
    if changed := [situation.format(*pair, life, usual) for pair, life in rows if life != usual]:
        yield finding("claims end", place, situations=_some(changed), last=_LAST_OF_CLAIM)
    if subject.has_clauses and subject.text("SHARECTL_ENABLED").lower() != "false" and ended != "0":
        yield finding("claims live on", place, life=ended, last=_LAST_OF_CLAIM)


def _when_open(subject: SnippetSubject, start: str) -> Ad:
    """Attributes of a slot without a target, at a time of the week at which START takes jobs."""
    if any(_let_in(subject, start, [SITES_OWN])):
        return SITES_OWN
    half_hours = itertools.product(map(str, range(7)), map(str, range(0, 1440, 30)))
    own = [{**SITES_OWN, "ClockDay": day, "ClockMin": minute} for day, minute in half_hours]
    return next((at for at, jobs in zip(own, _let_in(subject, start, own)) if jobs), SITES_OWN)


def _let_in(subject: SnippetSubject, start: str, situations: Sequence[Ad]) -> list[list[str]]:
    """Typical jobs that START lets into one of the slots of each situation."""
    jobs = typical_jobs(subject)
    slots = [slot for situation in situations for slot in slots_with(subject, situation)]
    rows = _values(subject, start, slots, list(jobs.values()))
    return [
        [name for name, *values in zip(jobs, *pair) if any(map(is_true, values))]
        for pair in zip(rows[::2], rows[1::2])
    ]


def _values(
    subject: SnippetSubject, expression: str, slots: Sequence[Ad], jobs: Sequence[Ad]
) -> list[list[Any]]:
    """Value of an expression in each slot for each job; ``error`` if it cannot be read."""
    (values,) = subject.htcondor.evaluate([expression], slots, jobs)
    return values or [["error"] * len(jobs) for _ in slots]


def _some(words: Sequence[str]) -> str:
    return some(words, 3, "; ")


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
    """Findings about a configuration; parameters as of `SnippetSubject`."""
    with CondorProcess() as process:
        try:
            subject = subject_of(source, process, site_attributes, carried or {})
            files = dict.fromkeys(str(part.file) for part in subject.configuration.definitions)
            return SnippetReport(tuple(CHECKS.findings(subject)), tuple(files), _made(subject))
        except UnreadableConfigurationError as error:
            return SnippetReport((refusal(error, str(source.directory or source.main_file)),))


def _made(subject: SnippetSubject) -> dict[str, str]:
    of_access_point = SHOWN_OF_ACCESS_POINTS if subject.configuration.assignments(TRANSFORM) else ()
    of_node = SHOWN if subject.has_clauses or not of_access_point else ()
    made = {}
    for knob in (*of_node, *of_access_point):
        text = subject.configuration.text(knob)
        # As HTCondor prints it, a text of several lines has no comments, which end with a line.
        made[knob] = " ".join((subject.readable.get(knob, text) if "\n" in text else text).split())
    return made


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
        return _sum(stamped["lines"]) == stamped["sum"] if stamped else content == self.text


ROLES: Mapping[str, Role] = {
    "execute": Role("execute-point.conf", "60-sharectl-execute-point.conf", "STARTD"),
    "access": Role("access-point.conf", "60-sharectl-access-point.conf", "SCHEDD"),
    "central": Role("defrag.conf", "60-sharectl-defrag.conf", "DEFRAG"),
}


@dataclass(frozen=True)
class SnippetPlace:
    """Place of a role's snippet in the configuration of this machine."""

    path: Path
    content: Optional[str]
    """Content of the file that is there; None without one."""
    source: ConfigSource
    folders: tuple[Path, ...]
    """Folders that HTCondor reads, in its order."""
    has_daemon: bool
    """True if HTCondor is to run the role's daemon here."""


def place_of(role: Role, folder: Optional[Path]) -> SnippetPlace:
    """Place in ``folder``, or in the last of those that HTCondor reads on this machine.

    Raises InputError if it has no such folder, or its configuration cannot be read.
    """
    source = source_of(None)
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
    """Findings that the snippet ``content`` in that place would make; None for no snippet there."""
    before = check(place.source, published, carried).findings
    with _staged(place, content) as folder:
        folders = tuple(folder if path == place.path.parent else path for path in place.folders)
        report = check(replace(place.source, folders=folders), published, carried)
    findings = [part.moved(str(folder), str(place.path.parent)) for part in report.findings]
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
