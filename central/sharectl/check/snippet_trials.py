"""Checks of snippets by trial: HTCondor evaluates START and CLAIM_WORKLIFE for typical jobs.

A node's START is the site's own expression, and sharectl's clauses, attributes of the slot. Here
the attributes have every value that they can have; what makes them is as sharectl ships it, which
is compared as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sharectl.check.findings import Finding, Level, some
from sharectl.check.slot_ad import saved_ads
from sharectl.check.snippet_subject import (
    CHECKS,
    CLAUSES,
    EXPRESSIONS,
    SnippetSubject,
    finding,
)
from sharectl.condor.ads import is_true
from sharectl.condor.configuration import Definition, definitions_in
from sharectl.condor.expressions import MY, references

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
    multicore_cores = subject.multicore_cores
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
    sizes = {"one core": "1", f"{multicore_cores} cores": str(multicore_cores)}
    jobs: dict[str, Ad] = {"no RequestCpus": job}
    for name, cores in sizes.items():
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
    place, text = subject.place("START"), subject.text("START")
    own = _when_open(subject, text)
    without, *unknown = _let_in(
        subject, text, [own, *({**own, **dict.fromkeys(CLAUSES, word)} for word in UNKNOWN)]
    )
    for word, let_in in zip(UNKNOWN, unknown):
        if jobs := [job for job in without if job not in let_in]:
            yield finding("kept out", place, word=word, jobs=_some(jobs), clauses=_CLAUSES)
    names = list(typical_jobs(subject))
    if not without:
        # A value that nobody gave may be the one that START wants.
        reads = references(subject.readable.get("START", ""))
        is_unsure = any(subject.carried.get(name) == "True" for scope, name in reads)
        level = Level.ADVICE if is_unsure else Level.ERROR
        yield finding("takes nothing", place, level=level, jobs=_some(names))
        return
    rows = zip(*_rows(subject, text, [own]))
    unclear = {
        name
        for name, values in zip(names, rows)
        if not any(isinstance(value, (bool, int, float)) for value in values)
    }
    if unclear:
        jobs = [name for name in names if name in unclear]
        yield finding("unclear", place, jobs=_some(jobs))


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
            names: dict[str, Any] = {"effect": effect, "instead": instead, "clauses": _CLAUSES}
            yield finding("without clauses", subject.place(macro), macro=macro, **names)


@CHECKS.rule()
def claims(subject: SnippetSubject) -> Iterator[Finding]:
    """Claims that outlive a target, or end early without one."""
    place, text = subject.place("CLAIM_WORKLIFE"), subject.text("CLAIM_WORKLIFE")
    words = ("True", "False", *UNKNOWN)
    pairs = [(active, held) for active in words for held in words]
    own = [SITES_OWN, *({**SITES_OWN, **dict(zip(_OF_CLAIMS, pair))} for pair in pairs)]
    slots = [slots_with(subject, attributes)[1] for attributes in own]
    usual, ended, *lives = (str(row[0]).lower() for row in _values(subject, text, slots, [{}]))
    changed = [
        f"{_OF_CLAIMS[0]} is {active} and {_OF_CLAIMS[1]} is {held} ({life} instead of {usual})"
        for (active, held), life in zip(pairs[1:], lives)
        if life != usual
    ]
    if changed:
        yield finding("claims end", place, situations=_some(changed), last=_LAST_OF_CLAIM)
    if subject.has_clauses and subject.text("SHARECTL_ENABLED").lower() != "false" and ended != "0":
        yield finding("claims live on", place, life=ended, last=_LAST_OF_CLAIM)


def _when_open(subject: SnippetSubject, start: str) -> Ad:
    """Attributes of a slot without a target, at a time of the week at which START takes jobs."""
    if any(_let_in(subject, start, [SITES_OWN])):
        return SITES_OWN
    own = [
        {**SITES_OWN, "ClockDay": str(day), "ClockMin": str(minute)}
        for day in range(7)
        for minute in range(0, 1440, 30)
    ]
    opened = (when for when, jobs in zip(own, _let_in(subject, start, own)) if jobs)
    return next(opened, SITES_OWN)


def _let_in(subject: SnippetSubject, start: str, situations: Sequence[Ad]) -> list[list[str]]:
    """Typical jobs that START lets into one of the slots of each situation."""
    jobs, rows = typical_jobs(subject), _rows(subject, start, situations)
    pairs = zip(rows[::2], rows[1::2])
    return [
        [name for name, *values in zip(jobs, *pair) if any(map(is_true, values))] for pair in pairs
    ]


def _rows(subject: SnippetSubject, start: str, situations: Sequence[Ad]) -> list[list[Any]]:
    """Values of START for the typical jobs, in both slots of each situation."""
    slots = [slot for situation in situations for slot in slots_with(subject, situation)]
    return _values(subject, start, slots, list(typical_jobs(subject).values()))


def _values(
    subject: SnippetSubject, expression: str, slots: Sequence[Ad], jobs: Sequence[Ad]
) -> list[list[Any]]:
    """Value of an expression in each slot for each job; ``error`` if it cannot be read."""
    (values,) = subject.htcondor.evaluate([expression], slots, jobs)
    return values or [["error"] * len(jobs) for _ in slots]


def _some(words: Sequence[str]) -> str:
    return some(words, 3, "; ")
