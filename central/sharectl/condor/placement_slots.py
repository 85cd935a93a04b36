"""Slots as pending jobs see them when nothing runs there: a few kinds among thousands of nodes.

Of a slot's Requirements those clauses count that ask something of the job and that last: not
sharectl's own (target, grace, overheat), not the state of a node (drained, unhealthy, closed), not
a time of day or a load.

Whether some slot could run pending jobs if nothing ran there: to run in a process with a deadline.

Negotiator's rule: a match needs Requirements that are true, on both sides. What is no plain refusal
(an error, something that changes from minute to minute) counts as a match.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log
from typing import Any, Callable, Optional

from sharectl.condor.ads import ad_of_long, expression, is_refusal, value_of
from sharectl.condor.daemons import collector as collector_at
from sharectl.condor.daemons import slots as slots_in
from sharectl.condor.empty_slot import emptied
from sharectl.condor.expressions import (
    MY,
    TARGET,
    Clause,
    clauses,
    code_of,
    references,
    resource_of,
    words_of_text,
)

Row = Mapping[str, str]
"""Attributes of an ad, in lower case -> expression."""

Slots = Callable[..., Iterable[Any]]
"""Ads of a pool's slots with these attributes, of those that meet a constraint if there is one: see `slots_of`."""

ACCEPTS = "t1_slotaccepts"
"""Attribute that an emptied slot gets: its lasting clauses."""

MOST_SAMPLES = 20
"""Nodes whose START tells which attributes of jobs count; jobs that differ in others only are not told apart."""
MOST_POLICIES = 4
"""Policies that are asked for by what they have alike."""
MOST_VALUES = 50
"""An attribute with more values, such as Machine, makes kinds for the jobs alone that look at it."""

_FIRST = ("Name", "Machine", "Requirements", "WithinResourceLimits", "MachineResources")
_WORD = re.compile(r"\w+")
_LITERAL = re.compile(r'-?\d[\d.eE+-]*|"[^"\\]*"|true|false|undefined', re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,}(?:\.\d*)?")
_STEP = 1.03
"""Numbers from 1000 on within about this ratio make no kinds of their own."""

_SITE = ("site-start", "slot-requirements")
"""Codes of clauses that are not sharectl's."""
_FUNCTIONS = frozenset(
    (
        *("time", "random", "eval", "currenttime", "daytime", "formattime", "abstime"),
        # These read files of the machine that they are evaluated on.
        *("usermap", "userhome"),
    )
)
ASKED_OF_JOBS = (
    *("JobStatus", "JobUniverse", "AccountingGroup", "Requirements"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs"),
)
"""Attributes of jobs that are asked for in any pool, beside those of `Sample`."""
_MOMENTARY = _FUNCTIONS | {
    *("clockmin", "clockday", "mycurrenttime", "lastheardfrom", "updatesequencenumber"),
    *(
        "state",
        "activity",
        "enteredcurrentstate",
        "enteredcurrentactivity",
        "draining",
        "drainreason",
    ),
    *(
        "offline",
        "numdynamicslots",
        "jobstart",
        "currentrank",
        "remoteuser",
        "remoteowner",
        "numclaims",
    ),
    *(
        "loadavg",
        "condorloadavg",
        "totalloadavg",
        "totalcondorloadavg",
        "keyboardidle",
        "consoleidle",
    ),
    *(
        "cpubusy",
        "cpubusytime",
        "cpuisbusy",
        "virtualmemory",
        "totalvirtualmemory",
        "isowner",
        "mc_grace",
    ),
    "availablegpus",
}
_MOMENTARY_PREFIXES = (
    *("child", "t1_", "recent", "monitorself"),
    *("remote", "preempting", "totaltime", "totaljob", "totalclaim", "retirementtime"),
)
_POWER = "t1_wn_hs06"
_OF_JOBS = re.compile(
    r"_condor_\w+|_cp_\w+|request\w+|job\w+|want\w+|x509\w+|acctgroup\w*|accountinggroup|owner|user|niceuser"
)
"""Attributes that START may mean of the job without TARGET.; any other that the slot lacks it may lack for a moment."""


def is_momentary(word: str) -> bool:
    """Whether an attribute or a function, in lower case, may have another value in a minute."""
    return word in _MOMENTARY or (word.startswith(_MOMENTARY_PREFIXES) and word != _POWER)


@dataclass(frozen=True)
class Sample:
    """What some nodes of a pool tell of all."""

    words: tuple[str, ...] = ()
    """Attributes of jobs, in lower case, that their START looks at."""
    resources: tuple[str, ...] = ()
    """MachineResources."""
    policies: tuple[Policy, ...] = ()
    """Different ones, at most `MOST_POLICIES`."""


@dataclass(frozen=True)
class Policy:
    """Expressions that many slots have alike, so that the collector need not send them for each."""

    constraint: str
    """True of the slots that have them."""
    expressions: tuple[tuple[str, str], ...]
    """Name in lower case -> text, without what is momentary."""
    sees: tuple[str, ...]
    """Attributes that their lasting clauses look at."""


@dataclass(frozen=True)
class AskingSlots:
    """What each slot asks of jobs."""

    names: tuple[str, ...]
    kinds: tuple[int, ...]
    """Number of the row of each."""
    rows: tuple[Row, ...]
    """`ACCEPTS` and what that sees, emptied."""
    resources: tuple[str, ...]
    unsure: frozenset[str]
    """Resources, in lower case, of which some slot does not tell how much it has in all."""


def sample_of(asked: Any, machines: Collection[str]) -> Sample:
    """What a sample of ``machines`` tells; ``asked`` is a collector of the bindings."""
    if not machines:
        return Sample()
    chosen = sorted(machines)[:: max(1, len(machines) // MOST_SAMPLES)][:MOST_SAMPLES]
    of_these = " || ".join(f'Machine == "{machine}"' for machine in chosen)
    ads = slots_in(asked, of_these, _FIRST)
    words: set[str] = set()
    resources: dict[str, None] = {}
    policies: dict[str, Policy] = {}
    for ad in ads:
        row = row_of(ad)
        resources.update(dict.fromkeys(_WORD.findall(row.get("machineresources", ""))))
        expressions, names = _apart(row)
        lasting = _lasting(expressions, names)
        words |= lasting.of_jobs
        own = tuple(each for each in expressions if not is_momentary(each[0]))
        policy = Policy(_alike(ad, [name for name, _ in own]), own, tuple(sorted(lasting.of_slot)))
        if len(policies) < MOST_POLICIES:
            policies.setdefault(policy.constraint, policy)
    return Sample(tuple(sorted(words)), tuple(resources), tuple(policies.values()))


def _alike(ad: Any, names: Iterable[str]) -> str:
    """Constraint that is true of the ads in which these attributes are the same expressions."""
    import classad2

    texts = {name: classad2.ExprTree(f"unparse({name})").eval(ad) for name in names}
    return " && ".join(
        f"unparse({name}) =?= {classad2.quote(text)}" for name, text in texts.items()
    )


def slots_of(
    collector: Optional[str], projection: Sequence[str], constraint: str = "true"
) -> Iterable[Any]:
    """Slots of a pool, and of their attributes those named; the collector adds what these refer to."""
    return slots_in(collector_at(collector), constraint, projection)


def asking_slots(slots: Slots, sample: Sample) -> AskingSlots:
    """What each slot asks of jobs."""
    names: dict[str, int] = {}
    unsure: set[str] = set()
    kinds = Kinds()
    asked = frozenset((*sample.words, *map(str.lower, ASKED_OF_JOBS)))
    for row in _first_rows(slots, sample):
        unsure |= _unsure(row)
        names[row.get("name", "")] = kinds.number(_asking(row, asked))
    return AskingSlots(
        tuple(names), tuple(names.values()), tuple(kinds.rows), sample.resources, frozenset(unsure)
    )


def _first_rows(slots: Slots, sample: Sample) -> Iterator[dict[str, str]]:
    """Each slot with what its Requirements look at: of those that have a policy alike little is sent."""
    totals = [f"TotalSlot{resource}" for resource in sample.resources]
    others = ["true"]
    for policy in sample.policies:
        expressions = dict(policy.expressions)
        seen = [name for name in policy.sees if name not in expressions]
        for ad in slots(["Name", "MachineResources", *totals, *seen], policy.constraint):
            yield {**expressions, **row_of(ad)}
        others.append(f"({policy.constraint}) =!= true")
    for ad in slots([*_FIRST, *totals], " && ".join(others)):
        yield row_of(ad)


def row_of(ad: Any) -> dict[str, str]:
    """Attributes of an ad of the bindings."""
    lines = (line.partition(" = ") for line in ad.printOld().split("\n"))
    return {name.lower(): text for name, sign, text in lines if sign}


class Kinds:
    """Rows that are alike, each with the largest numbers that any of its kind has."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}

    def number(self, row: Row) -> int:
        """Number of the kind of a row."""
        key = tuple(sorted((name, stepped(name, text)) for name, text in row.items()))
        number = self._numbers.setdefault(key, len(self.rows))
        if number == len(self.rows):
            self.rows.append(dict(row))
        else:
            most = self.rows[number]
            for name, text in row.items():
                if text != most[name] and float(text) > float(most[name]):
                    most[name] = text
        return number


@lru_cache(maxsize=100_000)
def stepped(name: str, text: str) -> str:
    """``text``, or the step in which a large number is; disks, which differ from minute to minute, are all in one."""
    if not _NUMBER.fullmatch(text):
        return text
    return "~" if "disk" in name else f"~{floor(log(float(text), _STEP))}"


def _asking(row: dict[str, str], asked: frozenset[str]) -> dict[str, str]:
    """The lasting clauses of a slot, and what they see of it when nothing runs there."""
    empty = {name.lower(): text for name, text in emptied(row).items()}
    lasting = _lasting(*_apart(empty), _unsure(row), asked)
    kept = {name: empty[name] for name in (*lasting.of_slot, *_resources(row)) if name in empty}
    return {**kept, ACCEPTS: lasting.text}


def _resources(row: Row) -> list[str]:
    return _WORD.findall(row.get("machineresources", "cpus memory disk").lower())


def _unsure(row: Row) -> frozenset[str]:
    return frozenset(name for name in _resources(row) if f"totalslot{name}" not in row)


def _apart(row: Row) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Attributes that are no literals, and the names of all."""
    expressions = ((name, text) for name, text in row.items() if not _LITERAL.fullmatch(text))
    return tuple(sorted(expressions)), frozenset(row)


@dataclass(frozen=True)
class _Lasting:
    text: str
    """Conjunction of the clauses."""
    of_slot: frozenset[str]
    """Attributes of the slot that they look at."""
    of_jobs: frozenset[str]


@lru_cache(maxsize=1000)
def _lasting(
    expressions: tuple[tuple[str, str], ...],
    names: frozenset[str],
    unsure: frozenset[str] = frozenset(),
    asked: Optional[frozenset[str]] = None,
) -> _Lasting:
    """Clauses of a slot's Requirements that ask something of jobs, and last.

    A clause that looks at an attribute that the slot lacks is left out: the slot may lack it for a
    moment, or it is an attribute of jobs. So is a clause on an attribute of jobs that these were
    not asked for.

    Parameters
    ----------
    expressions
        Attributes of the slot that are no literals.
    names
        All attributes that it has.
    unsure
        Resources of which the slot does not tell how much it has in all.
    asked
        Attributes that jobs are asked for, in lower case; None for any.
    """
    texts = {**dict.fromkeys(names, ""), **dict(expressions)}
    kept, of_slot, of_jobs = [], set(), set()
    for clause in clauses(
        texts.get("requirements") or "true", lambda name: texts.get(name.lower()) or None
    ):
        own, others, words = _seen(clause.text, texts)
        if _is_lasting(clause, own, words, unsure) and others:
            of_slot |= own
            of_jobs |= others
            if names.issuperset(own) and (asked is None or asked.issuperset(others)):
                kept.append(clause.text)
    text = " && ".join(f"({clause})" for clause in kept)
    return _Lasting(text or "true", frozenset(of_slot), frozenset(of_jobs))


def _is_lasting(
    clause: Clause, own: Iterable[str], words: Collection[str], unsure: Collection[str]
) -> bool:
    return (
        code_of(clause) in _SITE
        and not any(is_momentary(name) or name in unsure for name in own)
        and _FUNCTIONS.isdisjoint(words)
    )


def _seen(expression: str, texts: Row) -> tuple[set[str], set[str], set[str]]:
    """Attributes that an expression of an ad looks at, directly or not: its own, others', and all words."""
    own: set[str] = set()
    others: set[str] = set()
    words: set[str] = set()
    waiting = [expression]
    while waiting:
        text = waiting.pop()
        words |= words_of_text(text)
        for scope, name in _references(text):
            if scope == TARGET or (scope != MY and name not in texts and _OF_JOBS.fullmatch(name)):
                others.add(name)
            elif name not in own:
                own.add(name)
                waiting.append(texts.get(name, ""))
    return own, others, words


@lru_cache(maxsize=10_000)
def _references(expression: str) -> tuple[tuple[str, str], ...]:
    return tuple((one.scope, one.name.lower()) for one in references(expression))


MOST_WORDS = 500
"""Attributes of slots that are asked for; jobs that look at others are left untried."""
MOST_REASON = 120
"""Characters of a clause that are told."""

WANTS = "t1_jobwants"
"""Attribute that a job gets: its lasting clauses."""
_JOIN = f"MY.{WANTS} && (TARGET.{ACCEPTS} =!= false)"
_ATTRIBUTE = re.compile(r"[a-z_]\w*", re.ASCII)
_PARTLY_FREE = (("cpus",), ("memory",), ("cpus", "memory"))
"""Resources of which a slot may have no more than a job requests."""
_AT_LEAST = re.compile(
    r"(?:TARGET\.)?(\w+) >= (?:MY\.)?Request\1\b|(?:TARGET\.)?(?:_condor_)?Request(\w+) <= "
    r"(?:MY\.)?\2\b"
    r"|MY\.\w+ > 0|\b1 <= MY\.Cpus\b",
    re.IGNORECASE,
)


class PendingJob:
    """Pending jobs that are alike."""

    def __init__(self, text: str) -> None:
        lines = (line.partition(" = ") for line in text.split("\n"))
        self.text = text
        self.row = {name.lower(): value for name, sign, value in lines if sign}
        self.words: frozenset[str] = frozenset().union(*map(words_of_text, self.row.values()))

    def ad(self, momentary: frozenset[str]) -> Any:
        """Ad for trials, in which what lasts of its Requirements has a name."""
        wants = "MY.Requirements" if "requirements" in self.row else "true"
        if self.words & momentary:
            wants = " && ".join(f"({clause})" for clause in self.clauses(momentary)) or "true"
        return ad_of_long(f"{self.text}\n{WANTS} = {wants}")

    def clauses(self, momentary: frozenset[str]) -> list[str]:
        """Clauses of its Requirements, without those that look at something momentary."""
        found = clauses(
            self.row.get("requirements", "true"), lambda name: self.row.get(name.lower())
        )
        return [clause.text for clause in found if momentary.isdisjoint(self._seen(clause.text))]

    def _seen(self, expression: str) -> set[str]:
        words: set[str] = set()
        waiting = [expression]
        while waiting:
            fresh = words_of_text(waiting.pop()) - words
            words |= fresh
            waiting += [self.row[word] for word in fresh if word in self.row]
        return words


class Machines:
    """Kinds of slots, as the jobs of a trial tell them apart.

    Parameters
    ----------
    slots
        What they ask of jobs; what jobs ask of them is fetched here.
    """

    def __init__(self, look: Slots, slots: AskingSlots, jobs: Sequence[PendingJob]) -> None:
        wanted: set[str] = set()
        for job in jobs:
            if len(wanted | job.words) <= MOST_WORDS:
                wanted |= job.words
        self._wanted = wanted
        self._rows = list(_fetched(look, slots, filter(_ATTRIBUTE.fullmatch, sorted(wanted))))
        self._momentary = self._changing(slots.unsure)
        names = {name for _, row in self._rows for name in row}
        values = {name: len({row.get(name) for _, row in self._rows}) for name in names}
        self._scattered = frozenset(name for name, count in values.items() if count > MOST_VALUES)
        self._kinds: dict[tuple[frozenset[str], tuple[str, ...]], list[Any]] = {}
        self._choosy = any(_is_choosy(row[ACCEPTS]) for row in slots.rows)

    def knows(self, job: PendingJob) -> bool:
        """Whether all that a job asks for was fetched."""
        return job.words <= self._wanted

    def could_run(self, job: PendingJob) -> bool:
        """Whether some slot could run a job, empty or with just what it requests free, or that cannot be told."""
        ad = job.ad(self._momentary)
        if _first_match(ad, self._of(job)):
            return True
        # A job, or START, may want few cores or little memory free (`Cpus < 12`).
        choosy = self._choosy or any(map(_is_choosy, job.clauses(self._momentary)))
        return choosy and any(_first_match(ad, self._of(job, few)) for few in _PARTLY_FREE)

    def reason(self, job: PendingJob) -> str:
        """Clause of the job that no slot meets; empty if there is none."""
        ad, kinds = job.ad(self._momentary), self._of(job)
        for clause in job.clauses(self._momentary):
            ad.update(ad_of_long(f"t1_Clause = {clause}"))
            if all(is_refusal(value_of(expression("MY.t1_Clause"), ad, kind)) for kind in kinds):
                return _shortened(clause, job)
        if not any(is_refusal(value_of(expression(f"MY.{WANTS}"), ad, kind)) for kind in kinds):
            return "START of every node refuses them"
        return ""

    def _of(self, job: PendingJob, few: tuple[str, ...] = ()) -> list[Any]:
        """Kinds of slots that the job can tell apart, as emptied ads, with no more than it requests of ``few``."""
        scattered = self._scattered & job.words
        if (scattered, few) not in self._kinds:
            hidden = self._momentary | (self._scattered - scattered)
            kinds = Kinds()
            for asking, row in self._rows:
                kinds.number(
                    {**{name: text for name, text in row.items() if name not in hidden}, **asking}
                )
            self._kinds[scattered, few] = [
                ad_of_long(
                    "\n".join(f"{name} = {_no_more(name, text, few)}" for name, text in row.items())
                )
                for row in kinds.rows
            ]
        return self._kinds[scattered, few]

    def _changing(self, unsure: Collection[str]) -> frozenset[str]:
        """Attributes and functions, in lower case, that may be different in a minute."""
        texts: dict[str, set[str]] = {}
        for _, row in self._rows:
            for name, text in row.items():
                texts.setdefault(name, set()).add(text)
        changing = {word for word in {*self._wanted, *texts} if is_momentary(word)} | set(unsure)
        while True:
            more = {
                name
                for name, found in texts.items()
                if name not in changing
                and any(
                    is_momentary(word) or word in changing
                    for text in found
                    for word in words_of_text(text)
                )
            }
            if not more:
                return frozenset(changing)
            changing |= more


def _fetched(look: Slots, slots: AskingSlots, words: Iterable[str]) -> Iterator[tuple[Row, Row]]:
    """What each slot asks of jobs, and the attributes that these look at, without resources, which are in the first."""
    ads = look(["Name", *words])
    of_slot = {row.get("name", ""): row for row in map(row_of, ads)}
    resources = {resource.lower() for resource in slots.resources}
    for name, number in zip(slots.names, slots.kinds):
        row = of_slot.get(name, {})
        yield slots.rows[number], {key: text for key, text in row.items() if key not in resources}


def _first_match(ad: Any, kinds: list[Any]) -> bool:
    """Whether a job matches one of ``kinds``, which then becomes the first: the next job is probably alike."""
    join = expression(_JOIN)
    for place, kind in enumerate(kinds):
        if not is_refusal(value_of(join, ad, kind)):
            kinds.insert(0, kinds.pop(place))
            return True
    return False


def _is_choosy(clause: str) -> bool:
    """Whether a clause may want no more than so many cores or so much memory free."""
    return not words_of_text(_AT_LEAST.sub("", clause)).isdisjoint(("cpus", "memory"))


def _no_more(name: str, text: str, few: Collection[str]) -> str:
    """``text``, or a job's literal request if that is less and the resource is one of ``few``."""
    request = f"TARGET.Request{name}"
    return f"ifThenElse(({request} < {text}) =?= true, {request}, {text})" if name in few else text


def _shortened(clause: str, job: PendingJob) -> str:
    resource = resource_of(Clause(clause))
    request = job.row.get(f"request{resource}") if resource else None
    words = " ".join(f"{clause} ({request})".split() if request else clause.split())
    return words if len(words) <= MOST_REASON else f"{words[: MOST_REASON - 1]}…"
