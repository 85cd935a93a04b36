"""Slots as pending jobs see them when nothing runs there: a few kinds among thousands of nodes.

Of a slot's Requirements those clauses count that ask something of the job and that last: not
sharectl's own (target, grace, overheat), not the state of a node (drained, unhealthy, closed), not
a time of day or a load.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log
from typing import Any, Callable, Optional

from sharectl.condor.ads import expression, quoted, value_of
from sharectl.condor.daemons import slots as slots_of
from sharectl.condor.empty_slot import emptied
from sharectl.condor.expressions import MY, TARGET, clauses, code_of, references, words_of_text

Row = Mapping[str, str]
"""Attributes of an ad, in lower case -> expression."""

Look = Callable[[Sequence[str], str], Iterable[Any]]
"""Returns the ads of a pool's slots with these attributes, of those that meet a constraint."""

ACCEPTS = "t1_slotaccepts"
"""Attribute that an emptied slot gets: its lasting clauses."""

MOST_SAMPLES = 20
"""Nodes whose START tells which attributes of jobs count."""
MOST_POLICIES = 4

_FIRST = ("Name", "Machine", "Requirements", "WithinResourceLimits", "MachineResources")
_WORD = re.compile(r"\w+")
_LITERAL = re.compile(r'-?\d[\d.eE+-]*|"[^"\\]*"|true|false|undefined', re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,}(?:\.\d*)?")
_STEP = 1.03
"""Numbers from 1000 on within about this ratio make no kinds of their own."""

_JOBS_NAMES = """
    JobStatus JobUniverse AccountingGroup Requirements RequestCpus RequestMemory RequestDisk
    RequestGPUs
"""
_FUNCTION_NAMES = """
    time random eval currenttime daytime formattime abstime usermap userhome
"""
"""The last two read files of the machine that they are evaluated on."""
_MOMENTARY_NAMES = """
    clockmin clockday mycurrenttime lastheardfrom updatesequencenumber state activity
    enteredcurrentstate enteredcurrentactivity draining drainreason offline numdynamicslots jobstart
    currentrank remoteuser remoteowner numclaims loadavg condorloadavg totalloadavg
    totalcondorloadavg keyboardidle consoleidle cpubusy cpubusytime cpuisbusy virtualmemory
    totalvirtualmemory isowner mc_grace availablegpus
"""
_PREFIXES = """
    child t1_ recent monitorself remote preempting totaltime totaljob totalclaim retirementtime
"""
ASKED_OF_JOBS = tuple(_JOBS_NAMES.split())
"""Attributes of jobs that are asked for in any pool, beside those of `Sample`."""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_MOMENTARY = _FUNCTIONS.union(_MOMENTARY_NAMES.split())
_MOMENTARY_PREFIXES = tuple(_PREFIXES.split())
_POWER = "t1_wn_hs06"
_OF_JOBS = re.compile(
    r"_condor_\w+|_cp_\w+|request\w+|job\w+|want\w+|x509\w+|acctgroup\w*|accountinggroup|owner|user"
    r"|niceuser"
)
"""Attributes that START may mean of the job without TARGET.

Any other that the slot lacks it may lack for a moment.
"""


def is_momentary(word: str) -> bool:
    """Tells if an attribute or a function, in lower case, may have another value in a minute."""
    return word in _MOMENTARY or (word.startswith(_MOMENTARY_PREFIXES) and word != _POWER)


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
class Sample:
    """Attributes that matter in a pool, by some of its nodes."""

    words: tuple[str, ...] = ()
    """Attributes of jobs, in lower case, that START looks at; others tell no jobs apart."""
    resources: tuple[str, ...] = ()
    """MachineResources."""
    policies: tuple[Policy, ...] = ()
    """Different ones, at most `MOST_POLICIES`."""


@dataclass(frozen=True)
class AskingSlots:
    """Slots by what they ask of jobs."""

    names: tuple[str, ...]
    kinds: tuple[int, ...]
    """Number of the row of each."""
    rows: tuple[Row, ...]
    """`ACCEPTS` and what that sees, emptied."""
    resources: tuple[str, ...]
    unsure: frozenset[str]
    """Resources, in lower case, of which some slot does not tell how much it has in all."""


def sample_of(collector: Any, machines: Collection[str]) -> Sample:
    """Sample of ``machines``, from a collector of the bindings."""
    if not machines:
        return Sample()
    chosen = sorted(machines)[:: max(1, len(machines) // MOST_SAMPLES)][:MOST_SAMPLES]
    of_these = " || ".join(f'Machine == "{machine}"' for machine in chosen)
    words: set[str] = set()
    resources: dict[str, None] = {}
    policies: dict[str, Policy] = {}
    for ad in slots_of(collector, of_these, _FIRST):
        row = row_of(ad)
        resources.update(dict.fromkeys(_WORD.findall(row.get("machineresources", ""))))
        expressions, names = _apart(row)
        lasting = _lasting(expressions, names)
        words |= lasting.of_jobs
        own = tuple(pair for pair in expressions if not is_momentary(pair[0]))
        policy = Policy(_alike(ad, [name for name, _ in own]), own, tuple(sorted(lasting.of_slot)))
        if len(policies) < MOST_POLICIES:
            policies.setdefault(policy.constraint, policy)
    return Sample(tuple(sorted(words)), tuple(resources), tuple(policies.values()))


def _alike(ad: Any, names: Iterable[str]) -> str:
    """Constraint that is true of the ads in which these attributes are the same expressions."""
    return " && ".join(
        f"unparse({name}) =?= {quoted(value_of(expression(f'unparse({name})'), ad))}"
        for name in names
    )


def asking_slots(look: Look, sample: Sample) -> AskingSlots:
    """Slots of a pool by what they ask of jobs."""
    names: dict[str, int] = {}
    unsure: set[str] = set()
    kinds = Kinds()
    of_jobs = frozenset((*sample.words, *map(str.lower, ASKED_OF_JOBS)))
    for row in _first_rows(look, sample):
        unsure |= _unsure(row)
        names[row.get("name", "")] = kinds.number(_asking(row, of_jobs))
    return AskingSlots(
        tuple(names), tuple(names.values()), tuple(kinds.rows), sample.resources, frozenset(unsure)
    )


def _first_rows(look: Look, sample: Sample) -> Iterator[dict[str, str]]:
    """Each slot with what its Requirements look at; little is sent of those with a known policy."""
    totals = [f"TotalSlot{resource}" for resource in sample.resources]
    others = ["true"]
    for policy in sample.policies:
        expressions = dict(policy.expressions)
        seen = [name for name in policy.sees if name not in expressions]
        for ad in look(["Name", "MachineResources", *totals, *seen], policy.constraint):
            yield {**expressions, **row_of(ad)}
        others.append(f"({policy.constraint}) =!= true")
    for ad in look([*_FIRST, *totals], " && ".join(others)):
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
    """``text``, or the step of a large number; disks differ from minute to minute, so are one."""
    if not _NUMBER.fullmatch(text):
        return text
    return "~" if "disk" in name else f"~{floor(log(float(text), _STEP))}"


def _asking(row: dict[str, str], of_jobs: frozenset[str]) -> dict[str, str]:
    """The lasting clauses of a slot, and what they see of it when nothing runs there."""
    empty = {name.lower(): text for name, text in emptied(row).items()}
    lasting = _lasting(*_apart(empty), _unsure(row), of_jobs)
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
        momentary = any(is_momentary(name) or name in unsure for name in own)
        sites = code_of(clause) in ("site-start", "slot-requirements")
        if sites and others and not momentary and _FUNCTIONS.isdisjoint(words):
            of_slot |= own
            of_jobs |= others
            if names.issuperset(own) and (asked is None or asked.issuperset(others)):
                kept.append(clause.text)
    text = " && ".join(f"({clause})" for clause in kept)
    return _Lasting(text or "true", frozenset(of_slot), frozenset(of_jobs))


def _seen(written: str, texts: Row) -> tuple[set[str], set[str], set[str]]:
    """Attributes that an expression looks at, directly or not: own, others'; and all its words."""
    own: set[str] = set()
    others: set[str] = set()
    words: set[str] = set()
    waiting = [written]
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
def _references(written: str) -> tuple[tuple[str, str], ...]:
    return tuple((reference.scope, reference.name.lower()) for reference in references(written))
